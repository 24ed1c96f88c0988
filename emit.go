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
	ev.RunID, ev.ParentRunID, ev.Seq, ev.Turn, ev.Time = e.runID, e.parentID, e.seq, e.turn, now()
	e.tally(&ev)
	switch {
	case e.gone:
		e.leave(ev)
	case !e.send(ev):
		e.gone = true
		e.leave(ev)
	}
}

// pass sends an event of a run that a call made, as it is.
func (e *emitter) pass(ev Event) {
	if !e.gone && !e.send(ev) {
		e.gone = true
	}
}

// send reports false where the run is over and nobody took ev for so long that the
// consumer counts as gone.
func (e *emitter) send(ev Event) bool {
	select {
	case e.events <- ev:
		return true
	default:
	}
	if e.drain < 0 {
		e.events <- ev
		return true
	}
	select {
	case e.events <- ev:
		return true
	case <-e.ctx.Done():
	}
	timer := time.NewTimer(e.drain)
	defer timer.Stop()
	select {
	case e.events <- ev:
		return true
	case <-timer.C:
		return false
	}
}

// leave drops ev, unless it tells how the run ended: then it takes the place of the oldest
// events that nobody took.
func (e *emitter) leave(ev Event) {
	if ev.Type != EventError && ev.Type != EventAgentEnd {
		return
	}
	for {
		select {
		case e.events <- ev:
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
