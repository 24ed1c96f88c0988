package agentkernel_test

import (
	"context"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestStreamIdleTimeout: silence before and between events fails the attempt, which is tried again.
func TestStreamIdleTimeout(t *testing.T) {
	for name, first := range map[string]agenttest.Reply{
		"before the first event": agenttest.Stall(),
		"in text":                agenttest.Text("hal").Stall(),
		"behind a call":          agenttest.Calls("t").Stall(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(first, agenttest.Text("ok"))
				began := time.Now()
				log := play(t, agentkernel.Config{Model: model, StreamIdleTimeout: time.Minute, Retry: unwaited})
				require.NoError(t, final(log).Err)
				require.Equal(t, time.Minute, time.Since(began))
				require.ErrorIs(t, ofType(log, agentkernel.EventRetry)[0].Err, agentkernel.KindStreamIdle)
				require.Zero(t, final(log).Summary.Abandoned)
				require.Len(t, model.Requests(), 2)
			})
		})
	}
}

// TestStreamIdleTimeoutNumbers: zero means five minutes, negative none.
func TestStreamIdleTimeoutNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Stall()), Retry: unretried})
		require.ErrorIs(t, final(log).Err, agentkernel.KindStreamIdle)
		require.Equal(t, agentkernel.EndError, endReason(log))
		require.Equal(t, 5*time.Minute, time.Since(began))

		began = time.Now()
		log = play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok").Delay(24 * time.Hour)), StreamIdleTimeout: -1})
		require.NoError(t, final(log).Err)
		require.Equal(t, 48*time.Hour, time.Since(began))
	})
}

// TestEventsCountAgainstSilence: a slow but living stream is not idle, however long it takes,
// also where what it yields shows nothing.
func TestEventsCountAgainstSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, slow := range []agenttest.Reply{
			agenttest.Text(strings.Repeat("a", 100)).Chunks(1),
			agenttest.Events(make([]agentkernel.StreamEvent, 0)...).Usage(agentkernel.Usage{}).Usage(agentkernel.Usage{}).Usage(agentkernel.Usage{Total: 1}).Text("ok"),
		} {
			log := play(t, agentkernel.Config{Model: agenttest.Script(slow.Delay(time.Minute - 1)), StreamIdleTimeout: time.Minute, Retry: unretried})
			require.NoError(t, final(log).Err)
		}
	})
}

// TestSlowConsumersAreNotSilence of the model.
func TestSlowConsumersAreNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Text(strings.Repeat("a", 20)).Chunks(1)), EventBuffer: 2,
			StreamIdleTimeout: time.Second, StopTimeout: time.Second, Retry: unretried,
		})
		agent.Subscribe(func(agentkernel.Event) { time.Sleep(time.Hour) })
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Zero(t, record.Summary.Abandoned)
		require.Zero(t, record.Summary.Retries)
	})
}

// TestSilenceBeginsBehindTheConsumer: a model that takes nearly as long as it may for each
// increment is in time, however long the consumer took for the one before, and one that takes
// a moment more is not.
func TestSilenceBeginsBehindTheConsumer(t *testing.T) {
	consume := map[string]func(t *testing.T, cfg agentkernel.Config, each func(agentkernel.Event)){
		"a bare loop": func(t *testing.T, cfg agentkernel.Config, each func(agentkernel.Event)) {
			for ev := range agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
				each(ev)
			}
		},
		"an agent": func(t *testing.T, cfg agentkernel.Config, each func(agentkernel.Event)) {
			agent, err := agentkernel.NewAgent(cfg)
			require.NoError(t, err)
			agent.Subscribe(each)
			_, _ = agent.Run(t.Context(), "hi")
		},
	}
	for who, consume := range consume {
		for _, silence := range []time.Duration{time.Minute - 1, time.Minute + 1} {
			t.Run(who+", "+silence.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					model := modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
						for range 10 {
							if !yield(textDelta("x"), nil) {
								return
							}
						}
						time.Sleep(silence)
						yield(done(""), nil)
					})
					var end agentkernel.Event
					consume(t, agentkernel.Config{Model: model, EventBuffer: 2, StreamIdleTimeout: time.Minute, Retry: unretried},
						func(ev agentkernel.Event) {
							time.Sleep(40 * time.Second) // the loop waits for each, and then goes on while this does
							end = ev
						})
					if silence < time.Minute {
						require.NoError(t, end.Err)
						return
					}
					require.ErrorIs(t, end.Err, agentkernel.KindStreamIdle)
				})
			})
		}
	}
}

