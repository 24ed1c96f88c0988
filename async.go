package agentkernel

import (
	"cmp"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel/internal/goid"
)

// AsyncOptions are what [Agent.SubscribeAsync] may be told. Their zero value is usable.
type AsyncOptions struct {
	// Name names the subscriber in errors. Empty means the name of its function.
	Name string
	// MaxPending bounds the edges that wait: every event but the updates of a message and
	// of a call's progress, and of the latter those beyond one for each call. Once so many
	// wait, the run waits, as it does for a listener. Zero means 4096; negative means no
	// bound.
	MaxPending int
	// MaxRate bounds the updates that are delivered per second, for screens: those that come
	// faster are merged. The first update of each block of a message and of each call comes at
	// once, the last before the end of its message or call. An edge is never held back. What
	// is held back goes ahead of those, so that updates come in excess of the rate where edges
	// and first updates do. Zero or negative means no bound.
	MaxRate float64
}

const defaultMaxPending = 4096

// ErrSubscriptionClosed: a subscription was closed before it had delivered what waited.
var ErrSubscriptionClosed = errors.New("agentkernel: the subscription is closed")

// Subscription is a consumer with a goroutine of its own: see [Agent.SubscribeAsync]. Its
// methods may be called from any goroutine. It needs no closing: while no run is active and
// nothing waits, it has no goroutine.
type Subscription struct {
	fn       func(Event)
	name     string
	most     int           // the weight that may wait; negative is no bound
	interval time.Duration // between updates
	// wake tells the goroutine that waits that it need not any more. Capacity 1.
	wake chan struct{}
	gone chan struct{} // closed by Close

	mu      sync.Mutex
	backlog backlog
	room    chan struct{} // closed when who waits for room is to look again; nil where nobody does
	follows map[*Agent]*follow
	running bool      // there is a goroutine
	goid    int64     // its id
	waiting waiting   // for what it waits
	calling bool      // it has taken an event whose call has not ended
	live    bool      // the last event that came was not the end of a run
	due     time.Time // when MaxRate allows the next update
	closed  bool
}

// waiting is what the goroutine of a subscription waits for.
type waiting int

const (
	waitNot  waiting = iota
	waitAny          // for anything
	waitRate         // for what is urgent, while an update waits for its time
)

// SubscribeAsync registers fn for every event of every later run, and of the current one from
// the next event on, to be called on a goroutine of its own: however long fn takes, the run
// does not wait for it. Nothing is lost:
//
// Merging: while fn is busy, waiting updates of the same block, or of the same kind of
// progress of the same call, become one: the newest, with the deltas of all (of progress: the
// text of the kinds that add up) and their number in Event.Coalesced. Over a whole run the sum
// of 1 + Coalesced is the last Seq. A consumer that draws Event.Message anew and one that adds
// Event.Delta both end with the message, exactly.
//
// Order: one call at a time, by rising Seq within a run. All other events are edges: none is
// dropped, merged or reordered, and no update passes an edge of its own message or call. It
// may pass updates of other blocks and calls.
//
// Memory: what waits is bounded by the open messages and by MaxPending edges; beyond that the
// run waits for fn. So fn may call what waits for a run, such as [Run.Wait], only while fewer
// edges than that can come.
//
// Ownership and panics are as in [Agent.Subscribe]. A nil fn panics.
func (a *Agent) SubscribeAsync(fn func(Event), opts AsyncOptions) *Subscription {
	if fn == nil {
		panic("agentkernel: SubscribeAsync of a nil listener")
	}
	opts.MaxPending = cmp.Or(opts.MaxPending, defaultMaxPending)
	s := &Subscription{
		fn:      fn,
		name:    cmp.Or(opts.Name, nameOf(fn)),
		most:    opts.MaxPending,
		wake:    make(chan struct{}, 1),
		gone:    make(chan struct{}),
		follows: make(map[*Agent]*follow),
	}
	if opts.MaxRate > 0 {
		s.interval = time.Duration(min(float64(time.Second)/opts.MaxRate, float64(maxInterval)))
	}
	s.Follow(a)
	return s
}

