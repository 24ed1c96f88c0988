package agentkernel

import (
	"context"
	"time"
)

// emitter puts a run's events on its channel, or into the ring of the agent that reads them: in
// order, numbered, and no faster than the consumer takes them. One goroutine at a time uses it.
type emitter struct {
	ctx context.Context // the run's
	outlet
	drafted *Event // the update that is sent next, where there is no ring
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

// outlet is where the events of a run come out: a channel, or the ring of an agent.
type outlet struct {
	events chan Event
	ring   *ring
}

// emit stamps ev and sends it, blocking while there is no room.
func (e *emitter) emit(ev Event) {
	e.seq++
	ev.RunID, ev.ParentRunID, ev.Seq, ev.Turn = e.runID, e.parentID, e.seq, e.turn
	ev.Time = e.clock.stamp(ev.Type)
	e.tally(&ev)
	if e.ring != nil {
		*e.place() = ev
	}
	e.send(&ev)
}

// draft returns the next update, for the caller to fill in all that updates have, and to send:
// where it will be read, if that can be. What an earlier update of the run left there holds on:
// to write the same again is not for nothing, while the garbage collector asks to be told.
func (e *emitter) draft() *Event {
	at, ev := e.clock.stamp(EventMessageUpdate), e.drafted
	if e.ring != nil {
		ev = e.place()
	}
	if ev.Type != EventMessageUpdate || ev.RunID != e.runID {
		*ev = Event{Type: EventMessageUpdate, RunID: e.runID, ParentRunID: e.parentID}
	}
	e.seq++
	ev.Seq, ev.Time, ev.Turn = e.seq, at, e.turn
	return ev
}

// place is where the next event goes in the ring, as soon as there is room.
func (e *emitter) place() *Event {
	ev := e.ring.free()
	if ev == nil {
		ev = e.ring.wait()
		e.clock.read()
	}
	return ev
}

// send sends ev, which is in its place where there is a ring.
func (e *emitter) send(ev *Event) {
	if e.ring != nil {
		e.ring.put()
		return
	}
	if !e.gone {
		select {
		case e.events <- *ev:
			return
		default:
		}
		e.gone = !e.wait(ev)
		e.clock.read() // what was waited for the consumer is no silence of the model
	}
	if e.gone {
		e.leave(ev)
	}
}

// pass sends an event of a run that a call made, as it is.
func (e *emitter) pass(ev *Event) {
	if e.ring != nil {
		*e.place() = *ev
		e.ring.put()
	} else if !e.gone {
		e.gone = !e.wait(ev)
	}
}

// close ends the stream of events.
func (e *emitter) close() {
	if e.ring != nil {
		e.ring.close()
	} else {
		close(e.events)
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
