package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// suspendedWorld is calls of which some wait, some run, and some are deaf, and how often each ran.
type suspendedWorld struct {
	cfg agentkernel.Config

	mu  sync.Mutex
	ran map[string]int
}

func newSuspendedWorld(script ...agenttest.Reply) *suspendedWorld {
	w := &suspendedWorld{ran: map[string]int{}}
	w.cfg = planned(script...)
	w.cfg.Middleware = []agentkernel.Middleware{func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
		return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
			w.mu.Lock()
			w.ran[call.ID]++
			w.mu.Unlock()
			return next(ctx, call)
		}
	}}
	w.cfg.Tools = append(w.cfg.Tools, tool("boom", func(context.Context) (agentkernel.ToolResult, error) { panic("x") }))
	w.cfg.Gate = func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		time.Sleep(time.Millisecond)
		if strings.HasPrefix(req.Call.ID, "w") {
			return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "may I?"})
		}
		return agentkernel.GateDecision{Allow: true}, nil
	}
	return w
}

func suspendingAnswer() agenttest.Reply {
	return agenttest.Text("x").Call("d", "deafc", `{}`).Call("w1", "a", `{}`).Call("u", "u", `{}`).
		Call("w2", "boom", `{}`).Call("w3", "deaf", `{}`)
}

// onceEach says that nothing ran twice.
func (w *suspendedWorld) onceEach(t *testing.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, n := range w.ran {
		require.LessOrEqual(t, n, 1, "call %s", id)
	}
}

// stopper readies a run to be stopped at its event at, and returns what is told of each.
type stopper = func(cfg *agentkernel.Config, cancel context.CancelCauseFunc, at int) func(int)

// TestHostileSuspend: whenever a run that suspends, or the one that resumes it, is cancelled or not
// allowed to commit, nothing is run twice, the streams are sound, and what is left can be resumed.
func TestHostileSuspend(t *testing.T) {
	for name, stopAt := range map[string]stopper{
		"cancel": func(_ *agentkernel.Config, cancel context.CancelCauseFunc, at int) func(int) {
			return func(n int) {
				if n == at {
					cancel(errHostile)
				}
			}
		},
		"commit": func(cfg *agentkernel.Config, _ context.CancelCauseFunc, at int) func(int) {
			seen := 0
			cfg.Commit = func(context.Context, agentkernel.AgentMessage) error {
				if seen++; seen > at/2 {
					return errors.New("no room")
				}
				return nil
			}
			return func(int) {}
		},
		"steer": func(cfg *agentkernel.Config, _ context.CancelCauseFunc, at int) func(int) {
			cfg.Steering, cfg.SteerPolicy = new(agentkernel.Queue), agentkernel.SteerSkip
			return func(n int) {
				if n == at {
					_ = cfg.Steering.Push(agentkernel.UserMessage("wait"))
				}
			}
		},
	} {
		for first := range 2 { // the run that is stopped
			t.Run(fmt.Sprintf("%s %d", name, first), func(t *testing.T) {
				for at := 0; !t.Failed(); at++ {
					over := false
					synctest.Test(t, func(t *testing.T) { over = hostileSuspend(t, first, at, stopAt) })
					if over {
						return
					}
				}
			})
		}
	}
}

// hostileSuspend plays a run that suspends, one that resumes it, and two in which the person says
// something else, of which one is stopped. It tells whether that one ended before.
func hostileSuspend(t *testing.T, stopped, at int, stop stopper) (over bool) {
	w := newSuspendedWorld(suspendingAnswer(), agenttest.Text("1"), agenttest.Text("2"), agenttest.Text("3"), agenttest.Text("4"), agenttest.Text("5"))
	var state agentkernel.AgentState
	answers := []map[string]agentkernel.GateDecision{nil, {"w1": {Allow: true}, "w2": {Allow: true}, "w3": {Allow: true}}, nil, nil}
	for round := range 4 {
		ctx, cancel := context.WithCancelCause(t.Context())
		cfg, listen := w.cfg, func(int) {}
		if round == stopped {
			listen = stop(&cfg, cancel, at)
		}
		var prompts []agentkernel.AgentMessage
		if round != 1 {
			prompts = append(prompts, agentkernel.UserMessage("hi"))
		}
		if len(state.Suspended) > 0 {
			cfg.Resume = &agentkernel.Resumption{Suspended: state.Suspended, Answers: map[string]agentkernel.GateDecision{}}
			for _, s := range state.Suspended {
				if d, ok := answers[round][s.Call.ID]; ok {
					cfg.Resume.Answers[s.Call.ID] = d
				}
			}
		}
		history := state.Messages
		var log []agentkernel.Event
		began := time.Now()
		listen(0)
		for ev := range agentkernel.AgentLoop(ctx, cfg, history, prompts...) {
			log = append(log, ev)
			listen(len(log))
			state = agentkernel.Reduce(state, ev)
		}
		cancel(nil)
		require.NoError(t, agenttest.CheckRun(history, log), "round %d at %d\n%s", round, at, agenttest.Format(log))
		require.Less(t, time.Since(began), 2*time.Hour)
		if round == stopped {
			over = at > 2*len(log)
		}
		time.Sleep(3 * time.Hour)
		w.onceEach(t)
	}
	require.Empty(t, state.Suspended, "whoever says something else has an answer for all")
	require.Empty(t, orphans(state.Messages))
	return over
}

// orphans are the calls of the history that have no result.
func orphans(history []agentkernel.AgentMessage) (open []string) {
	done := map[string]bool{}
	for _, m := range history {
		if own := m.(agentkernel.Message); own.Role == agentkernel.RoleTool {
			done[own.ToolCallID] = true
		}
	}
	for _, m := range history {
		for _, c := range m.(agentkernel.Message).ToolCalls() {
			if !done[c.ID] {
				open = append(open, c.ID)
			}
		}
	}
	return open
}

// TestSuspendedCallMakesNoMoreRuns: what a gate starts behind its back, once it has said that it has
// no answer, does not show.
func TestSuspendedCallMakesNoMoreRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := agents(t, agentkernel.ForwardEvents, map[string]agentkernel.Config{"a": {Model: agenttest.Script(agenttest.Text("half").Stall())}})
		slow := tool("slow", func(context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(3 * time.Second)
			return agentkernel.TextResult("slow"), nil
		})
		log := play(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("slow", "t")), Tools: []agentkernel.Tool{safe(slow), safe(echo("t"))},
			Gate: func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				if req.Call.Name == "slow" {
					return agentkernel.GateDecision{Allow: true}, nil
				}
				go func() {
					time.Sleep(time.Second)
					_, _ = ask.Execute(ctx, []byte(askArgs("single", "a: x")))
				}()
				return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "may I?"})
			},
		})
		require.Equal(t, agentkernel.EndSuspended, endReason(log))
	})
}
