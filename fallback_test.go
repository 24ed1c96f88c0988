package agentkernel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// namedModel is a scripted model that says what it is called.
type namedModel struct {
	*agenttest.Model
	name string
}

func (m namedModel) String() string { return m.name }

func named(name string, script ...agenttest.Reply) namedModel {
	return namedModel{agenttest.Script(script...), name}
}

// handovers are the Retry events of a log: kind of failure, who failed, and who goes on.
func handovers(t *testing.T, log []agentkernel.Event) []string {
	t.Helper()
	var out []string
	for _, ev := range ofType(log, agentkernel.EventRetry) {
		require.Equal(t, ev.Err, ev.RetryInfo.Err)
		require.Equal(t, ev.Attempt, ev.RetryInfo.Attempt)
		kind := ev.Err.(*agentkernel.Error).Kind
		out = append(out, string(kind)+": "+ev.RetryInfo.Model+" > "+ev.RetryInfo.NextModel)
	}
	return out
}

// failing is the script of a model that fails whenever it is asked, up to five times.
func failing(kind agentkernel.Kind, retryable bool) []agenttest.Reply {
	fail := agenttest.Fail(failure(kind, retryable))
	return replies(fail, fail, fail, fail, fail)
}

// TestFallbackAfterRetries: a model's retries come first, and each model has its own.
func TestFallbackAfterRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := named("first", failing(agentkernel.KindServer, true)...)
		second := named("second", failing(agentkernel.KindOverloaded, true)...)
		third := named("third", agenttest.Text("ok"))
		began := time.Now()
		log := play(t, agentkernel.Config{
			Model: first, Fallbacks: []agentkernel.ChatModel{second, third},
			Retry: agentkernel.RetryPolicy{MaxRetries: 2, Jitter: -1},
		})
		require.NoError(t, final(log).Err)
		require.Equal(t, []string{
			"server: first > ", "server: first > ", "server: first > second",
			"overloaded: second > ", "overloaded: second > ", "overloaded: second > third",
		}, handovers(t, log))
		require.Equal(t, 2*(1+2)*time.Second, time.Since(began), "no wait before another model, and its own waits begin anew")
		for i, m := range []namedModel{first, second, third} {
			require.Len(t, m.Requests(), []int{3, 3, 1}[i], m.name)
		}
		require.Equal(t, []string{"user: hi", "assistant: ok"}, said(final(log).NewMessages))
		require.Equal(t, 6, final(log).Summary.Retries)
		attempts := ofType(log, agentkernel.EventModelRequest)
		require.Equal(t, 7, attempts[6].Attempt, "attempts are counted over all models")
	})
}

// TestFallbackAtOnce: what waiting does not cure, but another endpoint may.
func TestFallbackAtOnce(t *testing.T) {
	for _, kind := range []agentkernel.Kind{
		agentkernel.KindAuth, agentkernel.KindQuota, agentkernel.KindContextOverflow, agentkernel.KindProtocol,
		agentkernel.KindProvider, agentkernel.KindServer, agentkernel.KindNetwork, agentkernel.KindLimit,
	} {
		t.Run(string(kind), func(t *testing.T) {
			first := named("first", failing(kind, false)...)
			log := play(t, agentkernel.Config{Model: first, Fallbacks: []agentkernel.ChatModel{named("second", agenttest.Text("ok"))}})
			require.NoError(t, final(log).Err)
			require.Len(t, first.Requests(), 1)
			require.Equal(t, []string{string(kind) + ": first > second"}, handovers(t, log))
		})
	}
}

// TestNoFallback where another endpoint would be asked the same in vain, or where none is left.
func TestNoFallback(t *testing.T) {
	for _, kind := range []agentkernel.Kind{
		agentkernel.KindInvalidRequest, agentkernel.KindRefusal, agentkernel.KindPanic, agentkernel.KindInternal,
	} {
		second := named("second", agenttest.Text("never"))
		log := play(t, agentkernel.Config{Model: named("first", failing(kind, false)...), Fallbacks: []agentkernel.ChatModel{second}})
		require.ErrorIs(t, final(log).Err, kind)
		require.Empty(t, second.Requests(), "%s", kind)
		require.Empty(t, ofType(log, agentkernel.EventRetry))
	}
	log := play(t, agentkernel.Config{
		Model:     named("first", failing(agentkernel.KindQuota, false)...),
		Fallbacks: []agentkernel.ChatModel{named("second", failing(agentkernel.KindAuth, false)...)},
	})
	require.ErrorIs(t, final(log).Err, agentkernel.KindAuth, "the last word is the last model's")
	require.Equal(t, []string{"quota: first > second"}, handovers(t, log))
}

// TestFallbackAfterRetriesOfAnyKind: once the retries are used up the kind does not matter.
func TestFallbackAfterRetriesOfAnyKind(t *testing.T) {
	first := named("first", failing(agentkernel.KindRefusal, true)...)
	log := play(t, agentkernel.Config{
		Model: first, Fallbacks: []agentkernel.ChatModel{named("second", agenttest.Text("ok"))},
		Retry: agentkernel.RetryPolicy{MaxRetries: 1, BaseDelay: -1},
	})
	require.NoError(t, final(log).Err)
	require.Len(t, first.Requests(), 2)
}

