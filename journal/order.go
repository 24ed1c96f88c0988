package journal

import (
	"fmt"

	"github.com/agentkernel-go/agentkernel"
)

// runOrder is how far the events of a run have come. Those of an asynchronous subscriber may
// pass one another: seq is then ahead of counted until the others are there.
type runOrder struct {
	seq     uint64 // of the last event
	counted uint64 // events, with those that updates stand for
	parent  string
	heard   uint64 // when the last event came, counted in events
}

// maxRuns bounds the runs whose order is kept. Beyond it the child that is silent longest makes
// room, as it does in an Encoder.
const maxRuns = 1024

// begins notes the run of ev, to which nothing has come yet. As for enc, the first event of a
// run that no run has made ends the others; while the agent's run is open, a run with a parent
// is a child, also where the parent has not been seen.
func (j *Journal) begins(ev *agentkernel.Event) *runOrder {
	own := j.runs[j.enc.State().RunID]
	child := ev.ParentRunID != "" && (j.runs[ev.ParentRunID] != nil || own != nil && own.parent == "")
	if !child {
		j.runs = make(map[string]*runOrder)
	}
	if len(j.runs) >= maxRuns {
		j.makeRoom()
	}
	r := &runOrder{parent: ev.ParentRunID}
	if ev.Seq > 1 { // what came before is not expected any more
		r.seq = ev.Seq - 1 - uint64(ev.Coalesced)
		r.counted = r.seq
	}
	j.runs[ev.RunID] = r
	return r
}

// makeRoom forgets the child that is silent longest and has no open children.
func (j *Journal) makeRoom() {
	parents := make(map[string]bool, len(j.runs))
	for _, r := range j.runs {
		parents[r.parent] = true
	}
	silent := ""
	for id, r := range j.runs {
		if r.parent != "" && !parents[id] && (silent == "" || r.heard < j.runs[silent].heard) {
			silent = id
		}
	}
	delete(j.runs, silent)
}

// follow counts ev. It tells whether the journal has all of its run that came before, and how
// many events are missing where this is the end.
func (j *Journal) follow(ev *agentkernel.Event) (ordered bool, missing uint64) {
	r := j.runs[ev.RunID]
	known := r != nil
	if !known {
		r = j.begins(ev)
	}
	n := 1 + uint64(ev.Coalesced)
	ordered = known && ev.Seq == r.seq+n || !known && j.enc.Follows(*ev)
	j.heard++
	r.heard = j.heard
	r.counted += n
	r.seq = ev.Seq
	if ev.Type == agentkernel.EventAgentEnd {
		delete(j.runs, ev.RunID)
		missing = r.seq - min(r.counted, r.seq)
	}
	return ordered, missing
}

// awaits tells whether updates are on their way that others have passed.
func (j *Journal) awaits() bool {
	for _, r := range j.runs {
		if r.counted < r.seq {
			return true
		}
	}
	return false
}

// interrupts tells whether ev begins a run of the agent while another one has not ended.
func (j *Journal) interrupts(ev *agentkernel.Event) bool {
	if j.runs[ev.RunID] != nil || ev.ParentRunID != "" {
		return false
	}
	state := j.enc.State()
	return state.IsRunning && state.RunID != ev.RunID
}

// Append writes an event. When it returns, readers have it. Events that cannot be written
// leave a gap, behind which the next Append begins with a snapshot. An event in the middle of
// a run whose beginning the journal does not have is written as a snapshot. So is one that
// begins a run while another one of the agent is open: the snapshot, before it, says that the
// other died.
//
// Updates may be merged, as an asynchronous subscriber gets them. Where they came out of order
// (see [agentkernel.Agent.SubscribeAsync]), a snapshot stands for them and for what they have
// passed: at the next event that is no update, or once none of them is missing, whichever
// comes first. Until then readers have none of them.
//
// An event that came before, that cannot be from a run since its numbers make no sense, or that
// the Encoder refuses, is an error and changes nothing. That events did not come is an error at the end of their run, which
// is written all the same.
func (j *Journal) Append(ev agentkernel.Event) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	fail := func(err error) error {
		return fmt.Errorf("journal: seq %d of run %q: %w", ev.Seq, ev.RunID, err)
	}
	switch {
	case j.readOnly:
		return errReadOnly
	case ev.Type == agentkernel.EventSnapshot:
		_, err := j.enc.Encode(ev) // which tells why not
		return fail(err)
	case ev.RunID == "", ev.Seq == 0, ev.Coalesced < 0, uint64(ev.Coalesced) >= ev.Seq:
		return fail(agentkernel.WireGarbage)
	case j.enc.Repeats(ev):
		return fail(agentkernel.WireDuplicate)
	}
	if j.interrupts(&ev) && j.events > 0 {
		j.owed = true
	}
	before := j.markOrder(ev.RunID)
	ordered, missing := j.follow(&ev)
	if err := j.append(ev, ordered); err != nil {
		if !j.encoded(&ev) {
			j.takeBack(&ev, before)
		}
		return fail(err)
	}
	if missing > 0 {
		return fail(fmt.Errorf("%w: %d events of the run did not come", agentkernel.WireGap, missing))
	}
	return nil
}

// encoded tells whether enc stands behind ev, written or not.
func (j *Journal) encoded(ev *agentkernel.Event) bool {
	runID, seq := j.enc.Last()
	return runID == ev.RunID && seq == ev.Seq
}

// orderMark is the order of the runs before an event of one of them.
type orderMark struct {
	runs map[string]*runOrder
	run  *runOrder // nil where the run is not known
	was  runOrder
}

func (j *Journal) markOrder(runID string) orderMark {
	m := orderMark{runs: j.runs, run: j.runs[runID]}
	if m.run != nil {
		m.was = *m.run
	}
	return m
}

// takeBack makes the order what it was before ev, which enc has refused. That it came counts.
func (j *Journal) takeBack(ev *agentkernel.Event, m orderMark) {
	j.runs = m.runs
	if m.run == nil {
		delete(j.runs, ev.RunID)
		return
	}
	m.run.seq, m.run.heard = m.was.seq, m.was.heard
	j.runs[ev.RunID] = m.run
}

// append writes ev, or a snapshot behind it where the records do not lead to it.
func (j *Journal) append(ev agentkernel.Event, ordered bool) error {
	rec := Record{RunID: ev.RunID, Seq: ev.Seq, Type: ev.Type}
	hold := (j.owed || !ordered) && mergeable(&rec) && j.awaits()
	if j.owed && ordered && !hold {
		if err := j.bridge(); err != nil {
			_, _ = j.encode(ev) // so that the next snapshot knows of it
			return err
		}
	}
	data, err := j.encode(ev)
	switch {
	case err != nil:
		j.owed = j.owed || j.encoded(&ev)
		return err
	case !j.owed && ordered:
		rec.Data = data
		return j.record(rec)
	case hold:
		j.owed = true
		return nil
	}
	return j.bridge()
}

// encode is Encode. A panic in a message's MarshalJSON is an error.
func (j *Journal) encode(ev agentkernel.Event) (data []byte, err error) {
	defer recovered(&err)
	return j.enc.Encode(ev)
}

// recovered makes an error of a panic.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v", p)
	}
}

// record writes the record of an event, and a snapshot where one is due.
func (j *Journal) record(rec Record) error {
	if err := j.write(rec); err != nil {
		j.owed = true
		return err
	}
	j.events++
	j.bytes += len(rec.Data)
	if j.every > 0 && j.events >= j.every && j.bytes >= j.snapshotBytes {
		return j.snapshot()
	}
	return nil
}
