package agentkernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Decoder reads what an [Encoder] wrote and rebuilds the cumulative stream: every event as it
// was, as far as the wire carries it (see [Event.UnmarshalJSON]). The rebuilt partials of a
// message share append-only buffers, so that n deltas cost O(n).
//
// It proves by Seq that nothing is missing, and reports with a [*WireError] what is not as it
// should be. A record that cannot be read, or that came before, changes nothing; nor does what
// comes of one of the last runs that ended. The seq behind a gap is believed once the next
// record follows on it. Where that follows on the record before the gap instead, only the seq
// was wrong: the one error was for that, and the run goes on.
//
// Otherwise, after a gap the run's records are skipped, each with an error of problem
// WireSkipped, until one comes that builds on nothing before it: a snapshot, the end of a
// message, an update that carries the whole message. Context, Error and AgentEnd come through
// in any case. Of a gap, and of an AgentEnd that refers to messages that did not come, the
// event is returned beside the error where it can be used.
//
// What it cannot prove: that nothing is missing at the end of a run. A run that starts while
// another one of the agent has not ended means that the other died, or that its last records
// were lost. Neither is an error.
//
// The zero Decoder is ready to use. It follows one agent with its child runs, or one run, and
// is for one goroutine; what it returns is for all.
type Decoder struct {
	// AllowCoalesced accepts updates that were merged out of order, as an asynchronous
	// subscriber gets them. What is missing then shows only at the end of the run.
	AllowCoalesced bool

	stream wireStream
}

// NewDecoder returns a Decoder of a stream that begins with the state: see [NewEncoder].
func NewDecoder(state AgentState) *Decoder { return &Decoder{stream: wireStream{state: state}} }

// State is the state after the records so far: [Reduce] over the events, from the last
// snapshot on.
func (d *Decoder) State() AgentState { return d.stream.state }

// Encoder returns an Encoder that goes on where the Decoder is.
func (d *Decoder) Encoder() *Encoder {
	e := &Encoder{stream: d.stream}
	e.stream.over, e.stream.overChildren = slices.Clip(d.stream.over), slices.Clip(d.stream.overChildren)
	e.stream.runs = nil
	for _, r := range d.stream.runs {
		own := *r
		if own.doubt != nil && own.midway {
			own.seq = own.doubt.seq
		}
		own.doubt, own.midway = nil, false
		own.ended, own.results = slices.Clip(r.ended), slices.Clip(r.results)
		own.open.sums = slices.Clone(r.open.sums)
		e.stream.add(&own)
	}
	return e
}

// Decode returns the event of one record. Its Type is empty where nothing can be made of the
// record, and EventSnapshot for a snapshot.
func (d *Decoder) Decode(data []byte) (Event, error) {
	w, err := parseWire(data)
	if err != nil {
		if e, ok := errors.AsType[*WireError](err); ok {
			e.After = d.after(e.RunID)
		}
		return Event{}, err
	}
	if w.Type == EventSnapshot {
		return d.restore(w)
	}
	fail := func(after uint64, p WireProblem, err error) error {
		return &WireError{Problem: p, RunID: w.RunID, Seq: w.Seq, After: after, Err: err}
	}
	if d.stream.runs[w.RunID] == nil {
		if seq, over := d.stream.ended(w.RunID, w.ParentRunID); over {
			return Event{}, fail(seq, WireDuplicate, errors.New("the run has ended"))
		}
	}
	r := d.stream.run(w.RunID, w.ParentRunID)
	after := r.seq
	problem, why := d.place(r, w)
	switch {
	case problem == WireDuplicate && w.Type == EventAgentEnd: // it comes once, so that this is it
		problem, why = WireGap, fmt.Errorf("the end at a seq that came before, after seq %d", after)
	case problem == WireDuplicate || problem == WireGarbage:
		return Event{}, fail(after, problem, why)
	}
	if r.lost && !w.standsAlone() {
		return Event{}, fail(after, cmp.Or(problem, WireSkipped), why)
	}
	ev := w.event(data)
	r.repeatError(&ev)
	switch broken, err := r.fill(w, &ev); {
	case broken != "" && ev.Type == EventMessageUpdate:
		r.lose()
		return Event{}, fail(after, broken, err)
	case broken != "" && ev.Type == EventModelResponse: // nothing builds on it
		return Event{}, fail(after, broken, err)
	case broken != "" && problem == "":
		problem, why = broken, err
	}
	if ev.Type == EventMessageEnd || ev.Type == EventMessageUpdate {
		r.lost = false
	}
	d.take(r, &ev)
	if r.doubt != nil {
		r.doubt.taken = true
	}
	if problem != "" {
		return ev, fail(after, problem, why)
	}
	return ev, nil
}

// after is the last seq that is known of a run, or of the last run where the id is not known.
func (d *Decoder) after(id string) uint64 {
	if r := d.stream.runs[id]; r != nil {
		return r.seq
	}
	return d.stream.last.seq
}

// lose notes that what comes next may build on what is not known.
func (r *wireRun) lose() {
	r.lost, r.answer, r.results, r.open = true, nil, nil, openMessage{}
}

// standsAlone tells whether the record can be used without those before it.
func (w *eventWire) standsAlone() bool {
	switch w.Type {
	case EventAgentStart, EventMessageEnd, EventContext, EventError, EventAgentEnd:
		return true
	case EventMessageUpdate:
		return w.Message != nil
	}
	return false
}

