package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestFollowAnotherHistory: what the agent knew before it was followed, or did while it was not,
// is in the journal all the same.
func TestFollowAnotherHistory(t *testing.T) {
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{})
		agent := talk(t, 4)
		require.NoError(t, agent.SetMessages(agentkernel.UserMessage("before")))
		for range 2 {
			_, err := agent.Run(t.Context(), "not followed")
			require.NoError(t, err)
			stop := journal.Follow(agent, j)
			_, err = agent.Run(t.Context(), "followed")
			require.NoError(t, err)
			stop()
			got, err := journal.Restore(j)
			require.NoError(t, err)
			sameState(t, agent.State(), got)
		}
		require.NoError(t, j.Err())
		for _, err := range journal.Events(j, false) {
			require.NoError(t, err)
		}

		start := j.Start()
		defer journal.Follow(agent, j)() // which has nothing to catch up on
		_, err := agent.Run(t.Context(), "the script is at its end")
		require.Error(t, err)
		require.Equal(t, start, j.Start())
	})
}

// TestFollowTheSameHistory: an agent that begins where the journal ends needs no snapshot, a new
// one and one that was restored.
func TestFollowTheSameHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.jsonl")
	for session := range 2 {
		j, err := journal.Open(path, journal.Config{})
		require.NoError(t, err)
		state, err := journal.Restore(j)
		require.NoError(t, err)
		agent := talk(t, 1)
		require.NoError(t, agent.Restore(state))
		journal.Follow(agent, j)
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Zero(t, j.Start(), session)
		require.NoError(t, j.Err())
		require.NoError(t, j.Close())
	}
}
