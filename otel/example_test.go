package otel_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/otel"
)

// The spans of a run with one call. A program gives its own TracerProvider and MeterProvider.
func Example() {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := otel.New(otel.Config{TracerProvider: provider})
	if err != nil {
		panic(err)
	}
	add := agentkernel.MustTool("add", "Adds two numbers.", func(_ context.Context, in struct{ A, B int }) (string, error) {
		return fmt.Sprint(in.A + in.B), nil
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("1", "add", `{"A":2,"B":3}`), agenttest.Text("It is 5.")),
		Tools: []agentkernel.Tool{add},
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	stop := observer.Subscribe(ctx, agent, otel.Identity{Name: "calculator", Provider: "openai", Model: "gpt-4o"})
	defer stop()
	_, _ = agent.Run(ctx, "What is 2 + 3?")
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.SpanKind, span.Name)
	}
	// Output:
	// client chat gpt-4o
	// internal execute_tool add
	// client chat gpt-4o
	// internal invoke_agent calculator
}
