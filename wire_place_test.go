package agentkernel_test

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

var seqField = regexp.MustCompile(`"seq":\d+`)

// withSeq is the record with another seq.
func withSeq(line []byte, seq uint64) []byte {
	return seqField.ReplaceAllLiteral(line, fmt.Appendf(nil, `"seq":%d`, seq))
}

// TestWireRunTwice: a run that is sent again after it ended, as a whole or in part, is a
// duplicate, record by record, and changes nothing; so is one with children.
func TestWireRunTwice(t *testing.T) {
	for name, events := range map[string][]agentkernel.Event{"plain": plainRun(t), "with a child": wireRun(t)} {
		lines := encoded(t, events)
		enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
		for _, ev := range events {
			_, err := enc.Encode(ev)
			require.NoError(t, err)
		}
		_, errs := decodeAll(dec, lines)
		require.Empty(t, errs, name)
		snapshot, err := enc.Snapshot()
		require.NoError(t, err)
		late := new(agentkernel.Decoder) // knows the run from the snapshot alone
		_, err = late.Decode(snapshot)
		require.NoError(t, err)
		want := dec.State()
		for _, reader := range []*agentkernel.Decoder{dec, late} {
			for from := range lines {
				got, errs := decodeAll(reader, lines[from:])
				require.Empty(t, got)
				require.Len(t, errs, len(lines)-from)
				for i, err := range errs {
					require.ErrorIs(t, err, agentkernel.WireDuplicate)
					require.Equal(t, events[from+i].Seq, err.Seq)
				}
				requireSameState(t, want, reader.State())
			}
		}
		_, errs = decodeAll(dec, encoded(t, plainRun(t))) // another run is another run
		require.Empty(t, errs)
	}
}

// TestWireEndedRunsAreBounded: of many runs and children the last ones are known, and no more
// are kept.
func TestWireEndedRunsAreBounded(t *testing.T) {
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	var last [][]byte
	for i := range 500 {
		last = nil
		for seq, of := range []agentkernel.EventType{agentkernel.EventAgentStart, agentkernel.EventAgentEnd} {
			line, err := enc.Encode(agentkernel.Event{Type: of, RunID: fmt.Sprint("run", i), Seq: uint64(seq + 1), Summary: new(agentkernel.RunSummary)})
			require.NoError(t, err)
			last = append(last, line)
		}
		_, errs := decodeAll(dec, last)
		require.Empty(t, errs)
	}
	_, errs := decodeAll(dec, last)
	require.Len(t, errs, 2)
	snapshot, err := enc.Snapshot()
	require.NoError(t, err)
	require.Less(t, len(snapshot), 4096)
	require.NoError(t, wireSchema(t).Validate(instance(t, snapshot)))
}

// TestWireHighSeq: one record whose seq is too high is one error, for it. Everything else
// comes as it was, and the state is right in the end.
func TestWireHighSeq(t *testing.T) {
	events := plainRun(t)
	lines := encoded(t, events)
	whole := new(agentkernel.Decoder)
	_, errs := decodeAll(whole, lines)
	require.Empty(t, errs)
	for bad := range lines {
		for _, seq := range []uint64{uint64(bad + 2), uint64(bad + 3), uint64(bad + 10), 1 << 40, math.MaxUint64 - 1, math.MaxUint64} {
			stream := slices.Clone(lines)
			stream[bad] = withSeq(lines[bad], seq)
			dec := new(agentkernel.Decoder)
			got, errs := decodeAll(dec, stream)
			require.Len(t, errs, 1, "seq %d at %d: %v", seq, bad, errs)
			require.ErrorIs(t, errs[0], agentkernel.WireGap)
			require.Equal(t, []uint64{seq, uint64(bad)}, []uint64{errs[0].Seq, errs[0].After})
			if len(got) == len(events) { // it was returned beside its error
				require.Equal(t, events[bad].Type, got[bad].Type)
				got[bad].Seq = events[bad].Seq
			} else {
				got = slices.Insert(got, bad, events[bad])
			}
			require.Len(t, got, len(events))
			for i := range events {
				require.Equal(t, onDelta(t, events[i]), onDelta(t, got[i]), "seq %d at %d", seq, bad)
			}
			requireSameState(t, whole.State(), dec.State())
		}
	}
}

