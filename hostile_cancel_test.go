package agentkernel_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// everywhere plays a plan in a bubble of its own, to be stopped at the event from, step events
// later and so on, until play tells that the run ended before.
func everywhere(t *testing.T, from, step int, play func(t *testing.T, p plan, at int) (over bool)) {
	for _, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			for at := from; ; at += step {
				over := false
				synctest.Test(t, func(t *testing.T) { over = play(t, p, at) })
				if over || t.Failed() {
					return
				}
			}
		})
	}
}

// checkStopped proves the stream of a run that was stopped, and that the history it leaves is
// sound. It returns that history.
func checkStopped(t *testing.T, p plan, at int, history []agentkernel.AgentMessage, log []agentkernel.Event) []agentkernel.AgentMessage {
	t.Helper()
	defer explain(t, fmt.Sprint("stopped at ", at), log)
	require.NoError(t, agenttest.CheckRun(history, log))
	state := agentkernel.AgentState{Messages: history}
	for _, ev := range log {
		state = agentkernel.Reduce(state, ev)
	}
	require.Equal(t, agentkernel.EventAgentEnd, final(log).Type)
	if endReason(log) == agentkernel.EndAborted {
		require.ErrorIs(t, final(log).Err, context.Canceled)
	}
	if !p.commitFails {
		require.NoError(t, accepted(agentkernel.DefaultConvertToLLM(state.Messages)))
		require.Empty(t, agentkernel.ValidateHistory(state.Messages))
	}
	return state.Messages
}

// explain shows a failed test's events.
func explain(t *testing.T, what string, log []agentkernel.Event) {
	if t.Failed() {
		t.Logf("%s\n%s", what, agenttest.Format(log))
	}
}

// TestHostileCancel: a bare loop that is cancelled at any event ends in time, with a sound history.
func TestHostileCancel(t *testing.T) {
	everywhere(t, 0, 1, func(t *testing.T, p plan, at int) (over bool) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if at == 0 {
			cancel(errHostile)
		}
		var log []agentkernel.Event
		var cancelled time.Time
		for ev := range agentkernel.AgentLoop(ctx, p.cfg(t), p.history, agentkernel.UserMessage("hi")) {
			if log = append(log, ev); len(log) == at {
				cancelled = time.Now()
				cancel(errHostile)
			}
		}
		if !cancelled.IsZero() {
			require.LessOrEqual(t, time.Since(cancelled), 5*time.Second, "at %d", at)
		}
		checkStopped(t, p, at, p.history, log)
		time.Sleep(3 * time.Hour) // until what is deaf has come back
		return len(log) < at
	})
}

// TestHostileAbandon: a loop that nobody reads any more ends when it is cancelled, and properly.
func TestHostileAbandon(t *testing.T) {
	everywhere(t, 0, 1, func(t *testing.T, p plan, at int) (over bool) {
		cfg := p.cfg(t)
		cfg.EventBuffer = 3
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		events := agentkernel.AgentLoop(ctx, cfg, p.history, agentkernel.UserMessage("hi"))
		var log []agentkernel.Event
		for range at {
			ev, more := <-events
			if !more {
				return true
			}
			log = append(log, ev)
		}
		synctest.Wait()
		cancel(errHostile)
		time.Sleep(3 * time.Hour)
		log = append(log, collect(events)...)
		defer explain(t, fmt.Sprint("cancelled at ", at), log)
		require.NotEmpty(t, log)
		require.Equal(t, agentkernel.EventAgentEnd, final(log).Type)
		checker := agenttest.NewChecker()
		checker.AllowGaps = true
		checker.StartFrom(p.history)
		for _, ev := range log {
			if ev.RunID == final(log).RunID { // a child's end may be among what was not read
				checker.Listen(ev)
			}
		}
		require.NoError(t, checker.Finish())
		return false
	})
}

// aborts are the ways in which a listener aborts, and at which events.
var aborts = map[string]struct {
	from, step int
	abort      func(agent *agentkernel.Agent)
}{
	"inside":  {1, 2, func(agent *agentkernel.Agent) { agent.Abort(errHostile) }},
	"outside": {2, 4, func(agent *agentkernel.Agent) { go agent.Abort(errHostile); time.Sleep(time.Millisecond) }},
	"slowly":  {4, 4, func(agent *agentkernel.Agent) { agent.Abort(nil); time.Sleep(7 * time.Second) }}, // longer than StopTimeout
}

// TestHostileAbort: an agent that is aborted at any event has the state that its events make, and goes on.
func TestHostileAbort(t *testing.T) {
	for name, a := range aborts {
		t.Run(name, func(t *testing.T) {
			everywhere(t, a.from, a.step, func(t *testing.T, p plan, at int) (over bool) {
				cfg := p.cfg(t)
				cfg.EventBuffer = 2
				agent, err := agentkernel.NewAgent(cfg)
				require.NoError(t, err)
				require.NoError(t, agent.SetMessages(p.history...))
				before, folded := agent.Messages(), agent.State()
				var log []agentkernel.Event
				stopped := false
				agent.Subscribe(func(ev agentkernel.Event) {
					log = append(log, ev)
					folded = agentkernel.Reduce(folded, ev)
					if d := differ(folded, agent.State()); d != "" {
						t.Errorf("at %d, %s: the state differs: %s", at, ev.Type, d)
					}
					if len(log) == at && !stopped {
						stopped = true
						a.abort(agent)
					}
				})
				_, _ = agent.Run(t.Context(), "hi")
				over, stopped = !stopped, true
				require.Equal(t, checkStopped(t, p, at, before, log), agent.Messages())
				time.Sleep(3 * time.Hour)
				if !p.commitFails {
					goesOn(t, p, at, agent, cfg, &log)
				}
				return over
			})
		})
	}
}

// goesOn runs the agent once more and proves that what was queued is said once.
func goesOn(t *testing.T, p plan, at int, agent *agentkernel.Agent, cfg agentkernel.Config, log *[]agentkernel.Event) {
	t.Helper()
	*log = nil
	before := agent.Messages()
	next := agenttest.Text("next")
	require.NoError(t, agent.SetModel(agenttest.Script(next, next, next, next, next)))
	_, err := agent.Run(t.Context(), "again")
	require.NoError(t, err, "at %d", at)
	checkStopped(t, p, at, before, *log)
	if cfg.FollowUps == nil {
		return
	}
	require.Empty(t, cfg.FollowUps.Items())
	require.Empty(t, cfg.Steering.Items())
	times := map[string]int{}
	for _, text := range said(agent.Messages()) {
		times[text]++
	}
	require.Equal(t, 1, times["user: f1"], "at %d", at)
	require.Equal(t, 1, times["user: f2"], "at %d", at)
}
