package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// The faults that users of similar systems reported, each as a test of that name, as far as
// they are of run control. Those of tools and of the wire have files of their own.

func boxed(messages []agentkernel.Message) []agentkernel.AgentMessage {
	out := make([]agentkernel.AgentMessage, len(messages))
	for i, m := range messages {
		out[i] = m
	}
	return out
}

func TestFault16Quota429Retried(t *testing.T) {
	for name, c := range map[string]struct {
		err     *agentkernel.Error
		retried bool
	}{
		"quota":    {&agentkernel.Error{Kind: agentkernel.KindQuota, Status: 429}, false},
		"one day":  {&agentkernel.Error{Kind: agentkernel.KindRateLimit, Status: 429, Retryable: true, RetryAfter: 24 * time.Hour}, false},
		"a moment": {&agentkernel.Error{Kind: agentkernel.KindRateLimit, Status: 429, Retryable: true, RetryAfter: 2 * time.Second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(agenttest.Fail(c.err), agenttest.Text("ok"))
				began := time.Now()
				log := play(t, agentkernel.Config{Model: model})
				if c.retried {
					require.NoError(t, final(log).Err)
					require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
					retry := ofType(log, agentkernel.EventRetry)[0]
					require.Equal(t, 1, retry.RetryInfo.Attempt)
					require.Equal(t, 2*time.Second, retry.RetryInfo.Delay)
					require.ErrorIs(t, retry.RetryInfo.Err, agentkernel.KindRateLimit)
					return
				}
				require.Equal(t, c.err, final(log).Err)
				require.Zero(t, time.Since(began))
				require.Len(t, model.Requests(), 1)
			})
		})
	}
}

func TestFault18ListenerPanicBreaksRun(t *testing.T) {
	var reported []any
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok")),
		OnListenerPanic: func(value any, _ []byte, _ agentkernel.Event) { reported = append(reported, value) }})
	require.NoError(t, err)
	var first, second []agentkernel.Event
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			panic("L1")
		}
		first = append(first, ev)
	})
	agent.Subscribe(func(ev agentkernel.Event) { second = append(second, ev) })
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NoError(t, agenttest.CheckRun(nil, second))
	require.Equal(t, []any{"L1"}, reported)
	require.Equal(t, agentkernel.EventAgentEnd, final(first).Type)
}

func TestFault20ClientTimeoutKillsHealthyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := agenttest.Text(strings.Repeat("a", 60)).Chunks(1).Delay(50 * time.Millisecond)
		log := play(t, agentkernel.Config{Model: agenttest.Script(healthy), StreamIdleTimeout: 200 * time.Millisecond})
		require.NoError(t, final(log).Err)

		// A limit that the user set is named as what it is.
		log = play(t, agentkernel.Config{Model: agenttest.Script(healthy), RunTimeout: time.Second})
		require.ErrorIs(t, final(log).Err, agentkernel.KindTimeout)
		require.ErrorContains(t, final(log).Err, "RunTimeout")
		log = play(t, agentkernel.Config{Retry: unretried,
			Model: agenttest.Script(agenttest.Text("a").Fail(fmt.Errorf("read: %w (Client.Timeout exceeded)", context.DeadlineExceeded)))})
		require.ErrorIs(t, final(log).Err, agentkernel.KindTimeout)
		require.ErrorContains(t, final(log).Err, "Client.Timeout")
	})
}

func TestFault40EventsSilentlyDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("x", 500)).Chunks(1).Delay(100 * time.Microsecond))})
		updates := 0
		agent.Subscribe(func(ev agentkernel.Event) {
			time.Sleep(20 * time.Millisecond)
			if ev.Type == agentkernel.EventMessageUpdate {
				updates++
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, 500, updates)
	})
}

func TestFault42ReentrantListenerDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("abc").Chunks(1).Calls("wait"), agenttest.Text("never")), SteerPolicy: agentkernel.SteerFinish, Tools: []agentkernel.Tool{waiter("wait")}})
		var added, mine []agentkernel.Event
		var leave func()
		seenAt := uint64(0)
		leave = agent.Subscribe(func(ev agentkernel.Event) {
			mine = append(mine, ev)
			if ev.Type != agentkernel.EventMessageUpdate {
				return
			}
			require.True(t, agent.State().IsRunning)
			require.NoError(t, agent.Steer(agentkernel.UserMessage("x")))
			agent.Subscribe(func(ev agentkernel.Event) { added = append(added, ev) })
			_, err := agent.Prompt(t.Context(), "no")
			require.ErrorIs(t, err, agentkernel.ErrAlreadyRunning)
			_, err = agent.Run(t.Context(), "no")
			require.ErrorIs(t, err, agentkernel.ErrInListener)
			seenAt = ev.Seq
			leave()
		})
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventToolExecStart {
				agent.Abort(nil)
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, seenAt, final(mine).Seq)
		require.Equal(t, seenAt+1, added[0].Seq)
		require.Equal(t, agentkernel.EventAgentEnd, final(added).Type)
	})
}

