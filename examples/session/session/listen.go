package session

import (
	"cmp"
	"context"
	"errors"

	"github.com/agentkernel-go/agentkernel"
)

// listen is the session as the first listener of its agent.
func (s *Session) listen(ev agentkernel.Event) {
	defer s.feed.deliver()
	own := ev.ParentRunID == "" // not of a run within a call, whose messages are none of the session's
	place := 0
	switch {
	case own && ev.Type == agentkernel.EventAgentEnd:
		s.observe(&ev)
		s.finish(&ev)
		s.show(ev, 0)
		return
	case own && ev.Type == agentkernel.EventMessageEnd:
		s.ended++
		place = s.ended
		s.unread = append(s.unread, Ended{place, ev.Message})
	case own && ev.Type == agentkernel.EventContext:
		if err := s.rebase(ev); err != nil {
			defer s.trouble(opStore, err)
		}
	}
	defer s.follow(&ev, own) // also where a subscriber leaves the goroutine
	s.show(ev, place)
}

// show hands an event of the kernel to the subscribers.
func (s *Session) show(ev agentkernel.Event, place int) {
	s.feed.bring(SessionEvent{Type: EventAgent, SessionID: s.ID(), AgentEvent: &ev, Place: place})
}

// follow does what an event that was shown means for the session.
func (s *Session) follow(ev *agentkernel.Event, own bool) {
	s.observe(ev)
	if !own {
		return
	}
	switch ev.Type {
	case agentkernel.EventMessageEnd:
		if ev.Message.GetRole() == agentkernel.RoleAssistant {
			s.endRetry(stopOf(ev.Message))
			s.unlimitGoal()
		}
	case agentkernel.EventRetry:
		s.endRetry(ev.Err)
		s.startRetry(*ev)
	case agentkernel.EventError:
		if errors.Is(ev.Err, agentkernel.KindCommit) {
			s.trouble(opStore, ev.Err)
		}
	}
}

// stopOf is why an answer is none: it was stopped.
func stopOf(m agentkernel.AgentMessage) error {
	if own, ok := m.(agentkernel.Message); ok && own.StopReason == agentkernel.StopReasonAborted {
		return &agentkernel.Error{Kind: agentkernel.KindCanceled, Op: "model"}
	}
	return nil
}

// observe follows the model calls, and stores those that have come to their end.
func (s *Session) observe(ev *agentkernel.Event) {
	s.mu.Lock()
	model := s.model
	s.mu.Unlock()
	s.calls.take(ev, model)
	if len(s.calls.done) > 0 && ev.Type != agentkernel.EventAgentEnd { // which stores them itself
		s.saveCalls(Change{})
	}
}

// saveCalls stores the calls, and what else is in change. What is not stored is tried again
// with the next ones.
func (s *Session) saveCalls(change Change) {
	change.Calls = s.calls.done
	if s.write(change) {
		s.calls.done = nil
	}
}

// write stores change from the goroutine that delivers, and tells where that fails.
func (s *Session) write(change Change) bool {
	err := s.tryWrite(change)
	if err != nil {
		s.trouble(opStore, err)
	}
	return err == nil
}

// tryWrite is write without telling.
func (s *Session) tryWrite(change Change) error {
	return s.guarded(context.Background(), func(ctx context.Context) error { return s.store.Write(ctx, s.ID(), change) })
}

// rebase stores a baseline that the compactor made. One that the session itself gave the agent
// is in the store already.
func (s *Session) rebase(ev agentkernel.Event) error {
	switch ev.Context.Reason {
	case agentkernel.ContextProjected, agentkernel.ContextRecovered, agentkernel.ContextCompacted:
		ev.RunID, ev.Seq = s.ID(), uint64(s.ended)
		return s.tryWrite(Change{Baseline: &ev})
	}
	return nil
}

// finish does what a run's end asks for, before anyone sees it.
func (s *Session) finish(ev *agentkernel.Event) {
	s.endRetry(cmp.Or(ev.Err, errNoAnswer))
	end := RunEnd{SessionID: s.ID(), RunID: ev.RunID, Last: s.ended, Summary: *ev.Summary, Error: failure("run", ev.Err), Time: ev.Time}
	s.saveCalls(Change{Run: &end}) // the flush: all that is not stored yet, at once
	s.limitGoal(ev.Err)
	s.remember()
	s.runHooks(end)
	s.skills.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed, s.broken, s.running = s.ended, nil, false
}

// errNoAnswer closes a retry whose run ended without an error and without an answer.
var errNoAnswer = errors.New("the run ended before an answer came")
