package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

var forwardModes = []agentkernel.ForwardMode{agentkernel.ForwardProgress, agentkernel.ForwardEvents, agentkernel.ForwardNone}

func usage(total int) agentkernel.Usage { return agentkernel.Usage{Total: total} }

// agents is the tool "ask" over agents with those models.
func agents(t testing.TB, forward agentkernel.ForwardMode, cfgs map[string]agentkernel.Config) agentkernel.Tool {
	t.Helper()
	cfg := agentkernel.AgentToolConfig{Name: "ask", Description: "Asks others.", Forward: forward}
	var names []string
	for name := range cfgs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		cfg.Agents = append(cfg.Agents, agentkernel.SubAgent{Name: name, Description: "good at " + name, Config: cfgs[name]})
	}
	tool, err := agentkernel.AgentTool(cfg)
	require.NoError(t, err)
	return tool
}

func askArgs(mode string, tasks ...string) string {
	var list []string
	for _, task := range tasks {
		agent, prompt, _ := strings.Cut(task, ": ")
		list = append(list, fmt.Sprintf(`{"agent":%q,"prompt":%q}`, agent, prompt))
	}
	return fmt.Sprintf(`{"mode":%q,"tasks":[%s]}`, mode, strings.Join(list, ","))
}

// prompts is what a model was asked, the last message of each request.
func prompts(m *agenttest.Model) []string {
	var out []string
	for _, req := range m.Requests() {
		out = append(out, req.Messages[len(req.Messages)-1].TextContent())
	}
	return out
}

// TestAgentToolModes in each way of forwarding.
func TestAgentToolModes(t *testing.T) {
	for _, forward := range forwardModes {
		for mode, tt := range map[string]struct {
			args  string
			b     []string
			told  string
			calls int
		}{
			"single":   {askArgs("single", "a: one"), nil, "A1", 1},
			"no mode":  {`{"tasks":[{"agent":"a","prompt":"one"}]}`, nil, "A1", 1},
			"parallel": {askArgs("parallel", "a: one", "b: two"), []string{"two"}, "[1] a:\nA1\n[2] b:\nB1", 2},
			"chain":    {askArgs("chain", "a: one", "b: after {previous}, {previous}"), []string{"after A1, A1"}, "[1] a:\nA1\n[2] b:\nB1", 2},
		} {
			t.Run(string(forward)+" "+mode, func(t *testing.T) {
				a := agenttest.Script(agenttest.Calls("echo").Usage(usage(1)), agenttest.Thinking("hm").Text("A1").Usage(usage(10)))
				b := agenttest.Script(agenttest.Text("B1").Usage(usage(100)))
				ask := agents(t, forward, map[string]agentkernel.Config{
					"a": {Model: a, Tools: []agentkernel.Tool{echo("echo")}}, "b": {Model: b}})
				model := agenttest.Script(agenttest.Call("c", "ask", tt.args).Usage(usage(1000)), agenttest.Text("ok").Usage(usage(10000)))
				agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{ask}})
				record, err := agent.Run(t.Context(), "hi")
				require.NoError(t, err)
				require.Equal(t, []string{tt.told}, told(model, 2))
				require.Equal(t, []string{"one", "{}"}, prompts(a))

				want := 11 + 11000
				if tt.calls == 2 {
					require.Equal(t, tt.b, prompts(b))
					want += 100
				}
				require.Equal(t, want, record.Summary.Usage.Total)
				require.Equal(t, want, agent.State().TotalUsage.Total)
				require.Equal(t, 1, record.Summary.ToolCalls)
				require.Len(t, record.NewMessages, 4)

				log := agent.events()
				var own, others []agentkernel.Event
				for _, ev := range log {
					if ev.RunID == record.ID {
						own = append(own, ev)
					} else {
						others = append(others, ev)
						require.Equal(t, record.ID, ev.ParentRunID)
					}
				}
				require.Equal(t, forward == agentkernel.ForwardEvents, len(others) > 0)
				require.Equal(t, forward == agentkernel.ForwardProgress, len(ofType(own, agentkernel.EventToolExecUpdate)) > 0)
				if forward == agentkernel.ForwardEvents {
					require.Len(t, ofType(others, agentkernel.EventAgentEnd), tt.calls)
				}
			})
		}
	}
}

