package agentkernel_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// drain reads a bare loop to its end and proves its stream.
func drain(t testing.TB, history []agentkernel.AgentMessage, events <-chan agentkernel.Event) []agentkernel.Event {
	t.Helper()
	log := slices.Collect(func(yield func(agentkernel.Event) bool) {
		for ev := range events {
			if !yield(ev) {
				return
			}
		}
	})
	require.NoError(t, agenttest.CheckRun(history, log))
	return log
}

// play runs a bare loop on one user message and proves its stream.
func play(t testing.TB, cfg agentkernel.Config) []agentkernel.Event {
	t.Helper()
	return agenttest.Run(t, cfg, nil, agentkernel.UserMessage("hi"))
}

func final(log []agentkernel.Event) agentkernel.Event { return log[len(log)-1] }

func endReason(log []agentkernel.Event) agentkernel.EndReason { return final(log).Summary.EndReason }

func ofType(log []agentkernel.Event, types ...agentkernel.EventType) []agentkernel.Event {
	return slices.DeleteFunc(slices.Clone(log), func(ev agentkernel.Event) bool {
		return !slices.Contains(types, ev.Type)
	})
}

func typesOf(log []agentkernel.Event) []agentkernel.EventType {
	var out []agentkernel.EventType
	for _, ev := range log {
		out = append(out, ev.Type)
	}
	return out
}

// causes is what became of the calls, by tool, in the order of the calls.
func causes(log []agentkernel.Event) []string {
	var out []string
	for _, ev := range ofType(log, agentkernel.EventModelResponse) {
		for _, result := range ev.ToolResults {
			out = append(out, result.ToolName+" "+string(result.Cause))
		}
	}
	return out
}

// said is who said the messages, and the text of each.
func said(messages []agentkernel.AgentMessage) []string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.GetRole())+": "+m.TextContent())
	}
	return out
}

func failure(kind agentkernel.Kind, retryable bool) error {
	return &agentkernel.Error{Kind: kind, Op: "test", Retryable: retryable}
}

func tool(name string, run func(ctx context.Context) (agentkernel.ToolResult, error)) agentkernel.Tool {
	return agentkernel.Tool{Name: name, Execute: func(ctx context.Context, _ json.RawMessage) (agentkernel.ToolResult, error) {
		return run(ctx)
	}}
}

// echo is a tool that answers with its arguments.
func echo(name string) agentkernel.Tool {
	return agentkernel.Tool{Name: name, Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		return agentkernel.TextResult(string(args)), nil
	}}
}

// waiter is a tool that runs until its context ends.
func waiter(name string) agentkernel.Tool {
	return tool(name, func(ctx context.Context) (agentkernel.ToolResult, error) {
		<-ctx.Done()
		return agentkernel.ToolResult{}, context.Cause(ctx)
	})
}

// cancelOn cancels at the first event of a type that a drained channel brings.
func cancelOn(events <-chan agentkernel.Event, at agentkernel.EventType, cancel func()) <-chan agentkernel.Event {
	out := make(chan agentkernel.Event)
	go func() {
		defer close(out)
		for ev := range events {
			if ev.Type == at {
				cancel()
			}
			out <- ev
		}
	}()
	return out
}

// watched is an agent whose whole stream is kept and goes through the checker.
type watched struct {
	*agentkernel.Agent

	mu  sync.Mutex
	log []agentkernel.Event
}

func watch(t testing.TB, cfg agentkernel.Config) *watched {
	t.Helper()
	agent, err := agentkernel.NewAgent(cfg)
	require.NoError(t, err)
	w := &watched{Agent: agent}
	checker := agenttest.NewChecker()
	agent.Subscribe(checker.Listen)
	agent.Subscribe(w.listen)
	t.Cleanup(func() { require.NoError(t, checker.Finish()) })
	return w
}

func (w *watched) listen(ev agentkernel.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, ev)
}

func (w *watched) events() []agentkernel.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// waitIn waits for a run for at most d.
func waitIn(t testing.TB, run *agentkernel.Run, d time.Duration) (agentkernel.RunRecord, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return run.Wait(ctx)
}
