package session_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

func ending(place uint64, text string) *agentkernel.Event {
	return &agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "s", Seq: place, Message: agentkernel.UserMessage(text)}
}

// TestWriteIsIdempotent: a change that is written twice is there once, and a run's end takes
// what never ended.
func TestWriteIsIdempotent(t *testing.T) {
	store := memoryStore(t)
	_, err := store.Load(t.Context(), "s")
	require.NoError(t, err)
	change := session.Change{
		Message: ending(1, "hi"), Name: "n", MemoryAt: 1,
		Calls:  []session.ModelCall{{RunID: "r", Turn: 1, Attempt: 1}},
		Memory: []session.Memory{{Text: "likes tea", Place: 1, Time: time.UnixMicro(7).UTC()}},
		Run:    &session.RunEnd{RunID: "r", Last: 1},
	}
	require.NoError(t, store.Write(t.Context(), "s", session.Change{Message: ending(2, "never ended")}))
	for range 2 {
		require.NoError(t, store.Write(t.Context(), "s", change))
		require.Equal(t, []string{"user: hi"}, stored(t, store, "s"))
		calls, err := store.Calls(t.Context(), "s")
		require.NoError(t, err)
		require.Len(t, calls, 1)
		saved, err := store.Load(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, change.Memory, saved.Memory)
		require.Equal(t, "n", saved.Name)
	}
}

// TestWriteIsWhole: of a change that cannot be written nothing is, and none is begun when its
// context has ended.
func TestWriteIsWhole(t *testing.T) {
	store := fileStore(t)
	_, err := store.Load(t.Context(), "s")
	require.NoError(t, err)
	require.Error(t, store.Write(t.Context(), "nobody", session.Change{Message: ending(1, "hi")}))
	bad := session.Change{Message: ending(1, "hi"), Baseline: &agentkernel.Event{Type: agentkernel.EventSnapshot}}
	require.Error(t, store.Write(t.Context(), "s", bad))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, store.Write(ctx, "s", session.Change{Message: ending(1, "hi")}), context.Canceled)
	require.Empty(t, stored(t, store, "s"))
	require.NoError(t, store.Write(t.Context(), "s", session.Change{Message: ending(1, "hi")}))
}

// TestDurability: the file is in WAL mode and its writer waits for the disk.
func TestDurability(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	store := openStore(t, path)
	mode, synchronous, err := store.Durability(t.Context())
	require.NoError(t, err)
	require.Equal(t, "wal", mode)
	require.Equal(t, 2, synchronous, "FULL")
}

// TestForeignFile: a file of a newer version, or one that is no database, is refused.
func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 2")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = session.OpenSQLite(t.Context(), path)
	require.ErrorContains(t, err, "version 2")

	path = filepath.Join(t.TempDir(), "t.db")
	require.NoError(t, os.WriteFile(path, []byte("this is a text, and one that is long enough to be taken for a page of a database.\n"), 0o600))
	_, err = session.OpenSQLite(t.Context(), path)
	require.Error(t, err)
	_, err = session.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "none", "s.db"))
	require.Error(t, err)
}

// TestTwoWriters: two stores on one file write their sessions side by side.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var wg sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		store := openStore(t, path)
		_, err := store.Load(t.Context(), id)
		require.NoError(t, err)
		wg.Go(func() {
			for i := range 20 {
				if err := store.Write(t.Context(), id, session.Change{Message: ending(uint64(i+1), id)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	store := openStore(t, path)
	require.Len(t, stored(t, store, "a"), 20)
	require.Len(t, stored(t, store, "b"), 20)
	infos, err := store.List(t.Context())
	require.NoError(t, err)
	require.Len(t, infos, 2)
}
