package session

import (
	"context"
	"errors"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// GoalStatus is how a goal stands.
type GoalStatus string

// The statuses of a goal.
const (
	GoalActive GoalStatus = "active"
	// GoalUsageLimited: the account's quota or the run's budget is used up. It ends with the
	// next answer of a model.
	GoalUsageLimited GoalStatus = "usage_limited"
	GoalDone         GoalStatus = "done"
)

// Goal is what a session is for.
type Goal struct {
	// Text is the user's. A goal without text is none.
	Text   string     `json:"text"`
	Status GoalStatus `json:"status"`
	// Reason says why the goal is usage-limited.
	Reason  string    `json:"reason,omitempty"`
	Updated time.Time `json:"updated"`
}

// Goal returns the session's goal; its text is empty where there is none.
func (s *Session) Goal() Goal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.goal
}

// SetGoal gives the session a goal, or takes it away where text is empty. Errors: [ErrClosed]
// and the store's; the goal stays as it was then.
func (s *Session) SetGoal(ctx context.Context, text string) error {
	defer s.feed.deliver()
	g := Goal{Text: text}
	if text != "" {
		g.Status = GoalActive
	}
	return s.updateGoal(ctx, func(Goal) (Goal, bool) { return g, true })
}

// FinishGoal marks the goal as done, if there is one. Errors are those of SetGoal.
func (s *Session) FinishGoal(ctx context.Context) error {
	defer s.feed.deliver()
	return s.updateGoal(ctx, func(g Goal) (Goal, bool) {
		return Goal{Text: g.Text, Status: GoalDone}, g.Text != "" && g.Status != GoalDone
	})
}

// updateGoal stores what change makes of the goal, if it makes something, and tells it.
func (s *Session) updateGoal(ctx context.Context, change func(Goal) (Goal, bool)) error {
	return s.exclusively(ctx, func() error {
		g, changed := change(s.Goal())
		switch {
		case s.isClosed():
			return ErrClosed
		case !changed:
			return nil
		}
		g.Updated = time.Now().UTC()
		if err := s.store.Write(ctx, s.ID(), Change{Goal: &g}); err != nil {
			return err
		}
		s.mu.Lock()
		s.goal = g
		s.mu.Unlock()
		s.emit(SessionEvent{Type: EventGoalUpdated, Goal: &g})
		return nil
	})
}

// limitGoal marks the goal where a run ended because something is used up.
func (s *Session) limitGoal(err error) {
	if s.Goal().Status != GoalActive || !usedUp(err) {
		return
	}
	s.changeGoal(func(g Goal) (Goal, bool) {
		return Goal{Text: g.Text, Status: GoalUsageLimited, Reason: err.Error()}, g.Status == GoalActive
	})
}

// usedUp tells whether err means that no more can be had for now: the provider's quota, or the
// kernel's budget, which is told from its other limits by the operation alone.
func usedUp(err error) bool {
	e, ok := errors.AsType[*agentkernel.Error](err)
	return ok && (e.Kind == agentkernel.KindQuota || e.Kind == agentkernel.KindLimit && e.Op == "budget")
}

// unlimitGoal makes the goal active again: a model has answered.
func (s *Session) unlimitGoal() {
	if s.Goal().Status != GoalUsageLimited {
		return
	}
	s.changeGoal(func(g Goal) (Goal, bool) {
		return Goal{Text: g.Text, Status: GoalActive}, g.Status == GoalUsageLimited
	})
}

// changeGoal is updateGoal on the goroutine that delivers.
func (s *Session) changeGoal(change func(Goal) (Goal, bool)) {
	if err := s.guarded(context.Background(), func(ctx context.Context) error { return s.updateGoal(ctx, change) }); err != nil {
		s.trouble("store", err)
	}
}
