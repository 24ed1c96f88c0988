package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

var echo = agentkernel.Tool{Name: "echo", Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
	return agentkernel.TextResult(string(args)), nil
}}

// talk is an agent with a scripted model that calls a tool and answers, run after run.
func talk(t testing.TB, runs int) *agentkernel.Agent {
	t.Helper()
	var replies []agenttest.Reply
	for i := range runs {
		replies = append(replies,
			agenttest.Thinking("let me see").Call("", "echo", `{"n":12345}`).Chunks(3),
			agenttest.Text(fmt.Sprintf("answer number %d", i)).Chunks(2).Usage(agentkernel.Usage{Input: 3, Output: 2, Total: 5}))
	}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(replies...), Tools: []agentkernel.Tool{echo}})
	require.NoError(t, err)
	return agent
}

func sameState(t testing.TB, want, got agentkernel.AgentState) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

// kinds makes a journal of each kind.
func kinds(t *testing.T, test func(t *testing.T, open func(journal.Config) *journal.Journal)) {
	t.Run("ring", func(t *testing.T) { test(t, journal.NewRing) })
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "j.jsonl")
		test(t, func(cfg journal.Config) *journal.Journal {
			j, err := journal.Open(path, cfg)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, j.Close()) })
			return j
		})
	})
}

// TestRestoreAtEveryEvent: behind each event the journal gives the state that the agent has.
func TestRestoreAtEveryEvent(t *testing.T) {
	for _, every := range []int{1, 7, 0} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
				j := open(journal.Config{SnapshotEvery: every, Sync: true})
				agent := talk(t, 3)
				checker := agenttest.NewChecker()
				checker.StartFrom(nil)
				agent.Subscribe(checker.Listen)
				journal.Follow(agent, j)
				agent.Subscribe(func(agentkernel.Event) {
					got, err := journal.Restore(j)
					require.NoError(t, err)
					sameState(t, agent.State(), got)
				})
				for range 3 {
					_, err := agent.Run(t.Context(), "hi")
					require.NoError(t, err)
				}
				require.NoError(t, j.Err())
				require.NoError(t, checker.Finish())
			})
		})
	}
}

// TestEvents: the journal yields the stream that it was given, which keeps the contract.
func TestEvents(t *testing.T) {
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{})
		agent := talk(t, 2)
		defer journal.Follow(agent, j)()
		var live []agentkernel.Event
		agent.Subscribe(func(ev agentkernel.Event) { live = append(live, ev) })
		for range 2 {
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
		}
		var kept []agentkernel.Event
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err)
			if ev.Type != agentkernel.EventSnapshot {
				kept = append(kept, ev)
			}
		}
		require.NoError(t, agenttest.CheckRun(nil, kept))
		require.Equal(t, agenttest.Format(live), agenttest.Format(kept))
	})
}

// TestRingIsBounded: however long the session, a ring keeps two snapshots and two intervals.
func TestRingIsBounded(t *testing.T) {
	j := journal.NewRing(journal.Config{SnapshotEvery: 10})
	agent := talk(t, 50)
	journal.Follow(agent, j)
	for i := range 50 {
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.NoError(t, agent.Reset()) // so that snapshots stay small
		all := 0
		for _, err := range journal.Events(j, false) {
			require.NoError(t, err)
			all++
		}
		require.LessOrEqual(t, all, 200, "run %d", i)
	}
	_, err := j.Since(0, 10)
	require.ErrorIs(t, err, journal.ErrGone)
	records, err := j.Since(j.Start(), 1)
	require.NoError(t, err)
	require.Equal(t, agentkernel.EventSnapshot, records[0].Type)
}