// TestWireHighSeqOfMerged: so it is in a stream whose updates may pass each other, and where
// the number of merged ones is wrong.
func TestWireHighSeqOfMerged(t *testing.T) {
	events := plainRun(t)
	lines := encoded(t, events)
	for bad := range len(lines) - 1 {
		for _, seq := range []uint64{uint64(bad + 5), math.MaxUint64} {
			stream := slices.Clone(lines)
			stream[bad] = withSeq(lines[bad], seq)
			dec := &agentkernel.Decoder{AllowCoalesced: true}
			got, errs := decodeAll(dec, stream)
			require.LessOrEqual(t, len(errs), 1, "seq %d at %d: %v", seq, bad, errs)
			require.Len(t, got, len(events))
			require.False(t, dec.State().IsRunning)
			require.Len(t, dec.State().Messages, len(events[len(events)-1].NewMessages))
		}
	}
	stream := slices.Clone(lines)
	for i := range stream {
		if events[i].Type == agentkernel.EventMessageUpdate {
			stream[i] = []byte(strings.Replace(string(withSeq(lines[i], math.MaxUint64)), `"turn"`, `"coalesced":9223372036854775807,"turn"`, 1))
			break
		}
	}
	for _, merged := range []bool{true, false} {
		dec := &agentkernel.Decoder{AllowCoalesced: merged}
		got, errs := decodeAll(dec, stream)
		require.NotEmpty(t, errs)
		require.Equal(t, agentkernel.EventAgentEnd, got[len(got)-1].Type)
		require.False(t, dec.State().IsRunning)
	}
}

// TestWireLowSeq: a record whose seq is too low counts as a duplicate, and the next one as
// behind a gap; but a run ends once, so that its end comes through with any seq.
func TestWireLowSeq(t *testing.T) {
	events := plainRun(t)
	lines := encoded(t, events)
	for _, merged := range []bool{false, true} {
		for seq := range uint64(len(lines)) - 1 {
			stream := slices.Clone(lines)
			stream[len(lines)-1] = withSeq(lines[len(lines)-1], seq+1)
			dec := &agentkernel.Decoder{AllowCoalesced: merged}
			got, errs := decodeAll(dec, stream)
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], agentkernel.WireGap)
			require.Equal(t, seq+1, errs[0].Seq)
			require.Equal(t, agentkernel.EventAgentEnd, got[len(got)-1].Type)
			require.Len(t, got[len(got)-1].NewMessages, 4)
			require.False(t, dec.State().IsRunning)
		}
	}
}

// TestWireRepeatBehindGap: a record in doubt that comes again is a duplicate, and proves nothing.
func TestWireRepeatBehindGap(t *testing.T) {
	lines := encoded(t, plainRun(t))
	for at := 4; at < len(lines)-2; at++ {
		stream := append(slices.Clone(lines[:at-2]), lines[at], lines[at], lines[at])
		dec := new(agentkernel.Decoder)
		_, errs := decodeAll(dec, stream)
		require.Len(t, errs, 3)
		require.ErrorIs(t, errs[0], agentkernel.WireGap)
		require.ErrorIs(t, errs[1], agentkernel.WireDuplicate)
		require.ErrorIs(t, errs[2], agentkernel.WireDuplicate)
		got, _ := decodeAll(dec, lines[at+1:])
		require.Equal(t, agentkernel.EventAgentEnd, got[len(got)-1].Type)
	}
}

