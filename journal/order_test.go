package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

// chatter is an agent whose model writes two calls at a time, which report their progress at
// a time and are slow.
func chatter(t *testing.T) *agentkernel.Agent {
	var events []agentkernel.StreamEvent
	delta := func(key, id, name, text string) {
		events = append(events, agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, Key: key, ID: id, Name: name, Delta: text})
	}
	delta("a", "a", "chat", "")
	delta("b", "b", "chat", "")
	for _, text := range []string{"{", `"n"`, ":", "1", "2", "3", "}"} {
		delta("a", "", "", text)
		delta("b", "", "", text)
	}
	chat := agentkernel.Tool{Name: "chat", Execute: func(ctx context.Context, _ json.RawMessage) (agentkernel.ToolResult, error) {
		for i := range 20 {
			time.Sleep(time.Millisecond)
			for _, kind := range []agentkernel.ProgressKind{agentkernel.ProgressToolDelta, agentkernel.ProgressSummary} {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: kind, Text: fmt.Sprint(i)})
			}
		}
		return agentkernel.TextResult("ok"), nil
	}}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Tools: []agentkernel.Tool{chat}, Model: agenttest.Script(
		agenttest.Events(events...), agenttest.Thinking("so").Text("this is the answer").Chunks(2),
		agenttest.Text("and another one").Chunks(1))})
	require.NoError(t, err)
	return agent
}

// TestAsynchronousJournal: a journal that is written by an asynchronous subscriber, however
// late it is, gives the state behind each event that is no update, and is whole.
func TestAsynchronousJournal(t *testing.T) {
	t.Run("chatter", func(t *testing.T) { asynchronousJournal(t, 2, chatter) })
	t.Run("with subagents", func(t *testing.T) {
		asynchronousJournal(t, 1, func(t *testing.T) *agentkernel.Agent { return delegate(t) })
	})
}

func asynchronousJournal(t *testing.T, runs int, make func(*testing.T) *agentkernel.Agent) {
	for _, late := range []time.Duration{0, 100 * time.Microsecond, 700 * time.Microsecond, 3 * time.Millisecond, 20 * time.Millisecond, time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.jsonl")
			var live agentkernel.AgentState
			synctest.Test(t, func(t *testing.T) { live = asynchronous(t, make(t), runs, path, late) })
			j, err := journal.Open(path, journal.Config{})
			require.NoError(t, err)
			got, err := journal.Restore(j)
			require.NoError(t, err)
			sameState(t, live, got)
			require.NoError(t, j.Close())
		})
	}
}

func asynchronous(t *testing.T, agent *agentkernel.Agent, runs int, path string, late time.Duration) agentkernel.AgentState {
	file, err := journal.Open(path, journal.Config{SnapshotEvery: 15})
	require.NoError(t, err)
	ring := journal.NewRing(journal.Config{})
	var folded agentkernel.AgentState
	merged := 0
	sub := agent.SubscribeAsync(func(ev agentkernel.Event) {
		time.Sleep(late)
		file.Listen(ev)
		ring.Listen(ev)
		folded = agentkernel.Reduce(folded, ev)
		merged += ev.Coalesced
		if ev.Type == agentkernel.EventMessageUpdate || ev.Type == agentkernel.EventToolExecUpdate {
			return
		}
		for _, j := range []*journal.Journal{file, ring} {
			got, err := journal.Restore(j)
			require.NoError(t, err, "seq %d", ev.Seq)
			sameState(t, folded, got)
		}
	}, agentkernel.AsyncOptions{})
	for range runs {
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	}
	require.NoError(t, sub.Drain(t.Context()))
	require.True(t, merged > 0 || late == 0)
	require.NoError(t, file.Err())
	require.NoError(t, ring.Err())
	for ev, err := range journal.Events(file, false) {
		require.NoError(t, err, "seq %d", ev.Seq)
	}
	require.NoError(t, file.Close())
	return agent.State()
}

// TestCloseBehindReordered: what readers would still have waited for is there after Close.
func TestCloseBehindReordered(t *testing.T) {
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{})
		_, events := session(t, journal.Config{})
		var want agentkernel.AgentState
		at := slices.IndexFunc(events, func(ev agentkernel.Event) bool { return ev.Type == agentkernel.EventMessageUpdate }) + 1
		for _, ev := range slices.Concat(events[:at], events[at+1:at+3]) { // the update between is on its way
			require.Equal(t, ev.Seq > events[at].Seq, ev.Type == agentkernel.EventMessageUpdate && ev.Seq > events[at-1].Seq)
			want = agentkernel.Reduce(want, ev)
			require.NoError(t, j.Append(ev))
		}
		require.NoError(t, j.Close())
		got, err := journal.Restore(j)
		require.NoError(t, err)
		sameState(t, want, got)
	})
}

// TestMissingEvents: events that never come are an error at the end of their run, and a
// snapshot stands for them; one that comes again is an error and changes nothing.
func TestMissingEvents(t *testing.T) {
	_, events := session(t, journal.Config{})
	ends := slices.IndexFunc(events, func(ev agentkernel.Event) bool { return ev.Type == agentkernel.EventAgentEnd })
	for lost := 1; lost < ends; lost++ {
		j := journal.NewRing(journal.Config{})
		var want agentkernel.AgentState
		for i, ev := range events {
			if i == lost {
				continue
			}
			want = agentkernel.Reduce(want, ev)
			err := j.Append(ev)
			require.Equal(t, i == ends, errors.Is(err, agentkernel.WireGap), "lost %d, at %d: %v", lost, i, err)
			if i != ends {
				require.NoError(t, err)
				require.ErrorIs(t, j.Append(ev), agentkernel.WireDuplicate)
			}
		}
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err, "lost %d: seq %d", lost, ev.Seq)
		}
		got, err := journal.Restore(j)
		require.NoError(t, err)
		sameState(t, want, got)
	}
}

