package otel

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
)

// other is the conventions' value for what has no name of few values.
const other = "_OTHER"

// failure is how something failed; without kind it did not.
type failure struct{ kind, text string }

func failureOf(err error) failure {
	if err == nil {
		return failure{}
	}
	if e, ok := errors.AsType[*agentkernel.Error](err); ok && e != nil {
		return failure{string(e.Kind), err.Error()}
	}
	return failure{other, err.Error()}
}

// failureIn is the failure that an answer or a result tells of.
func failureIn[T agentkernel.Message | agentkernel.ToolResult](v T) failure {
	switch v := any(v).(type) {
	case agentkernel.Message:
		switch v.StopReason {
		case agentkernel.StopReasonAborted:
			return failure{string(agentkernel.KindCanceled), "the answer was cut off"}
		case agentkernel.StopReasonError:
			return failure{string(agentkernel.KindProvider), "the answer ended with an error"}
		}
	case agentkernel.ToolResult:
		switch {
		case v.IsError && v.Cause == "":
			return failure{other, ""}
		case v.IsError:
			return failure{string(v.Cause), ""}
		}
	}
	return failure{}
}

// mark shows the failure on a span: its text, which may quote what was said, only where
// content is recorded.
func (o *Observer) mark(span trace.Span, f failure) {
	if f.kind == "" {
		return
	}
	text := f.kind
	if o.cfg.CaptureContent && f.text != "" {
		text = o.bounded(f.text)
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(f.kind))
	span.SetStatus(codes.Error, text)
}

// labels are those of a metric, with the failure. The slice stays as it is.
func (f failure) labels(labels []attribute.KeyValue) metric.MeasurementOption {
	if f.kind != "" {
		labels = append(labels[:len(labels):len(labels)], semconv.ErrorTypeKey.String(f.kind))
	}
	return metric.WithAttributeSet(attribute.NewSet(labels...))
}

func (who Identity) provider() attribute.KeyValue {
	if who.Provider == "" {
		return semconv.GenAIProviderNameKey.String("unknown")
	}
	return semconv.GenAIProviderNameKey.String(who.Provider)
}

func runID(id string) attribute.KeyValue { return attribute.String("agentkernel.run.id", id) }

func attemptOf(ev *agentkernel.Event) attribute.KeyValue {
	return attribute.Int("agentkernel.attempt", ev.Attempt)
}

func spanName(operation, of string) string {
	if of == "" {
		return operation
	}
	return operation + " " + of
}

// appendText adds an attribute, unless it is empty.
func appendText(attrs []attribute.KeyValue, key attribute.Key, value string) []attribute.KeyValue {
	if value == "" {
		return attrs
	}
	return append(attrs, key.String(value))
}

// appendUsage adds what was counted; parts that are nothing are left out.
func appendUsage(attrs []attribute.KeyValue, u *agentkernel.Usage) []attribute.KeyValue {
	if u == nil {
		return attrs
	}
	attrs = append(attrs, semconv.GenAIUsageInputTokens(u.Input), semconv.GenAIUsageOutputTokens(u.Output))
	for _, part := range []attribute.KeyValue{
		semconv.GenAIUsageCacheReadInputTokens(u.CacheRead),
		semconv.GenAIUsageCacheCreationInputTokens(u.CacheWrite),
		semconv.GenAIUsageReasoningOutputTokens(u.Reasoning),
	} {
		if part.Value.AsInt64() != 0 {
			attrs = append(attrs, part)
		}
	}
	return attrs
}
