package agentkernel_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// untilStopped is what well-behaved user code does that has much to do.
func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// phases are the places at which an abort may find a run, each with a run that stays there.
// Its user code comes back as soon as its context ends.
var phases = map[string]func() agentkernel.Config{
	"before the first event": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Stall())}
	},
	"in text": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Text("hal").Stall())}
	},
	"in thinking": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Thinking("hm").Stall())}
	},
	"in a call": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Call("1", "t", `{"a`).Stall())}
	},
	"in a fast stream": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Text(string(make([]byte, 1<<12))).Chunks(1).Delay(time.Millisecond).Stall())}
	},
	"in tools": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Calls("wait", "wait")), Tools: []agentkernel.Tool{waiter("wait")}}
	},
	"at the gate": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Calls("t")), Tools: []agentkernel.Tool{echo("t")},
			Gate: func(ctx context.Context, _ agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				return agentkernel.GateDecision{}, untilStopped(ctx)
			}}
	},
	"in a wait": func() agentkernel.Config {
		return agentkernel.Config{Retry: agentkernel.RetryPolicy{MaxDelay: -1},
			Model: agenttest.Script(agenttest.Text("hal").Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true, RetryAfter: 24 * time.Hour}))}
	},
	"in ConvertToLLM": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(), ConvertToLLM: func(ctx context.Context, _ []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
			return nil, untilStopped(ctx)
		}}
	},
	"in Prepare": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(), Prepare: func(ctx context.Context, _ agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{}, untilStopped(ctx)
		}}
	},
	"in Project": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(), ContextManager: &manager{project: func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{}, untilStopped(ctx)
		}}}
	},
	"in Recover": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(overflow), ContextManager: &manager{recover: func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{}, untilStopped(ctx)
		}}}
	},
	"in StopGuard": func() agentkernel.Config {
		return agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok")), StopGuard: func(ctx context.Context, _ agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{}, untilStopped(ctx)
		}}
	},
}

// TestAbortTakesNoTime with well-behaved user code, in whatever phase it finds the run: from
// the call to AgentEnd, which carries its cause.
func TestAbortTakesNoTime(t *testing.T) {
	cause := errors.New("the user pressed stop")
	var latencies []time.Duration
	for name, phase := range phases {
		for _, after := range []time.Duration{0, time.Nanosecond, time.Second} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					agent := watch(t, phase())
					run, err := agent.Prompt(t.Context(), "hi")
					require.NoError(t, err)
					time.Sleep(after)
					if after > 0 {
						synctest.Wait()
					}
					began := time.Now()
					run.Abort(cause)
					record, err := run.Wait(t.Context())
					latencies = append(latencies, time.Since(began))
					require.Zero(t, time.Since(began))
					require.ErrorIs(t, err, agentkernel.KindCanceled)
					require.ErrorIs(t, err, cause)
					require.Equal(t, agentkernel.EndAborted, record.EndReason)
					require.Zero(t, record.Summary.Abandoned)
					require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
					require.Empty(t, ofType(agent.events(), agentkernel.EventError))
				})
			})
		}
	}
	slices.Sort(latencies)
	t.Logf("%d aborts in %d phases: median %v, worst %v", len(latencies), len(phases), latencies[len(latencies)/2], latencies[len(latencies)-1])
}

// TestAbortLatency measures the same in real time.
func TestAbortLatency(t *testing.T) {
	for name, phase := range phases {
		var latencies []time.Duration
		for range 20 {
			agent, err := agentkernel.NewAgent(phase())
			require.NoError(t, err)
			run, err := agent.Prompt(t.Context(), "hi")
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
			began := time.Now()
			run.Abort(nil)
			_, err = run.Wait(t.Context())
			latencies = append(latencies, time.Since(began))
			require.ErrorIs(t, err, agentkernel.KindCanceled)
		}
		slices.Sort(latencies)
		t.Logf("%-24s median %v, worst %v", name, latencies[len(latencies)/2], latencies[len(latencies)-1])
		require.Less(t, latencies[len(latencies)/2], time.Second)
	}
}

