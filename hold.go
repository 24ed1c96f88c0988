package agentkernel

import (
	"context"
	"errors"
	"sync"
)

// HoldRuns refuses the start of runs with ErrRunsHeld from now on, and returns when the run
// that is active, if any, has been delivered to its end; it aborts nothing and emits nothing.
// Runs may start again when every holder has called its release, which may be called more
// than once. When ctx ends first, its cause is returned and nothing is held. Inside a
// listener, and with the context of a call of the active run, it returns ErrInListener.
func (a *Agent) HoldRuns(ctx context.Context) (release func(), err error) {
	if a.inListener() {
		return nil, ErrInListener
	}
	a.mu.Lock()
	last := a.delivered
	if a.active != nil {
		last = a.active.done
	}
	if a.active != nil && inCallOf(ctx, a.active.id) {
		a.mu.Unlock()
		return nil, ErrInListener
	}
	a.holds++
	a.mu.Unlock()
	release = sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.holds--
	})
	if last == nil {
		return release, nil
	}
	select {
	case <-last:
		return release, nil
	case <-ctx.Done():
	}
	select {
	case <-last: // it ended in the same instant, or long before
		return release, nil
	default:
		release()
		return nil, context.Cause(ctx)
	}
}

// InjectDisposition is where an injected message went.
type InjectDisposition string

// The dispositions.
const (
	InjectSteered InjectDisposition = "steered" // the running run takes it at its next chance
	InjectResumed InjectDisposition = "resumed" // a run was started with it
	InjectQueued  InjectDisposition = "queued"  // the next run takes it: runs are held, or one is just ending
)

// InjectResult tells what became of an injected message.
type InjectResult struct {
	Disposition InjectDisposition
	// Run is the run that was started. Only where the message resumed the agent.
	Run *Run
}

// Inject delivers a message by the agent's state, in one step: it steers the run that is
// running, or starts one, which then lives under ctx, or queues the message where none may
// start. A message that steered a run which ends before taking it stays queued; one that
// started a run is its prompt, as with PromptMessages.
//
// It waits for a run that is about to end, except inside a listener, where the message is
// queued then. Errors are those of PromptMessages; the message is not delivered then.
func (a *Agent) Inject(ctx context.Context, message AgentMessage) (InjectResult, error) {
	own, err := asPrompts("inject", []AgentMessage{message})
	if err != nil {
		return InjectResult{}, err
	}
	for {
		ending, steered := a.steerActive(own)
		switch {
		case steered:
			return InjectResult{Disposition: InjectSteered}, nil
		case ending != nil && a.inListener():
			a.cfg.FollowUps.push(own)
			return InjectResult{Disposition: InjectQueued}, nil
		case ending != nil:
			select {
			case <-ending:
				continue
			case <-ctx.Done():
				return InjectResult{}, context.Cause(ctx)
			}
		}
		run, err := a.start(ctx, order{prompts: own}, nil)
		switch {
		case errors.Is(err, ErrRunsHeld):
			a.cfg.FollowUps.push(own)
			return InjectResult{Disposition: InjectQueued}, nil
		case errors.Is(err, ErrAlreadyRunning):
			continue // somebody else was faster
		case err != nil:
			return InjectResult{}, err
		}
		return InjectResult{Disposition: InjectResumed, Run: run}, nil
	}
}

// steerActive queues messages for the active run, if that still takes any; otherwise it
// returns what closes when it has ended.
func (a *Agent) steerActive(own []AgentMessage) (ending <-chan struct{}, steered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.active == nil:
		return nil, false
	case a.active.closing:
		return a.active.ended, false
	}
	a.cfg.Steering.push(own)
	return nil, true
}

// closeRun makes the run take no more steering, unless some waits and it is not forced. It
// reports whether it did.
func (a *Agent) closeRun(run *Run, force bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !force && (a.cfg.Steering.waiting() || a.cfg.FollowUps.waiting()) {
		return false
	}
	run.closing = true
	return true
}
