package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/agentkernel-go/agentkernel"
)

// Config is how a journal is kept.
type Config struct {
	// SnapshotEvery is the least number of events between two snapshots. Zero means 1,024;
	// negative, for a file, only the one at its beginning and those that bridge a gap. A ring
	// of Config{SnapshotEvery: n} holds at least the last n events.
	SnapshotEvery int
	// State is the agent's state at the beginning of the journal, where that is not empty. A
	// file that holds records knows better.
	State agentkernel.AgentState
	// Sync makes a file reach the disk whenever something ended, a message, a call, a run, and
	// when a run begins. A journal without it survives the end of the process, not that of the
	// machine.
	Sync bool
	// ReadOnly opens a file only to read what it holds now: nothing is made, mended or cut off,
	// so that another process may be writing it, and Append is an error. What is written
	// afterwards is not seen: Open it again.
	ReadOnly bool
}

// Record is one record of a journal.
type Record struct {
	// At counts the records of the journal, from 1: its place.
	At uint64
	// RunID, Seq and Type are the event's. A snapshot has those of the event before it and
	// the type [agentkernel.EventSnapshot].
	RunID string
	Seq   uint64
	Type  agentkernel.EventType
	// Data is one JSON object of the delta-only form, for [agentkernel.Decoder]. It is
	// read-only and has no line break.
	Data []byte
}

// ErrGone: the place is not in the journal any more. Begin at [Journal.Start].
var ErrGone = errors.New("journal: the place is not kept any more")

// Journal is an append-only log of the events of one agent. Append and Follow are for one
// goroutine at a time, which the listeners of an agent are; everything else may be called
// from any goroutine.
type Journal struct {
	// writing guards what Append and Close do. No writer waits for a reader.
	writing sync.Mutex
	enc     *agentkernel.Encoder
	every   int
	store   store
	// events, bytes and snapshotBytes decide when a snapshot is due.
	events        int
	bytes         int
	snapshotBytes int
	readOnly      bool
	// owed: the records do not lead to where enc is, so that a snapshot comes next.
	owed  bool
	runs  map[string]*runOrder // those that are open
	heard uint64               // events

	mu      sync.Mutex
	changed chan struct{} // closed by the next append
	closed  bool
	err     error // the first that Listen met
}

// store keeps records. append is for one goroutine; the others may be called beside it.
type store interface {
	append(Record) error
	since(at uint64, limit int) ([]Record, error)
	find(runID string, seq uint64) (uint64, bool)
	start() uint64  // the place before the last snapshot
	oldest() uint64 // the first place from which records are kept
	close() error
}

// NewRing returns a journal in memory. It keeps the last snapshot but one and what follows:
// its size is that of two snapshots and of the events of two intervals between them, however
// long the session.
func NewRing(cfg Config) *Journal {
	j := newJournal(cfg, new(ring), agentkernel.NewEncoder(cfg.State))
	_ = j.snapshot() // a state that came from events can be written, and a ring takes it
	return j
}

func newJournal(cfg Config, s store, enc *agentkernel.Encoder) *Journal {
	every := cfg.SnapshotEvery
	if _, inMemory := s.(*ring); every == 0 || every < 0 && inMemory {
		every = 1024
	}
	return &Journal{enc: enc, every: every, readOnly: cfg.ReadOnly, store: s, runs: make(map[string]*runOrder), changed: make(chan struct{})}
}

// Follow writes everything that the agent does to the journal, from the next event on, until
// stop is called. Begun in the middle of a run, or while the agent has another history than
// that with which the journal ends, the journal goes on with a snapshot behind the next event.
func Follow(agent *agentkernel.Agent, j *Journal) (stop func()) {
	first := true
	return agent.Subscribe(func(ev agentkernel.Event) {
		if first && !j.leadsTo(agent.State(), &ev) {
			j.keep(j.resumeAt(agent.State(), ev))
		} else {
			j.Listen(ev)
		}
		first = false
	})
}

