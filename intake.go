package agentkernel

import (
	"context"
	"errors"
	"sync/atomic"
)

// intake takes in what a model yields in one attempt, on the goroutine that it yields on.
type intake struct {
	r     *run
	ctx   context.Context
	visit visit
	watch idleWatch
	// end is what the stream came to. It belongs to who acts for the run.
	end streamEnd
	// raced tells that two goroutines yielded at once.
	raced atomic.Bool
}

// streamEnd is how a model's stream ended: by Done, by an error, or, where neither is set,
// without a word.
type streamEnd struct {
	done   bool
	reason StopReason
	raw    string
	err    *Error
}

// over tells that nothing more counts.
func (e *streamEnd) over() bool { return e.done || e.err != nil }

var errRaced = &Error{Kind: KindProtocol, Op: "model", Err: errors.New("the model yielded on two goroutines at once")}

// stream asks the model and takes its answer in. What the model does after Done or an error
// has no effect.
func (r *run) stream(req *ModelRequest) streamEnd {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	model, in := r.settings.model, &intake{r: r, ctx: r.ctx}
	in.watch = idleWatch{began: r.clock.began, run: r.ctx, visit: &in.visit,
		limit: r.cfg.StreamIdleTimeout, grace: r.cfg.StopTimeout, cancel: cancel}
	in.watch.start()
	_, err := encloseUntil(r.fence, &in.visit, in.watch.late, func() (struct{}, error) {
		seq := model.Stream(ctx, *req)
		if seq == nil {
			return struct{}{}, errNilStream
		}
		// Called, not ranged over: a yield that comes too late is refused, not a panic.
		seq(func(ev StreamEvent, err error) bool { return in.yield(&ev, err) })
		return struct{}{}, nil
	})
	idle := in.watch.stop()
	in.visit.end() // a goroutine of the model may still yield
	switch crash, crashed := err.(*PanicError); {
	case in.raced.Load():
		return streamEnd{err: errRaced}
	case in.end.over():
		return in.end
	case crashed:
		return streamEnd{err: &Error{Kind: KindPanic, Op: "model", Err: crash}}
	case idle && !r.stopped():
		return streamEnd{err: errStreamIdle}
	case err == errNilStream:
		return streamEnd{err: errNilStream}
	}
	return in.end
}

// yield takes one increment in. It reports whether more should come.
func (in *intake) yield(ev *StreamEvent, err error) bool {
	var failure *Error
	if err != nil { // looked at before the run depends on it: its methods are the model's
		failure = asError(in.ctx, "model", err, KindProvider)
	} else {
		failure = known(ev.Type)
	}
	if ok, raced := in.visit.enter(); !ok {
		if raced {
			in.raced.Store(true)
		}
		return false
	}
	defer in.leave(in.r.seq)
	if in.end.over() || in.r.stopped() || in.watch.idle.Load() {
		return false
	}
	if failure == nil {
		failure = in.r.take(ev)
	}
	if failure == nil && ev.Type != StreamEventDone {
		return true
	}
	in.end = streamEnd{done: failure == nil, reason: ev.StopReason, raw: ev.RawStopReason, err: failure}
	in.watch.finish()
	return false
}

// leave goes back to the model, once the run has taken an increment in. Events that came of it,
// those behind seq, have taken the time already.
func (in *intake) leave(seq uint64) {
	if in.r.seq == seq {
		in.r.clock.read()
	}
	in.visit.leave(in.r.clock.passed)
}

// take adds one increment to the message.
func (r *run) take(ev *StreamEvent) *Error {
	p := r.call.partial
	p.apply(ev)
	if len(p.blocks) > maxBlocks {
		return &Error{Kind: KindLimit, Op: "model", Err: errTooManyBlocks}
	}
	return nil
}

// maxBlocks bounds the blocks of one message, each of which every snapshot lists.
const maxBlocks = 4096

var errTooManyBlocks = errors.New("the message has more blocks than anyone can use")