// TestSnapshotsAreNotAppended: the snapshots of another journal are refused and change nothing.
func TestSnapshotsAreNotAppended(t *testing.T) {
	path, _ := session(t, journal.Config{SnapshotEvery: 5})
	from, err := journal.Open(path, journal.Config{})
	require.NoError(t, err)
	defer from.Close()
	to := journal.NewRing(journal.Config{})
	refused := 0
	for ev, err := range journal.Events(from, false) {
		require.NoError(t, err)
		if err = to.Append(ev); ev.Type == agentkernel.EventSnapshot {
			require.Error(t, err)
			refused++
			continue
		}
		require.NoError(t, err)
	}
	require.Greater(t, refused, 2)
	want, err := journal.Restore(from)
	require.NoError(t, err)
	got, err := journal.Restore(to)
	require.NoError(t, err)
	sameState(t, want, got)
}

// TestLostEndOfARun: a journal that lacks the end of a run which another one follows says so,
// wherever the end begins; where the run died it says nothing.
func TestLostEndOfARun(t *testing.T) {
	path, events := session(t, journal.Config{SnapshotEvery: -1})
	lines := slices.Collect(strings.Lines(read(t, path)))
	second := slices.IndexFunc(events, func(ev agentkernel.Event) bool { return ev.RunID != events[0].RunID })
	open := func(text string) *journal.Journal {
		path := filepath.Join(t.TempDir(), "j.jsonl")
		write(t, path, text)
		j, err := journal.Open(path, journal.Config{SnapshotEvery: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		return j
	}
	for n := 1; n < second; n++ {
		head := strings.Join(lines[:1+n], "")
		j := open(head + strings.Join(lines[1+second:], ""))
		_, err := journal.Restore(j)
		require.ErrorIs(t, err, agentkernel.WireGap, "behind %d", n)
		require.ErrorContains(t, err, fmt.Sprintf("what follows seq %d of run %q", events[n-1].Seq, events[0].RunID))
		problems := 0
		for ev, err := range journal.Events(j, false) {
			if err != nil {
				problems++
				require.Equal(t, agentkernel.EventAgentStart, ev.Type)
			}
		}
		require.Equal(t, 1, problems)

		j = open(head) // the run died
		var want agentkernel.AgentState
		for _, ev := range events[:n] {
			want = agentkernel.Reduce(want, ev)
		}
		want.IsRunning, want.StreamMessage, want.PendingToolCalls = false, nil, nil
		for _, ev := range events[second:] {
			want = agentkernel.Reduce(want, ev)
			require.NoError(t, j.Append(ev))
		}
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err, ev.Type)
		}
		got, err := journal.Restore(j)
		require.NoError(t, err)
		sameState(t, want, got)
	}
}

// boom is a message that cannot be written.
type boom struct{ agentkernel.Message }

func (boom) GetRole() agentkernel.Role    { return "mark" }
func (boom) MarshalJSON() ([]byte, error) { panic("boom") }

func init() { agentkernel.RegisterMessage[boom]("boom") }

// TestMessageThatPanics: a panic of a message's MarshalJSON is an error, and the journal goes
// on once the message is gone.
func TestMessageThatPanics(t *testing.T) {
	agent := talk(t, 2)
	j := journal.NewRing(journal.Config{})
	journal.Follow(agent, j)
	run, err := agent.PromptMessages(t.Context(), boom{}, agentkernel.UserMessage("x"))
	require.NoError(t, err)
	_, err = run.Wait(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, j.Err(), "boom")
	require.NoError(t, agent.Reset())
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	got, err := journal.Restore(j)
	require.NoError(t, err)
	sameState(t, agent.State(), got)
}

// TestAnyOrder: whatever is dropped, repeated, swapped or counted wrongly before Append, what the
// journal holds can be read without an error, from its beginning and from its last snapshot.
func TestAnyOrder(t *testing.T) {
	var events []agentkernel.Event
	for _, agent := range []*agentkernel.Agent{delegate(t), talk(t, 2)} {
		agent.Subscribe(func(ev agentkernel.Event) { events = append(events, ev) })
		for range 2 {
			_, _ = agent.Run(t.Context(), "hi") // the second one may fail, which is a run too
		}
	}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 0))
		j := journal.NewRing(journal.Config{SnapshotEvery: 1 + r.IntN(40)})
		feed := slices.Clone(events)
		for range 1 + r.IntN(20) {
			a, b := r.IntN(len(feed)), r.IntN(len(feed))
			switch r.IntN(4) {
			case 0:
				feed = slices.Delete(feed, a, min(a+1+r.IntN(5), len(feed)))
			case 1:
				feed[a], feed[b] = feed[b], feed[a]
			case 2:
				feed[a].Coalesced = r.IntN(10) - 2
			case 3:
				feed = slices.Insert(feed, a, feed[b])
			}
		}
		for _, ev := range feed {
			_ = j.Append(ev)
		}
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err, "seed %d: %s %d", seed, ev.Type, ev.Seq)
		}
		got, err := journal.Restore(j)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		again, err := journal.Restore(j)
		require.NoError(t, err)
		require.Len(t, again.Messages, max(len(got.Messages), len(again.Messages)))
	}
}
