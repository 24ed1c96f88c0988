package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestInject delivers by what the agent is doing.
func TestInject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(
			agenttest.Text("one").Delay(time.Second), agenttest.Text("two"), agenttest.Text("three"))})
		inject := func(text string) agentkernel.InjectResult {
			t.Helper()
			got, err := agent.Inject(t.Context(), agentkernel.UserMessage(text))
			require.NoError(t, err)
			return got
		}
		first := inject("a")
		require.Equal(t, agentkernel.InjectResumed, first.Disposition)
		time.Sleep(time.Millisecond)
		second := inject("b")
		require.Equal(t, agentkernel.InjectResult{Disposition: agentkernel.InjectSteered}, second)
		_, err := first.Run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"user: a", "assistant: one", "user: b", "assistant: two"}, said(agent.Messages()))

		release, err := agent.HoldRuns(t.Context())
		require.NoError(t, err)
		require.Equal(t, agentkernel.InjectResult{Disposition: agentkernel.InjectQueued}, inject("c"))
		release()
		run, err := agent.Continue(t.Context())
		require.NoError(t, err)
		record, err := run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"user: c", "assistant: three"}, said(record.NewMessages))
	})
}

// TestInjectRefuses what no run would take, and delivers nothing then.
func TestInjectRefuses(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script()})
	for _, bad := range list(nil, (*agentkernel.Message)(nil), agentkernel.Message{Role: agentkernel.RoleTool}) {
		_, err := agent.Inject(t.Context(), bad)
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	}
	none, err := agentkernel.NewAgent(agentkernel.Config{})
	require.NoError(t, err)
	_, err = none.Inject(t.Context(), agentkernel.UserMessage("hi"))
	require.ErrorIs(t, err, agentkernel.ErrNoModel)
	require.Empty(t, none.Messages())
}

// TestInjectInsideAListener never waits: at each event of a run it is steered, queued or,
// from AgentEnd, starts the next run.
func TestInjectInsideAListener(t *testing.T) {
	for at := 1; ; at++ {
		whole := false
		synctest.Test(t, func(t *testing.T) {
			cfg := agentkernel.Config{Model: agenttest.Script(slices.Repeat(replies(agenttest.Text("ok")), 9)...), EventBuffer: 2}
			agent := watch(t, cfg)
			n := 0
			var got agentkernel.InjectResult
			agent.Subscribe(func(ev agentkernel.Event) {
				if n++; n != at {
					return
				}
				synctest.Wait() // the loop is as far ahead as it can be
				var err error
				got, err = agent.Inject(t.Context(), agentkernel.UserMessage("x"))
				require.NoError(t, err)
				if ev.Type == agentkernel.EventAgentEnd {
					require.Equal(t, agentkernel.InjectResumed, got.Disposition)
				} else {
					require.Nil(t, got.Run)
				}
			})
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			synctest.Wait() // the run that was started may still be on its way
			whole = n < at
			if got.Disposition == agentkernel.InjectQueued {
				_, err := agent.Run(t.Context(), "again")
				require.NoError(t, err)
			}
			count := 0
			for _, m := range agent.Messages() {
				if m.TextContent() == "x" {
					count++
				}
			}
			require.Equal(t, !whole, count == 1, "event %d: %v", at, said(agent.Messages()))
		})
		if whole || t.Failed() {
			return
		}
	}
}

// TestInjectWaitsForARunThatEnds outside a listener, as long as its context lives.
func TestInjectWaitsForARunThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one"), agenttest.Text("two"))})
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventModelResponse {
				time.Sleep(time.Minute)
			}
		})
		first, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("tired"))
		defer cancel()
		_, err = agent.Inject(ctx, agentkernel.UserMessage("lost to its caller"))
		require.EqualError(t, err, "tired")
		got, err := agent.Inject(t.Context(), agentkernel.UserMessage("x"))
		require.NoError(t, err)
		require.Equal(t, agentkernel.InjectResumed, got.Disposition)
		_, err = first.Wait(t.Context())
		require.NoError(t, err)
		_, err = got.Run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"user: hi", "assistant: one", "user: x", "assistant: two"}, said(agent.Messages()))
	})
}

// TestInjectIsAtomic: from many goroutines at once, each message is delivered once.
func TestInjectIsAtomic(t *testing.T) {
	const n = 200
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(slices.Repeat(replies(agenttest.Text("ok")), n)...), MaxTurns: -1})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			got, err := agent.Inject(t.Context(), agentkernel.UserMessage(fmt.Sprintf("m%03d", i)))
			require.NoError(t, err)
			if got.Run != nil {
				_, err := got.Run.Wait(t.Context())
				require.NoError(t, err)
			}
		})
	}
	wg.Wait()
	release, err := agent.HoldRuns(t.Context()) // the last run has been delivered
	require.NoError(t, err)
	release()
	seen := map[string]int{}
	for _, m := range agent.Messages() {
		if m.GetRole() == agentkernel.RoleUser {
			seen[m.TextContent()]++
		}
	}
	require.Len(t, seen, n)
	for text, times := range seen {
		require.Equal(t, 1, times, text)
	}
}
