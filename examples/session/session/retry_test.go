package session_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

func kernelError(kind agentkernel.Kind, retryable bool) error {
	return &agentkernel.Error{Kind: kind, Op: "model", Retryable: retryable, Err: errors.New("no")}
}

// noJitter makes waits that a test can know.
var noJitter = agentkernel.RetryPolicy{BaseDelay: time.Second, Jitter: -1}

// TestRetry: each further attempt has a start and an end, in their places.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Fail(kernelError(agentkernel.KindServer, true)),
			agenttest.Text("half").Fail(kernelError(agentkernel.KindNetwork, true)), agenttest.Text("ok"))
		o := open(t, memoryStore(t), model, session.Config{Agent: agentkernel.Config{Retry: noJitter}})
		require.NoError(t, o.prompt("hi"))
		require.Equal(t, []string{
			"model_request", "retry", "auto_retry_start",
			"model_request", "message_discard", "retry", "auto_retry_end", "auto_retry_start",
			"model_request", "message_end", "auto_retry_end", "agent_end",
		}, o.order(agentkernel.EventModelRequest, agentkernel.EventRetry, agentkernel.EventMessageDiscard,
			agentkernel.EventMessageEnd, agentkernel.EventAgentEnd)[1:]) // behind the user's message_end
		own := o.own()
		require.Equal(t, agentkernel.KindServer, own[0].Retry.Error.Kind)
		require.EqualValues(t, 1000, own[0].Retry.DelayMS)
		require.Equal(t, 3, own[0].Retry.MaxRetries)
		require.False(t, own[1].Retry.Success)
		require.Equal(t, 1, own[1].Retry.Attempt)
		require.Equal(t, agentkernel.KindNetwork, own[1].Retry.Error.Kind)
		require.Equal(t, 2, own[2].Retry.Attempt)
		require.EqualValues(t, 2000, own[2].Retry.DelayMS)
		require.True(t, own[3].Retry.Success)
		require.Nil(t, own[3].Retry.Error)
	})
}

// TestRetryThatFails: a run that ends before an answer came ends the retry before it ends.
func TestRetryThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		second agenttest.Reply
		abort  bool
		kind   agentkernel.Kind
	}{
		"error":   {second: agenttest.Fail(kernelError(agentkernel.KindAuth, false)), kind: agentkernel.KindAuth},
		"abort":   {abort: true, kind: agentkernel.KindCanceled},
		"partial": {second: agenttest.Text("half").Stall(), abort: true, kind: agentkernel.KindCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(agenttest.Fail(kernelError(agentkernel.KindServer, true)), tt.second)
				o := open(t, memoryStore(t), model, session.Config{Agent: agentkernel.Config{Retry: noJitter}})
				run, err := o.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait() // within the wait
				if name == "partial" {
					time.Sleep(2 * time.Second) // within the second attempt
				}
				if tt.abort {
					run.Abort(errors.New("enough"))
				}
				require.ErrorIs(t, ended(run), tt.kind)
				own := o.own(session.EventRetryStart, session.EventRetryEnd)
				require.Len(t, own, 2)
				require.False(t, own[1].Retry.Success)
				require.Equal(t, tt.kind, own[1].Retry.Error.Kind)
				require.Equal(t, "agent_end", last(o.order(agentkernel.EventAgentEnd), 1)[0])
			})
		})
	}
}

