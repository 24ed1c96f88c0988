package otel

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
)

// run is a run that has not ended, with what is open in it.
type run struct {
	stream   *stream
	id       string
	parentID string
	parent   *run // nil where that one is not known
	began    time.Time
	last     time.Time // of the newest event
	seen     uint64    // events, the merged ones counted

	// From begin on.
	who    Identity
	caller *call // the call that made it, where that is known
	ctx    context.Context
	span   trace.Span

	model    string // that is asked next
	chat     *chat
	calls    []*call
	children []*run
	answer   string // of a child
	// strays are the child runs below it whose call is not known, until that names them.
	strays map[string]trace.SpanContext
}

// ready tells whether the span can begin. A child's waits for its prompt, which tells the
// call that made it.
func (r *run) ready(ev *agentkernel.Event) bool {
	switch ev.Type {
	case agentkernel.EventAgentStart, agentkernel.EventTurnStart, agentkernel.EventContext:
		return r.parent == nil
	}
	return true
}

// begin begins the span, at the time at which the run began.
func (r *run) begin(prompt string) {
	above := r.stream.ctx
	r.who = r.stream.who
	if r.parent != nil {
		var name string
		above = r.parent.ctx
		if r.caller, name = r.parent.callerOf(prompt); r.caller != nil {
			above = r.caller.ctx
			r.caller.asked = true
			r.caller.active++
		}
		r.who = r.stream.observer.subAgent(name)
		r.who.ConversationID = r.parent.who.ConversationID
	}
	r.model = r.who.Model
	attrs := append(r.common(semconv.GenAIOperationNameInvokeAgent), runID(r.id))
	attrs = appendText(attrs, semconv.GenAIRequestModelKey, r.who.Model)
	attrs = appendText(attrs, semconv.GenAIAgentIDKey, r.who.ID)
	attrs = appendText(attrs, semconv.GenAIAgentDescriptionKey, r.who.Description)
	attrs = appendText(attrs, "agentkernel.parent_run.id", r.parentID)
	r.ctx, r.span = r.stream.observer.tracer.Start(above, spanName("invoke_agent", r.who.Name),
		trace.WithTimestamp(r.began), trace.WithAttributes(attrs...))
	if r.parent != nil && r.caller == nil {
		if r.parent.strays == nil {
			r.parent.strays = make(map[string]trace.SpanContext)
		}
		r.parent.strays[r.id] = r.span.SpanContext()
	}
}

// subAgent is what is known of a sub-agent.
func (o *Observer) subAgent(name string) Identity {
	for _, who := range o.cfg.SubAgents {
		if who.Name == name {
			return who
		}
	}
	return Identity{Name: name}
}

// common are the attributes of all spans of the run.
func (r *run) common(operation attribute.KeyValue) []attribute.KeyValue {
	attrs := []attribute.KeyValue{operation, r.who.provider()}
	attrs = appendText(attrs, semconv.GenAIAgentNameKey, r.who.Name)
	return appendText(attrs, semconv.GenAIConversationIDKey, r.who.ConversationID)
}

// take takes in an event of the run.
func (r *run) take(ev *agentkernel.Event) {
	switch ev.Type {
	case agentkernel.EventTurnStart:
		r.model = r.who.Model // a fallback held for one call
	case agentkernel.EventContext:
		r.replaced(ev)
	case agentkernel.EventModelRequest:
		r.ask(ev)
	case agentkernel.EventMessageStart:
		r.firstContent(ev)
	case agentkernel.EventMessageEnd:
		r.answered(ev)
	case agentkernel.EventMessageDiscard:
		r.discarded(ev)
	case agentkernel.EventRetry:
		r.retried(ev)
	case agentkernel.EventToolExecStart:
		r.startCall(ev, ev.Time)
	case agentkernel.EventToolExecUpdate:
		r.rewritten(ev)
	case agentkernel.EventToolExecEnd:
		r.endCall(ev)
	case agentkernel.EventAgentEnd:
		r.end(ev)
	}
}