// TestSnapshotsStayLinear: snapshots at most about double what a long session writes.
func TestSnapshotsStayLinear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.jsonl")
	j, err := journal.Open(path, journal.Config{SnapshotEvery: 1})
	require.NoError(t, err)
	agent := talk(t, 100)
	journal.Follow(agent, j)
	for range 100 {
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	}
	require.NoError(t, j.Err())
	require.NoError(t, j.Close())
	var events, snapshots int
	for line := range strings.Lines(read(t, path)) {
		if strings.Contains(line, `"type":"snapshot"`) {
			snapshots += len(line)
		} else {
			events += len(line)
		}
	}
	t.Logf("%d bytes of events, %d of snapshots", events, snapshots)
	require.Less(t, snapshots, 2*events)
	require.Positive(t, snapshots)
}

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

// TestGoesOnBehindACut: a journal that broke off in the middle of a run is written on, by an
// agent that was restored from it, and tells of both.
func TestGoesOnBehindACut(t *testing.T) {
	path, _ := session(t, journal.Config{SnapshotEvery: 20})
	lines := slices.Collect(strings.Lines(read(t, path)))
	for n := 1; n <= len(lines); n += 3 {
		text := strings.Join(lines[:n], "")
		require.NoError(t, os.WriteFile(path, []byte(text[:len(text)-1]), 0o600)) // without line break
		j, err := journal.Open(path, journal.Config{SnapshotEvery: 20})
		require.NoError(t, err)
		state, err := journal.Restore(j)
		require.NoError(t, err)
		agent := talk(t, 1)
		require.NoError(t, agent.Restore(state))
		journal.Follow(agent, j)
		_, err = agent.Run(t.Context(), "again")
		require.NoError(t, err)
		require.NoError(t, j.Err())
		got, err := journal.Restore(j)
		require.NoError(t, err)
		sameState(t, agent.State(), got)
		require.NoError(t, j.Close())

		j, err = journal.Open(path, journal.Config{})
		require.NoError(t, err)
		var last agentkernel.Event
		var dec agentkernel.AgentState
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err)
			if ev.Type != agentkernel.EventSnapshot {
				last = ev
			}
		}
		require.Equal(t, agentkernel.EventAgentEnd, last.Type)
		dec, err = journal.Restore(j)
		require.NoError(t, err)
		sameState(t, agent.State(), dec)
		require.NoError(t, j.Close())
	}
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

// delegate is an agent that has two sub-agents at a time answer, whose events it forwards.
func delegate(t testing.TB) *agentkernel.Agent {
	t.Helper()
	sub := func(name string) agentkernel.SubAgent {
		return agentkernel.SubAgent{Name: name, Description: name, Config: agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("echo"), agenttest.Text("help from "+name).Chunks(3)), Tools: []agentkernel.Tool{echo}}}
	}
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Description: "Asks others.",
		Forward: agentkernel.ForwardEvents, Agents: []agentkernel.SubAgent{sub("a"), sub("b")}})
	require.NoError(t, err)
	agent, err := agentkernel.NewAgent(agentkernel.Config{Tools: []agentkernel.Tool{ask}, Model: agenttest.Script(
		agenttest.Thinking("who knows?").Call("", "ask", `{"mode":"parallel","tasks":[{"agent":"a","prompt":"x"},{"agent":"b","prompt":"y"}]}`),
		agenttest.Text("they say so").Chunks(3))})
	require.NoError(t, err)
	return agent
}

// TestFollowInTheMiddle: a journal that begins in the middle of a run, or of a sub-agent's,
// begins with a snapshot.
func TestFollowInTheMiddle(t *testing.T) {
	for name, make := range map[string]func() *agentkernel.Agent{
		"alone":          func() *agentkernel.Agent { return talk(t, 1) },
		"with subagents": func() *agentkernel.Agent { return delegate(t) },
	} {
		t.Run(name, func(t *testing.T) {
			for after := 0; followAfter(t, make(), after); after++ {
			}
		})
	}
}

