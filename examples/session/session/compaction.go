package session

import (
	"context"
	"errors"

	"github.com/agentkernel-go/agentkernel"
)

// CompactionReason is why a history is made smaller.
type CompactionReason string

// The reasons.
const (
	CompactionThreshold CompactionReason = "threshold" // it comes near the model's window
	CompactionOverflow  CompactionReason = "overflow"  // the model refused it
)

// Compaction is one attempt to make the history smaller. Each start has one end, and where the
// history was replaced the kernel's Context event follows that. Start and end are told when
// they happen: they may stand before events that were made earlier and still wait to be delivered.
type Compaction struct {
	Reason CompactionReason `json:"reason"`
	// TokensBefore and TokensAfter are estimates; the second is that of EventCompactionEnd.
	TokensBefore int `json:"tokens_before"`
	TokensAfter  int `json:"tokens_after,omitempty"`
	// Applied tells whether there is a smaller history. EventCompactionEnd.
	Applied bool `json:"applied,omitempty"`
	// Error is why there is none, where something failed. EventCompactionEnd.
	Error *Failure `json:"error,omitempty"`
}

// compaction is the ContextManager of a session's agent: the kernel's Compactor, and a session
// that tells when it works. The kernel calls it on the goroutine of the run.
type compaction struct {
	session *Session
	agentkernel.Compactor
}

// newCompaction fills in the default by which the Compactor decides when to begin, so that the
// session decides alike.
func newCompaction(s *Session, c agentkernel.Compactor) *compaction {
	if c.Reserve <= 0 {
		c.Reserve = c.Window / 8
	}
	return &compaction{s, c}
}

// Project implements [agentkernel.ContextManager].
func (c *compaction) Project(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	if req.Tokens <= c.Window-c.Reserve {
		return agentkernel.ContextResult{}, nil
	}
	return c.told(ctx, req, CompactionThreshold, c.Compactor.Project)
}

// Recover implements [agentkernel.ContextManager].
func (c *compaction) Recover(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	return c.told(ctx, req, CompactionOverflow, c.Compactor.Recover)
}

// told has compact work between a start and an end.
func (c *compaction) told(ctx context.Context, req agentkernel.ContextRequest, reason CompactionReason,
	compact func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error),
) (result agentkernel.ContextResult, err error) {
	start := Compaction{Reason: reason, TokensBefore: req.Tokens}
	c.session.announce(SessionEvent{Type: EventCompactionStart, Compaction: &start})
	err = errors.New("the compactor did not return") // it panicked
	defer func() {
		end := start
		end.Error = failure("compaction", err)
		if err == nil {
			end.TokensBefore, end.TokensAfter = result.TokensBefore, result.TokensAfter
			end.Applied = len(result.Messages) > 0 && result.TokensAfter < result.TokensBefore
		}
		c.session.announce(SessionEvent{Type: EventCompactionEnd, Compaction: &end})
	}()
	return compact(ctx, req)
}

// announce tells ev at once, from a goroutine of the run. Subscribers are not called on that:
// it stands behind the run's fence.
func (s *Session) announce(ev SessionEvent) {
	s.emit(ev)
	go s.feed.deliver() // ends when nothing is queued; what the run does next stands behind ev
}