// TestFallbackInsteadOfALongWait: a server that asks for more than the policy allows.
func TestFallbackInsteadOfALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		log := play(t, agentkernel.Config{
			Model: named("first", agenttest.Fail(&agentkernel.Error{
				Kind: agentkernel.KindRateLimit, Retryable: true, RetryAfter: 24 * time.Hour,
			})),
			Fallbacks: []agentkernel.ChatModel{named("second", agenttest.Text("ok"))},
		})
		require.NoError(t, final(log).Err)
		require.Zero(t, time.Since(began))
		require.Equal(t, []string{"rate_limit: first > second"}, handovers(t, log))
	})
}

// TestFallbackDiscardsThePartial, visibly, and its usage counts apart.
func TestFallbackDiscardsThePartial(t *testing.T) {
	first := named("first", agenttest.Text("half an").Usage(agentkernel.Usage{Input: 5, Output: 2, Total: 7}).
		Fail(failure(agentkernel.KindQuota, false)))
	second := named("second", agenttest.Text("ok").Usage(agentkernel.Usage{Input: 5, Output: 1, Total: 6}))
	log := play(t, agentkernel.Config{Model: first, Fallbacks: []agentkernel.ChatModel{second}})
	discards := ofType(log, agentkernel.EventMessageDiscard)
	require.Len(t, discards, 1)
	require.Equal(t, "half an", discards[0].Message.TextContent())
	require.ErrorIs(t, discards[0].Err, agentkernel.KindQuota)
	require.Equal(t, agentkernel.EventRetry, after(log, discards[0]).Type)
	end := final(log)
	require.Equal(t, []string{"user: hi", "assistant: ok"}, said(end.NewMessages))
	require.Equal(t, 6, end.Summary.Usage.Total)
	require.Equal(t, 7, end.Summary.DiscardedUsage.Total)
	require.Equal(t, first.Requests()[0].Messages, second.Requests()[0].Messages, "the same question")
}

// after is the event that follows ev.
func after(log []agentkernel.Event, ev agentkernel.Event) agentkernel.Event { return log[ev.Seq] }

// TestFallbackHoldsForOneCall: the next model call begins with Model again.
func TestFallbackHoldsForOneCall(t *testing.T) {
	first := named("first", agenttest.Fail(failure(agentkernel.KindQuota, false)), agenttest.Calls("echo"), agenttest.Text("ok"))
	second := named("second", agenttest.Calls("echo"))
	cfg := agentkernel.Config{Model: first, Fallbacks: []agentkernel.ChatModel{second}, Tools: []agentkernel.Tool{echo("echo")}}
	log := play(t, cfg)
	require.NoError(t, final(log).Err)
	require.Len(t, first.Requests(), 3)
	require.Len(t, second.Requests(), 1)

	// Also where an answer that was cut is continued.
	first = named("first", agenttest.Fail(failure(agentkernel.KindQuota, false)), agenttest.Text("b"))
	second = named("second", agenttest.Text("a").Stop(agentkernel.StopReasonLength))
	log = play(t, agentkernel.Config{Model: first, Fallbacks: []agentkernel.ChatModel{second}})
	require.NoError(t, final(log).Err)
	require.Len(t, first.Requests(), 2)
	require.Len(t, second.Requests(), 1)
}

// TestFallbackOfAPreparedModel: the fallbacks stand behind the model that Prepare chose.
func TestFallbackOfAPreparedModel(t *testing.T) {
	chosen := named("chosen", failing(agentkernel.KindAuth, false)...)
	log := play(t, agentkernel.Config{
		Model:     named("first", agenttest.Text("never")),
		Fallbacks: []agentkernel.ChatModel{named("second", agenttest.Text("ok"))},
		Prepare: func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{Model: chosen}, nil
		},
	})
	require.NoError(t, final(log).Err)
	require.Equal(t, []string{"auth: chosen > second"}, handovers(t, log))
}

// TestFallbackOfAnAbortedRun is none.
func TestFallbackOfAnAbortedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := named("second", agenttest.Text("never"))
		agent := watch(t, agentkernel.Config{Model: named("first", agenttest.Stall()), Fallbacks: []agentkernel.ChatModel{second}})
		time.AfterFunc(time.Second, func() { agent.Abort(nil) })
		_, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Empty(t, second.Requests())
	})
}

// TestFallbacksWithoutNames are named by their types.
func TestFallbacksWithoutNames(t *testing.T) {
	log := play(t, agentkernel.Config{
		Model:     agenttest.Script(failing(agentkernel.KindAuth, false)...),
		Fallbacks: []agentkernel.ChatModel{agenttest.Script(agenttest.Text("ok"))},
	})
	require.Equal(t, []string{"auth: *agenttest.Model > *agenttest.Model"}, handovers(t, log))
}
