package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
)

// Switch leaves the session that is open and opens another one, a new one where the store has
// none of that id or id is empty. It waits for the run that is active, and starts none. The
// agent's next run begins with a Context event that replaces its history.
//
// Errors, with which the session stays the one it was: [ErrQueued], [ErrInUse], [ErrClosed],
// the store's, the cause of ctx, and [agentkernel.ErrInListener] in a subscriber.
func (s *Session) Switch(ctx context.Context, id string) error {
	release, err := s.agent.HoldRuns(ctx)
	if err != nil {
		return err
	}
	defer s.feed.deliver()
	defer release()
	return s.exclusively(ctx, func() error { return s.switchTo(ctx, cmp.Or(id, newID())) })
}

func (s *Session) switchTo(ctx context.Context, id string) error {
	from := s.ID()
	switch {
	case s.isClosed():
		return ErrClosed
	case id == from:
		return nil
	case len(s.cfg.Agent.Steering.Items())+len(s.cfg.Agent.FollowUps.Items()) > 0:
		return ErrQueued
	}
	saved, unlock, err := s.load(ctx, id)
	if err != nil {
		return err
	}
	// Both, one after the other, are announced as one Context of reason "reset" with these
	// messages: consumers start anew, with no usage.
	err = s.agent.Reset()
	if err == nil {
		err = s.agent.SetMessages(saved.state().Messages...)
	}
	if err != nil {
		return errors.Join(err, unlock())
	}
	model, thinking, leave := s.Model(), s.Thinking(), s.unlock
	s.adopt(saved, unlock)
	s.emit(SessionEvent{Type: EventSwitched, Changed: &Changed{From: from, To: id}})
	if to := s.Model(); to != model {
		s.emit(SessionEvent{Type: EventModelChanged, Changed: &Changed{From: model, To: to}})
	}
	if to := s.Thinking(); to != thinking {
		s.emit(SessionEvent{Type: EventThinkingChanged, Changed: &Changed{From: string(thinking), To: string(to)}})
	}
	if err := leave(); err != nil { // it is left all the same
		s.trouble(opStore, err)
	}
	return nil
}

// load locks and reads a session.
func (s *Session) load(ctx context.Context, id string) (Saved, func() error, error) {
	if !validID.MatchString(id) {
		return Saved{}, nil, fmt.Errorf("session: %q is no id", id)
	}
	unlock, err := s.store.Lock(ctx, id)
	if err != nil {
		return Saved{}, nil, err
	}
	saved, err := s.store.Load(ctx, id)
	if err != nil {
		return Saved{}, nil, errors.Join(err, unlock())
	}
	return saved, unlock, nil
}

// state is the agent's state behind the log: the same fold that made it when it happened.
func (saved *Saved) state() agentkernel.AgentState {
	state := agentkernel.AgentState{RunID: saved.ID}
	for _, ev := range saved.Log {
		state = agentkernel.Reduce(state, ev)
	}
	state.RunID, state.DiscardedUsage = "", saved.Discarded
	return state
}

// adopt makes saved the session that is open. The agent has its history already, and no run.
func (s *Session) adopt(saved Saved, unlock func() error) {
	model := saved.Model
	if s.cfg.Models[model] == nil {
		model = s.cfg.Model
	}
	s.ended, s.unread, s.calls, s.retrying = saved.Messages, nil, callLog{}, nil
	for _, ev := range saved.Log {
		if place := int(ev.Seq); ev.Type == agentkernel.EventMessageEnd && place > saved.MemoryAt {
			s.unread = append(s.unread, Ended{place, ev.Message})
		}
	}
	s.skills.reset()
	s.mu.Lock()
	s.id, s.unlock, s.name, s.memory = saved.ID, unlock, saved.Name, saved.Memory
	s.model, s.thinking = model, cmp.Or(saved.Thinking, s.cfg.Agent.ThinkingLevel)
	s.goal, s.committed, s.broken = Goal{}, saved.Messages, nil
	if saved.Goal != nil {
		s.goal = *saved.Goal
	}
	thinking := s.thinking
	s.mu.Unlock()
	_ = s.agent.SetModel(s.cfg.Models[model]) // fails without a model alone
	_ = s.agent.SetThinkingLevel(thinking)    // fails never
	s.tellMemory()
}
