package agentkernel

import (
	"context"
	"errors"
)

// commit hands m to the harness before it ends. It reports false, and the run has failed,
// where the harness does not take it.
//
// The context that Commit gets is not cancelled when the run is stopped: what happened must
// be recordable. It ends StopTimeout after the run's stop deadline; where a slow consumer
// made it begin late, StopTimeout after it began.
func (r *run) commit(m AgentMessage) bool {
	if r.cfg.Commit == nil {
		return true
	}
	m = cloneMessage(m)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.ctx))
	defer cancel()
	grace := 2 * r.cfg.StopTimeout
	if grace > 0 {
		grace = max(grace-r.fence.since(), r.cfg.StopTimeout)
	}
	f, lift := newFence(r.ctx, grace)
	defer lift()
	_, err := enclose(f, func() (struct{}, error) { return struct{}{}, r.cfg.Commit(ctx, m) })
	r.abandoned += f.abandoned
	switch {
	case err == nil:
		return true
	case err == errAbandoned:
		err = errors.New("it did not come back in time")
	}
	r.fail(&Error{Kind: KindCommit, Op: "hook Commit", Err: err})
	return false
}

// uncommitted tells that a commit failed: nothing more is ended then.
func (r *run) uncommitted() bool { return r.err != nil && r.err.Kind == KindCommit }
