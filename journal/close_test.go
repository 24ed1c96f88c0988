package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestReadersOfAClosedJournal: what was appended before Close can be read behind it, as long
// as a file stands where it was, also while another process writes on.
func TestReadersOfAClosedJournal(t *testing.T) {
	_, events := session(t, journal.Config{})
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{SnapshotEvery: 10})
		for _, ev := range events {
			require.NoError(t, j.Append(ev))
		}
		want, err := journal.Restore(j)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		got, err := journal.Restore(j)
		require.NoError(t, err)
		sameState(t, want, got)
		require.Error(t, j.Append(events[0]))
	})
	path := filepath.Join(t.TempDir(), "j.jsonl")
	j, err := journal.Open(path, journal.Config{})
	require.NoError(t, err)
	half := len(events) / 2
	for _, ev := range events[:half] {
		require.NoError(t, j.Append(ev))
	}
	before, err := j.Since(0, 1000)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	next, err := journal.Open(path, journal.Config{})
	require.NoError(t, err)
	for _, ev := range events[half:] {
		require.NoError(t, next.Append(ev))
	}
	after, err := j.Since(0, 1000)
	require.NoError(t, err)
	require.Len(t, after, len(before))
	require.Equal(t, before[half].Data, after[half].Data)
	require.NoError(t, next.Close())

	require.NoError(t, os.Rename(path, path+".old"))
	_, err = j.Since(0, 1000)
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, path, "another\n")
	_, err = j.Since(0, 1000)
	require.ErrorContains(t, err, "another file")
	_, err = journal.Restore(j)
	require.ErrorContains(t, err, "another file")
	var told []error
	for ev, err := range journal.Events(j, false) {
		require.Zero(t, ev)
		told = append(told, err)
	}
	require.Len(t, told, 1)
	require.ErrorContains(t, told[0], "another file")
}

// TestReadersBesideClose: a reader that asks as it should gets every record, and then the end,
// while another goroutine writes and closes.
func TestReadersBesideClose(t *testing.T) {
	_, events := session(t, journal.Config{})
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{SnapshotEvery: 1 << 20})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var at uint64
				for {
					changed, closed := j.Changed(), j.Closed()
					records, err := j.Since(at, 7)
					if err != nil {
						t.Error(err)
						return
					}
					if at += uint64(len(records)); len(records) == 0 && closed {
						break
					}
					if len(records) == 0 {
						<-changed
					}
				}
				if at != uint64(len(events)+1) {
					t.Errorf("got %d of %d records", at, len(events)+1)
				}
			})
		}
		for _, ev := range events {
			require.NoError(t, j.Append(ev))
		}
		require.NoError(t, j.Close())
		wg.Wait()
	})
}

// TestCloseBesideAppend: a journal may be closed while it is written; what it took is whole.
func TestCloseBesideAppend(t *testing.T) {
	_, events := session(t, journal.Config{})
	for i := range 20 {
		path := filepath.Join(t.TempDir(), "j.jsonl")
		j, err := journal.Open(path, journal.Config{SnapshotEvery: 5})
		require.NoError(t, err)
		taken := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, ev := range events {
				if j.Append(ev) == nil {
					taken++
				}
			}
		})
		wg.Go(func() {
			for range 2 * i {
				_, _ = journal.Restore(j)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		require.Equal(t, taken, whole(read(t, path)))
		j, err = journal.Open(path, journal.Config{})
		require.NoError(t, err)
		require.NoError(t, j.Close())
	}
}

// TestLargeRecordsAreShared: readers of a file who hold a long record hold one copy of it.
func TestLargeRecordsAreShared(t *testing.T) {
	long := agentkernel.AgentState{Messages: []agentkernel.AgentMessage{agentkernel.UserMessage(strings.Repeat("x", 100_000))}}
	j, err := journal.Open(filepath.Join(t.TempDir(), "j.jsonl"), journal.Config{State: long})
	require.NoError(t, err)
	defer j.Close()
	require.NoError(t, j.Append(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "r", Seq: 1}))
	a, err := j.Since(0, 10)
	require.NoError(t, err)
	b, err := j.Since(0, 10)
	require.NoError(t, err)
	require.Len(t, a, 1)
	require.Same(t, &a[0].Data[0], &b[0].Data[0])
	require.Equal(t, uint64(1), b[0].At)
	rest, err := j.Since(1, 10)
	require.NoError(t, err)
	require.Len(t, rest, 1)
	require.Equal(t, agentkernel.EventAgentStart, rest[0].Type)
}
