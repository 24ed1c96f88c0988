package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestContinueAfterEachEnd: whatever ended the run, the agent goes on, and no call is executed twice.
func TestContinueAfterEachEnd(t *testing.T) {
	length := agentkernel.StopReasonLength
	for name, c := range map[string]struct {
		cfg   agentkernel.Config
		first []agenttest.Reply
		abort agentkernel.EventType
		want  agentkernel.EndReason
		said  []string // in the run that continues
	}{
		"an error":                {first: replies(agenttest.Calls("t"), agenttest.Fail(failure(agentkernel.KindAuth, false))), want: agentkernel.EndError, said: []string{"assistant: ok"}},
		"an error in the message": {first: replies(agenttest.Text("hal").Fail(failure(agentkernel.KindAuth, false))), want: agentkernel.EndError, said: []string{"assistant: ok"}},
		"a panic":                 {first: replies(agenttest.Text("hal").Panic("x")), want: agentkernel.EndError, said: []string{"assistant: ok"}},
		"turns": {
			cfg: agentkernel.Config{MaxTurns: 1}, first: replies(agenttest.Calls("t")), want: agentkernel.EndMaxTurns, said: []string{"assistant: ok"},
		},
		"turns, in a cut answer": {
			cfg: agentkernel.Config{MaxTurns: 1, LengthPrompt: "go on"}, first: replies(agenttest.Text("hal").Stop(length)), want: agentkernel.EndMaxTurns,
			said: []string{"user: go on", "assistant: ok"},
		},
		"a cut answer": {
			cfg: agentkernel.Config{MaxLengthRecoveries: -1, LengthPrompt: "go on"}, first: replies(agenttest.Text("hal").Stop(length)), want: agentkernel.EndLength,
			said: []string{"user: go on", "assistant: ok"},
		},
		"the budget": {
			cfg:   agentkernel.Config{Budget: agentkernel.Budget{Tokens: 5}},
			first: replies(agenttest.Calls("t").Usage(agentkernel.Usage{Total: 5})), want: agentkernel.EndLimit, said: []string{"assistant: ok"},
		},
		"an abort in a message": {
			cfg:   agentkernel.Config{LengthPrompt: "go on"},
			first: replies(agenttest.Text("hal").Stall()), abort: agentkernel.EventMessageUpdate, want: agentkernel.EndAborted,
			said: []string{"user: go on", "assistant: ok"},
		},
		"an abort in a tool": {
			first: replies(agenttest.Calls("wait")), abort: agentkernel.EventToolExecStart, want: agentkernel.EndAborted, said: []string{"assistant: ok"},
		},
		"an abort with a mark": {
			cfg:   agentkernel.Config{AbortMarker: "stopped by the user"},
			first: replies(agenttest.Text("hal").Stall()), abort: agentkernel.EventMessageUpdate, want: agentkernel.EndAborted, said: []string{"assistant: ok"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			c.cfg.Model = agenttest.Script(append(c.first, agenttest.Text("ok"))...)
			c.cfg.Retry = unretried
			c.cfg.Tools = []agentkernel.Tool{waiter("wait"), tool("t", func(context.Context) (agentkernel.ToolResult, error) {
				runs++
				return agentkernel.ToolResult{}, nil
			})}
			agent := watch(t, c.cfg)
			agent.Subscribe(func(ev agentkernel.Event) {
				if ev.Type == c.abort {
					agent.Abort(nil)
					c.abort = "once"
				}
			})
			record, _ := agent.Run(t.Context(), "hi")
			require.Equal(t, c.want, record.EndReason)
			before := runs
			run, err := agent.Continue(t.Context())
			require.NoError(t, err)
			record, err = run.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.said, said(record.NewMessages))
			require.Equal(t, before, runs)
			require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
		})
	}
}

// TestContinueAfterACrash: wherever the process died, a store that Commit fills is enough to
// go on: answered calls are not run again, the others as RunOpenCalls says.
func TestContinueAfterACrash(t *testing.T) {
	for _, execute := range []bool{false, true} {
		for died := 1; died <= 5; died++ {
			var stored []json.RawMessage
			ran := map[string]int{}
			count := func(name string) agentkernel.Tool {
				return tool(name, func(context.Context) (agentkernel.ToolResult, error) {
					ran[name]++
					return agentkernel.TextResult(name), nil
				})
			}
			cfg := agentkernel.Config{
				Model: agenttest.Script(agenttest.Calls("a", "b"), agenttest.Text("ok")), Tools: []agentkernel.Tool{count("a"), count("b")},
				MaxParallelTools: 1,
				Commit: func(_ context.Context, m agentkernel.AgentMessage) error {
					if len(stored) == died {
						return errors.New("crashed")
					}
					raw, err := json.Marshal(m)
					stored = append(stored, raw)
					return err
				},
			}
			play(t, cfg)

			var restored []agentkernel.AgentMessage
			for _, raw := range stored {
				var m agentkernel.Message
				require.NoError(t, json.Unmarshal(raw, &m))
				restored = append(restored, m)
			}
			if died == 5 { // nothing crashed, and there is nothing to continue
				require.Len(t, restored, 5)
				continue
			}
			before := map[string]int{"a": ran["a"], "b": ran["b"]}
			model := agenttest.Script(slices.Repeat(replies(agenttest.Text("ok")), 3)...)
			agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{count("a"), count("b")}, RunOpenCalls: execute})
			require.NoError(t, agent.SetMessages(restored...))
			run, err := agent.Continue(t.Context())
			require.NoError(t, err)
			_, err = run.Wait(t.Context())
			require.NoError(t, err)
			again := map[string]int{"a": ran["a"] - before["a"], "b": ran["b"] - before["b"]}
			want := map[string]int{"a": 0, "b": 0}
			if execute && died == 2 {
				want["a"], want["b"] = 1, 1
			}
			if execute && died == 3 {
				want["b"] = 1
			}
			require.Equal(t, want, again, "died behind message %d", died)
			require.NoError(t, sound(model.Requests()[0].Messages))
			require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
		}
	}
}
