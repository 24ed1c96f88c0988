package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestAsyncMaxPending: the run waits for a consumer behind whom so many edges wait, but with
// an edge, not with an update, and until one was taken.
func TestAsyncMaxPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello world").Chunks(3)), EventBuffer: 2})
		step := make(chan struct{})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxPending: 5}, func(agentkernel.Event) { <-step })
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, agentkernel.EventMessageEnd, final(agent.events()).Type, "it waits for room behind five edges and an update")
		for want := len(edges(agent.events())); want < 9; want++ {
			require.Len(t, edges(agent.events()), want)
			step <- struct{}{}
			synctest.Wait()
		}
		close(step)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		got := r.drain(t)
		require.Equal(t, edges(agent.events()), edges(got))
		require.Equal(t, int(final(got).Seq), accounted(got))
	})
}

// TestAsyncPendingProgress: more than one update of a call counts as edges do, so that a tool
// that never repeats a kind cannot fill the memory, unless MaxPending has no bound.
func TestAsyncPendingProgress(t *testing.T) {
	const updates = 5000
	odd := tool("odd", func(ctx context.Context) (agentkernel.ToolResult, error) {
		for i := range updates {
			agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressCustom, Tool: fmt.Sprint(i)})
		}
		return agentkernel.TextResult("said"), nil
	})
	for most, told := range map[int]int{
		100: 1 + 100 + 1, // one that counts for nothing, and one that waits for room
		0:   1 + 4096 + 1,
		-1:  updates,
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("odd"), agenttest.Text("ok")), Tools: []agentkernel.Tool{odd}, EventBuffer: 2})
				each, release := holdAt(agentkernel.EventToolExecStart)
				r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxPending: most}, each)
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				require.Len(t, ofType(agent.events(), agentkernel.EventToolExecUpdate), told)
				require.Equal(t, most >= 0, agent.State().IsRunning)
				release()
				_, err = run.Wait(t.Context())
				require.NoError(t, err)
				require.Len(t, ofType(r.drain(t), agentkernel.EventToolExecUpdate), updates)
			})
		})
	}
}

// TestAsyncListenerThatBlocksForEver: the run ends normally, Drain names it, Close frees.
func TestAsyncListenerThatBlocksForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 2)
		gate := make(chan struct{})
		sub := agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{Name: "the stuck one"})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("patience is over"))
		defer cancel()
		err = sub.Drain(ctx)
		require.EqualError(t, err, "agentkernel: subscriber the stuck one has not taken 10 events: patience is over")
		sub.Close()
		require.ErrorIs(t, sub.Drain(t.Context()), agentkernel.ErrSubscriptionClosed)
		_, err = agent.Run(t.Context(), "again")
		require.NoError(t, err)
		close(gate)
	})
}

func TestAsyncSubscriberIsNamedByItsFunction(t *testing.T) {
	agent := chatty(t, 1)
	gate := make(chan struct{})
	defer close(gate)
	sub := agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, sub.Drain(ctx), "TestAsyncSubscriberIsNamedByItsFunction")
	require.ErrorIs(t, sub.Drain(ctx), context.Canceled)
}
