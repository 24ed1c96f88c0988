package agentkernel

import (
	"fmt"
	"math/bits"
	"reflect"
)

// doubt is what a Decoder remembers of the one record behind a gap, until the next one tells
// whether records are missing or that record's seq is wrong.
type doubt struct {
	seq    uint64
	record *eventWire
	// before is the run as it was before the record; nil where more than its seq is wrong.
	before *wireRun
	// taken tells that the record's event was returned and is in the state.
	taken bool
}

// place takes the numbers of a record in and tells what is wrong with them.
func (d *Decoder) place(r *wireRun, w *eventWire) (WireProblem, error) {
	more := uint64(max(w.Coalesced, 0))
	if w.Coalesced < 0 || more >= w.Seq {
		return WireGarbage, fmt.Errorf("seq %d with coalesced %d", w.Seq, w.Coalesced)
	}
	if d.AllowCoalesced {
		return r.placeMerged(w, more)
	}
	first, was := w.Seq-more, r.doubt
	switch {
	case r.midway && was == nil:
		r.doubt = &doubt{seq: w.Seq, record: w}
		return "", nil
	case w.Seq <= r.seq, was != nil && w.Seq == was.seq && reflect.DeepEqual(w, was.record):
		return WireDuplicate, nil
	case was != nil && first-1 == was.seq: // which is proved by that
		r.seq, r.doubt, r.midway = w.Seq, nil, false
		return "", nil
	case r.midway:
	case first == r.seq+1: // the record in doubt was none of the run's
		if was != nil && was.before != nil && !was.taken {
			*r = *was.before
		}
		r.seq, r.doubt = w.Seq, nil
		return "", nil
	case was != nil && first > r.seq && first-r.seq-1 == was.covers():
		d.settle(r)
		r.seq = w.Seq
		return "", nil
	}
	return r.miss(w, first)
}

// covers is how many events the record stands for if only its seq is wrong; 0 where it stands
// for some that came before.
func (u *doubt) covers() uint64 {
	if u.before == nil {
		return 0
	}
	return 1 + uint64(u.record.Coalesced)
}

// miss notes a record that does not follow on what came: its seq is in doubt.
func (r *wireRun) miss(w *eventWire, first uint64) (WireProblem, error) {
	u := &doubt{seq: w.Seq, record: w}
	overlap := first <= r.seq
	switch {
	case r.doubt != nil && r.doubt.taken: // there is no going back
	case r.doubt != nil:
		u.before = r.doubt.before
	case !overlap:
		before := *r
		u.before = &before
	}
	r.lose()
	r.doubt = u
	switch {
	case overlap:
		return WireDuplicate, fmt.Errorf("it stands for seq %d and later", first)
	case r.midway:
		return WireGap, fmt.Errorf("it does not follow on the first record of the run")
	}
	return WireGap, fmt.Errorf("%d records are missing", first-r.seq-1)
}

// settle gives the record in doubt its place behind r.seq: the run goes on as if it had come
// with the right seq.
func (d *Decoder) settle(r *wireRun) {
	was := r.doubt
	w, used := was.record, r.used
	w.Seq = r.seq + was.covers()
	*r = *was.before
	r.used = used
	if r.lost && !w.standsAlone() {
		return
	}
	ev := w.event(nil)
	r.repeatError(&ev)
	if broken, _ := r.fill(w, &ev); broken != "" {
		if ev.Type == EventMessageUpdate {
			r.lose()
		}
		return
	}
	if !was.taken {
		d.take(r, &ev)
		return
	}
	built := r.open.built
	r.follow(&ev)
	r.keepBuilder(&ev, built)
	if ev.Type == EventMessageEnd || ev.Type == EventMessageUpdate {
		r.lost = false
	}
}

// placeMerged is place for a stream whose updates passed each other: seqs rise, and what is
// not there yet comes with a later update. A seq below the last one means that the last one
// was wrong.
func (r *wireRun) placeMerged(w *eventWire, more uint64) (WireProblem, error) {
	if r.midway {
		r.midway, r.seq, r.counted = false, w.Seq-1, w.Seq-1-more
	}
	last := r.seq
	switch {
	case w.Seq <= r.floor || w.Seq == last:
		return WireDuplicate, nil
	case w.Seq > last:
		r.floor = last
	}
	r.seq = w.Seq
	counted, over := bits.Add64(r.counted, 1+more, 0)
	r.counted = counted
	switch {
	case w.Seq < last:
		r.counted = min(counted, w.Seq)
		return WireGap, fmt.Errorf("seq %d came before it", last)
	case over != 0 || counted > w.Seq:
		r.counted = w.Seq
		r.lose()
		return WireDuplicate, fmt.Errorf("it stands for seq %d and later", w.Seq-more)
	case w.Type == EventAgentEnd && counted < w.Seq:
		return WireGap, fmt.Errorf("%d records are missing in the run", w.Seq-counted)
	}
	return "", nil
}