func TestFault45ConcurrentPrompts(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok").Delay(20*time.Millisecond), agenttest.Text("again"))})
	var won, refused atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			run, err := agent.Prompt(t.Context(), "hi")
			if errors.Is(err, agentkernel.ErrAlreadyRunning) {
				refused.Add(1)
				return
			}
			require.NoError(t, err)
			won.Add(1)
			_, err = run.Wait(t.Context())
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.Equal(t, []int64{1, 49}, []int64{won.Load(), refused.Load()})
	require.Equal(t, []string{"user: hi", "assistant: ok"}, said(agent.Messages()))
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
}

func TestFault47PromptReturnsBeforeRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Status: 503, Retryable: true}), agenttest.Text("ok"))})
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, "ok", record.Answer)
		n := len(agent.events())
		require.Equal(t, agentkernel.EventAgentEnd, final(agent.events()).Type)
		require.Len(t, ofType(agent.events(), agentkernel.EventAgentEnd), 1)
		require.Len(t, ofType(agent.events(), agentkernel.EventRetry), 1)
		time.Sleep(time.Hour)
		require.Len(t, agent.events(), n)
	})
}

func TestFault48EndEventsMissingOnSomePaths(t *testing.T) {
	boom := tool("boom", func(context.Context) (agentkernel.ToolResult, error) { panic("boom") })
	broken := tool("broken", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{}, errors.New("no")
	})
	for name, c := range map[string]struct {
		script []agenttest.Reply
		turns  int
		abort  agentkernel.EventType
	}{
		"stream ok":         {script: replies(agenttest.Text("ok"))},
		"stream error":      {script: replies(agenttest.Text("x").Fail(failure(agentkernel.KindServer, false)))},
		"tool ok":           {script: replies(agenttest.Calls("echo"), agenttest.Text("ok"))},
		"tool error":        {script: replies(agenttest.Calls("broken"), agenttest.Text("ok"))},
		"tool panic":        {script: replies(agenttest.Calls("boom"), agenttest.Text("ok"))},
		"unknown tool":      {script: replies(agenttest.Calls("reed"), agenttest.Text("ok"))},
		"invalid arguments": {script: replies(agenttest.Call("1", "echo", "["), agenttest.Text("ok"))},
		"abort in stream":   {script: replies(agenttest.Text("x").Stall()), abort: agentkernel.EventMessageUpdate},
		"abort in tool":     {script: replies(agenttest.Calls("wait")), abort: agentkernel.EventToolExecStart},
		"abort in backoff":  {script: replies(agenttest.Text("x").Fail(failure(agentkernel.KindServer, true))), abort: agentkernel.EventRetry},
		"max turns":         {script: replies(agenttest.Calls("echo")), turns: 1},
	} {
		t.Run(name, func(t *testing.T) {
			agent := watch(t, agentkernel.Config{Model: agenttest.Script(c.script...), MaxTurns: c.turns, Tools: []agentkernel.Tool{echo("echo"), waiter("wait"), boom, broken}})
			agent.Subscribe(func(ev agentkernel.Event) {
				if ev.Type == c.abort {
					agent.Abort(nil)
				}
			})
			_, _ = agent.Run(t.Context(), "hi")
			log := agent.events()
			n := func(types ...agentkernel.EventType) int { return len(ofType(log, types...)) }
			require.Equal(t, 1, n(agentkernel.EventAgentStart))
			require.Equal(t, 1, n(agentkernel.EventAgentEnd))
			require.Equal(t, n(agentkernel.EventMessageStart), n(agentkernel.EventMessageEnd, agentkernel.EventMessageDiscard))
			require.Equal(t, n(agentkernel.EventToolExecStart), n(agentkernel.EventToolExecEnd))
			require.LessOrEqual(t, n(agentkernel.EventTurnStart)-n(agentkernel.EventModelResponse), 1)
		})
	}
}

func TestFault49ConsumerHangsOnInternalError(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  agentkernel.Config
		kind agentkernel.Kind
	}{
		"a hook panics":        {agentkernel.Config{Model: agenttest.Script(), ConvertToLLM: hook("boom", nil)}, agentkernel.KindPanic},
		"a hook returns error": {agentkernel.Config{Model: agenttest.Script(), ConvertToLLM: hook(nil, errors.New("no"))}, agentkernel.KindHook},
		"a nil stream":         {agentkernel.Config{Model: agenttest.Script(agenttest.NilStream())}, agentkernel.KindProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			agent := watch(t, c.cfg)
			var log []agentkernel.Event
			for ev, err := range agent.Stream(t.Context(), agentkernel.UserMessage("hi")) {
				require.NoError(t, err)
				log = append(log, ev)
			}
			require.Equal(t, []agentkernel.EventType{"error", "agent_end"}, typesOf(log[len(log)-2:]))
			require.ErrorIs(t, final(log).Err, c.kind)
			require.False(t, agent.State().IsRunning)
			require.ErrorIs(t, agent.State().Err, c.kind)
		})
	}
}

