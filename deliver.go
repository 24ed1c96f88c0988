package agentkernel

import (
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agentkernel-go/agentkernel/internal/goid"
)

// listener is one subscription.
type listener struct {
	fn      func(Event)
	byRef   func(*Event) // instead of fn, where the event needs no copy: the pointer must not be kept
	removed atomic.Bool
}

// Subscribe registers fn for every event of every later run, and of the current one from
// the next event on, and returns its removal.
//
// Order: listeners run one after the other in registration order, each event to all of them
// before the next event, and run after run. The run may be Config.EventBuffer events ahead, and
// its hooks with it: what must be done before it goes on is for a hook. Goroutine: the one that
// drains the run; a slow fn slows the run, and no lock is held, so that fn may call every
// method of the agent that does not wait. Ownership: the event is fn's to keep, what it refers
// to is read-only. A panic in fn, or its leaving the goroutine, stays in fn: see
// Config.OnListenerPanic.
//
// When unsubscribe has returned, no new call of fn begins, not even for the event that is
// being delivered; one that runs elsewhere may still be finishing. It may be called more
// than once. A nil fn panics.
func (a *Agent) Subscribe(fn func(Event)) (unsubscribe func()) {
	if fn == nil {
		panic("agentkernel: Subscribe of a nil listener")
	}
	return a.subscribe(&listener{fn: fn})
}

func (a *Agent) subscribe(l *listener) (unsubscribe func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners = append(slices.Clip(a.listeners), l)
	return func() {
		l.removed.Store(true)
		a.mu.Lock()
		defer a.mu.Unlock()
		if i := slices.Index(a.listeners, l); i >= 0 {
			a.listeners = slices.Delete(slices.Clone(a.listeners), i, i+1)
		}
	}
}

// delivery brings the events of one run into the agent's state and to its listeners.
type delivery struct {
	agent  *Agent
	run    *Run
	pipe   *pipe
	before <-chan struct{} // closed when the run before was delivered
	events *ring

	ev      *Event      // the event that is being delivered
	hearers []*listener // who is to see it
	next    int         // the first of them that has not yet
	unread  bool        // nor has the pipe
}

// loop waits for its turn and delivers the run. A listener that leaves the goroutine takes
// it along: a new one then goes on behind that listener.
func (d *delivery) loop() {
	done := false
	defer func() {
		if !done {
			go d.loop() // this goroutine's successor, ends as this one would have
		}
	}()
	if d.before != nil {
		<-d.before
	}
	d.agent.deliverer.Store(goid.Current())
	d.consumeLoop()
	d.agent.deliverer.Store(0)
	done = true
	if d.pipe != nil {
		close(d.pipe.events)
	}
	close(d.run.done)
}

// consumeLoop folds each event into the state, then hands it to every listener.
func (d *delivery) consumeLoop() {
	if d.ev != nil {
		d.hand()
	}
	for d.ev = d.events.next(); d.ev != nil; d.ev = d.events.next() {
		d.run.record.add(d.ev)
		d.hearers, d.next, d.unread = d.agent.fold(d.run, d.ev), 0, d.pipe != nil
		d.hand()
	}
}

// hand gives the event to those who have not seen it yet.
func (d *delivery) hand() {
	for d.next < len(d.hearers) {
		d.callRest()
	}
	if d.unread {
		d.unread = false
		d.pipe.put(*d.ev)
	}
	if d.ev.Type == EventAgentStart && d.ev.RunID == d.run.id {
		close(d.run.told)
	}
	d.events.done()
}

// callRest calls the listeners up to the first that fails. What goes wrong in one stays in it,
// and is told.
func (d *delivery) callRest() {
	done := false
	defer func() {
		if !done {
			d.agent.report(recover(), d.ev)
		}
	}()
	ev := *d.ev // from here it is copied once for each call, from behind a pointer twice
	for d.next < len(d.hearers) {
		l := d.hearers[d.next]
		d.next++
		switch {
		case l.removed.Load():
		case l.byRef != nil:
			l.byRef(d.ev)
		default:
			l.fn(ev)
		}
	}
	done = true
}

// fold takes ev into the state and returns who is to hear of it.
func (a *Agent) fold(run *Run, ev *Event) []*listener {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.reduce(ev)
	if ev.Type == EventMessageEnd && ev.RunID == run.id {
		run.queued.delivered(ev.Seq)
	}
	if ev.Type == EventAgentEnd && ev.RunID == run.id {
		a.active = nil
		close(run.ended)
	}
	return a.listeners
}

// isolate calls a listener with ev. What goes wrong in fn stays in it, and is told.
func (a *Agent) isolate(fn func(Event), ev *Event) {
	done := false
	defer func() {
		if !done {
			a.report(recover(), ev)
		}
	}()
	fn(*ev)
	done = true
}

// report tells of a listener that panicked with value, or, where value is nil, left its goroutine.
func (a *Agent) report(value any, ev *Event) {
	stack := debug.Stack()
	crash := newPanicError(value)
	if value == nil {
		value = crash
	}
	// The one who is told may fail as well; then nobody is.
	defer func() { _ = recover() }()
	if told := a.cfg.OnListenerPanic; told != nil {
		told(value, stack, *ev)
		return
	}
	slog.Error("agentkernel: a listener panicked", "value", strings.TrimPrefix(crash.Error(), "panic: "), "event", ev.Type,
		"run_id", ev.RunID, "seq", ev.Seq, "stack", string(stack))
}
