package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// unwaited retries without a wait.
var unwaited = agentkernel.RetryPolicy{BaseDelay: -1}

// TestRetryOfEachPlace: an attempt that fails before its first event, in its middle or behind
// its calls is tried again under one budget; what it showed is taken back, what it cost is
// counted apart, and nothing of it reaches the history or the model.
func TestRetryOfEachPlace(t *testing.T) {
	used := agentkernel.Usage{Input: 3, Output: 2, Total: 5}
	bad := failure(agentkernel.KindServer, true)
	for name, c := range map[string]struct {
		attempt   agenttest.Reply
		kind      agentkernel.Kind
		discarded bool
	}{
		"before the first event": {agenttest.Fail(bad), agentkernel.KindServer, false},
		"behind usage":           {agenttest.Reply{}.Usage(used).Fail(bad), agentkernel.KindServer, true},
		"in thinking":            {agenttest.Thinking("hm").Usage(used).Fail(bad), agentkernel.KindServer, true},
		"in text":                {agenttest.Text("hal").Usage(used).Fail(bad), agentkernel.KindServer, true},
		"behind a call":          {agenttest.Text("hal").Call("1", "t", "{}").Usage(used).Fail(bad), agentkernel.KindServer, true},
		"without Done":           {agenttest.Text("hal").Usage(used).EndsWithoutDone(), agentkernel.KindStreamTruncated, true},
		"silent end":             {agenttest.Reply{}.EndsWithoutDone(), agentkernel.KindStreamTruncated, false},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(c.attempt, c.attempt, agenttest.Text("ok").Usage(used))
			ran := false
			cfg := agentkernel.Config{Model: model, Retry: agentkernel.RetryPolicy{MaxRetries: 2, BaseDelay: -1}, Tools: []agentkernel.Tool{
				tool("t", func(context.Context) (agentkernel.ToolResult, error) {
					ran = true
					return agentkernel.ToolResult{}, nil
				}),
			}}
			check := func(log []agentkernel.Event) {
				t.Helper()
				end := final(log)
				require.NoError(t, end.Err)
				require.Equal(t, []string{"user: hi", "assistant: ok"}, said(end.NewMessages))
				require.False(t, ran)
				require.Equal(t, used, end.Summary.Usage)
				want := agentkernel.Usage{}
				if c.discarded {
					want = used.Add(used)
				}
				require.Equal(t, want, end.Summary.DiscardedUsage)
				require.Len(t, ofType(log, agentkernel.EventMessageDiscard), map[bool]int{true: 2}[c.discarded])
				require.Equal(t, 2, end.Summary.Retries)
				for i, ev := range ofType(log, agentkernel.EventRetry) {
					require.ErrorIs(t, ev.Err, c.kind)
					require.Equal(t, i+1, ev.Attempt)
					require.Equal(t, i+1, ev.RetryInfo.Attempt)
					require.Equal(t, 2, ev.RetryInfo.MaxRetries)
					require.Equal(t, ev.Err, ev.RetryInfo.Err)
				}
			}
			check(play(t, cfg))
			for _, req := range model.Requests() {
				require.Len(t, req.Messages, 1)
			}
			cfg.Model = agenttest.Script(c.attempt, c.attempt, agenttest.Text("ok").Usage(used))
			agent := watch(t, cfg)
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			check(agent.events())
			require.Equal(t, used, agent.State().TotalUsage)
			require.Equal(t, final(agent.events()).Summary.DiscardedUsage, agent.State().DiscardedUsage)
		})
	}
}

// TestRetryForgets: what an attempt said that showed nothing is not in the next one's message.
func TestRetryForgets(t *testing.T) {
	attempts := 0
	model := modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
		if attempts++; attempts == 1 {
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Model: "first"}, nil)
			yield(agentkernel.StreamEvent{}, failure(agentkernel.KindServer, true))
			return
		}
		yield(textDelta("ok"), nil)
		yield(done(""), nil)
	})
	log := agenttest.Run(t, agentkernel.Config{Model: model, Retry: unwaited}, nil, agentkernel.UserMessage("hi"))
	answer := final(log).NewMessages[1].(agentkernel.Message)
	require.Equal(t, "ok", answer.TextContent())
	require.Empty(t, answer.Model)
	require.Equal(t, 2, attempts)
}

// TestRetryOfKinds: only what says that it may pass is tried again, whatever its kind.
func TestRetryOfKinds(t *testing.T) {
	for _, kind := range []agentkernel.Kind{
		agentkernel.KindTimeout, agentkernel.KindStreamIdle, agentkernel.KindNetwork, agentkernel.KindServer,
		agentkernel.KindOverloaded, agentkernel.KindRateLimit, agentkernel.KindQuota, agentkernel.KindAuth,
		agentkernel.KindInvalidRequest, agentkernel.KindContextOverflow, agentkernel.KindRefusal, agentkernel.KindProvider,
	} {
		for _, retryable := range []bool{true, false} {
			t.Run(fmt.Sprint(kind, " ", retryable), func(t *testing.T) {
				log := play(t, agentkernel.Config{
					Model: agenttest.Script(agenttest.Fail(failure(kind, retryable)), agenttest.Text("ok")), Retry: unwaited,
				})
				if retryable {
					require.NoError(t, final(log).Err)
					return
				}
				require.ErrorIs(t, final(log).Err, kind)
				require.Empty(t, ofType(log, agentkernel.EventRetry))
			})
		}
	}
}