// TestAgentToolProgress: what the sub-agent says and does, as progress of the call.
func TestAgentToolProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := &agentkernel.Error{Kind: agentkernel.KindServer, Op: "test", Retryable: true, Err: errors.New("down")}
		sub := agenttest.Script(agenttest.Fail(fail), agenttest.Thinking("hm").Calls("echo", "gone").Delay(time.Second), agenttest.Text("done").Delay(time.Second))
		ask := agents(t, agentkernel.ForwardProgress, map[string]agentkernel.Config{"sub": {Model: sub, Tools: []agentkernel.Tool{echo("echo")}}})
		log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Call("c", "ask", askArgs("single", "sub: go")), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{ask}})
		var got []string
		for _, p := range progressOf(log) {
			require.Equal(t, "sub", p.Tool)
			got = append(got, strings.TrimSpace(fmt.Sprint(p.Kind, " ", p.Text, " ", p.Count)))
		}
		for _, want := range []string{"turn_counter  1", "thinking hm 0", "turn_counter  2", "tool_delta done 0", "summary stop 0", "retry test: server: down 1", "tool_error gone 0"} {
			require.Contains(t, got, want)
		}
	})
}

// TestAgentToolFails where a task fails, telling the others' answers too.
func TestAgentToolFails(t *testing.T) {
	cfgs := func() map[string]agentkernel.Config {
		return map[string]agentkernel.Config{
			"good": {Model: agenttest.Script(agenttest.Text("fine").Usage(usage(1)))},
			"bad":  {Model: agenttest.Script(agenttest.Text("half").Usage(usage(10)).Fail(failure(agentkernel.KindServer, false)))},
		}
	}
	for mode, want := range map[string]string{
		"parallel": "[1] good:\nfine\n[2] bad:\nfailed: ",
		"chain":    "[1] bad:\nfailed: test: server\n[2] good:\nfailed: not begun, since the task before failed\n",
	} {
		t.Run(mode, func(t *testing.T) {
			args := askArgs(mode, "good: x", "bad: y")
			if mode == "chain" {
				args = askArgs(mode, "bad: y", "good: x")
			}
			log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{agents(t, agentkernel.ForwardEvents, cfgs())}}, "ask", args)
			require.Equal(t, agentkernel.ToolFailed, got.Cause)
			require.Contains(t, final(log).NewMessages[2].TextContent(), want)
			require.Equal(t, map[string]int{"parallel": 11, "chain": 10}[mode], got.Usage.Total)
			require.Equal(t, agentkernel.EndStop, endReason(log))
		})
	}
}

func TestAgentToolArguments(t *testing.T) {
	for args, want := range map[string]agentkernel.ToolCause{
		askArgs("single", "a: x", "a: y"):          agentkernel.ToolFailed,
		askArgs("", "a: x"):                        agentkernel.ToolInvalid,
		askArgs("single", "nobody: x"):             agentkernel.ToolInvalid,
		`{"tasks":[]}`:                             agentkernel.ToolInvalid,
		`{"tasks":[null]}`:                         agentkernel.ToolInvalid,
		`{}`:                                       agentkernel.ToolInvalid,
		`{"tasks":[{"agent":"a","prompt":"x"}]}`:   agentkernel.ToolOK,
		`{"mode":"chain","tasks":[{"agent":"a"}]}`: agentkernel.ToolInvalid,
	} {
		ask := agents(t, agentkernel.ForwardEvents, map[string]agentkernel.Config{"a": {Model: agenttest.Script(agenttest.Text("ok"))}})
		_, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{ask}}, "ask", args)
		require.Equal(t, want, got.Cause, args)
	}
}