// TestWireSnapshotMemory: what a reader keeps of a snapshot is a small multiple of its bytes,
// however many runs refer to the history.
func TestWireSnapshotMemory(t *testing.T) {
	const n = 20_000
	var runs []string
	for i := range 1024 {
		runs = append(runs, fmt.Sprintf(`{"run_id":"%d","seq":1,"ended_count":%d}`, i, n))
	}
	messages := strings.TrimSuffix(strings.Repeat(`{"role":"u","content":[]},`, n), ",")
	record := func(runs []string) []byte {
		return []byte(`{"v":1,"type":"snapshot","run_id":"0","seq":1,"turn":0,"state":{"messages":[` + messages +
			`],"run_id":"0","is_running":true},"runs":[` + strings.Join(runs, ",") + `]}`)
	}
	_, err := new(agentkernel.Decoder).Decode(record(runs))
	require.ErrorIs(t, err, agentkernel.WireGarbage) // a message ends in one run
	for i := range runs[1:] {
		runs[i+1] = fmt.Sprintf(`{"run_id":"%d","parent_run_id":"0","child":true,"seq":1}`, i+1)
	}
	data := record(runs)
	var before, after runtime.MemStats
	dec := new(agentkernel.Decoder)
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, err = dec.Decode(data)
	require.NoError(t, err)
	for i := range runs { // each run goes on
		line := fmt.Appendf(nil, `{"v":1,"type":"message_end","run_id":"%d","parent_run_id":"0","seq":2,"turn":1,"message":{"role":"u","content":[]}}`, i)
		_, err := dec.Decode(line)
		require.NoError(t, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes on the wire, %d kept, %d allocated", len(data), kept, after.TotalAlloc-before.TotalAlloc)
	require.Less(t, kept, int64(25*len(data)))
	runtime.KeepAlive(dec)
}

// childRuns is a run in which n children are open at once, say steps things each in turn, and end.
func childRuns(n, steps int) (events []agentkernel.Event) {
	seqs := make([]uint64, n)
	child := func(i int, ev agentkernel.Event) {
		seqs[i]++
		ev.RunID, ev.ParentRunID, ev.Seq, ev.Turn = fmt.Sprint("child", i), "own", seqs[i], 1
		events = append(events, ev)
	}
	own := func(ev agentkernel.Event) {
		ev.RunID, ev.Seq, ev.Turn = "own", uint64(len(events)+1), 1
		events = append(events, ev)
	}
	asked, seq := agentkernel.UserMessage("asked"), uint64(3)
	own(agentkernel.Event{Type: agentkernel.EventAgentStart})
	own(agentkernel.Event{Type: agentkernel.EventMessageStart, Message: asked})
	own(agentkernel.Event{Type: agentkernel.EventMessageEnd, Message: asked})
	for i := range n {
		child(i, agentkernel.Event{Type: agentkernel.EventAgentStart})
	}
	for step := range steps {
		said := agentkernel.UserMessage(fmt.Sprint("said ", step))
		for i := range n {
			child(i, agentkernel.Event{Type: agentkernel.EventMessageStart, Message: said})
			child(i, agentkernel.Event{Type: agentkernel.EventMessageEnd, Message: said})
		}
	}
	for i := range n {
		end := agentkernel.Event{Type: agentkernel.EventAgentEnd, Summary: new(agentkernel.RunSummary)}
		for step := range steps {
			end.NewMessages = append(end.NewMessages, agentkernel.UserMessage(fmt.Sprint("said ", step)))
		}
		child(i, end)
	}
	own(agentkernel.Event{Type: agentkernel.EventAgentEnd, Summary: new(agentkernel.RunSummary), NewMessages: []agentkernel.AgentMessage{asked}})
	events[len(events)-1].Seq = seq + 1
	return events
}

// TestWireManyChildren: however many child runs are open at once, none of them costs the agent
// its own run, and all of it comes through, also behind a snapshot.
func TestWireManyChildren(t *testing.T) {
	events := childRuns(2000, 2)
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	var live agentkernel.AgentState
	for i, ev := range events {
		live = agentkernel.Reduce(live, ev)
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		back, err := dec.Decode(line)
		require.NoError(t, err, "event %d", i)
		require.Equal(t, ev.NewMessages, back.NewMessages)
		require.Equal(t, live.RunID, dec.State().RunID)
		if i%2500 == 2499 {
			snapshot, err := enc.Snapshot()
			require.NoError(t, err)
			dec = new(agentkernel.Decoder)
			_, err = dec.Decode(snapshot)
			require.NoError(t, err)
		}
	}
	requireSameState(t, live, enc.State())
	requireSameState(t, live, dec.State())
}

// TestWireDeadChildren: children that died without an end make room for those that live.
func TestWireDeadChildren(t *testing.T) {
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	put := func(ev agentkernel.Event) agentkernel.Event {
		t.Helper()
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		back, err := dec.Decode(line)
		require.NoError(t, err)
		return back
	}
	put(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "own", Seq: 1})
	live := agentkernel.Event{RunID: "live", ParentRunID: "own", Seq: 1, Type: agentkernel.EventAgentStart}
	put(live)
	said := agentkernel.UserMessage("x")
	for i := range 3000 {
		put(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: fmt.Sprint("dead", i), ParentRunID: "own", Seq: 1})
		if live.Seq++; live.Seq%2 == 0 {
			live.Type, live.Message = agentkernel.EventMessageStart, said
		} else {
			live.Type = agentkernel.EventMessageEnd
		}
		put(live)
	}
	live.Seq++
	line, err := enc.Encode(agentkernel.Event{Type: agentkernel.EventAgentEnd, RunID: "live", ParentRunID: "own", Seq: live.Seq,
		Summary: new(agentkernel.RunSummary), NewMessages: slices.Repeat([]agentkernel.AgentMessage{said}, 1500)})
	require.NoError(t, err)
	require.Contains(t, string(line), `"new_messages_count":1500`) // it was followed all along
	_, err = dec.Decode(line)
	require.NoError(t, err)
}

