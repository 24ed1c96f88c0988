package agentkernel

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// retry decides what follows a failed attempt: another one after a wait, one on a smaller
// history, one of another model, or the end.
func (r *run) retry(err *Error) step {
	if r.recoverContext(err) {
		return (*run).prepare
	}
	if r.stopped() {
		return (*run).stop
	}
	r.call.failures++
	delay, ok := r.cfg.Retry.delay(r.call.failures, err.RetryAfter)
	switch {
	case err.Retryable && ok && r.call.failures <= r.cfg.Retry.MaxRetries:
		return r.retryAfter(err, delay)
	case len(r.call.fallbacks) > 0 && (err.Retryable || curable(err.Kind)):
		return r.fallBack(err)
	}
	return r.fail(err)
}

// retryAfter announces the next attempt and waits for its time.
func (r *run) retryAfter(err *Error, delay time.Duration) step {
	r.emitRetry(err, RetryInfo{Delay: delay})
	if delay <= 0 {
		return (*run).attempt
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return (*run).attempt
	case <-r.ctx.Done():
		return (*run).stop
	}
}

// fallBack gives the call to the next model.
func (r *run) fallBack(err *Error) step {
	next := r.call.fallbacks[0]
	r.emitRetry(err, RetryInfo{NextModel: r.modelName(next)})
	r.settings.model, r.call.fallbacks, r.call.failures = next, r.call.fallbacks[1:], 0
	return (*run).attempt
}

// emitRetry announces the attempt that follows one of the current model, of which info says
// what is particular.
func (r *run) emitRetry(err *Error, info RetryInfo) {
	allowed := r.cfg.Retry.MaxRetries
	if err == errEmpty {
		allowed = r.cfg.MaxEmptyRetries
	}
	info.Attempt, info.MaxRetries, info.Err = r.call.attempt, max(allowed, 0), err
	info.Model = r.modelName(r.settings.model)
	r.emit(Event{Type: EventRetry, Attempt: r.call.attempt, Err: err, RetryInfo: &info})
}

// curable tells whether another endpoint may do better with the same request, where asking
// the same one again would not.
func curable(kind Kind) bool {
	switch kind {
	case KindCanceled, KindInvalidRequest, KindRefusal, KindPanic, KindInternal, KindHook, KindCommit:
		return false
	}
	return true
}

// modelName is what a model calls itself, or its type.
func (r *run) modelName(m ChatModel) string {
	named, ok := m.(fmt.Stringer)
	if !ok {
		return fmt.Sprintf("%T", m)
	}
	name, err := enclose(r.fence, func() (string, error) { return named.String(), nil })
	if err != nil {
		return fmt.Sprintf("%T", m)
	}
	return validText(name)
}

// delay is the wait before the retry that follows the n-th attempt, at least what the server
// asked for. It reports false where the server asked for more than the policy allows.
func (p RetryPolicy) delay(n int, after time.Duration) (time.Duration, bool) {
	if p.MaxDelay > 0 && after > p.MaxDelay {
		return 0, false
	}
	wait := max(p.BaseDelay, 0)
	for range n - 1 {
		if wait *= 2; wait <= 0 || p.MaxDelay > 0 && wait >= p.MaxDelay {
			break
		}
	}
	if p.MaxDelay > 0 {
		wait = min(wait, p.MaxDelay)
	}
	if p.Jitter > 0 {
		wait -= time.Duration(rand.Float64() * p.Jitter * float64(wait))
	}
	return max(wait, after), true
}
