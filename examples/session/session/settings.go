package session

import (
	"context"

	"github.com/agentkernel-go/agentkernel"
)

// exclusively calls change while nobody else changes a setting.
func (s *Session) exclusively(ctx context.Context, change func() error) error {
	select {
	case s.settling <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.settling }()
	return change()
}

// Model returns the name of the model that the session uses.
func (s *Session) Model() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// SetModel changes the model from the next turn on, also of a running run, for as long as the
// session lives. Errors: [ErrUnknownModel], [ErrClosed] and the store's; nothing is changed then.
func (s *Session) SetModel(ctx context.Context, name string) error {
	model := s.cfg.Models[name]
	if model == nil {
		return ErrUnknownModel
	}
	return s.change(ctx, Change{Model: &name}, func() error { return s.agent.SetModel(model) }, func() {
		if from := s.Model(); from != name {
			s.setModel(name)
			s.emit(SessionEvent{Type: EventModelChanged, Changed: &Changed{From: from, To: name}})
		}
	})
}

// Thinking returns how much the model should think.
func (s *Session) Thinking() agentkernel.ThinkingLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thinking
}

// SetThinking changes the thinking level as SetModel changes the model.
func (s *Session) SetThinking(ctx context.Context, level agentkernel.ThinkingLevel) error {
	return s.change(ctx, Change{Thinking: &level}, func() error { return s.agent.SetThinkingLevel(level) }, func() {
		if from := s.Thinking(); from != level {
			s.setThinking(level)
			s.emit(SessionEvent{Type: EventThinkingChanged, Changed: &Changed{From: string(from), To: string(level)}})
		}
	})
}

// change stores a setting, gives it to the agent and tells of it, in this order.
func (s *Session) change(ctx context.Context, change Change, apply func() error, tell func()) error {
	defer s.feed.deliver()
	return s.exclusively(ctx, func() error {
		if s.isClosed() {
			return ErrClosed
		}
		if err := s.store.Write(ctx, s.ID(), change); err != nil {
			return err
		}
		if err := apply(); err != nil {
			return err
		}
		tell()
		return nil
	})
}

func (s *Session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Session) setModel(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = name
}

func (s *Session) setThinking(level agentkernel.ThinkingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thinking = level
}
