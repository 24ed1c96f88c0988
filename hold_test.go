package agentkernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestHoldRuns waits for the active run, aborts nothing, and refuses every start meanwhile.
func TestHoldRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one").Delay(time.Minute), agenttest.Text("two"))})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		began := time.Now()
		release, err := agent.HoldRuns(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2*time.Minute, time.Since(began))
		record, err := run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "one", record.Answer)

		n := len(agent.events())
		starts := map[string]func() error{
			"Prompt":         func() error { _, err := agent.Prompt(t.Context(), "x"); return err },
			"PromptMessages": func() error { _, err := agent.PromptMessages(t.Context(), mark("x")); return err },
			"Continue":       func() error { _, err := agent.Continue(t.Context()); return err },
			"Run":            func() error { _, err := agent.Run(t.Context(), "x"); return err },
			"Stream": func() error {
				for _, err := range agent.Stream(t.Context(), agentkernel.UserMessage("x")) {
					return err
				}
				return nil
			},
		}
		for name, start := range starts {
			require.ErrorIs(t, start(), agentkernel.ErrRunsHeld, name)
		}
		require.NoError(t, agent.SetMessages(agent.Messages()...)) // what it is held for
		again, err := agent.HoldRuns(t.Context())
		require.NoError(t, err)
		release()
		release()
		require.ErrorIs(t, starts["Prompt"](), agentkernel.ErrRunsHeld, "the other holder holds")
		again()
		require.Len(t, agent.events(), n)
		_, err = agent.Run(t.Context(), "go")
		require.NoError(t, err)
	})
}

// TestHoldRunsGivesUp with its context, and holds nothing then.
func TestHoldRunsGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one").Delay(time.Minute), agenttest.Text("two"))})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		cause := errors.New("tired")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		release, err := agent.HoldRuns(ctx)
		require.ErrorIs(t, err, cause)
		require.Nil(t, release)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		_, err = agent.Run(t.Context(), "again")
		require.NoError(t, err)

		release, err = agent.HoldRuns(ctx) // there is nothing to wait for
		require.NoError(t, err)
		release()
	})
}

// TestHoldRunsInAListener is refused; a run that a listener would start while runs are held too.
func TestHoldRunsInAListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one").Delay(time.Minute))})
		agent.Subscribe(func(ev agentkernel.Event) {
			_, err := agent.HoldRuns(t.Context())
			require.ErrorIs(t, err, agentkernel.ErrInListener)
			if ev.Type == agentkernel.EventAgentEnd {
				_, err := agent.Prompt(t.Context(), "next")
				require.ErrorIs(t, err, agentkernel.ErrRunsHeld)
			}
		})
		_, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		release, err := agent.HoldRuns(t.Context())
		require.NoError(t, err)
		release()
	})
}