// TestAgentToolBehindAMiddleware that writes what the schema does not allow.
func TestAgentToolBehindAMiddleware(t *testing.T) {
	for _, args := range []string{askArgs("parallel", "nobody: x", "a: y"), `{"mode":"parallel","tasks":[null,null]}`, `{"tasks":[{}]}`, `[]`} {
		ask := agents(t, agentkernel.ForwardEvents, map[string]agentkernel.Config{"a": {Model: agenttest.Script(agenttest.Text("ok"))}})
		_, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{ask}, Middleware: []agentkernel.Middleware{
			func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
				return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
					call.Args = json.RawMessage(args)
					return next(ctx, call)
				}
			}}}, "ask", askArgs("single", "a: x"))
		want := agentkernel.ToolFailed
		if args == "[]" {
			want = agentkernel.ToolInvalid
		}
		require.Equal(t, want, got.Cause, args)
	}
}

// TestAgentToolErrorThatPanics when it is asked for its text fails that task, not the process.
func TestAgentToolErrorThatPanics(t *testing.T) {
	bad := &agentkernel.Error{Kind: agentkernel.KindServer, Op: "test", Retryable: true, Err: badError{}}
	ask := agents(t, agentkernel.ForwardProgress, map[string]agentkernel.Config{
		"bad":  {Model: agenttest.Script(agenttest.Fail(bad))},
		"good": {Model: agenttest.Script(agenttest.Text("fine"))},
	})
	log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{ask}}, "ask", askArgs("parallel", "bad: x", "good: y"))
	require.Equal(t, agentkernel.ToolFailed, got.Cause)
	require.Contains(t, final(log).NewMessages[2].TextContent(), "fine")
}

func TestAgentToolRefuses(t *testing.T) {
	model := agenttest.Script()
	for name, cfg := range map[string]agentkernel.AgentToolConfig{
		"no agents":        {Name: "ask"},
		"no name":          {Agents: []agentkernel.SubAgent{{Name: "a", Config: agentkernel.Config{Model: model}}}},
		"an agent unnamed": {Name: "ask", Agents: []agentkernel.SubAgent{{Config: agentkernel.Config{Model: model}}}},
		"one name twice":   {Name: "ask", Agents: []agentkernel.SubAgent{{Name: "a", Config: agentkernel.Config{Model: model}}, {Name: "a", Config: agentkernel.Config{Model: model}}}},
		"no model":         {Name: "ask", Agents: []agentkernel.SubAgent{{Name: "a"}}},
		"a bad tool":       {Name: "ask", Agents: []agentkernel.SubAgent{{Name: "a", Config: agentkernel.Config{Model: model, Tools: []agentkernel.Tool{{Name: "x"}}}}}},
		"a bad config":     {Name: "ask", Agents: []agentkernel.SubAgent{{Name: "a", Config: agentkernel.Config{Model: model, SteerPolicy: "?"}}}},
		"a bad forward":    {Name: "ask", Forward: "all", Agents: []agentkernel.SubAgent{{Name: "a", Config: agentkernel.Config{Model: model}}}},
	} {
		_, err := agentkernel.AgentTool(cfg)
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest, name)
	}
}

// TestAgentToolParallelism: at most four at once by default.
func TestAgentToolParallelism(t *testing.T) {
	for limit, want := range map[int]time.Duration{0: 4 * time.Second, 1: 12 * time.Second, -1: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			slow := agentkernel.ChatModelFunc(agenttest.Script(slices.Repeat([]agenttest.Reply{agenttest.Text("x").Delay(time.Second)}, 6)...).Stream)
			ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", MaxParallel: limit, Forward: agentkernel.ForwardEvents,
				Agents: []agentkernel.SubAgent{{Name: "a", Config: agentkernel.Config{Model: slow}}}})
			require.NoError(t, err)
			began := time.Now()
			_, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{ask}}, "ask", askArgs("parallel", slices.Repeat([]string{"a: x"}, 6)...))
			require.Equal(t, agentkernel.ToolOK, got.Cause)
			require.Equal(t, want, time.Since(began))
		})
	}
}