// TestIdleModelThatIgnoresItsContext is left behind StopTimeout after the silence was too
// long, and the next attempt goes on without it; what it does later has no effect.
func TestIdleModelThatIgnoresItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		first agenttest.Reply
	}{
		"before the first event": {agenttest.Stall().Text("late").IgnoringContext()},
		"in text":                {agenttest.Text("hal").Stall().Text("late").IgnoringContext()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(c.first, agenttest.Text("ok"))
				began := time.Now()
				log := play(t, agentkernel.Config{Model: model, StreamIdleTimeout: time.Minute, StopTimeout: 7 * time.Second, Retry: unwaited})
				require.NoError(t, final(log).Err)
				require.Equal(t, time.Minute+7*time.Second, time.Since(began))
				require.Equal(t, 1, final(log).Summary.Abandoned)
				require.Equal(t, []string{"user: hi", "assistant: ok"}, said(final(log).NewMessages))
				require.ErrorIs(t, ofType(log, agentkernel.EventRetry)[0].Err, agentkernel.KindStreamIdle)
				model.Release()
				synctest.Wait()
			})
		})
	}
	t.Run("before Stream returns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			inner := agenttest.Script(agenttest.Text("late"), agenttest.Text("ok"))
			var n atomic.Int64
			model := agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
				if n.Add(1) == 1 {
					<-release
				}
				return inner.Stream(context.WithoutCancel(ctx), req)
			})
			log := play(t, agentkernel.Config{Model: model, StreamIdleTimeout: time.Minute, Retry: unwaited})
			require.Equal(t, 1, final(log).Summary.Abandoned)
			require.Len(t, final(log).NewMessages, 2)
			close(release)
			synctest.Wait()
		})
	})
}

// TestDoneInTheLastMoment: a model that says all in the moment in which its silence gets too long
// was in time or was not. Either way it has all of StopTimeout to return.
func TestDoneInTheLastMoment(t *testing.T) {
	for range 200 { // which of the two comes first is a matter of chance
		synctest.Test(t, func(t *testing.T) {
			model := modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
				time.Sleep(time.Minute)
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
				time.Sleep(5 * time.Second)
			})
			began := time.Now()
			log := play(t, agentkernel.Config{Model: model, StreamIdleTimeout: time.Minute, StopTimeout: 6 * time.Second,
				Retry: unretried, MaxEmptyRetries: -1})
			require.Equal(t, 65*time.Second, time.Since(began))
			require.Zero(t, final(log).Summary.Abandoned)
		})
	}
}

// TestSilenceInTheLastMoment: a model that returns without a word in the moment in which its silence
// gets too long is not kept, nor is its run, by a watch that goes on.
func TestSilenceInTheLastMoment(t *testing.T) {
	for range 100 { // whether the watch looks before or after the end is a matter of chance
		synctest.Test(t, func(t *testing.T) {
			silent := func() weak.Pointer[[1 << 10]byte] {
				own := new([1 << 10]byte)
				play(t, agentkernel.Config{StreamIdleTimeout: time.Minute, Retry: unretried,
					Model: modelOf(func(context.Context, agentkernel.ModelRequest, yieldFunc) {
						time.Sleep(time.Minute)
						runtime.KeepAlive(own)
					})})
				return weak.Make(own)
			}()
			time.Sleep(time.Hour)
			runtime.GC()
			require.True(t, silent.Value() == nil, "something still refers to the model")
		})
	}
}

// TestAbortOfAnIdleModel while the run waits for one that ignores its context.
func TestAbortOfAnIdleModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Text("hal").Stall().IgnoringContext(), agenttest.Text("never"))
		agent := watch(t, agentkernel.Config{Model: model, StreamIdleTimeout: time.Minute, StopTimeout: 10 * time.Second, Retry: unwaited})
		began := time.Now()
		time.AfterFunc(time.Minute+time.Second, func() { agent.Abort(nil) })
		record, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.LessOrEqual(t, time.Since(began), time.Minute+11*time.Second)
		require.Equal(t, []string{"user: hi", "assistant: hal"}, said(record.NewMessages))
		require.Len(t, model.Requests(), 1)
		model.Release()
		synctest.Wait()
	})
}

