package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/agentkernel-go/agentkernel"
)

// The bounds of the histograms, as the conventions advise.
var (
	tokenBounds      = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	operationBounds  = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	invocationBounds = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
)

// instruments are what is measured.
type instruments struct {
	tokens        metric.Int64Histogram
	chatDuration  metric.Float64Histogram
	firstChunk    metric.Float64Histogram
	agentDuration metric.Float64Histogram
	toolDuration  metric.Float64Histogram
	errors        metric.Int64Counter
}

func newInstruments(meter metric.Meter) (instruments, error) {
	var errs [6]error
	var m instruments
	duration := func(at int, name, description string, bounds []float64) (h metric.Float64Histogram) {
		h, errs[at] = meter.Float64Histogram(name, metric.WithUnit("s"),
			metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		return h
	}
	m.chatDuration = duration(0, "gen_ai.client.operation.duration", "GenAI operation duration.", operationBounds)
	m.firstChunk = duration(1, "gen_ai.client.operation.time_to_first_chunk", "Time to receive the first chunk.", operationBounds)
	m.agentDuration = duration(2, "gen_ai.invoke_agent.duration", "Duration of a single agent invocation.", invocationBounds)
	m.toolDuration = duration(3, "gen_ai.execute_tool.duration", "Duration of a single tool execution.", operationBounds)
	m.tokens, errs[4] = meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"),
		metric.WithDescription("Number of input and output tokens used."), metric.WithExplicitBucketBoundaries(tokenBounds...))
	m.errors, errs[5] = meter.Int64Counter("agentkernel.errors", metric.WithUnit("{error}"),
		metric.WithDescription("Number of operations that failed."))
	return m, errors.Join(errs[:]...)
}

// countTokens counts what a provider counted, and nothing where it counted nothing.
func (m *instruments) countTokens(ctx context.Context, u *agentkernel.Usage, labels []attribute.KeyValue) {
	if u == nil {
		return
	}
	for _, side := range []struct {
		kind attribute.KeyValue
		n    int
	}{{semconv.GenAITokenTypeInput, u.Input}, {semconv.GenAITokenTypeOutput, u.Output}} {
		if side.n > 0 {
			all := append(labels[:len(labels):len(labels)], side.kind)
			m.tokens.Record(ctx, int64(side.n), metric.WithAttributeSet(attribute.NewSet(all...)))
		}
	}
}

func (m *instruments) countError(ctx context.Context, operation attribute.KeyValue, failed failure) {
	if failed.kind != "" {
		m.errors.Add(ctx, 1, failed.labels([]attribute.KeyValue{operation}))
	}
}
