package agentkernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// modelCall is one call of the model: the attempts that it takes.
type modelCall struct {
	attempt int
	asked   time.Time
	partial *partial
	// open tells that MessageStart was emitted and nothing closed the message yet.
	open bool

	failures  int  // attempts that the model in use has failed
	empties   int  // attempts that came to nothing
	recovered bool // the history was made smaller for this call
	prepared  bool
	// unprepared are the turn's settings before Prepare changed them.
	unprepared settings
	fallbacks  []ChatModel // those that have not been asked yet
}

// answer is an assistant message whose calls and ModelResponse are open.
type answer struct {
	message *Message
	// shown is the copy of message that the events share. Once it was handed out the run looks
	// into it no more: a listener that writes into it reaches neither the run nor the history.
	shown   AgentMessage
	calls   []ToolCall
	args    []json.RawMessage // those of the calls as the events show them
	running []*callRun        // the calls while they are worked on
	results []ToolResult      // those that stand in the history
	asked   time.Time
	// old: the message stands in the history that the run was given.
	old bool
	// terminated: a call that was executed in an earlier run asked to end it.
	terminated bool
	suspended  []Suspension // the calls that are left to a later run
}

// openAnswer returns the answer m, of which those calls are open.
func openAnswer(m *Message, calls []ToolCall, asked time.Time) *answer {
	a := &answer{message: m, shown: m.boxedClone(), calls: calls, asked: asked}
	if len(calls) == 0 {
		return a
	}
	shown, _ := ownMessage(a.shown)
	blocks := shown.Content
	a.args = make([]json.RawMessage, len(calls))
	for i, call := range calls {
		for blocks[0].ToolCall == nil || blocks[0].ToolCall.ID != call.ID { // text, or answered before
			blocks = blocks[1:]
		}
		a.args[i] = blocks[0].ToolCall.Args
	}
	return a
}

func (a *answer) terminate() bool {
	if a.terminated {
		return true
	}
	for _, r := range a.results {
		if r.Terminate {
			return true
		}
	}
	return false
}

// askModel begins a model call.
func (r *run) askModel() step {
	if r.stopped() {
		return (*run).stop
	}
	if err := r.overBudget(); err != nil {
		return r.fail(err)
	}
	r.asked++
	r.call = modelCall{fallbacks: r.cfg.Fallbacks}
	return (*run).project
}

// attempt asks the model once.
func (r *run) attempt() step {
	if r.stopped() {
		return (*run).stop
	}
	messages, err := r.view()
	switch {
	case r.stopped():
		return (*run).stop
	case err != nil:
		return r.fail(hookError("ConvertToLLM", err))
	}
	return r.settle(r.stream(r.openAttempt(messages)))
}

// openAttempt opens an attempt with messages, and returns what the model is asked. It is a function
// of its own since a run waits for its model above the caller's frame, thousands of them at once,
// and an event is large.
func (r *run) openAttempt(messages []Message) *ModelRequest {
	req := r.request(messages)
	r.call.attempt++
	r.call.asked = time.Now()
	r.call.partial = r.written.begin(r)
	r.emit(Event{Type: EventModelRequest, Attempt: r.call.attempt, Request: new(req)})
	return &req // not what the event carries, which a listener may write into
}

// hookError is the end of a run whose hook failed.
func hookError(name string, err error) *Error {
	if p, ok := err.(*PanicError); ok {
		return &Error{Kind: KindPanic, Op: "hook " + name, Err: p}
	}
	return &Error{Kind: KindHook, Op: "hook " + name, Err: err}
}

func (r *run) taken(id string) bool {
	_, ok := r.ids[id]
	return ok
}

// update emits a change of the message, and MessageStart before the first.
func (r *run) update(g growth) {
	p := r.call.partial
	r.openMessage()
	m := p.boxed()
	ev := r.draft()
	ev.Attempt, ev.Message = r.call.attempt, m
	ev.Delta, ev.ContentIndex = g.delta, g.index
	if ev.DeltaKind != g.kind {
		ev.DeltaKind, ev.ToolID, ev.Tool = g.kind, "", ""
	}
	if g.call != nil {
		if name := g.call.shownName(); ev.ToolID != g.call.id || ev.Tool != name {
			ev.ToolID, ev.Tool = g.call.id, name
		}
	}
	r.send(ev)
}

