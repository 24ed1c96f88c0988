package agentkernel

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// runSnapshot is what a snapshot says of a run that has not ended.
type runSnapshot struct {
	RunID       string `json:"run_id"`
	ParentRunID string `json:"parent_run_id,omitempty"`
	Child       bool   `json:"child,omitempty"`
	// Seq is that of the last event, 0 where none of the run has been seen.
	Seq uint64 `json:"seq"`
	// Joined: children may be open that are not listed.
	Joined bool `json:"joined,omitempty"`
	// EndedCount: the last messages of the state ended in this run. Ended: these did.
	EndedCount int           `json:"ended_count,omitempty"`
	Ended      []wireMessage `json:"ended,omitzero"`
	// Results of the calls that ended since the last answer.
	Results []wireResult `json:"results,omitzero"`
	// Message is open; of each of its blocks the first Sums bytes came as deltas.
	Message *wireMessage `json:"message,omitempty"`
	Sums    []int        `json:"sums,omitzero"`
}

// Snapshot returns a record that stands for all events so far: a reader may begin with it.
// Its size is that of the history and of the runs that have not ended.
func (e *Encoder) Snapshot() ([]byte, error) {
	s := &e.stream
	w := &eventWire{V: WireVersion, Type: EventSnapshot, RunID: s.last.runID, ParentRunID: s.last.parentID,
		Seq: s.last.seq, Time: canonicalTime(s.last.time), Turn: s.last.turn, State: &s.state}
	byUse := func(a, b *wireRun) int { return cmp.Or(cmp.Compare(a.used, b.used), strings.Compare(a.id, b.id)) }
	for _, r := range slices.SortedFunc(maps.Values(s.runs), byUse) {
		w.Runs = append(w.Runs, r.snapshot(&s.state))
	}
	w.EndedRuns = slices.Concat(s.over, s.overChildren)
	return w.bytes()
}

func (r *wireRun) snapshot(state *AgentState) runSnapshot {
	out := runSnapshot{RunID: r.id, ParentRunID: r.parent, Child: r.child, Seq: r.seq, Joined: r.joined, Results: resultsToWire(r.results)}
	n, history := len(r.ended), state.Messages
	if r.id == state.RunID && n > 0 && n <= len(history) && reflect.DeepEqual(history[len(history)-n:], r.ended) {
		out.EndedCount = n
	} else {
		out.Ended = messagesToWire(r.ended)
	}
	if r.open.is {
		out.Message, out.Sums = &wireMessage{r.open.last}, append([]int{}, r.open.sums...)
	}
	return out
}

// run is the run as the snapshot tells of it; false where it makes no sense.
func (w *runSnapshot) run(history []AgentMessage) (*wireRun, bool) {
	r := &wireRun{id: w.RunID, parent: w.ParentRunID, child: w.Child, seq: w.Seq, floor: w.Seq, counted: w.Seq,
		joined: w.Joined, midway: w.Seq == 0, ended: messagesOf(w.Ended), results: resultsOf(w.Results)}
	switch n := w.EndedCount; {
	case n < 0 || n > len(history):
		return nil, false
	case n > 0: // a view, which grows elsewhere
		r.ended = history[len(history)-n : len(history) : len(history)]
	}
	for _, m := range slices.Backward(r.ended) {
		if roleOf(m) == RoleAssistant {
			r.answer = m
			break
		}
	}
	if w.Message == nil {
		return r, true
	}
	m, ok := ownMessage(w.Message.AgentMessage)
	if !ok || !streams(&m) || len(w.Sums) > len(m.Content) {
		return nil, false
	}
	for i, n := range w.Sums {
		if n < 0 || n > len(growingText(&m.Content[i])) {
			return nil, false
		}
	}
	r.open.adopt(m, w.Sums)
	r.open.built = rebuild(&m, w.Sums)
	return r, true
}

// stream is what a snapshot tells, and the first of its runs that makes no sense, if one does.
func (w *eventWire) stream() (s wireStream, bad *runSnapshot) {
	s = wireStream{state: *w.State, last: wireMark{w.RunID, w.ParentRunID, w.Seq, canonicalTime(w.Time), w.Turn}}
	ended := 0
	for i := range w.Runs {
		r, ok := w.Runs[i].run(s.state.Messages)
		if !ok || s.runs[r.id] != nil || len(s.runs) >= maxWireRuns {
			return s, &w.Runs[i]
		}
		// A message ended in one run, so that views of the history come to no more than that.
		if ended += w.Runs[i].EndedCount; ended > len(s.state.Messages) {
			return s, &w.Runs[i]
		}
		s.clock++
		r.used = s.clock
		s.add(r)
	}
	for _, e := range w.EndedRuns {
		s.end(e.RunID, e.Seq, e.Child)
	}
	return s, nil
}
