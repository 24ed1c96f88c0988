package agentkernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/agentkernel-go/agentkernel/internal/redact"
)

// Kind is the class of an [Error]. The list is closed and part of the API: code branches
// on it. A Kind is an error itself, so that errors.Is(err, agentkernel.KindTimeout) works
// on every error that the kernel hands out.
type Kind string

// The kinds of an [Error].
const (
	// KindCanceled: the run was stopped by Abort or by the caller's context. Not retryable.
	KindCanceled Kind = "canceled"
	// KindTimeout: a deadline passed: the caller's, a run's, a connection's, a header's.
	KindTimeout Kind = "timeout"
	// KindStreamIdle: a stream stayed open and silent too long.
	KindStreamIdle Kind = "stream_idle"
	// KindStreamTruncated: a stream ended before the model said that it was done.
	KindStreamTruncated Kind = "stream_truncated"
	// KindNetwork: the connection could not be made or broke.
	KindNetwork Kind = "network"
	// KindServer: the server failed (5xx).
	KindServer Kind = "server"
	// KindOverloaded: the server is there but takes no more work now (503 or 529 of that meaning).
	KindOverloaded Kind = "overloaded"
	// KindRateLimit: too many requests or tokens per time; waiting cures it.
	KindRateLimit Kind = "rate_limit"
	// KindQuota: the account's money or allowance is used up; waiting does not cure it.
	KindQuota Kind = "quota"
	// KindAuth: the key is missing, wrong or not allowed to do this.
	KindAuth Kind = "auth"
	// KindInvalidRequest: what was asked makes no sense to the one asked: a wrong Config,
	// a parameter that the endpoint refuses, a model that does not exist.
	KindInvalidRequest Kind = "invalid_request"
	// KindContextOverflow: the request is longer than the model's window.
	KindContextOverflow Kind = "context_overflow"
	// KindRefusal: a content filter refused the request before any stream began. A refusal
	// within a stream is a finished message with StopReasonRefusal.
	KindRefusal Kind = "refusal"
	// KindProtocol: the model or endpoint broke its protocol: a nil stream, a body that is no stream.
	KindProtocol Kind = "protocol"
	// KindProvider: the provider reported a failure that fits no other kind.
	KindProvider Kind = "provider"
	// KindTool is reserved: a tool's failure is a result, and ends no run.
	KindTool Kind = "tool"
	// KindMaxTurns: Config.MaxTurns model calls were made and the model wants more.
	KindMaxTurns Kind = "max_turns"
	// KindLimit: another bound was reached, a budget or the length of a line.
	KindLimit Kind = "limit"
	// KindStopGuard: the stop guard ended the run as failed.
	KindStopGuard Kind = "stop_guard"
	// KindCommit: Config.Commit did not take a message.
	KindCommit Kind = "commit"
	// KindHook: a hook of Config returned an error.
	KindHook Kind = "hook"
	// KindPanic: a model, a hook or another thing that the run was given panicked or left its
	// goroutine.
	KindPanic Kind = "panic"
	// KindInternal: a defect of an adapter or of the kernel.
	KindInternal Kind = "internal"
)

// Error returns the kind's wire name.
func (k Kind) Error() string { return string(k) }

// Misuse is told at once, by the call that misused, with one of these.
var (
	// ErrAlreadyRunning: the agent has a run that has not ended yet.
	ErrAlreadyRunning = errors.New("agentkernel: a run is already active")
	// ErrNoModel: Config.Model is nil.
	ErrNoModel = errors.New("agentkernel: no model configured")
	// ErrNoMessages: there is nothing to answer: no prompt and an empty history.
	ErrNoMessages = errors.New("agentkernel: no messages to run on")
	// ErrBadContinuation: the history ends with a finished answer, so there is nothing to
	// continue. An answer that was aborted or cut by the output limit is not finished.
	ErrBadContinuation = errors.New("agentkernel: the history ends with a finished answer")
	// ErrRunsHeld: starts are refused while HoldRuns is in force.
	ErrRunsHeld = errors.New("agentkernel: runs are held")
	// ErrNotSuspended: no call of the agent waits for an answer.
	ErrNotSuspended = errors.New("agentkernel: nothing is suspended")
	// ErrInListener: a call that waits for a run was made on the goroutine that delivers its
	// events, or by one of the run's own calls.
	ErrInListener = errors.New("agentkernel: cannot wait for a run inside a listener")
)

// Error is every failure that the kernel and its adapters report.
//
// Match its Kind with errors.Is(err, KindX), get at its fields with errors.AsType[*Error].
// Its text holds no key, no query string and no header.
type Error struct {
	Kind Kind
	// Op names what failed: "model", "config", "hook ConvertToLLM", …
	Op string
	// Status is the HTTP status of the response, 0 where there was none.
	Status int
	// Retryable tells whether the same request may succeed later. The adapter sets it from
	// a status or a typed code.
	Retryable bool
	// RetryAfter is the wait that the server asked for, 0 where it asked for none.
	RetryAfter time.Duration
	// Err is the cause. It may be nil.
	Err error
}

// Error returns "op: kind (status): cause" without the parts that are empty.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	b.WriteString(string(e.Kind))
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(redact.Text(e.Err))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Is reports whether target is this error's kind. A canceled error is also
// context.Canceled, a timeout also context.DeadlineExceeded, whatever their cause.
func (e *Error) Is(target error) bool {
	if e == nil {
		return false
	}
	switch target {
	case context.Canceled:
		return e.Kind == KindCanceled
	case context.DeadlineExceeded:
		return e.Kind == KindTimeout
	}
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// invalid is the error for a configuration or an argument that makes no sense.
func invalid(op, format string, args ...any) *Error {
	return &Error{Kind: KindInvalidRequest, Op: op, Err: fmt.Errorf(format, args...)}
}

// stopError is what a run that its context stopped reports: timeout where a deadline did,
// canceled otherwise, with the cause.
func stopError(ctx context.Context) *Error {
	kind := KindCanceled
	if ctx.Err() == context.DeadlineExceeded {
		kind = KindTimeout
	}
	return &Error{Kind: kind, Op: "run", Err: context.Cause(ctx)}
}

// asError gives an error that user code returned its kind. The context is asked first: what
// a client reports after its context ended is an echo of that. An *Error is believed, unless
// its kind is not a model's to give; typed network errors are retryable; anything else is
// fallback, which is not.
func asError(ctx context.Context, op string, err error, fallback Kind) *Error {
	if ctx.Err() != nil {
		return stopError(ctx)
	}
	if e, ok := errors.AsType[*Error](err); ok && e != nil {
		if e.Kind.foreign() {
			return e
		}
		return &Error{Kind: fallback, Op: op, Status: e.Status, Retryable: e.Retryable, RetryAfter: e.RetryAfter, Err: err}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Kind: KindStreamTruncated, Op: op, Retryable: true, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: KindTimeout, Op: op, Retryable: true, Err: err}
	case isNetwork(err):
		return &Error{Kind: KindNetwork, Op: op, Retryable: true, Err: err}
	}
	return &Error{Kind: fallback, Op: op, Err: err}
}

// foreign tells whether a model may report that kind: one of the list, and none that only
// the kernel can know of.
func (k Kind) foreign() bool {
	switch k {
	case KindTimeout, KindStreamIdle, KindStreamTruncated, KindNetwork, KindServer, KindOverloaded, KindRateLimit,
		KindQuota, KindAuth, KindInvalidRequest, KindContextOverflow, KindRefusal, KindProtocol, KindProvider,
		KindLimit, KindPanic, KindInternal:
		return true
	}
	return false
}

func isNetwork(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