// nested is an agent that asks an agent … depth times, the innermost of which answers.
func nested(t testing.TB, forward agentkernel.ForwardMode, depth int, innermost agentkernel.Config) agentkernel.Config {
	if depth == 0 {
		return innermost
	}
	return agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c", "ask", askArgs("single", "in: x")).Usage(usage(1)), agenttest.Text(fmt.Sprint("level ", depth)).Usage(usage(1))),
		Tools: []agentkernel.Tool{agents(t, forward, map[string]agentkernel.Config{"in": nested(t, forward, depth-1, innermost)})},
	}
}

// TestMaxDepth of agents that call agents: the smallest on the way holds.
func TestMaxDepth(t *testing.T) {
	for _, forward := range forwardModes {
		for limit, want := range map[int]int{0: 5, 1: 1, 3: 3, -1: 5} { // -1: the default of those within
			leaf := agentkernel.Config{Model: agenttest.Script(agenttest.Text("leaf").Usage(usage(1)))}
			cfg := nested(t, forward, 8, leaf)
			cfg.MaxDepth = limit
			log := play(t, cfg)
			runs := make(map[string]bool)
			for _, ev := range log {
				runs[ev.RunID] = true
			}
			if forward == agentkernel.ForwardEvents {
				require.Len(t, runs, 1+want, "limit %d", limit)
			}
			require.Equal(t, agentkernel.EndStop, endReason(log))
			require.Equal(t, 2*(1+want), final(log).Summary.Usage.Total, "each run's usage counts once")
		}
	}
}

// TestMaxDepthIsToldAsLimit.
func TestMaxDepthIsToldAsLimit(t *testing.T) {
	var innermost []agentkernel.ToolCause
	cfg := nested(t, agentkernel.ForwardEvents, 3, agentkernel.Config{Model: agenttest.Script(agenttest.Text("leaf"))})
	cfg.MaxDepth = 2
	for _, ev := range ofType(play(t, cfg), agentkernel.EventToolExecEnd) {
		innermost = append(innermost, ev.Result.Cause)
	}
	require.Equal(t, []agentkernel.ToolCause{agentkernel.ToolLimit, agentkernel.ToolOK, agentkernel.ToolOK}, innermost)
}

// TestAbortReachesSubAgents: whatever they do at that moment, they come to their end, on
// the stream, before the call does, and the call before its run.
func TestAbortReachesSubAgents(t *testing.T) {
	deafTool := tool("deaf", func(context.Context) (agentkernel.ToolResult, error) {
		time.Sleep(time.Hour)
		return agentkernel.ToolResult{}, nil
	})
	for name, sub := range map[string]func() agentkernel.Config{
		"in its stream": func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Text("half").Stall())}
		},
		"before its stream": func() agentkernel.Config { return agentkernel.Config{Model: agenttest.Script(agenttest.Stall())} },
		"in its tool": func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Calls("wait", "echo")), Tools: []agentkernel.Tool{waiter("wait"), echo("echo")}}
		},
		"in its deaf tool": func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Calls("deaf", "echo")), Tools: []agentkernel.Tool{deafTool, echo("echo")}}
		},
		"in an agent of its own": func() agentkernel.Config {
			return nested(t, agentkernel.ForwardEvents, 2, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("deaf")), Tools: []agentkernel.Tool{deafTool}})
		},
	} {
		for _, forward := range forwardModes {
			for _, slow := range []time.Duration{0, 3 * time.Second} {
				t.Run(fmt.Sprint(name, " ", forward, " ", slow), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ask := agents(t, forward, map[string]agentkernel.Config{"a": sub(), "b": sub()})
						agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Call("c", "ask", askArgs("parallel", "a: x", "b: y", "a: z", "b: z", "a: w"))),
							Tools: []agentkernel.Tool{ask}, EventBuffer: 2})
						aborted := false
						agent.Subscribe(func(agentkernel.Event) {
							if aborted {
								time.Sleep(slow)
							}
						})
						run, err := agent.Prompt(t.Context(), "hi")
						require.NoError(t, err)
						synctest.Wait()
						aborted = true
						began := time.Now()
						run.Abort(errors.New("enough"))
						record, err := run.Wait(t.Context())
						require.ErrorContains(t, err, "enough")
						if slow == 0 {
							require.LessOrEqual(t, time.Since(began), 5*time.Second)
						}
						require.Zero(t, record.Summary.Abandoned, "the sub-agents stop in time")
						log := agent.events()
						for i, ev := range log {
							if ev.RunID == record.ID && ev.Type == agentkernel.EventToolExecEnd {
								require.Equal(t, agentkernel.ToolInterrupted, ev.Result.Cause)
								require.Empty(t, slices.DeleteFunc(slices.Clone(log[i:]), func(ev agentkernel.Event) bool { return ev.RunID == record.ID }))
							}
						}
						time.Sleep(2 * time.Hour)
					})
				})
			}
		}
	}
}

