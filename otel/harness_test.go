package otel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/otel"
)

// lab is an observer with the SDK's exporters in memory. It counts what begins and ends.
type lab struct {
	*otel.Observer
	tracer trace.Tracer
	spans  *tracetest.InMemoryExporter
	begun  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

func newLab(t testing.TB, cfg otel.Config) *lab {
	t.Helper()
	l := &lab{spans: tracetest.NewInMemoryExporter(), begun: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(l.spans), sdktrace.WithSpanProcessor(l.begun))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(l.reader))
	cfg.TracerProvider, cfg.MeterProvider = tp, mp
	observer, err := otel.New(cfg)
	require.NoError(t, err)
	l.Observer, l.tracer = observer, tp.Tracer("test")
	return l
}

var helper = otel.Identity{Name: "helper", Provider: "openai", Model: "gpt-x", ConversationID: "conv"}

// agent is an observed agent.
func (l *lab) agent(t testing.TB, cfg agentkernel.Config) *agentkernel.Agent {
	t.Helper()
	agent, err := agentkernel.NewAgent(cfg)
	require.NoError(t, err)
	t.Cleanup(l.Subscribe(t.Context(), agent, helper))
	return agent
}

// done returns the spans, all of which have ended.
func (l *lab) done(t testing.TB) tracetest.SpanStubs {
	t.Helper()
	stubs := l.spans.GetSpans()
	require.Len(t, stubs, len(l.begun.Started()), "each span that begins also ends")
	for _, s := range stubs {
		require.False(t, s.EndTime.Before(s.StartTime), "%s ends before it begins", s.Name)
		for _, other := range stubs {
			if s.Parent.SpanID() == other.SpanContext.SpanID() {
				require.False(t, s.StartTime.Before(other.StartTime), "%s begins before %s", s.Name, other.Name)
				require.False(t, s.EndTime.After(other.EndTime), "%s ends after %s", s.Name, other.Name)
			}
		}
	}
	return stubs
}

// tree draws the spans: kind where it is not internal, error, events, and whether it is incomplete.
func (l *lab) tree(t testing.TB) string {
	t.Helper()
	stubs := l.done(t)
	order := make(map[trace.SpanID]int)
	for i, s := range l.begun.Started() {
		order[s.SpanContext().SpanID()] = i
	}
	var b strings.Builder
	var draw func(parent trace.SpanID, depth int)
	draw = func(parent trace.SpanID, depth int) {
		var level tracetest.SpanStubs
		for _, s := range stubs {
			if s.Parent.SpanID() == parent {
				level = append(level, s)
			}
		}
		slices.SortFunc(level, func(a, b tracetest.SpanStub) int {
			return order[a.SpanContext.SpanID()] - order[b.SpanContext.SpanID()]
		})
		for _, s := range level {
			fmt.Fprintf(&b, "%s%s", strings.Repeat("  ", depth), s.Name)
			if s.SpanKind != trace.SpanKindInternal {
				fmt.Fprintf(&b, " (%s)", s.SpanKind)
			}
			if s.Status.Code == codes.Error {
				fmt.Fprintf(&b, " !%s", attr(s, "error.type"))
			}
			if attr(s, "agentkernel.incomplete") != "" {
				b.WriteString(" …")
			}
			for _, e := range s.Events {
				fmt.Fprintf(&b, " [%s]", e.Name)
			}
			b.WriteByte('\n')
			draw(s.SpanContext.SpanID(), depth+1)
		}
	}
	draw(trace.SpanID{}, 0)
	return b.String()
}

// only is the one span of that name.
func (l *lab) only(t testing.TB, name string) tracetest.SpanStub {
	t.Helper()
	var found tracetest.SpanStubs
	for _, s := range l.done(t) {
		if s.Name == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

// attr is an attribute as text, "" where there is none.
func attr(s tracetest.SpanStub, key attribute.Key) string { return text(s.Attributes, key) }

func text(attrs []attribute.KeyValue, key attribute.Key) string {
	for _, kv := range attrs {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// points are the metrics, one line each: name, attributes, count and sum.
func (l *lab) points(t testing.TB) []string {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, l.reader.Collect(context.Background(), &all))
	var lines []string
	add := func(name string, set attribute.Set, values ...any) {
		var labels []string
		for _, kv := range set.ToSlice() {
			labels = append(labels, string(kv.Key)+"="+kv.Value.String())
		}
		lines = append(lines, strings.TrimSuffix(fmt.Sprintln(append([]any{name, strings.Join(labels, ",")}, values...)...), "\n"))
	}
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, otel.ScopeName, scope.Scope.Name)
		require.Equal(t, otel.SchemaURL, scope.Scope.SchemaURL)
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Count, p.Sum)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Count, p.Sum)
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// tool answers with its name.
func tool(name string, run func(ctx context.Context) (agentkernel.ToolResult, error)) agentkernel.Tool {
	if run == nil {
		run = func(context.Context) (agentkernel.ToolResult, error) { return agentkernel.TextResult(name), nil }
	}
	return agentkernel.Tool{
		Name: name, Description: "Tool " + name + ".", Schema: json.RawMessage(`{"type":"object"}`),
		ConcurrencySafe: agentkernel.Always,
		Execute: func(ctx context.Context, _ json.RawMessage) (agentkernel.ToolResult, error) {
			return run(ctx)
		},
	}
}
