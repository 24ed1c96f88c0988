package agentkernel

import (
	"context"
	"iter"
	"sync"
)

// Stream starts a run when it is ranged over and yields all its events, on the goroutine
// that ranges, which the run waits for as it does for a listener. Without messages it
// continues. A run that cannot start yields one error; afterwards errors are on the events.
// Leaving the loop early neither aborts the run nor waits for it. Inside a listener of the
// agent it yields ErrInListener and starts nothing.
func (a *Agent) Stream(ctx context.Context, messages ...AgentMessage) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if a.inListener() {
			yield(Event{}, ErrInListener)
			return
		}
		p := newPipe()
		defer p.leave()
		if _, err := a.start(ctx, order{prompts: messages}, p); err != nil {
			yield(Event{}, err)
			return
		}
		for ev := range p.events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// Events subscribes at once and returns a loop over every later event of every run, until
// ctx ends or the loop is left:
//
//	events := agent.Events(ctx)
//	go agent.Run(ctx, "hi") // its first event is not missed
//	for ev := range events { … }
//
// The loop's body runs on the goroutine that ranges. A run waits for it as it does for a
// listener, also for a loop that has not begun: only what ends ctx, or leaving the loop, frees
// the run. So the body must not wait for a run of the agent, and neither may what comes
// between Events and the loop on the same goroutine.
//
// It is for one loop. Inside a listener of the agent, which would wait for itself, the loop
// yields nothing.
func (a *Agent) Events(ctx context.Context) iter.Seq[Event] {
	p := newPipe()
	unsubscribe := a.Subscribe(p.put)
	leave := sync.OnceFunc(func() {
		p.leave()
		unsubscribe()
	})
	stop := context.AfterFunc(ctx, leave)
	return func(yield func(Event) bool) {
		defer leave()
		defer stop()
		for ok := !a.inListener(); ok; {
			var ev Event
			if ev, ok = p.take(ctx); ok {
				ok = yield(ev)
			}
		}
	}
}

// pipe hands events to another goroutine, one by one.
type pipe struct {
	events chan Event
	left   chan struct{} // closed when the reader takes no more
}

func newPipe() *pipe { return &pipe{events: make(chan Event), left: make(chan struct{})} }

// put waits until the event is taken, or the reader has left.
func (p *pipe) put(ev Event) {
	select {
	case p.events <- ev:
	case <-p.left:
	}
}

// take waits for an event. There is none once ctx has ended or the pipe was left; one that was
// put before that is not lost.
func (p *pipe) take(ctx context.Context) (Event, bool) {
	if ctx.Err() != nil {
		return Event{}, false
	}
	select {
	case ev := <-p.events:
		return ev, true
	case <-p.left:
		return Event{}, false
	case <-ctx.Done():
		return Event{}, false
	}
}

// leave takes no more. It is called once.
func (p *pipe) leave() { close(p.left) }
