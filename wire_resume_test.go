package agentkernel_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// TestEncoderRaw: an event of a newer version has its place in the stream, so that a snapshot
// behind it is followed by no gap and no duplicate.
func TestEncoderRaw(t *testing.T) {
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	var newer agentkernel.Event
	line := `{"v":1,"type":"telepathy","run_id":"r","seq":2,"turn":0,"new":1}`
	require.NoError(t, json.Unmarshal([]byte(line), &newer))
	_, err := enc.Encode(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "r", Seq: 1})
	require.NoError(t, err)
	raw, err := enc.Encode(newer)
	require.NoError(t, err)
	require.Equal(t, line, string(raw))
	id, seq := enc.Last()
	require.Equal(t, [2]any{"r", uint64(2)}, [2]any{id, seq})
	snapshot, err := enc.Snapshot()
	require.NoError(t, err)
	got, err := dec.Decode(snapshot)
	require.NoError(t, err)
	require.Equal(t, uint64(2), got.Seq)
	next, err := enc.Encode(agentkernel.Event{Type: agentkernel.EventTurnStart, RunID: "r", Seq: 3, Turn: 1})
	require.NoError(t, err)
	_, err = dec.Decode(next)
	require.NoError(t, err)
}

// TestEncoderResume: behind any event of a run, those of its children among them, an Encoder
// goes on: what a reader has from the snapshot and what follows is the agent's state.
func TestEncoderResume(t *testing.T) {
	events := wireRun(t)
	var live agentkernel.AgentState
	for i, ev := range events {
		live = agentkernel.Reduce(live, ev)
		state := live
		enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
		enc.Resume(state, ev)
		for j, later := range events[i:] {
			if j > 0 {
				state = agentkernel.Reduce(state, later)
				line, err := enc.Encode(later)
				require.NoError(t, err)
				back, err := dec.Decode(line)
				require.NoError(t, err, "resumed at %d, record %s", i, line)
				require.Equal(t, onDelta(t, later), onWire(t, back), "resumed at %d", i)
			}
			requireSameState(t, state, enc.State())
			if j%7 == 0 { // a later reader sees the same
				snapshot, err := enc.Snapshot()
				require.NoError(t, err)
				_, err = dec.Decode(snapshot)
				require.NoError(t, err)
			}
			requireSameState(t, state, dec.State())
		}
	}
}

// TestEncoderUnseenChild: a child whose parent has not been seen does not end the agent's run.
func TestEncoderUnseenChild(t *testing.T) {
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	for _, ev := range []agentkernel.Event{
		{Type: agentkernel.EventAgentStart, RunID: "own", Seq: 1},
		{Type: agentkernel.EventAgentStart, RunID: "grandchild", ParentRunID: "unseen", Seq: 1},
		{Type: agentkernel.EventMessageEnd, RunID: "grandchild", ParentRunID: "unseen", Seq: 2, Message: agentkernel.UserMessage("no")},
		{Type: agentkernel.EventMessageEnd, RunID: "own", Seq: 2, Message: agentkernel.UserMessage("yes")},
	} {
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		_, err = dec.Decode(line)
		require.NoError(t, err, string(line))
		require.Equal(t, "own", enc.State().RunID)
		requireSameState(t, enc.State(), dec.State())
	}
	require.Len(t, dec.State().Messages, 1)
}

// TestDecoderLostEnd: that a run did not end is no error, since it may have died.
func TestDecoderLostEnd(t *testing.T) {
	lines := encoded(t, plainRun(t))
	dec := new(agentkernel.Decoder)
	_, errs := decodeAll(dec, lines[:len(lines)-1])
	require.Empty(t, errs)
	require.True(t, dec.State().IsRunning)
	_, errs = decodeAll(dec, encoded(t, plainRun(t)))
	require.Empty(t, errs)
	require.False(t, dec.State().IsRunning)
}

// TestEncoderResumeBesideChildren: the first record of a child that was open then is no gap,
// also for a reader who comes later; one that is missing behind it is.
func TestEncoderResumeBesideChildren(t *testing.T) {
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	own := agentkernel.Event{Type: agentkernel.EventTurnStart, RunID: "own", Seq: 5, Turn: 2}
	enc.Resume(agentkernel.AgentState{RunID: "own", IsRunning: true}, own)
	for _, seq := range []uint64{4, 5, 7} {
		snapshot, err := enc.Snapshot()
		require.NoError(t, err)
		require.NoError(t, wireSchema(t).Validate(instance(t, snapshot)), "%s", snapshot)
		_, err = dec.Decode(snapshot)
		require.NoError(t, err)
		line, err := enc.Encode(agentkernel.Event{Type: agentkernel.EventTurnStart, RunID: "child", ParentRunID: "own", Seq: seq, Turn: 1})
		require.NoError(t, err)
		_, err = dec.Decode(line)
		require.Equal(t, seq == 7, err != nil, "seq %d: %v", seq, err)
	}
}
