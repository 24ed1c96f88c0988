package otel

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
)

// toolType is the type of all of the kernel's tools.
const toolType = "function"

// call is a tool call that has not ended.
type call struct {
	id    string
	began time.Time
	ctx   context.Context
	span  trace.Span
	args  json.RawMessage
	asked bool // a child run of it was seen
	errand
}

func (r *run) startCall(ev *agentkernel.Event, at time.Time) *call {
	c := &call{id: ev.ToolID, began: at, args: ev.Args}
	o := r.stream.observer
	attrs := append(r.common(semconv.GenAIOperationNameExecuteTool),
		semconv.GenAIToolType(toolType), attribute.Int("agentkernel.turn", ev.Turn))
	attrs = appendText(attrs, semconv.GenAIToolNameKey, ev.Tool)
	attrs = appendText(attrs, semconv.GenAIToolCallIDKey, ev.ToolID)
	c.ctx, c.span = o.tracer.Start(r.ctx, spanName("execute_tool", ev.Tool),
		trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	if o.cfg.CaptureContent {
		c.span.SetAttributes(o.textAttribute(semconv.GenAIToolCallArgumentsKey, string(ev.Args)))
	}
	r.calls = append(r.calls, c)
	return c
}

func (r *run) endCall(ev *agentkernel.Event) {
	i := slices.IndexFunc(r.calls, func(c *call) bool { return c.id == ev.ToolID })
	if i < 0 { // its beginning was missed
		r.startCall(ev, r.since(ev))
		i = len(r.calls) - 1
	}
	c := r.calls[i]
	r.calls = slices.Delete(r.calls, i, i+1)
	for _, child := range slices.Clone(r.children) {
		if child.caller == c { // it was left behind
			child.abandon(ev.Time)
		}
	}
	result := ev.Result
	if result == nil {
		result = &agentkernel.ToolResult{IsError: ev.IsError}
	}
	o := r.stream.observer
	o.resultAttributes(c.span, result, ev.Time)
	r.claim(c, result)
	failed := failureIn(*result)
	o.mark(c.span, failed)

	tool := ev.Tool
	if result.Cause == agentkernel.ToolUnknown {
		tool = other
	}
	labels := []attribute.KeyValue{semconv.GenAIToolName(tool), semconv.GenAIToolType(toolType)}
	labels = appendText(labels, semconv.GenAIAgentNameKey, r.who.Name)
	o.meters.toolDuration.Record(c.ctx, seconds(took(ev.Duration, c.began, ev.Time)), failed.labels(labels))
	if !c.asked { // by a sub-agent that nobody saw
		o.meters.countTokens(c.ctx, result.Usage,
			[]attribute.KeyValue{semconv.GenAIOperationNameInvokeAgent, Identity{}.provider()})
	}
	o.meters.countError(c.ctx, semconv.GenAIOperationNameExecuteTool, failed)
	c.span.End(trace.WithTimestamp(ev.Time))
}

func (o *Observer) resultAttributes(span trace.Span, result *agentkernel.ToolResult, at time.Time) {
	attrs := appendText(nil, "agentkernel.tool.cause", string(result.Cause))
	if result.Usage != nil {
		attrs = appendUsage(attrs, result.Usage)
	}
	if o.cfg.CaptureContent {
		attrs = append(attrs, o.textAttribute(semconv.GenAIToolCallResultKey, result.TextContent()))
	}
	span.SetAttributes(attrs...)
	if result.Stack != "" {
		span.AddEvent(semconv.ExceptionEventName, trace.WithTimestamp(at), trace.WithAttributes(
			semconv.ExceptionType("panic"), semconv.ExceptionStacktrace(result.Stack)))
	}
}
