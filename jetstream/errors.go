package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
)

// What goes wrong, for errors.Is. The error that carries it says more.
var (
	// ErrUnavailable: no broker answered in time. What was to be written may have been written.
	ErrUnavailable = errors.New("jetstream: no broker answers")
	// ErrFull: the broker has no room: its disk, or [Config.MaxBytes]. Nothing was written.
	ErrFull = errors.New("jetstream: the broker has no room")
	// ErrFenced: another worker has claimed the session. Nothing was written.
	ErrFenced = errors.New("jetstream: another worker has the session")
	// ErrTooLarge: a record is larger than the broker's max_payload. Nothing was written.
	ErrTooLarge = errors.New("jetstream: the record is larger than the broker takes")
	// ErrNotAsked: no call with that id waits for an answer, or not any more.
	ErrNotAsked = errors.New("jetstream: that call does not wait for an answer")
	// ErrAnswered: somebody else answered first.
	ErrAnswered = errors.New("jetstream: the call has been answered already")
)

// LayoutError says that a stream or consumer of the installation's name is not as this package
// makes it. It is left as it is.
type LayoutError struct {
	// Stream is its name; Field is what differs.
	Stream, Field string
	Got, Want     any
}

// Error returns the error on one line.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("jetstream: stream %s is of a foreign layout: %s is %v, want %v", e.Stream, e.Field, e.Got, e.Want)
}

// API error codes of the broker that the client's package has no names for.
const (
	codeNoResources = 10023
	codeNoStorage   = 10047
	codeStoreFailed = 10077 // also: maximum bytes exceeded
)

// classify says what err means for a write, and whether it may pass by itself.
func classify(err error) (meaning error, transient bool) {
	if api, ok := errors.AsType[*broker.APIError](err); ok {
		switch api.ErrorCode {
		case broker.JSErrCodeStreamWrongLastSequence, broker.JSErrCodeStreamWrongLastSequenceConstant:
			return fmt.Errorf("%w: %w", ErrFenced, err), false
		case codeNoResources, codeNoStorage, codeStoreFailed:
			return fmt.Errorf("%w: %w", ErrFull, err), false
		case broker.JSErrCodeStreamMessageExceedsMaximum:
			return fmt.Errorf("%w: %w", ErrTooLarge, err), false
		}
		return fmt.Errorf("jetstream: %w", err), api.Code == 503
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", ErrTooLarge, err), false
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return fmt.Errorf("%w: %w", ErrUnavailable, err), false
	case unanswered(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err), true
	}
	return fmt.Errorf("jetstream: %w", err), false
}

// unanswered tells whether nobody answered.
func unanswered(err error) bool {
	for _, e := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, broker.ErrNoStreamResponse,
		nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, nats.ErrConnectionReconnecting,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
