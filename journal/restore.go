package journal

import (
	"errors"
	"fmt"
	"iter"

	"github.com/agentkernel-go/agentkernel"
)

// Restore returns the state with which the journal ends: that which the agent had behind the
// last event. It reads from the last snapshot on. An agent goes on from it by
// [agentkernel.Agent.Restore], and [Follow] then writes to the same journal. Where IsRunning
// holds in it the writer died within a run, which [agentkernel.Agent.Continue] takes up.
//
// Where records are missing the state is what is known without them, and the error says
// which: see [agentkernel.WireError]. What is missing at the end of the journal cannot be told
// from what was never written.
func Restore(j *Journal) (agentkernel.AgentState, error) {
	var r reader
	var problems []error
	for rec, err := range records(j, j.Start()) {
		if err == nil {
			_, err = r.decode(&rec)
		}
		if err != nil && !errors.Is(err, agentkernel.WireSkipped) {
			problems = append(problems, err)
		}
	}
	return r.dec.State(), errors.Join(problems...)
}

// reader decodes the records of a journal.
type reader struct {
	dec     agentkernel.Decoder
	bridged bool   // the last record was a snapshot
	seq     uint64 // of the last event of the agent's run
}

// decode is Decoder.Decode that also tells where the end of a run is missing: a journal says of
// a run that died, with a snapshot, before another one begins.
func (r *reader) decode(rec *Record) (agentkernel.Event, error) {
	before := r.dec.State()
	ev, err := r.dec.Decode(rec.Data)
	lost := err == nil && !r.bridged && rec.Type != agentkernel.EventSnapshot &&
		before.IsRunning && ev.ParentRunID == "" && ev.RunID != before.RunID
	if lost {
		err = &agentkernel.WireError{Problem: agentkernel.WireGap, RunID: ev.RunID, Seq: ev.Seq,
			Err: fmt.Errorf("what follows seq %d of run %q is missing", r.seq, before.RunID)}
	}
	r.bridged = rec.Type == agentkernel.EventSnapshot
	if rec.RunID == r.dec.State().RunID {
		r.seq = rec.Seq
	}
	return ev, err
}

// Events yields the events that the journal holds, rebuilt, snapshots among them: from the
// oldest one on, or, with fromSnapshot, from the last snapshot on. It ends where the journal
// ends now. An error stands beside the event at which it showed, which may be empty: see
// [agentkernel.Decoder.Decode].
func Events(j *Journal, fromSnapshot bool) iter.Seq2[agentkernel.Event, error] {
	return func(yield func(agentkernel.Event, error) bool) {
		var at uint64
		if fromSnapshot {
			at = j.Start()
		}
		var r reader
		for rec, err := range records(j, at) {
			if err != nil {
				yield(agentkernel.Event{}, err)
				return
			}
			if !yield(r.decode(&rec)) {
				return
			}
		}
	}
}

// records yields what stands behind at, or, where that is gone, all that is kept.
func records(j *Journal, at uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			batch, err := j.Since(at, 256)
			if errors.Is(err, ErrGone) {
				at = j.store.oldest()
				batch, err = j.Since(at, 256)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, rec := range batch {
				if !yield(rec, nil) {
					return
				}
				at = rec.At
			}
			if len(batch) == 0 {
				return
			}
		}
	}
}