// followAfter follows a run from behind so many of its events on. It reports false where the
// run has no more.
func followAfter(t *testing.T, agent *agentkernel.Agent, after int) bool {
	j := journal.NewRing(journal.Config{})
	n := 0
	agent.Subscribe(func(agentkernel.Event) {
		if n == after {
			journal.Follow(agent, j)
		}
		n++
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	if n <= after+1 {
		return false
	}
	require.NoError(t, j.Err())
	got, err := journal.Restore(j)
	require.NoError(t, err, "after %d", after)
	sameState(t, agent.State(), got)
	for ev, err := range journal.Events(j, false) {
		require.NoError(t, err, "after %d: %s", after, ev.Type)
	}
	return true
}

// TestAppendInTheMiddle: a run whose beginning a journal does not have goes on in it behind a
// snapshot, also in one that was opened again in the middle.
func TestAppendInTheMiddle(t *testing.T) {
	var events []agentkernel.Event
	agent := delegate(t)
	agent.Subscribe(func(ev agentkernel.Event) { events = append(events, ev) })
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	for after := range events {
		j := journal.NewRing(journal.Config{})
		for _, ev := range events[after:] {
			require.NoError(t, j.Append(ev))
		}
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err, "after %d: %s", after, ev.Type)
		}

		path := filepath.Join(t.TempDir(), "j.jsonl")
		for _, part := range [][]agentkernel.Event{events[:after], events[after:]} {
			j, err := journal.Open(path, journal.Config{SnapshotEvery: -1})
			require.NoError(t, err)
			for _, ev := range part {
				require.NoError(t, j.Append(ev))
			}
			require.NoError(t, j.Close())
		}
		require.Equal(t, 1, strings.Count(read(t, path), `"type":"snapshot"`), "opened after %d", after)
	}
}

// TestClosed: what is appended to a closed journal is an error that Err keeps.
func TestClosed(t *testing.T) {
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{})
		changed := j.Changed()
		require.NoError(t, j.Close())
		require.NoError(t, j.Close())
		<-changed
		require.True(t, j.Closed())
		agent := talk(t, 1)
		journal.Follow(agent, j)
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Error(t, j.Err())
	})
}

// TestAGapIsBridged: behind an event that could not be written comes a snapshot.
func TestAGapIsBridged(t *testing.T) {
	nan := 0.0
	nan /= nan
	_, events := session(t, journal.Config{})
	j := journal.NewRing(journal.Config{})
	var want agentkernel.AgentState
	for i, ev := range events {
		want = agentkernel.Reduce(want, ev)
		if i == 3 {
			ev.Request = &agentkernel.ModelRequest{Temperature: &nan}
			require.Error(t, j.Append(ev))
			continue
		}
		require.NoError(t, j.Append(ev))
	}
	got, err := journal.Restore(j)
	require.NoError(t, err)
	sameState(t, want, got)
	for _, err := range journal.Events(j, false) {
		require.NoError(t, err)
	}
}

// TestSinceOfNothing: a limit below zero is none.
func TestSinceOfNothing(t *testing.T) {
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		records, err := open(journal.Config{}).Since(0, -1)
		require.NoError(t, err)
		require.Empty(t, records)
	})
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

// TestFindAndSince: a place is found by run and seq, and what stands behind it follows.
func TestFindAndSince(t *testing.T) {
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{SnapshotEvery: 10})
		_, events := session(t, journal.Config{})
		for i, ev := range events {
			changed := j.Changed()
			require.NoError(t, j.Append(ev))
			<-changed
			at, ok := j.Find(ev.RunID, ev.Seq)
			require.True(t, ok, i)
			rest, err := j.Since(at-1, 1)
			require.NoError(t, err)
			require.Equal(t, ev.Seq, rest[0].Seq)
			require.Equal(t, at, rest[0].At)
		}
		_, ok := j.Find("nobody", 1)
		require.False(t, ok)
		none, err := j.Since(1<<40, 10)
		require.NoError(t, err)
		require.Empty(t, none)
	})
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