// TestWaysToAbort: Abort of agent and run, the caller's context and deadlines are kind canceled
// or timeout, with their cause.
func TestWaysToAbort(t *testing.T) {
	cause := errors.New("why")
	for name, c := range map[string]struct {
		stop  func(ctx context.Context, agent *watched) (context.Context, func(*agentkernel.Run))
		kind  agentkernel.Kind
		cause error
	}{
		"Agent.Abort": {func(ctx context.Context, a *watched) (context.Context, func(*agentkernel.Run)) {
			return ctx, func(*agentkernel.Run) { a.Abort(cause) }
		}, agentkernel.KindCanceled, cause},
		"Run.Abort": {func(ctx context.Context, _ *watched) (context.Context, func(*agentkernel.Run)) {
			return ctx, func(run *agentkernel.Run) { run.Abort(cause) }
		}, agentkernel.KindCanceled, cause},
		"without a cause": {func(ctx context.Context, a *watched) (context.Context, func(*agentkernel.Run)) {
			return ctx, func(*agentkernel.Run) { a.Abort(nil) }
		}, agentkernel.KindCanceled, context.Canceled},
		"the first cause holds": {func(ctx context.Context, a *watched) (context.Context, func(*agentkernel.Run)) {
			return ctx, func(run *agentkernel.Run) { run.Abort(cause); a.Abort(errors.New("another")) }
		}, agentkernel.KindCanceled, cause},
		"the caller's context": {func(ctx context.Context, _ *watched) (context.Context, func(*agentkernel.Run)) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func(*agentkernel.Run) { cancel(cause) }
		}, agentkernel.KindCanceled, cause},
		"the caller's deadline": {func(ctx context.Context, _ *watched) (context.Context, func(*agentkernel.Run)) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, cause)
			return ctx, func(run *agentkernel.Run) { <-run.Done(); cancel() }
		}, agentkernel.KindTimeout, cause},
		"a deadline without a cause": {func(ctx context.Context, _ *watched) (context.Context, func(*agentkernel.Run)) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			return ctx, func(run *agentkernel.Run) { <-run.Done(); cancel() }
		}, agentkernel.KindTimeout, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hal").Stall())})
				ctx, stop := c.stop(t.Context(), agent)
				run, err := agent.Prompt(ctx, "hi")
				require.NoError(t, err)
				synctest.Wait()
				stop(run)
				record, err := run.Wait(t.Context())
				require.ErrorIs(t, err, c.kind)
				require.ErrorIs(t, err, c.cause)
				require.Equal(t, agentkernel.EndReason(map[agentkernel.Kind]string{"canceled": "aborted", "timeout": "timeout"}[c.kind]), record.EndReason)
				require.Equal(t, err, agent.State().Err)
			})
		})
	}
}

// TestAbortMarker is a whole message of its own at the end of a run that was stopped, which the
// model of the next run sees. No other end has one.
func TestAbortMarker(t *testing.T) {
	for name, phase := range phases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := phase()
				cfg.AbortMarker = "the user stopped you"
				agent := watch(t, cfg)
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				agent.Abort(nil)
				record, err := run.Wait(t.Context())
				require.ErrorIs(t, err, agentkernel.KindCanceled)
				last := record.NewMessages[len(record.NewMessages)-1]
				require.Equal(t, "user: the user stopped you", said(list(last))[0])
				require.Equal(t, []agentkernel.EventType{"message_start", "message_end", "agent_end"}, typesOf(agent.events()[len(agent.events())-3:]))

				model := agenttest.Script(agenttest.Text("sorry"))
				log := agenttest.Run(t, agentkernel.Config{Model: model}, agent.Messages())
				require.NoError(t, final(log).Err)
				seen := model.Requests()[0].Messages
				require.Equal(t, "the user stopped you", seen[len(seen)-1].TextContent())
			})
		})
	}
	for name, c := range map[string]agentkernel.Config{
		"stop":    {Model: agenttest.Script(agenttest.Text("ok"))},
		"error":   {Model: agenttest.Script(agenttest.Fail(failure(agentkernel.KindAuth, false)))},
		"timeout": {Model: agenttest.Script(agenttest.Fail(failure(agentkernel.KindTimeout, false)))},
		"turns":   {Model: agenttest.Script(agenttest.Calls("t")), MaxTurns: 1},
	} {
		t.Run("not after "+name, func(t *testing.T) {
			c.AbortMarker = "the user stopped you"
			require.NotContains(t, said(final(play(t, c)).NewMessages), "user: the user stopped you")
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log := drain(t, nil, agentkernel.AgentLoop(ctx, agentkernel.Config{Model: agenttest.Script(), AbortMarker: "x"}, nil))
	require.Empty(t, final(log).NewMessages, "nor where nothing began")
}

// TestRunsOnOneContextLeaveNothing: a thousand runs under one long context.
func TestRunsOnOneContextLeaveNothing(t *testing.T) {
	counted := &countingContext{Context: context.Background(), done: make(chan struct{})}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(slices.Repeat(replies(agenttest.Text("ok")), 1100)...), RunTimeout: time.Hour})
	require.NoError(t, err)
	for range 10 {
		_, err = agent.Run(counted, "hi")
		require.NoError(t, err)
		require.NoError(t, agent.Reset())
	}
	runtime.GC()
	goroutines, hooks := runtime.NumGoroutine(), counted.hooks.Load()
	for range 1000 {
		agent.Abort(errors.New("nothing runs"))
		_, err = agent.Run(counted, "hi")
		require.NoError(t, err)
		require.NoError(t, agent.Reset())
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+50, "far fewer than the runs: the last ones may still be leaving")
	require.Equal(t, hooks, counted.hooks.Load())
}

// inBubble counts the goroutines of the bubble of synctest that it is called in, which a
// traceback names.
func inBubble() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	bubble := regexp.MustCompile(`synctest bubble \d+`).Find(stacks) // its own stands first
	return bytes.Count(stacks, append(bubble, ']'))
}

// TestGoroutinesOfARun: a run that waits has its own two and those that wait in user code; an
// idle agent has none.
func TestGoroutinesOfARun(t *testing.T) {
	for name, extra := range map[string]int{"in a wait": 0, "in text": 1, "in Prepare": 1, "in tools": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				synctest.Wait()
				before := inBubble()
				agent := watch(t, phases[name]())
				require.Equal(t, before, inBubble())
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, 2+extra, inBubble()-before)
				agent.Abort(nil)
				_, err = run.Wait(t.Context())
				require.Error(t, err)
				synctest.Wait()
				require.Equal(t, before, inBubble())
			})
		})
	}
}