func (r *run) replaced(ev *agentkernel.Event) {
	if r.span == nil || ev.Context == nil {
		return // a child's own history, before its prompt
	}
	r.span.AddEvent("agentkernel.context", trace.WithTimestamp(ev.Time), trace.WithAttributes(
		attribute.String("agentkernel.context.reason", string(ev.Context.Reason)),
		attribute.Int("agentkernel.context.messages", len(ev.Context.Messages))))
}

func (r *run) retried(ev *agentkernel.Event) {
	failed := failureOf(ev.Err)
	if r.chat != nil { // it failed before its first content
		r.endChat(ev.Time, 0, nil, failed)
	}
	attrs := []attribute.KeyValue{attemptOf(ev), semconv.ErrorTypeKey.String(failed.kind)}
	if info := ev.RetryInfo; info != nil {
		attrs = append(attrs, attribute.Float64("agentkernel.retry.delay", info.Delay.Seconds()))
		attrs = appendText(attrs, "agentkernel.retry.next_model", info.NextModel)
		if info.NextModel != "" {
			r.model = "" // a fallback tells its name when it answers
		}
	}
	r.span.AddEvent("agentkernel.retry", trace.WithTimestamp(ev.Time), trace.WithAttributes(attrs...))
}

// end ends the run with its last event, after everything in it.
func (r *run) end(ev *agentkernel.Event) {
	defer r.stream.forget(r)
	failed := failureOf(ev.Err)
	if r.chat != nil && failed.kind != "" {
		r.endChat(ev.Time, 0, nil, failed) // the run ended while it asked
	}
	r.closeAll(ev.Time)
	attrs := []attribute.KeyValue{}
	if sum := ev.Summary; sum != nil {
		attrs = append(attrs,
			attribute.String("agentkernel.run.end_reason", string(sum.EndReason)),
			attribute.Int("agentkernel.run.turns", sum.TurnCount),
			attribute.Int("agentkernel.run.tool_calls", sum.ToolCalls),
			attribute.Int("agentkernel.run.retries", sum.Retries))
		attrs = appendUsage(attrs, new(sum.Usage.Add(sum.DiscardedUsage)))
	}
	if r.seen < ev.Seq {
		attrs = append(attrs, attribute.Int64("agentkernel.events.missed", int64(ev.Seq-r.seen)))
	}
	r.span.SetAttributes(attrs...)
	r.stream.observer.mark(r.span, failed)

	var labels []attribute.KeyValue
	labels = appendText(labels, semconv.GenAIAgentNameKey, r.who.Name)
	labels = appendText(labels, semconv.GenAIRequestModelKey, r.who.Model)
	m := &r.stream.observer.meters
	m.agentDuration.Record(r.ctx, seconds(took(ev.Duration, r.began, ev.Time)), failed.labels(labels))
	m.countError(r.ctx, semconv.GenAIOperationNameInvokeAgent, failed)
	r.span.End(trace.WithTimestamp(ev.Time))
}

// abandon ends a run whose end will not come.
func (r *run) abandon(at time.Time) {
	defer r.stream.forget(r)
	if r.span == nil {
		r.begin("")
	}
	r.closeAll(at)
	abandonSpan(r.span, at)
}

// closeAll ends what is open in the run.
func (r *run) closeAll(at time.Time) {
	for _, child := range slices.Clone(r.children) {
		child.abandon(at)
	}
	for _, c := range r.calls {
		abandonSpan(c.span, at)
	}
	r.calls = nil
	if r.chat != nil {
		abandonSpan(r.chat.span, at)
		r.chat = nil
	}
}

// abandonSpan ends a span of something whose end was not seen.
func abandonSpan(span trace.Span, at time.Time) {
	span.SetAttributes(attribute.Bool("agentkernel.incomplete", true))
	span.End(trace.WithTimestamp(at))
}

// since is when something began whose beginning was missed: not before the run.
func (r *run) since(ev *agentkernel.Event) time.Time {
	if at := ev.Time.Add(-ev.Duration); at.After(r.began) {
		return at
	}
	return r.began
}

// took is how long something took, as measured or, where it was not, by its events.
func took(measured time.Duration, began, ended time.Time) time.Duration {
	if measured > 0 {
		return measured
	}
	return ended.Sub(began)
}
