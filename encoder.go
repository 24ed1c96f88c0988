package agentkernel

import (
	"cmp"
	"fmt"
	"reflect"
)

// Encoder writes the events of one agent, or of one run, in the delta-only form, whose bytes
// are linear in the text of a run:
//
//   - message_update carries no message but its delta;
//   - model_response carries no message, which is the last one of the model that ended, and
//     its results as the ids of calls that ended before;
//   - agent_end carries the number of messages that ended in the run;
//   - model_request carries the names of the tools, and neither their schemas nor the system
//     prompt.
//
// Where a reader of everything that the Encoder wrote could not know better (a run whose
// beginning the Encoder did not see, a message that changed beside its growth), the event is
// written whole. A [Decoder] reads both.
//
// A context event carries the whole history that it makes the baseline, so that its size is
// that of a snapshot: the bytes of an agent whose history is replaced in every turn are linear
// in its text no more.
//
// Events are encoded in the order of the stream, child runs among them. The zero Encoder
// begins with an empty history. It is for one goroutine and keeps no more than the state and
// the messages of the runs that have not ended.
type Encoder struct {
	stream wireStream
}

// NewEncoder returns an Encoder for an agent that has the state: what a snapshot shows.
func NewEncoder(state AgentState) *Encoder { return &Encoder{stream: wireStream{state: state}} }

// Encode returns the event as one JSON object without a line break. An error names the event.
// One that cannot be written, by encoding/json or since a message of the harness crashed, has its
// place all the same: the Encoder goes on behind it, and a reader needs a snapshot. An event of
// which no snapshot could tell, since its messages or results cannot be written, one that lacks
// what its type must carry or holds what no reader would take, and one of type [EventSnapshot],
// which [Encoder.Snapshot] writes, are errors that change nothing. An event of a newer version is
// written as it was read.
func (e *Encoder) Encode(ev Event) ([]byte, error) {
	if ev.Type == EventSnapshot {
		return nil, errSnapshot(&ev)
	}
	w := wireOf(&ev)
	if missing := cmp.Or(w.missing(), ev.unreadable()); missing != "" {
		return nil, fmt.Errorf("agentkernel: %s, seq %d: it lacks %s, so that nobody could read it", ev.Type, ev.Seq, missing)
	}
	if e.stream.runs[ev.RunID] == nil { // no run begins with what is refused
		if _, err := w.bytes(); err != nil && !w.canBeTold() {
			return nil, err
		}
		w = wireOf(&ev)
	}
	r := e.stream.run(ev.RunID, ev.ParentRunID)
	r.shorten(w, &ev)
	data, err := w.bytes()
	if err != nil && !w.canBeTold() {
		return nil, err
	}
	e.stream.take(r, &ev)
	r.seq = ev.Seq
	if ev.Raw != nil {
		return oneLine(ev.Raw), nil
	}
	return data, err
}

// Follows tells whether ev, as the next event, is one that a reader of all that was written can
// place: the first of its run, one of a run that the Encoder follows, or one of a child that
// may have begun unseen. Any other is behind a gap for that reader, and a snapshot should follow.
func (e *Encoder) Follows(ev Event) bool {
	if e.stream.runs[ev.RunID] != nil || ev.Seq <= uint64(max(ev.Coalesced, 0))+1 {
		return true
	}
	own := e.stream.runs[e.stream.state.RunID]
	return own != nil && own.joined && e.stream.bearsChild(ev.ParentRunID)
}

// Repeats tells whether ev came before, as far as is remembered: it is of one of the last runs
// that ended, or no later than the last event of its run. A reader takes such a record for a
// duplicate.
func (e *Encoder) Repeats(ev Event) bool {
	if _, over := e.stream.ended(ev.RunID, ev.ParentRunID); over {
		return true
	}
	r := e.stream.runs[ev.RunID]
	return r != nil && ev.Seq <= r.seq
}

// State is the state after the events so far: [Reduce] over them.
func (e *Encoder) State() AgentState { return e.stream.state }

// shorten replaces by references what a reader knows.
func (r *wireRun) shorten(w *eventWire, ev *Event) {
	switch ev.Type {
	case EventModelRequest:
		w.Request.short()
	case EventMessageUpdate:
		if m, ok := ownMessage(ev.Message); ok && r.open.fits(ev, &m) {
			w.Message = nil
		}
	case EventModelResponse:
		if r.answer != nil && reflect.DeepEqual(r.answer, ev.Message) {
			w.Message = nil
		}
		if ids := r.knownResults(ev.ToolResults); ids != nil {
			w.ToolResults, w.ToolResultIDs = nil, ids
		}
	case EventAgentEnd:
		if n := len(ev.NewMessages); n > 0 && reflect.DeepEqual(r.ended, ev.NewMessages) {
			w.NewMessages, w.NewMessagesCount = nil, n
		}
	}
}

// knownResults is the ids of results, nil where one of them did not come with its call's end.
func (r *wireRun) knownResults(results []ToolResult) []string {
	ids, find := make([]string, len(results)), r.finder()
	for i := range results {
		known, ok := find(results[i].ToolCallID)
		if !ok || !reflect.DeepEqual(known, results[i]) {
			return nil
		}
		ids[i] = known.ToolCallID
	}
	if len(ids) == 0 {
		return nil
	}
	return ids
}

// Resume makes the Encoder go on behind ev, an event in the middle of a run or of a child run,
// after which the agent has the state. A snapshot should be the next thing that is written:
// it tells a [Decoder] that child runs may be open which it has not seen, whose first record
// then is no gap.
func (e *Encoder) Resume(state AgentState, ev Event) {
	e.stream = wireStream{state: state, last: markOf(&ev), over: e.stream.over}
	if state.IsRunning && state.RunID != ev.RunID {
		e.stream.run(state.RunID, "").resume(state.StreamMessage)
	}
	if ev.Type == EventAgentEnd {
		e.stream.end(ev.RunID, ev.Seq, ev.RunID != state.RunID)
		return
	}
	r := e.stream.run(ev.RunID, ev.ParentRunID)
	r.seq = ev.Seq
	if ev.RunID != state.RunID {
		return
	}
	if r.resume(state.StreamMessage); ev.Type == EventMessageStart {
		r.open.start(&ev)
	}
}

// resume begins in the middle of the agent's run, in which open streams or nothing does.
func (r *wireRun) resume(open AgentMessage) {
	r.joined = true
	if m, ok := ownMessage(open); ok && m.Role == RoleAssistant {
		r.open.adopt(m, lengths(m.Content))
	}
}

// Last returns the run and the seq of the last event: the place of a snapshot made now.
func (e *Encoder) Last() (runID string, seq uint64) { return e.stream.last.runID, e.stream.last.seq }
