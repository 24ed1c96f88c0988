package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

func read(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// session writes two runs into a file and returns its path and the events.
func session(t testing.TB, cfg journal.Config) (string, []agentkernel.Event) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.jsonl")
	j, err := journal.Open(path, cfg)
	require.NoError(t, err)
	agent := talk(t, 2)
	journal.Follow(agent, j)
	var events []agentkernel.Event
	agent.Subscribe(func(ev agentkernel.Event) { events = append(events, ev) })
	for range 2 {
		_, err := agent.Run(context.Background(), "hi")
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	return path, events
}

// TestFileCutAtEveryByte: of a file that breaks off anywhere, what was written whole is there.
// AGENTKERNEL_FULL=1 cuts a longer file too, which takes half a minute.
func TestFileCutAtEveryByte(t *testing.T) {
	events, path := shortSession(t)
	cutEverywhere(t, events, path)
	if os.Getenv("AGENTKERNEL_FULL") != "" {
		path, events := session(t, journal.Config{SnapshotEvery: 20})
		cutEverywhere(t, events, path)
	}
}

// shortSession is a run of one answer, with snapshots in it.
func shortSession(t *testing.T) ([]agentkernel.Event, string) {
	path := filepath.Join(t.TempDir(), "short.jsonl")
	j, err := journal.Open(path, journal.Config{SnapshotEvery: 8})
	require.NoError(t, err)
	var events []agentkernel.Event
	for ev := range agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: agenttest.Script(agenttest.Text("answer").Chunks(3))},
		nil, agentkernel.UserMessage("hi")) {
		events = append(events, ev)
		require.NoError(t, j.Append(ev))
	}
	require.NoError(t, j.Close())
	return events, path
}

func cutEverywhere(t *testing.T, events []agentkernel.Event, path string) {
	all := read(t, path)
	states := make([]agentkernel.AgentState, len(events)+1)
	for i, ev := range events {
		states[i+1] = agentkernel.Reduce(states[i], ev)
	}
	want := make([]string, len(states))
	for i, s := range states {
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		want[i] = string(raw)
	}
	dir := t.TempDir()
	for n := 0; n <= len(all); n++ {
		cut := filepath.Join(dir, fmt.Sprint(n)) // a new file, since some file systems flush one that is written over
		require.NoError(t, os.WriteFile(cut, []byte(all[:n]), 0o600))
		j, err := journal.Open(cut, journal.Config{})
		require.NoError(t, err, "cut at %d", n)
		got, err := journal.Restore(j)
		require.NoError(t, err, "cut at %d", n)
		require.NoError(t, j.Close())
		require.NoError(t, os.Remove(cut))
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, want[whole(all[:n])], string(raw), "cut at %d", n)
	}
}

// whole counts the events that stand in text whole, the last one perhaps without line break.
func whole(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if json.Valid([]byte(line)) && !strings.Contains(line, `"type":"snapshot"`) {
			n++
		}
	}
	return n
}

// TestGarbage: one last line without its end, and zero bytes, are cut off; any other line that
// is no record is an error that says where, and the file is left as it is.
func TestGarbage(t *testing.T) {
	path, events := session(t, journal.Config{})
	all := read(t, path)
	for _, tail := range []string{"\x00\x00\x00", `{"v":1,"ty`, "{\"v\":1\x00\x00", "nonsense"} {
		require.NoError(t, os.WriteFile(path, []byte(all+tail), 0o600))
		j, err := journal.Open(path, journal.Config{})
		require.NoError(t, err, "%q", tail)
		require.NoError(t, j.Close())
		require.Equal(t, all, read(t, path))
	}
	for _, tail := range []string{"\x00\x00\x00\n\x00", "{\"v\":1\n", "\n", "nonsense\nmore\n", "nonsense\nmore"} {
		refused(t, path, all+tail, len(all))
	}

	at := strings.Index(all[100:], "\n") + 101
	refused(t, path, all[:at]+"nonsense\n"+all[at:], at)

	newer := strings.Replace(all, `{"v":1,"type":"agent_end"`, `{"v":2,"type":"agent_end"`, 1)
	require.NoError(t, os.WriteFile(path, []byte(newer), 0o600))
	_, err := journal.Open(path, journal.Config{})
	require.ErrorIs(t, err, agentkernel.WireVersionMismatch)
	require.Equal(t, newer, read(t, path))
	require.NotEmpty(t, events)
}

// refused checks that Open of a file with that text tells of the line at offset and leaves the
// file as it is.
func refused(t *testing.T, path, text string, offset int) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	j, err := journal.Open(path, journal.Config{})
	if err == nil {
		require.NoError(t, j.Close())
	}
	corrupt, ok := errors.AsType[*journal.CorruptError](err)
	require.True(t, ok, "%q: %v", text, err)
	require.Equal(t, int64(offset), corrupt.Offset)
	require.Equal(t, 1+strings.Count(text[:offset], "\n"), corrupt.Line)
	require.ErrorContains(t, err, fmt.Sprintf("line %d at byte %d is no record: ", corrupt.Line, offset))
	require.Equal(t, text, read(t, path))
}

// TestOpenOfAnotherFile: a file that never was a journal is refused and left as it is.
func TestOpenOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.go")
	for _, text := range []string{"package main\n", "package main", "\n", "{}\n", "{}", "{", "\x00\x00", "\xff\xfe\n{\"v\":1",
		`{"v":1,"type":"nothing"}`, `{"v":1,"type":"x" oh`, `{"v":1,"x`} {
		switch {
		case text == "{": // may be a record's first byte
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			j, err := journal.Open(path, journal.Config{})
			require.NoError(t, err)
			require.NoError(t, j.Close())
		default:
			refused(t, path, text, 0)
		}
	}
}

// TestBatchesOfAFileAreSmall: one read holds no more than 64 KiB, or one record.
func TestBatchesOfAFileAreSmall(t *testing.T) {
	j, err := journal.Open(filepath.Join(t.TempDir(), "j.jsonl"), journal.Config{SnapshotEvery: -1})
	require.NoError(t, err)
	defer j.Close()
	for i := range 100 {
		require.NoError(t, j.Append(agentkernel.Event{Type: agentkernel.EventMessageUpdate, RunID: "r", Seq: uint64(i + 1),
			DeltaKind: agentkernel.DeltaText, Delta: strings.Repeat("x", 10_000)}))
	}
	records, err := j.Since(0, 100)
	require.NoError(t, err)
	size := 0
	for _, rec := range records {
		size += len(rec.Data)
	}
	require.LessOrEqual(t, size, 64<<10)
	require.Greater(t, size, 32<<10)
}

// FuzzOpen: whatever a file holds, Open gives a journal or an error, and what it opened once
// it opens again.
func FuzzOpen(f *testing.F) {
	path, _ := session(f, journal.Config{SnapshotEvery: 10})
	f.Add([]byte(read(f, path)))
	f.Add([]byte("{}\n"))
	f.Add([]byte("{\"v\":1,\"type\":\"agent_start\",\"run_id\":\"r\",\"seq\":1}\n{\"v\":"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "j.jsonl")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		j, err := journal.Open(path, journal.Config{})
		if err != nil {
			require.Equal(t, string(data), read(t, path))
			return
		}
		state, _ := journal.Restore(j)
		require.NoError(t, j.Close())
		j, err = journal.Open(path, journal.Config{})
		require.NoError(t, err)
		again, _ := journal.Restore(j)
		require.NoError(t, j.Close())
		sameState(t, state, again)
	})
}