func (r *run) openMessage() {
	if !r.call.open {
		r.call.open = true
		r.emit(Event{Type: EventMessageStart, Attempt: r.call.attempt, Message: r.call.partial.boxed()})
	}
}

// settle decides what an attempt came to.
func (r *run) settle(end streamEnd) step {
	switch {
	case end.done && r.isEmpty(end) && r.call.empties < r.cfg.MaxEmptyRetries && !r.stopped():
		r.call.empties++
		r.discardMessage(errEmpty)
		return r.retryAfter(errEmpty, 0)
	case end.done:
		return r.finishMessage(end)
	case r.stopped():
		return r.abortMessage()
	case end.err == nil:
		end.err = errTruncated
	}
	r.discardMessage(end.err)
	return r.retry(end.err)
}

// errEmpty is why an attempt is taken back whose answer holds nothing.
var errEmpty = &Error{Kind: KindProvider, Op: "model", Retryable: true, Err: errors.New("the answer is empty")}

// isEmpty tells whether a finished answer holds neither text nor calls, without a reason.
func (r *run) isEmpty(end streamEnd) bool {
	p := r.call.partial
	if len(p.calls) > 0 || stopReason(end.reason, false) != StopReasonStop {
		return false
	}
	return !slices.ContainsFunc(p.blocks, func(b growing) bool {
		return b.kind == ContentText && (b.text.Len() > 0 || b.tail != "")
	})
}

// finishMessage ends the assistant's message as the model meant it.
func (r *run) finishMessage(end streamEnd) step {
	p := r.call.partial
	p.settle()
	r.openMessage()
	return r.answered(p.finished(end.reason, end.raw))
}

// abortMessage ends the assistant's message where it was stopped, if it showed anything.
func (r *run) abortMessage() step {
	p := r.call.partial
	if !r.call.open {
		r.closeMessage()
		return (*run).stop
	}
	return r.answered(p.aborted())
}

// answered puts the assistant's message into the history and turns to its calls.
func (r *run) answered(m *Message) step {
	took := time.Since(r.call.asked)
	boxed := inPlace(m)
	if !r.commit(boxed) {
		r.discardMessage(r.err)
		return nil
	}
	attempt, asked := r.call.attempt, r.call.asked
	r.call, r.written = modelCall{}, partial{}
	r.answer = openAnswer(m, m.ToolCalls(), asked)
	for _, c := range r.answer.calls {
		r.ids[c.ID] = struct{}{}
	}
	r.endMessage(Event{Attempt: attempt, Message: r.answer.shown, Duration: took}, boxed)
	return (*run).runTools
}

// discardMessage takes back what a failed attempt showed. An attempt that showed nothing
// but counted tokens is opened first, so that they are not lost.
func (r *run) discardMessage(err error) {
	p := r.call.partial
	if p == nil {
		return
	}
	if p.usage != nil {
		r.openMessage()
	}
	if r.call.open {
		r.call.open = false
		r.emit(Event{Type: EventMessageDiscard, Attempt: r.call.attempt, Message: inPlace(p.discarded()), Err: err})
	}
	r.call.partial, r.written = nil, partial{}
}

// closeMessage discards the message that the end of the run finds open.
func (r *run) closeMessage() {
	err := error(r.err)
	if r.err == nil {
		err = stopError(r.ctx)
	}
	r.discardMessage(err)
}

// known refuses an event of a type that there is not.
func known(of StreamEventType) *Error {
	switch of {
	case StreamEventTextDelta, StreamEventThinkingDelta, StreamEventToolCallDelta, StreamEventUsage, StreamEventDone:
		return nil
	}
	return &Error{Kind: KindProtocol, Op: "model", Err: fmt.Errorf("unknown stream event %q", of)}
}