// TestAgentToolTimeout and steering end the sub-agent, not the run.
func TestAgentToolIsStopped(t *testing.T) {
	for _, forward := range forwardModes {
		synctest.Test(t, func(t *testing.T) {
			sub := agentkernel.Config{Model: agenttest.Script(agenttest.Text("half").Usage(usage(5)).Stall())}
			ask := agents(t, forward, map[string]agentkernel.Config{"a": sub})
			ask.Timeout = time.Minute
			log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{ask}}, "ask", askArgs("single", "a: x"))
			require.Equal(t, agentkernel.ToolTimeout, got.Cause)
			require.Equal(t, 5, got.Usage.Total)
			require.Contains(t, final(log).NewMessages[2].TextContent(), "half")
			require.Equal(t, agentkernel.EndStop, endReason(log))
		})
		synctest.Test(t, func(t *testing.T) {
			sub := agentkernel.Config{Model: agenttest.Script(agenttest.Text("half").Stall())}
			ask := agents(t, forward, map[string]agentkernel.Config{"a": sub})
			ask.Interrupt = agentkernel.InterruptCancel
			steering := new(agentkernel.Queue)
			time.AfterFunc(time.Minute, func() { _ = steering.Push(agentkernel.UserMessage("stop it")) })
			log, got := once(t, agentkernel.Config{Steering: steering, Tools: []agentkernel.Tool{ask}}, "ask", askArgs("single", "a: x"))
			require.Equal(t, agentkernel.ToolInterrupted, got.Cause)
			require.Equal(t, time.Minute, ofType(log, agentkernel.EventToolExecEnd)[len(ofType(log, agentkernel.EventToolExecEnd))-1].Duration)
		})
	}
}

// TestBareLoopWithAChild whose consumer goes away ends all the same.
func TestBareLoopWithAChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub := agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("x", 500)).Chunks(1).Delay(time.Millisecond))}
		ask := agents(t, agentkernel.ForwardEvents, map[string]agentkernel.Config{"a": sub})
		ctx, cancel := context.WithCancel(t.Context())
		events := agentkernel.AgentLoop(ctx, agentkernel.Config{Model: agenttest.Script(agenttest.Call("c", "ask", askArgs("single", "a: x"))),
			Tools: []agentkernel.Tool{ask}, EventBuffer: 2}, nil, agentkernel.UserMessage("hi"))
		for range 20 {
			<-events
		}
		time.Sleep(time.Hour)
		cancel()
		time.Sleep(time.Hour)
		var last agentkernel.Event
		for ev := range events {
			last = ev
		}
		require.Equal(t, agentkernel.EventAgentEnd, last.Type)
		require.Empty(t, last.ParentRunID)
	})
}

