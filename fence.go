package agentkernel

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentkernel-go/agentkernel/internal/redact"
)

// PanicError is a panic of user code, or its leaving the goroutine with runtime.Goexit.
type PanicError struct {
	// Value is what was passed to panic, or nil for runtime.Goexit.
	Value any
	// Stack is the stack of the goroutine at that moment.
	Stack string

	text string
}

// newPanicError describes what was recovered; nil is runtime.Goexit. The value is put into
// words now, on a goroutine of its own, since its methods may panic or exit as well.
func newPanicError(value any) *PanicError {
	e := &PanicError{Value: value, Stack: string(debug.Stack())}
	if value == nil {
		e.text = "user code ended its goroutine"
		return e
	}
	words := make(chan string, 1)
	// Ends with the value's methods, for which this waits as for the code that panicked.
	go func() {
		text := fmt.Sprintf("panic of type %T", value)
		defer func() {
			_ = recover()
			words <- text
		}()
		text = redact.Text(fmt.Errorf("panic: %v", value))
	}()
	e.text = <-words
	return e
}

// Error names the value, not the stack.
func (e *PanicError) Error() string {
	if e.text == "" {
		return newPanicError(e.Value).text
	}
	return e.text
}

// Unwrap returns Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// fence is the one place where the kernel enters user code (model, tool, hook) and leaves
// it: by return, by panic, or without it once the run's stop deadline has passed.
type fence struct {
	// overdue is closed StopTimeout after the run's context ended.
	overdue chan struct{}
	// abandoned counts the goroutines left behind. It is the run's goroutine's.
	abandoned int

	mu     sync.Mutex
	ended  time.Time // when the run's context was seen to have ended
	timer  *time.Timer
	lifted bool
}

// since tells for how long the run's context has ended.
func (f *fence) since() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended.IsZero() {
		return 0
	}
	return time.Since(f.ended)
}

// newFence returns the fence of a run and what takes it down when the run has ended.
func newFence(ctx context.Context, stopTimeout time.Duration) (f *fence, lift func()) {
	f = &fence{overdue: make(chan struct{})}
	if stopTimeout < 0 {
		return f, func() {}
	}
	unhook := context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = time.Now()
		if !f.lifted {
			f.timer = time.AfterFunc(stopTimeout, func() { close(f.overdue) })
		}
	})
	return f, func() {
		unhook()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lifted = true
		if f.timer != nil {
			f.timer.Stop()
		}
	}
}

// visit is one stay of a goroutine in user code. While it lasts, that goroutine may act for
// the run between enter and leave; once the visit is over, it may not any more.
//
// It is a lock that is taken at most once more after it was asked to end. It is no
// sync.Mutex because the one who waits for it may wait for as long as a consumer is slow:
// as on a channel, which testing/synctest counts as waiting.
type visit struct {
	// state is one of the states below, or, in user code, when the goroutine left last: the
	// time since the run began, which is not negative.
	state atomic.Int64
	left  chan struct{} // closed by the leave that end waits for; made by end
}

// The states of a visit that is not in user code.
const (
	visitInside = -1 - iota // acting for the run
	visitEnding             // acting for the run, for the last time
	visitOver
)

// enter reports whether the goroutine may act for the run; then leave must follow. Where it may
// not, raced tells whether that is because another one was doing so.
func (v *visit) enter() (ok, raced bool) {
	for {
		outside := v.state.Load()
		if outside < 0 {
			return false, outside == visitInside
		}
		if v.state.CompareAndSwap(outside, visitInside) {
			return true, false
		}
	}
}

// leave goes back to user code, at a time since the run began.
func (v *visit) leave(at time.Duration) {
	if !v.state.CompareAndSwap(visitInside, int64(at)) {
		v.state.Store(visitOver)
		close(v.left)
	}
}

// end ends the visit. It waits for the goroutine where that is acting for the run.
func (v *visit) end() {
	for {
		switch state := v.state.Load(); state {
		case visitInside:
			if v.left == nil {
				v.left = make(chan struct{})
			}
			if v.state.CompareAndSwap(visitInside, visitEnding) {
				<-v.left
				return
			}
		case visitEnding, visitOver:
			return
		default:
			if v.state.CompareAndSwap(state, visitOver) {
				return
			}
		}
	}
}

// errAbandoned is what a visit ends with that did not come back in time.
var errAbandoned = &Error{Kind: KindTimeout, Op: "fence", Err: context.DeadlineExceeded}

// returned is how user code came back.
type returned[T any] struct {
	value T
	err   error
}

// enclose runs fn, which calls user code, on a goroutine of its own and waits until it
// returns or the run's stop deadline passes. A panic or runtime.Goexit in fn comes back as
// a *PanicError, a visit that did not come back as errAbandoned.
//
// What fn found out leaves it by its return value only: a goroutine that was left behind
// can still write to variables that it shares.
func enclose[T any](f *fence, fn func() (T, error)) (T, error) {
	return encloseUntil(f, new(visit), nil, fn)
}

// encloseUntil is enclose for a visit that may also end when late is closed.
func encloseUntil[T any](f *fence, v *visit, late <-chan struct{}, fn func() (T, error)) (T, error) {
	back := make(chan returned[T], 1)
	// Ends with fn; enclose waits for it, or leaves it behind.
	go call(fn, back)
	select {
	case got := <-back:
		return got.value, got.err
	case <-f.overdue:
	case <-late:
	}
	v.end()
	select {
	case got := <-back: // came back in the same instant
		return got.value, got.err
	default:
		f.abandoned++
		var none T
		return none, errAbandoned
	}
}

// call calls fn and sends how it came back.
func call[T any](fn func() (T, error), back chan<- returned[T]) {
	grow(0)
	guarded(fn, func(got returned[T]) { back <- got })
}

// grow makes room on the stack of a new goroutine at once, for what user code and the way
// back from it usually need: to grow there step by step, each time with more to copy, takes a
// fifth of a turn.
//
//go:noinline
func grow(n int) byte {
	var room [5 << 10]byte
	return room[n]
}

// guarded calls fn and hands back how it returned; a panic and runtime.Goexit are a *PanicError.
func guarded[T any](fn func() (T, error), back func(returned[T])) {
	var got returned[T]
	came := false
	defer func() {
		if !came {
			got.err = newPanicError(recover())
		}
		back(got)
	}()
	got.value, got.err = fn()
	came = true
}