func TestFault50EmptyAnswerLoopsOrSilent(t *testing.T) {
	for name, empty := range map[string]agenttest.Reply{
		"tool_calls without calls": agenttest.Reply{}.Stop(agentkernel.StopReasonToolUse),
		"thinking only":            agenttest.Thinking("hm").Stop(agentkernel.StopReasonStop),
		"usage only":               agenttest.Reply{}.Usage(agentkernel.Usage{Output: 2, Total: 2}),
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(empty, empty, agenttest.Text("ok"))
			agent := watch(t, agentkernel.Config{Model: model})
			record, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.Len(t, model.Requests(), 2)
			require.Equal(t, agentkernel.EndEmpty, record.EndReason)
			_, err = agent.Run(t.Context(), "again")
			require.NoError(t, err)
			require.Equal(t, []string{"user", "user"}, outline(boxed(model.Requests()[2].Messages)))
		})
	}
}

func TestFault51EmptyAssistantMessageReplayed(t *testing.T) {
	for name, first := range map[string]agenttest.Reply{
		"before the first delta": agenttest.Stall(), "thinking only": agenttest.Thinking("hm").Stall(),
		"half a call": agenttest.Call("1", "t", `{"a`).Stall(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(first, agenttest.Text("ok"))
				agent := watch(t, agentkernel.Config{Model: model})
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				run.Abort(nil)
				_, err = run.Wait(t.Context())
				require.ErrorIs(t, err, agentkernel.KindCanceled)
				_, err = agent.Run(t.Context(), "again")
				require.NoError(t, err)
				require.Equal(t, []string{"user: hi", "user: again"}, said(boxed(model.Requests()[1].Messages)))
			})
		})
	}
}

func TestFault55MidStreamErrorNotRetried(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	for name, first := range map[string]agenttest.Reply{
		"a reset after a delta":     agenttest.Text("x").Fail(reset),
		"an error frame":            agenttest.Text("x").Fail(failure(agentkernel.KindServer, true)),
		"a reset before any byte":   agenttest.Fail(reset),
		"a body that ends too soon": agenttest.Text("x").Fail(io.ErrUnexpectedEOF),
	} {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: agenttest.Script(first, agenttest.Text("ok")), Retry: unwaited})
			require.NoError(t, final(log).Err)
			retry := ofType(log, agentkernel.EventRetry)
			require.Len(t, retry, 1)
			e, ok := errors.AsType[*agentkernel.Error](retry[0].Err)
			require.True(t, ok)
			require.True(t, e.Retryable)
			require.NotEmpty(t, e.Kind)

			model := agenttest.Script(first, agenttest.Text("never"))
			log = play(t, agentkernel.Config{Model: model, Retry: unretried})
			require.Error(t, final(log).Err)
			require.Len(t, model.Requests(), 1)
		})
	}
}

func TestFault56NestedRetriesMultiply(t *testing.T) {
	model := agenttest.Script(slices.Repeat(replies(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Status: 503, Retryable: true})), 20)...)
	log := play(t, agentkernel.Config{Model: model, Retry: agentkernel.RetryPolicy{MaxRetries: 2, BaseDelay: -1}})
	require.Len(t, model.Requests(), 3)
	require.Len(t, ofType(log, agentkernel.EventRetry), 2)
}

func TestFault57BackoffNotInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Status: 503, Retryable: true, RetryAfter: 30 * time.Second}), agenttest.Text("never"))
		agent := watch(t, agentkernel.Config{Model: model})
		began := time.Now()
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond)
		run.Abort(nil)
		record, err := run.Wait(t.Context())
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, 50*time.Millisecond, time.Since(began))
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
		require.Empty(t, ofType(agent.events(), agentkernel.EventError))
		require.Len(t, model.Requests(), 1)
	})
}

func TestFault60StreamOptionsRefused(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Nil(t, record.NewMessages[1].(agentkernel.Message).Usage, "unknown, not zero")
	require.Nil(t, agent.State().ContextTokens)
}

func TestFault74StaleUsageAfterCompaction(t *testing.T) {
	used := agentkernel.Usage{Input: 90, Output: 10, Total: 100}
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("x").Usage(used).Fail(failure(agentkernel.KindServer, true)), agenttest.Text("ok").Usage(used), agenttest.Text("ok").Usage(used)), Retry: unwaited})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, 100, *agent.State().ContextTokens)
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("summary")))
	require.Nil(t, agent.State().ContextTokens)
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	state := agent.State()
	require.Equal(t, []int{100, 200, 100}, []int{*state.ContextTokens, state.TotalUsage.Total, state.DiscardedUsage.Total})
}

func TestFault83IdleAbortKillsNextRun(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one"), agenttest.Text("two"))})
	agent.Abort(errors.New("nothing runs"))
	run, err := agent.Prompt(t.Context(), "x")
	require.NoError(t, err)
	_, err = run.Wait(t.Context())
	require.NoError(t, err)
	run.Abort(errors.New("it has ended"))
	agent.Abort(errors.New("nothing runs"))
	_, err = agent.Run(t.Context(), "x")
	require.NoError(t, err) // see also TestRunsOnOneContextLeaveNothing
}