// leadsTo tells whether ev, behind which the agent has the state, begins a run with the history
// that the journal has.
func (j *Journal) leadsTo(state agentkernel.AgentState, ev *agentkernel.Event) bool {
	if ev.RunID != state.RunID || ev.Type != agentkernel.EventAgentStart {
		return false
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	return bytes.Equal(historyOf(j.enc.State()), historyOf(state))
}

// historyOf is what of a state lasts from run to run, as JSON; of what cannot be written nothing.
func historyOf(s agentkernel.AgentState) []byte {
	data, _ := json.Marshal(agentkernel.AgentState{Messages: s.Messages, TotalUsage: s.TotalUsage,
		DiscardedUsage: s.DiscardedUsage, ContextTokens: s.ContextTokens})
	return data
}

// resumeAt goes on behind ev with a snapshot.
func (j *Journal) resumeAt(state agentkernel.AgentState, ev agentkernel.Event) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.readOnly {
		return errReadOnly
	}
	j.enc.Resume(state, ev)
	clear(j.runs)
	j.follow(&ev)
	return j.bridge()
}

// Listen is Append for a listener, which cannot return an error: see Err.
func (j *Journal) Listen(ev agentkernel.Event) { j.keep(j.Append(ev)) }

func (j *Journal) keep(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// Err returns the first error of Listen, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// bridge writes a snapshot that readers cannot do without: where it fails, the next Append
// begins with one.
func (j *Journal) bridge() error {
	err := j.snapshot()
	j.owed = err != nil
	return err
}

// snapshot writes one.
func (j *Journal) snapshot() (err error) {
	defer recovered(&err)
	data, err := j.enc.Snapshot()
	if err != nil {
		return err
	}
	runID, seq := j.enc.Last()
	if err := j.write(Record{RunID: runID, Seq: seq, Type: agentkernel.EventSnapshot, Data: data}); err != nil {
		return err
	}
	j.events, j.bytes, j.snapshotBytes = 0, 0, len(data)
	return nil
}

func (j *Journal) write(rec Record) error {
	if err := j.store.append(rec); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		close(j.changed)
		j.changed = make(chan struct{})
	}
	return nil
}

// Since returns the records behind the place at, oldest first and limit at most: all from 0
// on, none where at is the last. It returns ErrGone where records behind at were dropped. The
// slice is the caller's.
func (j *Journal) Since(at uint64, limit int) ([]Record, error) { return j.store.since(at, limit) }

// Find returns the place of the event with that seq. The newest one counts where there are
// several.
func (j *Journal) Find(runID string, seq uint64) (at uint64, ok bool) {
	return j.store.find(runID, seq)
}

// Start returns the place before the last snapshot: Since(Start()) is all that a reader needs
// who comes now.
func (j *Journal) Start() uint64 { return j.store.start() }

// Changed returns a channel that is closed when the next record is there, or the journal
// closed. A reader asks for it before it calls Since, and for Closed too: no record comes
// behind those that Since returns then.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// Closed tells whether Close was called.
func (j *Journal) Closed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

// Close ends the journal: readers are woken, and what is appended afterwards is an error. What
// it holds may still be read; a file is closed, and read as long as it stands where it was.
// Close may be called more than once, and from any goroutine.
func (j *Journal) Close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.Closed() {
		return nil
	}
	var err error
	if j.owed {
		err = j.bridge()
	}
	j.mu.Lock()
	j.closed = true
	close(j.changed)
	j.mu.Unlock()
	return errors.Join(err, j.store.close())
}

// ring is a store in memory.
type ring struct {
	mu       sync.Mutex
	records  []Record
	first    uint64 // the place before records[0]
	previous uint64 // the place before the last snapshot but one
	last     uint64 // the place before the last snapshot
	closed   bool
}

func (r *ring) append(rec Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	rec.At = r.first + uint64(len(r.records)) + 1
	if rec.Type == agentkernel.EventSnapshot {
		r.previous, r.last = r.last, rec.At-1
		r.records = slices.Clone(r.records[r.previous-r.first:]) // what readers hold stays
		r.first = r.previous
	}
	r.records = append(r.records, rec)
	return nil
}

func (r *ring) since(at uint64, limit int) ([]Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at < r.first {
		return nil, ErrGone
	}
	rest := r.records[min(at-r.first, uint64(len(r.records))):]
	return slices.Clone(rest[:min(len(rest), max(limit, 0))]), nil
}

func (r *ring) find(runID string, seq uint64) (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.records) - 1; i >= 0; i-- {
		if rec := &r.records[i]; rec.Seq == seq && rec.RunID == runID && rec.Type != agentkernel.EventSnapshot {
			return rec.At, true
		}
	}
	return 0, false
}

func (r *ring) start() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *ring) oldest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

func (r *ring) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}