// repeatError makes an error that the wire repeats one value again, as it was: that of a
// discarded message on Retry, that of Error on AgentEnd.
func (r *wireRun) repeatError(ev *Event) {
	if ev.Err == nil {
		return
	}
	if r.err != nil && *errorToWire(r.err) == *errorToWire(ev.Err) {
		ev.Err = r.err
	}
	r.err = ev.Err
	if info := ev.RetryInfo; info != nil && info.Err != nil && *errorToWire(info.Err) == *errorToWire(ev.Err) {
		info.Err = ev.Err
	}
}

// fill fills in what the record refers to.
func (r *wireRun) fill(w *eventWire, ev *Event) (WireProblem, error) {
	switch {
	case w.Type == EventMessageUpdate && w.Message == nil:
		return r.open.build(ev)
	case w.Type == EventModelResponse:
		return r.fillResponse(w, ev)
	case w.Type == EventAgentEnd && w.NewMessagesCount != 0:
		ev.NewMessages = slices.Clip(r.ended)
		if n := len(r.ended); n != w.NewMessagesCount {
			return WireReference, fmt.Errorf("%d messages ended, the run has %d", n, w.NewMessagesCount)
		}
	}
	return "", nil
}

func (r *wireRun) fillResponse(w *eventWire, ev *Event) (WireProblem, error) {
	if w.Message == nil {
		if ev.Message = r.answer; ev.Message == nil {
			return WireReference, errors.New("the answer of the model did not come")
		}
	}
	if n := len(w.ToolResultIDs); n > len(r.results) {
		return WireReference, fmt.Errorf("%d calls, of which %d have a result", n, len(r.results))
	}
	find := r.finder()
	for _, id := range w.ToolResultIDs {
		result, ok := find(id)
		if !ok {
			return WireReference, fmt.Errorf("call %.60q has no result", id)
		}
		ev.ToolResults = append(ev.ToolResults, result)
	}
	return "", nil
}

// take adds an event, and keeps the builder of the open message in step.
func (d *Decoder) take(r *wireRun, ev *Event) {
	built := r.open.built
	d.stream.take(r, ev)
	r.keepBuilder(ev, built)
}

// keepBuilder gives the open message, after ev, its builder: built, where that was before and
// still fits.
func (r *wireRun) keepBuilder(ev *Event, built *partial) {
	switch {
	case !r.open.is:
		return
	case ev.Type == EventMessageStart:
		built = newBuilder(&r.open.head)
	case ev.Type == EventMessageUpdate && (built == nil || !slices.EqualFunc(built.blocks, r.open.sums, sameLength)):
		// The update carried the whole message.
		r.open.adopt(r.open.last, r.open.sums)
		if !r.open.is {
			return
		}
		built = rebuild(&r.open.last, r.open.sums)
	}
	r.open.built = built
}

func sameLength(b growing, n int) bool { return b.text.Len() == n }

// build makes the partial of an update from its delta.
func (o *openMessage) build(ev *Event) (WireProblem, error) {
	kind, known := contentOf(ev.DeltaKind)
	i := ev.ContentIndex
	switch {
	case !o.is || o.built == nil:
		return WireReference, errors.New("no message is open")
	case i > maxBlocks:
		return WireGarbage, fmt.Errorf("block %d of a message", i)
	case !known || i < 0 || i > len(o.built.blocks) || i < len(o.built.blocks) && o.built.blocks[i].kind != kind:
		return WireGarbage, fmt.Errorf("a delta of kind %.40q for block %d", ev.DeltaKind, i)
	}
	o.built.extend(i, kind, ev)
	ev.Message = o.built.boxed()
	return "", nil
}

// newBuilder is a partial without content that snapshots with head's model and time.
func newBuilder(head *Message) *partial { return &partial{model: head.Model, started: head.Timestamp} }

// rebuild is the partial of which m, a message that streams, is a snapshot as far as sums say.
func rebuild(m *Message, sums []int) *partial {
	p := newBuilder(m)
	for i, n := range sums {
		b := &m.Content[i]
		ev := Event{Delta: growingText(b)[:n]}
		if b.ToolCall != nil {
			ev.ToolID, ev.Tool = b.ToolCall.ID, b.ToolCall.Name
		}
		p.extend(i, b.Type, &ev)
	}
	return p
}

// extend adds a delta to block i, which is there or the next one.
func (p *partial) extend(i int, kind ContentType, ev *Event) {
	if i == len(p.blocks) {
		b := growing{kind: kind}
		if kind == ContentToolCall {
			b.call = &callSlot{block: i, named: true}
		}
		p.blocks = append(p.blocks, b)
	}
	b := &p.blocks[i]
	if b.call != nil {
		b.call.id, b.call.name = ev.ToolID, ev.Tool
	}
	b.text.Append(ev.Delta)
	p.refresh(i)
}

// restore begins anew with a snapshot.
func (d *Decoder) restore(w *eventWire) (Event, error) {
	s, bad := w.stream()
	if bad != nil {
		return Event{}, &WireError{Problem: WireGarbage, RunID: w.RunID, Seq: w.Seq, After: d.stream.last.seq,
			Err: fmt.Errorf("the snapshot's run %.60q makes no sense", bad.RunID)}
	}
	d.stream = s
	ev := Event{Type: EventSnapshot, RunID: w.RunID, ParentRunID: w.ParentRunID, Seq: w.Seq, Time: s.last.time, Turn: w.Turn}
	if r := s.runs[s.state.RunID]; r != nil && r.open.is {
		ev.Message = r.open.built.boxed()
	}
	return ev, nil
}