// TestRunTimeout ends a run wherever it is, with kind timeout and its cause.
func TestRunTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		script []agenttest.Reply
		said   []string
	}{
		"in a message": {replies(agenttest.Text("hal").Stall()), []string{"user: hi", "assistant: hal"}},
		"in a wait": {replies(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true, RetryAfter: time.Hour})),
			[]string{"user: hi"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := agentkernel.Config{Model: agenttest.Script(c.script...), RunTimeout: time.Minute, StreamIdleTimeout: -1,
					Retry: agentkernel.RetryPolicy{MaxDelay: -1}, AbortMarker: "out of time"}
				began := time.Now()
				agent := watch(t, cfg)
				record, err := agent.Run(t.Context(), "hi")
				require.ErrorIs(t, err, agentkernel.KindTimeout)
				require.ErrorContains(t, err, "RunTimeout")
				require.Equal(t, time.Minute, time.Since(began))
				require.Equal(t, agentkernel.EndTimeout, record.EndReason)
				require.Equal(t, append(c.said, "user: out of time"), said(record.NewMessages))

				cfg.Model = agenttest.Script(c.script...)
				log := play(t, cfg)
				require.Equal(t, agentkernel.EndTimeout, endReason(log))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // neither the default nor a negative one is a bound
		for _, d := range []time.Duration{0, -1} {
			log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok").Delay(time.Minute)), RunTimeout: d})
			require.NoError(t, final(log).Err)
		}
	})
}

// TestBudget stops a run before the next model call or tool, in tokens and in cost, failed
// attempts and the runs of tools included.
func TestBudget(t *testing.T) {
	cost := func(tokens int, cost float64) agentkernel.Usage {
		return agentkernel.Usage{Input: tokens, Total: tokens, Cost: &cost}
	}
	for name, c := range map[string]struct {
		budget agentkernel.Budget
		used   agentkernel.Usage
		tool   *agentkernel.Usage
		causes []string
		limit  bool
	}{
		"tokens":            {agentkernel.Budget{Tokens: 10}, cost(10, 0), nil, []string{"t limit"}, true},
		"fewer tokens":      {agentkernel.Budget{Tokens: 11}, cost(10, 0), nil, []string{"t ok"}, false},
		"cost":              {agentkernel.Budget{Cost: 0.5}, cost(1, 0.5), nil, []string{"t limit"}, true},
		"less cost":         {agentkernel.Budget{Cost: 0.6}, cost(1, 0.5), nil, []string{"t ok"}, false},
		"unknown cost":      {agentkernel.Budget{Cost: 0.5}, agentkernel.Usage{Total: 1 << 40}, nil, []string{"t ok"}, false},
		"no bound":          {agentkernel.Budget{Tokens: -1, Cost: -1}, cost(1<<40, 1e9), nil, []string{"t ok"}, false},
		"a tool's tokens":   {agentkernel.Budget{Tokens: 10}, cost(1, 0), &agentkernel.Usage{Total: 9}, []string{"t ok"}, true},
		"without a total":   {agentkernel.Budget{Tokens: 10}, agentkernel.Usage{Input: 6, Output: 4}, nil, []string{"t limit"}, true},
		"beyond the budget": {agentkernel.Budget{Tokens: 10, Cost: 1}, cost(1000, 0), nil, []string{"t limit"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(agenttest.Calls("t").Usage(c.used), agenttest.Text("ok"))
			log := play(t, agentkernel.Config{Model: model, Budget: c.budget, Tools: []agentkernel.Tool{
				tool("t", func(context.Context) (agentkernel.ToolResult, error) {
					return agentkernel.ToolResult{Usage: c.tool}, nil
				}),
			}})
			require.Equal(t, c.causes, causes(log))
			require.Empty(t, agentkernel.ValidateHistory(final(log).NewMessages))
			if !c.limit {
				require.NoError(t, final(log).Err)
				return
			}
			require.ErrorIs(t, final(log).Err, agentkernel.KindLimit)
			require.Equal(t, agentkernel.EndLimit, endReason(log))
			require.Len(t, model.Requests(), 1)
		})
	}
	t.Run("failed attempts", func(t *testing.T) {
		model := agenttest.Script(agenttest.Text("x").Usage(cost(10, 0)).Fail(failure(agentkernel.KindServer, true)), agenttest.Calls("t"), agenttest.Text("never"))
		log := play(t, agentkernel.Config{Model: model, Budget: agentkernel.Budget{Tokens: 10}, Retry: unwaited, Tools: []agentkernel.Tool{echo("t")}})
		require.ErrorIs(t, final(log).Err, agentkernel.KindLimit)
		require.Equal(t, []string{"t limit"}, causes(log))
	})
}
