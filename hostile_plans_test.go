package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// plan is a run that is stopped everywhere.
type plan struct {
	name    string
	history []agentkernel.AgentMessage
	cfg     func(t *testing.T) agentkernel.Config
	// commitFails: what was said may be missing from the history.
	commitFails bool
}

// plainPlan is a plan of a script alone.
func plainPlan(name string, script ...agenttest.Reply) plan {
	return plan{name: name, cfg: func(*testing.T) agentkernel.Config { return planned(script...) }}
}

// plannedWith is a plan of a script and tools of its own.
func plannedWith(name string, script []agenttest.Reply, tools ...agentkernel.Tool) plan {
	return plan{name: name, cfg: func(*testing.T) agentkernel.Config {
		cfg := planned(script...)
		cfg.Tools = append(cfg.Tools, tools...)
		return cfg
	}}
}

// planned is a config with quick, slow and deaf tools.
func planned(script ...agenttest.Reply) agentkernel.Config {
	return agentkernel.Config{Model: agenttest.Script(script...), Retry: agentkernel.RetryPolicy{Jitter: -1}, Tools: []agentkernel.Tool{
		safe(echo("a")), echo("u"), slowDeaf("deaf", time.Hour), safe(slowDeaf("deafc", 2*time.Second)),
		tool("talk", func(ctx context.Context) (agentkernel.ToolResult, error) {
			for i := range 3 {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressTurn, Count: i})
				time.Sleep(10 * time.Millisecond)
			}
			return agentkernel.TextResult("t"), nil
		}),
	}}
}

// slowDeaf is a tool that takes d whatever its context says, and reports before and after.
func slowDeaf(name string, d time.Duration) agentkernel.Tool {
	return tool(name, func(ctx context.Context) (agentkernel.ToolResult, error) {
		report(ctx, agentkernel.ProgressToolDelta, "a")
		time.Sleep(d)
		report(ctx, agentkernel.ProgressToolDelta, "b")
		return agentkernel.TextResult("deaf"), nil
	})
}

func plans() []plan {
	used := agentkernel.Usage{Input: 1, Output: 2, Total: 3}
	return []plan{
		plainPlan("calls", agenttest.Thinking("hmm").Text("let me").Calls("a", "u", "a", "talk").Usage(used), agenttest.Text("fine").Usage(used)),
		plainPlan("retries", agenttest.Text("a").Usage(used).Fail(failure(agentkernel.KindServer, true)), agenttest.Calls("a").EndsWithoutDone(),
			agenttest.Text("x").Calls("u"), agenttest.Reply{}, agenttest.Text("ok")),
		plainPlan("length", agenttest.Text("half").Stop(agentkernel.StopReasonLength),
			agenttest.Text("more").Call("x", "a", `{"n":1}`).Call("y", "a", `{"n":`).Stop(agentkernel.StopReasonLength), agenttest.Text("ok")),
		plainPlan("deaf tool", agenttest.Calls("a", "deaf", "a"), agenttest.Text("ok")),
		plainPlan("deaf tools", agenttest.Calls("a", "deafc", "deafc", "u", "a"), agenttest.Text("ok")),
		plainPlan("deaf model", agenttest.Text("a").Text("b").Calls("a").Delay(2*time.Second).IgnoringContext(), agenttest.Text("ok")),
		{name: "hooks", cfg: hookPlan},
		{name: "open calls", cfg: openCallsPlan, history: list(agentkernel.UserMessage("x"), openAnswer("a", "u"))},
		{name: "queues", cfg: queuePlan},
		plannedWith("panics", replies(agenttest.Text("x").Calls("p", "g", "a"), agenttest.Text("y").Goexit()),
			tool("p", func(context.Context) (agentkernel.ToolResult, error) { panic("x") }),
			tool("g", func(context.Context) (agentkernel.ToolResult, error) { runtime.Goexit(); panic("never") })),
		plannedWith("terminate", replies(agenttest.Calls("stop", "a"), agenttest.Text("y")),
			tool("stop", func(context.Context) (agentkernel.ToolResult, error) {
				return agentkernel.ToolResult{Terminate: true}, nil
			})),
		{name: "children", cfg: childrenPlan},
		{name: "commit fails", cfg: commitPlan, commitFails: true},
	}
}

// openAnswer is an answer whose calls of those tools have no results yet.
func openAnswer(tools ...string) agentkernel.Message {
	m := agentkernel.Message{Role: agentkernel.RoleAssistant}
	for _, name := range tools {
		m.Content = append(m.Content, agentkernel.ContentBlock{Type: agentkernel.ContentToolCall,
			ToolCall: &agentkernel.ToolCall{ID: "open " + name, Name: name, Args: json.RawMessage(`{}`)}})
	}
	return m
}

func hookPlan(*testing.T) agentkernel.Config {
	cfg := planned(agenttest.Text("x").Calls("a", "u"), agenttest.Text("ok"), agenttest.Text("again"))
	cfg.Gate = gate(agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{"g":1}`)})
	cfg.StopGuard = onceMore()
	cfg.Commit = func(context.Context, agentkernel.AgentMessage) error { time.Sleep(time.Millisecond); return nil }
	cfg.Prepare = func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
		return agentkernel.PrepareResult{ThinkingLevel: "high"}, nil
	}
	cfg.AbortMarker = "you were stopped"
	cfg.ContextManager = &manager{project: shortened}
	return cfg
}

// shortened replaces a history of some length by a summary.
func shortened(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	if len(req.History) < 4 {
		return agentkernel.ContextResult{}, nil
	}
	return replaced(agentkernel.UserMessage("summary"))(ctx, req)
}

func openCallsPlan(*testing.T) agentkernel.Config {
	cfg := planned(agenttest.Text("x").Calls("a"), agenttest.Text("ok"))
	cfg.RunOpenCalls = true
	cfg.AbortMarker = "you were stopped"
	return cfg
}

func queuePlan(t *testing.T) agentkernel.Config {
	cfg := planned(append(replies(agenttest.Calls("talk", "a")), slices.Repeat(replies(agenttest.Text("x")), 4)...)...)
	cfg.Steering, cfg.FollowUps = new(agentkernel.Queue), queueOf(t, agentkernel.QueueOneAtATime, "f1", "f2")
	for i := range cfg.Tools {
		if cfg.Tools[i].Name == "talk" {
			talk := cfg.Tools[i].Execute
			cfg.Tools[i].Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
				_ = cfg.Steering.Push(agentkernel.UserMessage("s1"), mark("s2"))
				return talk(ctx, args)
			}
		}
	}
	return cfg
}

func childrenPlan(t *testing.T) agentkernel.Config {
	child := planned(slices.Repeat(replies(agenttest.Text("child").Calls("a", "deafc"), agenttest.Text("child done")), 3)...)
	cfg := planned(agenttest.Text("x").Call("c1", "ask", askArgs("parallel", "c: p", "c: q")).Call("c2", "ask", askArgs("single", "c: p")).Calls("a"), agenttest.Text("y"))
	cfg.Tools = append(cfg.Tools, agents(t, agentkernel.ForwardEvents, map[string]agentkernel.Config{"c": child}))
	return cfg
}

func commitPlan(*testing.T) agentkernel.Config {
	cfg := planned(agenttest.Text("x").Calls("a", "u"), agenttest.Text("y"))
	n := 0
	cfg.Commit = func(context.Context, agentkernel.AgentMessage) error {
		if n++; n == 4 {
			return errors.New("disk")
		}
		return nil
	}
	return cfg
}
