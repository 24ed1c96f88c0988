package agentkernel

import "sync/atomic"

// ring carries the events of a run to the goroutine that delivers them, in order. An event is
// written into its place and read there, where a channel would copy it in and out again.
//
// One goroutine at a time writes, and one at a time reads. A writer waits while all places are
// full, a reader while all are empty: on a channel, which testing/synctest counts as waiting.
type ring struct {
	places         []Event
	closed         atomic.Bool
	writer, reader sleeper

	// What one side writes for each event is apart from the rest, so that the other one need not
	// wait for it.
	_       [64]byte
	writing int    // the place that is written next
	room    uint64 // how many are known to be free
	written atomic.Uint64

	_       [64]byte
	reading int    // the place that is read next
	ready   uint64 // how many are known to be full
	read    atomic.Uint64
	_       [64]byte
}

// newRing returns a ring in which so many events can wait while one more is being read.
func newRing(waiting int) *ring {
	return &ring{places: make([]Event, waiting+1), writer: newSleeper(), reader: newSleeper()}
}

// free returns the place of the next event, nil where all are full. It holds nothing, or what done
// left of an earlier update.
func (r *ring) free() *Event {
	if r.room == 0 && !r.hasRoom() {
		return nil
	}
	return &r.places[r.writing]
}

// wait is free once there is room.
func (r *ring) wait() *Event {
	for !r.hasRoom() {
		r.writer.sleep(r.hasRoom)
	}
	return &r.places[r.writing]
}

func (r *ring) hasRoom() bool {
	r.room = uint64(len(r.places)) - (r.written.Load() - r.read.Load())
	return r.room > 0
}

// put hands the event over that was written into the place that free returned.
func (r *ring) put() {
	if r.writing++; r.writing == len(r.places) {
		r.writing = 0
	}
	r.room--
	r.written.Add(1)
	r.reader.rouse()
}

// close tells the reader that no more events come.
func (r *ring) close() {
	r.closed.Store(true)
	r.reader.rouse()
}

// next returns the next event where it is, nil behind the last one. It is the reader's until done.
func (r *ring) next() *Event {
	for r.ready == 0 && !r.hasEvents() {
		if r.closed.Load() && !r.hasEvents() {
			return nil
		}
		r.reader.sleep(r.hasNews)
	}
	return &r.places[r.reading]
}

func (r *ring) hasEvents() bool {
	r.ready = r.written.Load() - r.read.Load()
	return r.ready > 0
}

func (r *ring) hasNews() bool { return r.hasEvents() || r.closed.Load() }

// done gives the place back of the event that next returned. It lets go of what that refers to,
// which may be large; the rest of an update stays for the next one.
func (r *ring) done() {
	if ev := &r.places[r.reading]; ev.Type == EventMessageUpdate {
		ev.Message, ev.Delta = nil, ""
	} else {
		*ev = Event{}
	}
	if r.reading++; r.reading == len(r.places) {
		r.reading = 0
	}
	r.ready--
	r.read.Add(1)
	r.writer.rouse()
}

// sleeper is a goroutine that waits for another one.
type sleeper struct {
	asleep atomic.Bool
	wake   chan struct{} // capacity 1
}

func newSleeper() sleeper { return sleeper{wake: make(chan struct{}, 1)} }

// sleep waits until the other goroutine made awake true and then called rouse. It may return
// before that.
func (s *sleeper) sleep(awake func() bool) {
	s.asleep.Store(true)
	if awake() && s.asleep.CompareAndSwap(true, false) {
		return // where it does not, the other one is about to send
	}
	<-s.wake
}

// rouse ends the other goroutine's sleep.
func (s *sleeper) rouse() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.wake <- struct{}{}
	}
}
