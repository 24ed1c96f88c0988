package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
)

// chat is an attempt to get an answer that has not ended.
type chat struct {
	ctx   context.Context
	span  trace.Span
	model string // that was asked
	began time.Time
	first time.Duration // until the first content; negative before it
}

// ask begins an attempt.
func (r *run) ask(ev *agentkernel.Event) {
	if r.chat != nil { // its end was missed
		abandonSpan(r.chat.span, ev.Time)
	}
	r.startChat(ev, ev.Time)
	if req := ev.Request; req != nil {
		r.chat.span.SetAttributes(r.stream.observer.requestAttributes(r.chat.span, req)...)
	}
}

func (r *run) startChat(ev *agentkernel.Event, at time.Time) {
	c := &chat{model: r.model, began: at, first: -1}
	attrs := append(r.common(semconv.GenAIOperationNameChat), semconv.GenAIRequestStream(true),
		attribute.Int("agentkernel.turn", ev.Turn), attemptOf(ev))
	attrs = appendText(attrs, semconv.GenAIRequestModelKey, c.model)
	c.ctx, c.span = r.stream.observer.tracer.Start(r.ctx, spanName("chat", c.model),
		trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	r.chat = c
}

// firstContent is the first that a model said of an answer.
func (r *run) firstContent(ev *agentkernel.Event) {
	if c := r.chat; c != nil && ev.Attempt > 0 && c.first < 0 {
		c.first = max(ev.Time.Sub(c.began), 0)
		c.span.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(c.first.Seconds()))
	}
}

// answered ends an attempt that brought a message. Other messages pass.
func (r *run) answered(ev *agentkernel.Event) {
	m, ok := ev.Message.(agentkernel.Message)
	if !ok || ev.Attempt == 0 {
		return
	}
	if r.parent != nil {
		r.answer = m.TextContent()
	}
	if r.chat == nil { // its beginning was missed
		r.startChat(ev, r.since(ev))
	}
	if o := r.stream.observer; o.cfg.CaptureContent && r.chat.span.IsRecording() {
		r.chat.span.SetAttributes(o.outputAttributes(m)...)
	}
	r.endChat(ev.Time, ev.Duration, &m, failureIn(m))
}

// discarded ends an attempt whose message never happened.
func (r *run) discarded(ev *agentkernel.Event) {
	if r.chat == nil {
		r.startChat(ev, ev.Time)
	}
	failed := failureOf(ev.Err)
	r.chat.span.AddEvent("agentkernel.discard", trace.WithTimestamp(ev.Time),
		trace.WithAttributes(semconv.ErrorTypeKey.String(failed.kind)))
	partial, _ := ev.Message.(agentkernel.Message)
	r.endChat(ev.Time, 0, &partial, failed)
}

// endChat ends the attempt that is open; m is nil where it brought nothing.
func (r *run) endChat(at time.Time, measured time.Duration, m *agentkernel.Message, failed failure) {
	c, o := r.chat, &r.stream.observer.meters
	r.chat = nil
	labels := []attribute.KeyValue{semconv.GenAIOperationNameChat, r.who.provider()}
	labels = appendText(labels, semconv.GenAIRequestModelKey, c.model)
	if m != nil {
		labels = appendText(labels, semconv.GenAIResponseModelKey, m.Model)
		attrs := appendText(nil, semconv.GenAIResponseModelKey, m.Model)
		if m.StopReason != "" {
			attrs = append(attrs, semconv.GenAIResponseFinishReasons(string(m.StopReason)))
		}
		c.span.SetAttributes(appendUsage(attrs, m.Usage)...)
		o.countTokens(c.ctx, m.Usage, labels)
	}
	r.stream.observer.mark(c.span, failed)
	o.chatDuration.Record(c.ctx, seconds(took(measured, c.began, at)), failed.labels(labels))
	if c.first >= 0 {
		o.firstChunk.Record(c.ctx, c.first.Seconds(), failure{}.labels(labels))
	}
	o.countError(c.ctx, semconv.GenAIOperationNameChat, failed)
	c.span.End(trace.WithTimestamp(at))
}
