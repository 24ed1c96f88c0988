package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// hookPlaces are all places at which the kernel calls a harness's code, or a model's.
var hookPlaces = []string{
	"project", "recover", "prepare", "convert", "guard", "gate", "repair", "middleware", "factory", "validate",
	"preview", "readonly", "safe", "activity", "commit", "execute", "stream", "range",
}

// contextless are the places that are given no context.
var contextless = []string{"readonly", "safe", "activity", "factory"}

// hookActs are what such code may do instead of its work.
var hookActs = map[string]func(ctx context.Context) error{
	"blocks":        func(context.Context) error { time.Sleep(24 * time.Hour); return nil },
	"waits":         func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	"panics":        func(context.Context) error { panic("boom\xff\x00") },
	"exits":         func(context.Context) error { runtime.Goexit(); return nil },
	"fails":         func(context.Context) error { return errors.New("hook \xff error") },
	"panics late":   func(context.Context) error { time.Sleep(24 * time.Hour); panic("late") },
	"exits late":    func(context.Context) error { time.Sleep(24 * time.Hour); runtime.Goexit(); return nil },
	"panics twice":  func(context.Context) error { defer func() { panic("second") }(); panic("first") },
	"panics, exits": func(context.Context) error { defer runtime.Goexit(); panic("first") },
	"exits, panics": func(context.Context) error { defer func() { panic("second") }(); runtime.Goexit(); return nil },
}

// misdeed is what happens at one of the places.
type misdeed struct {
	at  string
	act func(ctx context.Context) error
	hit atomic.Bool
}

func (m *misdeed) do(ctx context.Context, at string) error {
	if at != m.at {
		return nil
	}
	m.hit.Store(true)
	return m.act(ctx)
}

// tool is one with every function that a tool can have.
func (m *misdeed) tool() agentkernel.Tool {
	none := context.Background()
	a := echo("a")
	a.Schema = map[string]any{"type": "object", "required": []string{"n"}}
	answer := a.Execute
	a.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		if err := m.do(ctx, "execute"); err != nil {
			return agentkernel.ToolResult{}, err
		}
		return answer(ctx, args)
	}
	a.Validate = func(ctx context.Context, _ json.RawMessage) error { return m.do(ctx, "validate") }
	a.Preview = func(ctx context.Context, _ json.RawMessage) (agentkernel.ProgressPayload, error) {
		return agentkernel.ProgressPayload{}, m.do(ctx, "preview")
	}
	a.ReadOnly = func(json.RawMessage) bool { return m.do(none, "readonly") == nil }
	a.Activity = func(json.RawMessage) string { return fmt.Sprint(m.do(none, "activity")) }
	a.ConcurrencySafe = func(json.RawMessage) bool { return m.do(none, "safe") == nil }
	return a
}

// model asks for sound calls, invalid ones and broken ones, or for a smaller history.
func (m *misdeed) model() agentkernel.ChatModel {
	script := agenttest.Script(agenttest.Text("x").Call("1", "a", `{"n":1}`).Call("2", "a", `{}`).Call("3", "a", `{"n":`), agenttest.Text("ok"))
	if m.at == "recover" {
		script = agenttest.Script(overflow)
	}
	n := 0
	return agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		n++
		first := n == 1
		if first && m.do(ctx, "stream") != nil {
			return nil
		}
		answer := script.Stream(ctx, req)
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			if first {
				if err := m.do(ctx, "range"); err != nil {
					yield(agentkernel.StreamEvent{}, err)
					return
				}
			}
			answer(yield)
		}
	})
}

// config has every hook that there is.
func (m *misdeed) config(stopTimeout time.Duration) agentkernel.Config {
	cfg := agentkernel.Config{
		Model: m.model(), Tools: []agentkernel.Tool{m.tool()}, StopTimeout: stopTimeout, AbortMarker: "stopped", StreamIdleTimeout: -1,
		ContextManager: &manager{
			project: func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
				return agentkernel.ContextResult{}, m.do(ctx, "project")
			},
			recover: func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
				return agentkernel.ContextResult{}, m.do(ctx, "recover")
			},
		},
		Prepare: func(ctx context.Context, _ agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{}, m.do(ctx, "prepare")
		},
		ConvertToLLM: func(ctx context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
			return agentkernel.DefaultConvertToLLM(history), m.do(ctx, "convert")
		},
		StopGuard: func(ctx context.Context, _ agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{}, m.do(ctx, "guard")
		},
		Gate: func(ctx context.Context, _ agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			return agentkernel.GateDecision{Allow: true}, m.do(ctx, "gate")
		},
		RepairToolCall: func(ctx context.Context, _ agentkernel.RepairRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"n":2}`), m.do(ctx, "repair")
		},
		Middleware: []agentkernel.Middleware{func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			_ = m.do(context.Background(), "factory")
			return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
				if err := m.do(ctx, "middleware"); err != nil {
					return agentkernel.ToolResult{}, err
				}
				return next(ctx, call)
			}
		}},
		Commit: func(ctx context.Context, _ agentkernel.AgentMessage) error { return m.do(ctx, "commit") },
	}
	if m.at == "stream" {
		cfg.Retry.MaxRetries = -1
	}
	return cfg
}

// TestHostileHooks: whatever is done at any place, the run ends in time and soundly, and nothing comes late.
func TestHostileHooks(t *testing.T) {
	for _, at := range hookPlaces {
		for what, act := range hookActs {
			if what == "waits" && slices.Contains(contextless, at) {
				continue
			}
			for _, stopTimeout := range []time.Duration{time.Nanosecond, 5 * time.Second} {
				t.Run(fmt.Sprintf("%s %s, %v", at, what, stopTimeout), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { (&misdeed{at: at, act: act}).play(t, stopTimeout) })
				})
			}
		}
	}
}

func (m *misdeed) play(t *testing.T, stopTimeout time.Duration) {
	const deadline = time.Second
	agent, err := agentkernel.NewAgent(m.config(stopTimeout))
	require.NoError(t, err)
	w := &watched{Agent: agent}
	checker := agenttest.NewChecker()
	checker.AllowRepair = true
	agent.Subscribe(checker.Listen)
	agent.Subscribe(w.listen)

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	limit := deadline + stopTimeout
	if m.at == "commit" { // which has a StopTimeout of its own
		limit += stopTimeout
	}
	began := time.Now()
	record, _ := agent.Run(ctx, "hi")
	require.LessOrEqual(t, time.Since(began), limit)
	require.True(t, m.hit.Load(), "never called: %v", record.Err)
	defer explain(t, "", w.events())
	require.NoError(t, checker.Finish())
	if m.at != "commit" {
		require.NoError(t, accepted(agentkernel.DefaultConvertToLLM(agent.Messages())))
	}
	n := len(w.events())
	time.Sleep(100 * time.Hour)
	require.Len(t, w.events(), n)
}
