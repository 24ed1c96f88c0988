package agentkernel

import (
	"context"
	"time"
)

// emitter puts a run's events on its channel: in order, numbered, and no faster than the
// consumer takes them. One goroutine at a time uses it.
type emitter struct {
	ctx    context.Context // the run's
	events chan Event
	// drain bounds the first send that nobody takes after ctx ended; negative is no bound.
	drain time.Duration

	clock           clock
	runID, parentID string
	seq             uint64
	turn            int
	// gone: nobody takes events any more.
	gone    bool
	summary RunSummary
}

// emit stamps ev and sends it, blocking while the channel is full.
func (e *emitter) emit(ev Event) {
	e.seq++
	ev.RunID, ev.ParentRunID, ev.Seq, ev.Turn = e.runID, e.parentID, e.seq, e.turn
	ev.Time = e.clock.stamp(ev.Type)
	e.tally(&ev)
	if !e.gone {
		select {
		case e.events <- ev: // from here, since each call on the way would copy it again
			return
		default:
		}
		e.gone = !e.wait(&ev)
		e.clock.read()
	}
	if e.gone {
		e.leave(&ev)
	}
}

// pass sends an event of a run that a call made, as it is.
func (e *emitter) pass(ev Event) {
	if !e.gone {
		e.gone = !e.wait(&ev)
	}
}

// wait sends ev as soon as there is room. It reports false where the run is over and nobody
// made room for so long that the consumer counts as gone.
func (e *emitter) wait(ev *Event) bool {
	if e.drain < 0 {
		e.events <- *ev
		return true
	}
	select {
	case e.events <- *ev:
		return true
	case <-e.ctx.Done():
	}
	timer := time.NewTimer(e.drain)
	defer timer.Stop()
	select {
	case e.events <- *ev:
		return true
	case <-timer.C:
		return false
	}
}

// leave drops ev, unless it tells how the run ended: then it takes the place of the oldest
// events that nobody took.
func (e *emitter) leave(ev *Event) {
	if ev.Type != EventError && ev.Type != EventAgentEnd {
		return
	}
	for {
		select {
		case e.events <- *ev:
			return
		default:
		}
		select {
		case <-e.events:
		default:
		}
	}
}

// tally counts ev into the run's summary.
func (e *emitter) tally(ev *Event) {
	s := &e.summary
	switch ev.Type {
	case EventTurnStart:
		s.TurnCount++
	case EventModelRequest:
		if ev.Attempt > 1 {
			s.Retries++
		}
	case EventToolExecEnd:
		s.ToolCalls++
		if ev.IsError {
			s.ToolErrors++
		}
	case EventMessageEnd:
		s.Usage = s.Usage.Add(usageOf(ev.Message))
	case EventMessageDiscard:
		s.DiscardedUsage = s.DiscardedUsage.Add(usageOf(ev.Message))
	}
}

// usageOf is what m cost, nothing where it does not say.
func usageOf(m AgentMessage) Usage {
	if own, ok := m.(Message); ok && own.Usage != nil {
		return *own.Usage
	}
	return Usage{}
}

// clock is the time of a run's events. It reads the wall clock for all of them but the updates
// of a message, which go on from there by the monotonic one: that takes a third of the time.
type clock struct {
	began  time.Time     // of the run, with its monotonic part
	passed time.Duration // from then to the last reading
	wall   time.Time     // the last reading of the wall clock, as events show it
	at     time.Duration // passed at that time
}

// stamp is the time of an event that is made now.
func (c *clock) stamp(of EventType) time.Time {
	if of == EventMessageUpdate {
		c.read()
		return c.wall.Add(c.passed - c.at)
	}
	t := time.Now()
	c.passed = t.Sub(c.began)
	c.wall, c.at = canonicalTime(t), c.passed
	return c.wall
}

// read takes the time.
func (c *clock) read() { c.passed = time.Since(c.began) }
