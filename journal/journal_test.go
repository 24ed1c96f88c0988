package journal_test

import (
	"context"
	"encoding/json"
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

// TestEventsOfARingThatMovesOn: a reader that is overtaken goes on with the oldest snapshot that
// is kept, and nothing it yields is an error.
func TestEventsOfARingThatMovesOn(t *testing.T) {
	j := journal.NewRing(journal.Config{SnapshotEvery: 8})
	agent := talk(t, 40)
	journal.Follow(agent, j)
	run := func(times int) {
		for range times {
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
		}
	}
	run(1)
	var first, last agentkernel.Event
	snapshots := 0
	for ev, err := range journal.Events(j, false) {
		require.NoError(t, err)
		if last = ev; ev.Type == agentkernel.EventSnapshot {
			snapshots++
		}
		if first.Type == "" {
			first = ev
			run(39)
			_, err := j.Since(1, 1)
			require.ErrorIs(t, err, journal.ErrGone)
		}
	}
	require.Equal(t, agentkernel.EventSnapshot, first.Type)
	require.Greater(t, snapshots, 1)
	require.Equal(t, agentkernel.EventAgentEnd, last.Type)
	require.Equal(t, agent.State().RunID, last.RunID)
	for range journal.Events(j, false) {
		break // who leaves the loop is not called again
	}
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
