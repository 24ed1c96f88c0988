package agentkernel

import (
	"context"
	"errors"
)

// Generate asks a model once and returns its message, without a run, a retry or a tool. On
// the caller's goroutine. With an error, which is an *Error, comes what had arrived by then.
func Generate(ctx context.Context, model ChatModel, req ModelRequest) (Message, error) {
	if model == nil {
		return Message{}, misuse(ErrNoModel)
	}
	p := newPartial(nobody{})
	seq := model.Stream(ctx, req)
	if seq == nil {
		return Message{}, errNilStream
	}
	for ev, err := range seq {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return *p.discarded(), asError(ctx, "model", err, KindProvider)
		}
		if err := known(ev.Type); err != nil {
			return *p.discarded(), err
		}
		p.apply(&ev)
		if ev.Type == StreamEventDone {
			p.settle()
			return *p.finished(ev.StopReason, ev.RawStopReason), nil
		}
	}
	if ctx.Err() != nil {
		return *p.aborted(), stopError(ctx)
	}
	return *p.discarded(), errTruncated
}

var (
	errNilStream = &Error{Kind: KindProtocol, Op: "model", Err: errors.New("the model returned no stream")}
	errTruncated = &Error{Kind: KindStreamTruncated, Op: "model", Retryable: true,
		Err: errors.New("the stream ended before the model was done")}
)

// nobody sees a message while it streams.
type nobody struct{}

func (nobody) taken(string) bool { return false }
func (nobody) update(growth)     {}