// maxInterval is the longest time between updates.
const maxInterval = 24 * time.Hour

func nameOf(fn func(Event)) string {
	return runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name()
}

// put takes in an event of the agent that f follows, on the goroutine that delivers those.
func (s *Subscription) put(f *follow, ev *Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.hears(f) && s.most >= 0 && s.backlog.weight >= s.most && s.backlog.adds(ev) {
		s.waitForRoom()
	}
	if !s.hears(f) {
		return // the delivery of ev had begun before
	}
	s.backlog.add(f.agent, ev, f.first(ev))
	s.live = ev.Type != EventAgentEnd || ev.ParentRunID != ""
	s.rouse()
}

func (s *Subscription) hears(f *follow) bool { return !s.closed && !f.gone }

// waitForRoom waits, unlocked, until there may be room, or nobody to take the event.
func (s *Subscription) waitForRoom() {
	if s.room == nil {
		s.room = make(chan struct{})
	}
	room := s.room
	s.mu.Unlock()
	<-room
	s.mu.Lock()
}

// lookAgain frees who waits for room.
func (s *Subscription) lookAgain() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// rouse makes sure that somebody sees to what waits.
func (s *Subscription) rouse() {
	switch {
	case !s.running:
		s.running = true
		// Ends when nothing waits and no run is active, or by Close. Nobody waits for it.
		go s.run()
	case s.waiting == waitAny, s.waiting == waitRate && s.backlog.urgent > 0:
		select {
		case s.wake <- struct{}{}:
		default: // it is being roused
		}
	}
}

// run delivers what waits. An fn that leaves the goroutine takes it along: a new one then
// goes on.
func (s *Subscription) run() {
	done := false
	defer func() {
		if !done {
			go s.run() // this goroutine's successor, ends as this one would have
		}
	}()
	s.setID(goid.Current())
	for s.deliverNext() {
	}
	done = true
}

func (s *Subscription) setID(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goid = id
}

// deliverNext waits for the next entry and delivers it. It reports false where none will come.
func (s *Subscription) deliverNext() bool {
	agent, ev, ok := s.next()
	if ok {
		agent.isolate(s.fn, &ev)
	}
	return ok
}

// next waits for the next event.
func (s *Subscription) next() (agent *Agent, ev Event, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calling = false
	for !s.closed {
		e := s.backlog.front
		switch {
		case e == nil && !s.live:
			s.running = false
			return nil, ev, false
		case e == nil:
			s.wait(waitAny, nil)
		case e.mark != nil:
			close(s.backlog.take().mark)
		default:
			if d := s.early(e); d > 0 {
				timer := time.NewTimer(d)
				s.wait(waitRate, timer.C)
				timer.Stop()
				continue
			}
			agent, ev = s.take()
			return agent, ev, true
		}
	}
	s.running = false
	return nil, ev, false
}

// wait waits, unlocked, until rouse or Close ends it, or the time is up. It may end early.
func (s *Subscription) wait(what waiting, timeUp <-chan time.Time) {
	s.waiting = what
	s.mu.Unlock()
	select {
	case <-s.wake:
	case <-timeUp:
	case <-s.gone:
	}
	s.mu.Lock()
	s.waiting = waitNot
}

// early is how much too early it is for e.
func (s *Subscription) early(e *entry) time.Duration {
	if s.interval == 0 || !e.update || s.backlog.urgent > 0 {
		return 0
	}
	return time.Until(s.due)
}

// take takes the event that is in front.
func (s *Subscription) take() (*Agent, Event) {
	e := s.backlog.take()
	agent, ev, update := e.agent, e.event(), e.update
	s.backlog.reuse(e)
	s.calling = true
	if update && s.interval > 0 {
		s.due = time.Now().Add(s.interval)
	}
	if s.backlog.weight < s.most {
		s.lookAgain()
	}
	return agent, ev
}
