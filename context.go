package agentkernel

import (
	"context"
	"maps"
	"slices"
)

// ContextManager keeps a history within a model's window. Its methods are called between
// model calls of a run, one at a time, behind the run's fence; what they are given is
// read-only. A result without messages changes nothing, and one that is not smaller is
// refused. What a provider would not accept in it is mended as by [RepairHistory]. An error
// ends the run with kind "hook", except that of Recover, where the run ends with the overflow.
type ContextManager interface {
	// Project is asked before each model call whether the history should be replaced.
	Project(ctx context.Context, req ContextRequest) (ContextResult, error)
	// Recover is asked for a smaller history when a model refused the request as too long, at
	// most once for each model call, and by [Agent.Compact].
	Recover(ctx context.Context, req ContextRequest) (ContextResult, error)
}

// ContextRequest is a history that may be too long.
type ContextRequest struct {
	History []AgentMessage
	// Tokens is its size by the last answer's usage and what was added since; an estimate.
	Tokens int
	// Reason is what [Agent.Compact] was told, empty otherwise.
	Reason ContextReason
	// Err is the model's refusal. Only for Recover.
	Err error
}

// ContextResult is the history that replaces the one of the request: nil for no change. The
// token counts are estimates; where they are zero the kernel makes its own.
type ContextResult struct {
	Messages     []AgentMessage
	TokensBefore int
	TokensAfter  int
}

// bytesPerToken is the usual estimate for text.
const bytesPerToken = 4

// EstimateTokens estimates the size of messages: four bytes of text, thinking and arguments
// are a token, and an image is a thousand.
func EstimateTokens(messages []AgentMessage) int {
	n := 0
	for _, m := range messages {
		n += estimate(m)
	}
	return n
}

func estimate(m AgentMessage) int {
	own, ok := ownMessage(m)
	if !ok {
		return 0
	}
	bytes, images := 0, 0
	for _, b := range own.Content {
		bytes += len(b.Text) + len(b.Thinking)
		if b.ToolCall != nil {
			bytes += len(b.ToolCall.Name) + len(b.ToolCall.Args) + len(b.ToolCall.RawArgs)
		}
		if b.Image != nil {
			images++
		}
	}
	return (bytes+bytesPerToken-1)/bytesPerToken + 1000*images
}

// contextTokens is the size of a history: what the last answer's usage says of all before
// it, and an estimate of the rest. Usage before the place replaced is of another history.
func contextTokens(history []AgentMessage, replaced int) int {
	rest := 0
	for i := len(history) - 1; i >= 0; i-- {
		own, ok := ownMessage(history[i])
		if ok && i >= replaced && own.Role == RoleAssistant && usageOf(own).context() > 0 {
			return usageOf(own).context() + rest
		}
		rest += estimate(history[i])
	}
	return rest
}

// project asks the context manager before a model call.
func (r *run) project() step {
	if r.cfg.ContextManager == nil {
		return (*run).prepare
	}
	ctx, req := r.ctx, r.contextRequest(nil)
	result, err := enclose(r.fence, func() (ContextResult, error) { return r.cfg.ContextManager.Project(ctx, req) })
	switch {
	case r.stopped():
		return (*run).stop
	case err != nil:
		return r.fail(hookError("ContextManager.Project", err))
	}
	if info, ok := smaller(ContextProjected, req, result); ok {
		r.replaceHistory(info)
	}
	return (*run).prepare
}

// recoverContext asks the context manager for a smaller history after cause refused this
// one. It reports whether there is one.
func (r *run) recoverContext(cause *Error) bool {
	if cause.Kind != KindContextOverflow || r.cfg.ContextManager == nil || r.call.recovered || r.stopped() {
		return false
	}
	r.call.recovered = true
	ctx, req := r.ctx, r.contextRequest(cause)
	result, err := enclose(r.fence, func() (ContextResult, error) { return r.cfg.ContextManager.Recover(ctx, req) })
	if err != nil || r.stopped() {
		return false
	}
	info, ok := smaller(ContextRecovered, req, result)
	if !ok {
		return false
	}
	r.emitRetry(cause, RetryInfo{})
	r.replaceHistory(info)
	return true
}

func (r *run) contextRequest(err error) ContextRequest {
	return ContextRequest{History: r.history[:len(r.history):len(r.history)],
		Tokens: contextTokens(r.history, r.replaced), Err: err}
}

// smaller returns the replacement, unless it is none or does not get smaller.
func smaller(reason ContextReason, req ContextRequest, result ContextResult) (ContextInfo, bool) {
	info := ContextInfo{Reason: reason, Messages: result.Messages, TokensBefore: result.TokensBefore, TokensAfter: result.TokensAfter}
	if len(result.Messages) == 0 || checkMessages("context", result.Messages) != nil {
		return info, false
	}
	if info.TokensBefore == 0 {
		info.TokensBefore = EstimateTokens(req.History)
	}
	if info.TokensAfter == 0 {
		info.TokensAfter = EstimateTokens(result.Messages)
	}
	return info, info.TokensAfter < info.TokensBefore
}

// replaceHistory makes info the baseline, for the run and for everyone who hears of it.
func (r *run) replaceHistory(info ContextInfo) {
	info.Messages = RepairHistory(ownHistory(info.Messages))
	r.history = slices.Clone(info.Messages)
	r.replaced = len(r.history)
	r.convert, r.mended = converter{}, nil
	r.found.read = 0 // what was found stays found
	maps.Copy(r.ids, callIDs(r.history))
	r.emit(Event{Type: EventContext, Context: &info})
}

// Compact asks the context manager's Recover for a smaller history now, on an idle agent, also
// while runs are held, and waits for it. The new history holds at once, and the next run
// announces it with a Context event of that reason; an empty one is "compacted". It reports
// whether there is one. Until it returns no run starts, and Abort cancels its context; a
// manager that ignores that is left behind StopTimeout later.
//
// Errors: ErrAlreadyRunning, the manager's (a panic as a [*PanicError]), kind "canceled" or
// "timeout", and kind "invalid_request" where there is no manager.
func (a *Agent) Compact(ctx context.Context, reason ContextReason) (bool, error) {
	switch {
	case a.cfg.ContextManager == nil:
		return false, invalid("compact", "there is no ContextManager")
	case reason == ContextReset:
		return false, invalid("compact", "the reason %q is that of Agent.Reset", reason)
	case reason == "":
		reason = ContextCompacted
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := &Run{agent: a, cancel: cancel, done: make(chan struct{}), ended: make(chan struct{}), closing: true}
	req, err := a.occupy(run)
	if err != nil {
		return false, err
	}
	defer a.release(run)
	req.Reason = reason
	f, lift := newFence(ctx, a.cfg.StopTimeout)
	defer lift()
	result, err := enclose(f, func() (ContextResult, error) { return a.cfg.ContextManager.Recover(ctx, req) })
	switch {
	case err == errAbandoned:
		return false, stopError(ctx)
	case err != nil:
		return false, err
	}
	info, ok := smaller(reason, req, result)
	if !ok {
		return false, nil
	}
	info.Messages = mend(ownHistory(info.Messages), true).result()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adoptHistory(info)
	return true, nil
}

// occupy makes run the active one, which no events come of, unless there is one. It returns
// the history.
func (a *Agent) occupy(run *Run) (ContextRequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		return ContextRequest{}, ErrAlreadyRunning
	}
	a.active = run
	return ContextRequest{History: a.state.Messages, Tokens: contextTokens(a.state.Messages, a.state.replaced())}, nil
}