func ExampleAgentTool() {
	researcher := agentkernel.SubAgent{
		Name:        "researcher",
		Description: "finds things out",
		Config:      agentkernel.Config{Model: agenttest.Script(agenttest.Text("The tower is 330 m high."))},
	}
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{
		Name:        "ask",
		Description: "Gives tasks to others.",
		Agents:      []agentkernel.SubAgent{researcher},
		Forward:     agentkernel.ForwardEvents,
	})
	if err != nil {
		panic(err)
	}
	cfg := agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Call("", "ask", `{"tasks":[{"agent":"researcher","prompt":"How high is the tower?"}]}`),
			agenttest.Text("330 m."),
		),
		Tools: []agentkernel.Tool{ask},
	}
	for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("How high?")) {
		switch {
		case ev.Type == agentkernel.EventAgentEnd && ev.ParentRunID != "":
			fmt.Println("sub-agent:", ev.NewMessages[1].TextContent())
		case ev.Type == agentkernel.EventAgentEnd:
			fmt.Println("agent:", ev.NewMessages[3].TextContent())
		}
	}
	// Output:
	// sub-agent: The tower is 330 m high.
	// agent: 330 m.
}

// TestSubAgentsEndWithTheirCall also where a middleware hands on a context that does not, and goes
// on asking.
func TestSubAgentsEndWithTheirCall(t *testing.T) {
	detach := func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
		return func(ctx context.Context, call agentkernel.ToolCall) (result agentkernel.ToolResult, err error) {
			for range 10 {
				result, err = next(context.WithoutCancel(ctx), call)
			}
			return result, err
		}
	}
	for _, forward := range forwardModes {
		for want, took := range map[agentkernel.ToolCause]time.Duration{
			agentkernel.ToolInterrupted: time.Second,     // aborted then
			agentkernel.ToolTimeout:     5 * time.Second, // a second, and StopTimeout
		} {
			t.Run(fmt.Sprint(forward, " ", want), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stalled := agenttest.Script(slices.Repeat([]agenttest.Reply{agenttest.Text("half").Stall()}, 10)...)
					cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Call("1", "ask", askArgs("single", "a: x")), agenttest.Text("ok")),
						Middleware: []agentkernel.Middleware{detach}, StopTimeout: 4 * time.Second,
						Tools: []agentkernel.Tool{agents(t, forward, map[string]agentkernel.Config{"a": {Model: stalled}})}}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if want == agentkernel.ToolTimeout {
						cfg.ToolTimeout = time.Second
					} else {
						time.AfterFunc(time.Second, cancel)
					}
					began := time.Now()
					log := collect(agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")))
					require.NoError(t, agenttest.CheckEvents(log))
					require.Equal(t, took, time.Since(began))
					require.Equal(t, want, results(log)["ask"].Cause)
					require.Len(t, stalled.Requests(), 1)
				})
			})
		}
	}
}

// TestCallThatKeepsAskingLate: a call whose time is up, and which goes on to start runs, is left
// behind once, and nothing waits for it any more.
func TestCallThatKeepsAskingLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		sub := modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
			if asked.Add(1) == 1 {
				time.Sleep(2500 * time.Millisecond) // when the call is late already
			}
			yield(textDelta("ok"), nil)
			yield(done(""), nil)
		})
		cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Call("1", "ask", askArgs("single", "a: x")), agenttest.Text("ok")),
			Tools:       []agentkernel.Tool{agents(t, agentkernel.ForwardEvents, map[string]agentkernel.Config{"a": {Model: sub}})},
			ToolTimeout: time.Second, StopTimeout: time.Second,
			Middleware: []agentkernel.Middleware{func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
				return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
					for range 10 {
						_, _ = next(context.WithoutCancel(ctx), call)
					}
					time.Sleep(time.Hour)
					return agentkernel.ToolResult{}, nil
				}
			}}}
		log := play(t, cfg)
		require.NoError(t, final(log).Err)
		require.Equal(t, []string{"ask timeout"}, causes(log))
		require.Equal(t, 1, final(log).Summary.Abandoned)
		time.Sleep(2 * time.Hour) // until all that was left behind has come back
	})
}
