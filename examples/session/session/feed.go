package session

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// feed brings a session's events to its subscribers, one event at a time and in one order.
//
// Whoever holds the baton delivers. A goroutine that brings an event while another one
// delivers leaves it behind and goes on, so that a subscriber may call what makes events; but
// the goroutine that brings the kernel's events waits for the baton, so that they are always
// delivered on it, and a slow subscriber slows the run.
type feed struct {
	mu          sync.Mutex
	seq         uint64
	queue       []parcel
	delivering  bool // somebody holds the baton
	subscribers []*subscriber
}

// parcel is an event that waits. One with a turn is delivered by the goroutine that waits for it.
type parcel struct {
	event SessionEvent
	turn  chan struct{}
}

type subscriber struct {
	fn      func(SessionEvent)
	removed atomic.Bool
}

func (f *feed) subscribe(fn func(SessionEvent)) (unsubscribe func()) {
	s := &subscriber{fn: fn}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers = append(slices.Clip(f.subscribers), s)
	return func() {
		s.removed.Store(true)
		f.mu.Lock()
		defer f.mu.Unlock()
		if i := slices.Index(f.subscribers, s); i >= 0 {
			f.subscribers = slices.Delete(slices.Clone(f.subscribers), i, i+1)
		}
	}
}

// put numbers ev and queues it. It delivers nothing: see deliver.
func (f *feed) put(ev SessionEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(parcel{event: ev})
}

func (f *feed) putLocked(p parcel) {
	f.seq++
	p.event.Seq, p.event.Time = f.seq, time.Now().UTC().Round(0)
	f.queue = append(f.queue, p)
}

// deliver delivers what is queued, unless somebody is at it, who then does.
func (f *feed) deliver() {
	f.mu.Lock()
	if f.delivering {
		f.mu.Unlock()
		return
	}
	f.delivering = true
	f.mu.Unlock()
	f.hand(SessionEvent{}, nil)
}

// bring queues ev, waits until it is its turn, and delivers it on this goroutine. Not for a
// goroutine that is delivering.
func (f *feed) bring(ev SessionEvent) {
	p := parcel{event: ev, turn: make(chan struct{})}
	f.mu.Lock()
	f.putLocked(p)
	wait := f.delivering
	f.delivering = true
	f.mu.Unlock()
	taken := false
	defer func() {
		if !taken { // a subscriber of an event before this one left the goroutine
			go f.take(p) // ends when the event is delivered
		}
	}()
	if !wait {
		f.hand(SessionEvent{}, nil)
	}
	<-p.turn
	taken = true
	f.hand(f.pop())
}

// take waits for the turn of p and delivers it.
func (f *feed) take(p parcel) {
	<-p.turn
	f.hand(f.pop())
}

// pop takes the first event out of the queue, and returns who is to hear of it.
func (f *feed) pop() (SessionEvent, []*subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.popLocked()
}

func (f *feed) popLocked() (SessionEvent, []*subscriber) {
	p := f.queue[0]
	f.queue[0] = parcel{}
	f.queue = f.queue[1:]
	return p.event, f.subscribers
}

// hand gives ev to rest, then goes on with the queue. It is called by who holds the baton, and
// gives that away: to the one whose turn it is, or to nobody where the queue is empty.
func (f *feed) hand(ev SessionEvent, rest []*subscriber) {
	gone := true
	defer func() {
		if gone { // a subscriber left the goroutine
			go f.hand(ev, rest) // its successor, ends as this one would have
		}
	}()
	for more := true; more; ev, rest, more = f.next() {
		for len(rest) > 0 {
			s := rest[0]
			rest = rest[1:]
			if !s.removed.Load() {
				f.call(s.fn, ev)
			}
		}
	}
	gone = false
}

// next returns the next event for the holder of the baton, if there is one.
func (f *feed) next() (ev SessionEvent, to []*subscriber, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.queue) == 0:
		f.delivering = false
		return ev, nil, false
	case f.queue[0].turn != nil:
		close(f.queue[0].turn)
		return ev, nil, false
	}
	ev, to = f.popLocked()
	return ev, to, true
}

// call calls one subscriber. A panic stays in it and becomes an event, unless it was such an
// event that it could not take.
func (f *feed) call(fn func(SessionEvent), ev SessionEvent) {
	err := errors.New("it left its goroutine")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		if err != nil && ev.Type != EventError {
			f.put(SessionEvent{Type: EventError, SessionID: ev.SessionID, Error: failure("subscriber", err)})
		}
	}()
	fn(ev)
	err = nil
}