// TestModelCalls: each attempt is recorded, with what it cost, how long it took and how it ended.
func TestModelCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		usage := agentkernel.Usage{Input: 5, Output: 2, Total: 7}
		model := agenttest.Script(
			agenttest.Text("half").Usage(usage).Model("gpt").Fail(kernelError(agentkernel.KindRateLimit, true)).Delay(100*time.Millisecond),
			agenttest.Text("a").Text("b").Usage(usage).Model("gpt").Delay(200*time.Millisecond),
			agenttest.Fail(kernelError(agentkernel.KindAuth, false)),
			agenttest.Stall(),
		)
		store := memoryStore(t)
		o := open(t, store, model, session.Config{ID: "s", Agent: agentkernel.Config{Retry: noJitter}})
		require.NoError(t, o.prompt("hi"))
		require.ErrorIs(t, o.prompt("more"), agentkernel.KindAuth)
		run, err := o.Prompt(t.Context(), "once more")
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		run.Abort(errors.New("enough"))
		require.ErrorIs(t, ended(run), agentkernel.KindCanceled)

		calls, err := o.Calls(t.Context())
		require.NoError(t, err)
		require.Len(t, calls, 4)
		failed, good, refused, aborted := calls[0], calls[1], calls[2], calls[3]

		require.Equal(t, []any{1, 1, "gpt"}, []any{failed.Turn, failed.Attempt, failed.Model})
		require.Equal(t, agentkernel.KindRateLimit, failed.Error.Kind)
		require.Empty(t, failed.StopReason)
		require.Equal(t, usage, *failed.Usage)
		require.Equal(t, session.Latency{FirstToken: 100 * time.Millisecond, Stream: 200 * time.Millisecond, Total: 300 * time.Millisecond}, failed.Latency)

		require.Equal(t, []any{1, 2, "gpt"}, []any{good.Turn, good.Attempt, good.Model})
		require.Nil(t, good.Error)
		require.Equal(t, agentkernel.StopReasonStop, good.StopReason)
		require.Equal(t, usage, *good.Usage)
		require.Equal(t, session.Latency{FirstToken: 200 * time.Millisecond, Stream: 600 * time.Millisecond, Total: 800 * time.Millisecond}, good.Latency)
		require.Equal(t, 1300*time.Millisecond, good.Asked.Sub(failed.Asked))

		require.Equal(t, "m", refused.Model)
		require.Equal(t, agentkernel.KindAuth, refused.Error.Kind)
		require.Equal(t, agentkernel.KindCanceled, aborted.Error.Kind)
		require.Equal(t, session.Latency{Total: 3 * time.Second}, aborted.Latency)

		saved, err := store.Load(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, usage, saved.Discarded, "what failed attempts cost is resumed too")
		require.Equal(t, o.State().DiscardedUsage, saved.Discarded)
	})
}

// TestLatencyIsNotTheSubscribers: a slow subscriber slows the run, but moves no time that was
// measured before it.
func TestLatencyIsNotTheSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, memoryStore(t), agenttest.Script(agenttest.Text("a").Delay(time.Second)), session.Config{})
		o.Subscribe(func(session.SessionEvent) { time.Sleep(time.Minute) })
		require.NoError(t, o.prompt("hi"))
		calls, err := o.Calls(t.Context())
		require.NoError(t, err)
		require.Equal(t, session.Latency{FirstToken: time.Second, Stream: time.Second, Total: 2 * time.Second}, calls[0].Latency)
	})
}

// TestRunWithinACall: the events of a sub-agent are shown, and its model calls recorded, but
// its messages, retries and limits are none of the session's.
func TestRunWithinACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		usage := agentkernel.Usage{Input: 1, Total: 1}
		helper := agenttest.Script(agenttest.Text("half").Usage(usage).Fail(kernelError(agentkernel.KindServer, true)),
			agenttest.Fail(kernelError(agentkernel.KindQuota, false)))
		ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Forward: agentkernel.ForwardEvents,
			Agents: []agentkernel.SubAgent{{Name: "helper", Config: agentkernel.Config{Model: helper, Retry: noJitter}}}})
		require.NoError(t, err)
		store := memoryStore(t)
		model := agenttest.Script(agenttest.Call("1", "ask", `{"mode":"single","tasks":[{"agent":"helper","prompt":"my name is Bob"}]}`), agenttest.Text("ok"))
		o := open(t, store, model, session.Config{ID: "s", Agent: agentkernel.Config{Tools: []agentkernel.Tool{ask}}})
		require.NoError(t, o.SetGoal(t.Context(), "ship it"))
		require.NoError(t, o.prompt("hi"))
		within := 0
		for _, ev := range o.all() {
			if ev.AgentEvent != nil && ev.AgentEvent.ParentRunID != "" {
				within++
				require.Zero(t, ev.Place)
			}
		}
		require.Greater(t, within, 5)
		require.Equal(t, []string{"goal_updated"}, o.order())
		require.Empty(t, o.Memory())
		require.Equal(t, texts(o.State().Messages), stored(t, store, "s"))
		require.Len(t, o.State().Messages, 4)
		calls, err := o.Calls(t.Context())
		require.NoError(t, err)
		require.Len(t, calls, 4)
		var parents []bool
		for _, c := range calls {
			parents = append(parents, c.ParentRunID != "")
		}
		require.Equal(t, []bool{false, true, true, false}, parents)
		saved, err := store.Load(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, o.State().DiscardedUsage, saved.Discarded)
	})
}