// TestWireDeepChildren: runs of which each is the child of the one before, more than are
// followed, cost nobody an ancestor.
func TestWireDeepChildren(t *testing.T) {
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	parent := ""
	var events []agentkernel.Event
	for i := range 1500 {
		events = append(events, agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: fmt.Sprint("r", i), ParentRunID: parent, Seq: 1})
		parent = fmt.Sprint("r", i)
	}
	for i := range slices.Backward(events[:1500]) {
		end := agentkernel.Event{Type: agentkernel.EventAgentEnd, RunID: events[i].RunID, ParentRunID: events[i].ParentRunID, Seq: 2, Summary: new(agentkernel.RunSummary)}
		events = append(events, end)
	}
	for _, ev := range events {
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		back, err := dec.Decode(line)
		require.NoError(t, err, "%s", line)
		require.Equal(t, ev.RunID, back.RunID)
	}
	require.Equal(t, "r0", dec.State().RunID)
	require.False(t, dec.State().IsRunning)
}

// TestWireHighSeqInTurn: several records with a wrong seq, one after the other, cost what builds
// on them; the run ends.
func TestWireHighSeqInTurn(t *testing.T) {
	events := plainRun(t)
	lines := encoded(t, events)
	for at := range len(lines) - 3 {
		stream := slices.Clone(lines)
		for i := range 3 {
			stream[at+i] = withSeq(lines[at+i], 1<<50+uint64(7*i))
		}
		dec := new(agentkernel.Decoder)
		got, errs := decodeAll(dec, stream)
		require.GreaterOrEqual(t, len(errs), 3)
		for _, err := range errs {
			require.False(t, errors.Is(err, agentkernel.WireGarbage), err)
		}
		require.Equal(t, agentkernel.EventAgentEnd, got[len(got)-1].Type)
		require.False(t, dec.State().IsRunning)
	}
}