// TestRetryNumbers: zero is the default, negative is none, in loop and agent alike.
func TestRetryNumbers(t *testing.T) {
	always := slices.Repeat(replies(agenttest.Text("x").Fail(failure(agentkernel.KindServer, true))), 9)
	for _, c := range []struct {
		policy agentkernel.RetryPolicy
		delays []time.Duration
	}{
		{agentkernel.RetryPolicy{Jitter: -1}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{agentkernel.RetryPolicy{MaxRetries: -1}, nil},
		{agentkernel.RetryPolicy{MaxRetries: 5, BaseDelay: 3 * time.Second, MaxDelay: 10 * time.Second, Jitter: -1},
			[]time.Duration{3 * time.Second, 6 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}},
		{agentkernel.RetryPolicy{MaxRetries: 2, BaseDelay: -1}, []time.Duration{0, 0}},
		{agentkernel.RetryPolicy{MaxRetries: 2, BaseDelay: time.Hour, MaxDelay: -1, Jitter: -1}, []time.Duration{time.Hour, 2 * time.Hour}},
		{agentkernel.RetryPolicy{MaxRetries: 2, BaseDelay: time.Hour, Jitter: -1}, []time.Duration{time.Minute, time.Minute}},
	} {
		synctest.Test(t, func(t *testing.T) {
			check := func(log []agentkernel.Event, took time.Duration) {
				t.Helper()
				require.ErrorIs(t, final(log).Err, agentkernel.KindServer)
				var delays []time.Duration
				var sum time.Duration
				for _, ev := range ofType(log, agentkernel.EventRetry) {
					delays = append(delays, ev.RetryInfo.Delay)
					sum += ev.RetryInfo.Delay
				}
				require.Equal(t, c.delays, delays)
				require.Equal(t, sum, took)
			}
			began := time.Now()
			log := play(t, agentkernel.Config{Model: agenttest.Script(always...), Retry: c.policy})
			check(log, time.Since(began))
			agent := watch(t, agentkernel.Config{Model: agenttest.Script(always...), Retry: c.policy})
			began = time.Now()
			_, err := agent.Run(t.Context(), "hi")
			require.Error(t, err)
			check(agent.events(), time.Since(began))
		})
	}
}

// TestRetryEventComesBeforeTheWait, and the attempt after it.
func TestRetryEventComesBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Fail(failure(agentkernel.KindServer, true)), agenttest.Text("ok")),
			Retry: agentkernel.RetryPolicy{BaseDelay: time.Hour, MaxDelay: -1}})
		retry := ofType(log, agentkernel.EventRetry)[0]
		requests := ofType(log, agentkernel.EventModelRequest)
		require.Equal(t, requests[0].Time, retry.Time)
		require.Equal(t, retry.RetryInfo.Delay, requests[1].Time.Sub(retry.Time))
		require.NotEmpty(t, retry.RetryInfo.Model)
		require.Empty(t, retry.RetryInfo.NextModel)
	})
}

// TestRetryJitter takes away at most its part of the wait, and nothing of what a server asks.
func TestRetryJitter(t *testing.T) {
	for jitter, least := range map[float64]float64{0: 0.8, 0.5: 0.5, 1: 0, -1: 1} {
		seen := map[time.Duration]bool{}
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				log := play(t, agentkernel.Config{Retry: agentkernel.RetryPolicy{BaseDelay: 10 * time.Second, Jitter: jitter},
					Model: agenttest.Script(agenttest.Fail(failure(agentkernel.KindServer, true)),
						agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindRateLimit, Retryable: true, RetryAfter: 30 * time.Second}), agenttest.Text("ok"))})
				retries := ofType(log, agentkernel.EventRetry)
				delay := retries[0].RetryInfo.Delay
				seen[delay] = true
				require.LessOrEqual(t, delay, 10*time.Second)
				require.GreaterOrEqual(t, float64(delay), least*float64(10*time.Second))
				require.Equal(t, 30*time.Second, retries[1].RetryInfo.Delay)
			})
		}
		require.Equal(t, jitter != -1, len(seen) > 1)
	}
}

// TestRetryAfterTooLong fails at once, with the error that says how long.
func TestRetryAfterTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Fail(&agentkernel.Error{
			Kind: agentkernel.KindRateLimit, Retryable: true, RetryAfter: 24 * time.Hour}), agenttest.Text("never"))})
		require.Zero(t, time.Since(began))
		e, ok := errors.AsType[*agentkernel.Error](final(log).Err)
		require.True(t, ok)
		require.Equal(t, agentkernel.KindRateLimit, e.Kind)
		require.Equal(t, 24*time.Hour, e.RetryAfter)
		require.Empty(t, ofType(log, agentkernel.EventRetry))
	})
}

// TestRetryAsksTheSame: neither settings nor steering reach a model call that is under way.
func TestRetryAsksTheSame(t *testing.T) {
	model := agenttest.Script(agenttest.Text("x").EndsWithoutDone(), agenttest.Text("ok"), agenttest.Text("ok"))
	agent := watch(t, agentkernel.Config{Model: model, Retry: unwaited, SystemPrompt: "first"})
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageDiscard {
			require.NoError(t, agent.SetSystemPrompt("second"))
			require.NoError(t, agent.Steer(agentkernel.UserMessage("later")))
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	requests := model.Requests()
	require.Equal(t, requests[0], requests[1])
}
