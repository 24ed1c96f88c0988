package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestReadOnly: a file is read wherever its writer is, changes by no byte, and takes nothing.
func TestReadOnly(t *testing.T) {
	path, events := session(t, journal.Config{SnapshotEvery: 7})
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range len(whole) + 1 {
		if n%211 != 0 && n != len(whole) {
			continue
		}
		cut := filepath.Join(t.TempDir(), "cut.jsonl")
		require.NoError(t, os.WriteFile(cut, whole[:n], 0o400))
		j, err := journal.Open(cut, journal.Config{ReadOnly: true})
		require.NoError(t, err, n)
		state, err := journal.Restore(j)
		require.NoError(t, err)
		require.Error(t, j.Append(events[0]))
		require.NoError(t, j.Close())
		left, err := os.ReadFile(cut)
		require.NoError(t, err)
		require.Equal(t, whole[:n], left)

		require.NoError(t, os.Chmod(cut, 0o600))
		mended, err := journal.Open(cut, journal.Config{})
		require.NoError(t, err)
		want, err := journal.Restore(mended)
		require.NoError(t, err)
		sameState(t, want, state)
		require.NoError(t, mended.Close())
	}
	_, err = journal.Open(filepath.Join(t.TempDir(), "none"), journal.Config{ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	var none agentkernel.AgentState
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	j, err := journal.Open(empty, journal.Config{ReadOnly: true})
	require.NoError(t, err)
	got, err := journal.Restore(j)
	require.NoError(t, err)
	sameState(t, none, got)
	require.NoError(t, j.Close())
}
