package otel_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/otel"
)

// TestBlockOfThePage runs the lines with which a page of docs shows this package.
func TestBlockOfThePage(t *testing.T) {
	ctx, spans := t.Context(), tracetest.NewInMemoryExporter()
	tp, mp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), sdkmetric.NewMeterProvider()
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello"))})
	require.NoError(t, err)
	func() {
		observer, err := otel.New(otel.Config{TracerProvider: tp, MeterProvider: mp})
		defer observer.Subscribe(ctx, agent, otel.Identity{Name: "helper", Provider: "openai", Model: "gpt-4o"})()

		require.NoError(t, err)
		_, err = agent.Run(ctx, "hi")
		require.NoError(t, err)
	}()
	require.Len(t, spans.GetSpans(), 2)
}

// TestPagesShowWhatRuns: each block of a page that begins with this package stands, line by
// line, in the test above.
func TestPagesShowWhatRuns(t *testing.T) {
	source, err := os.ReadFile("page_test.go")
	require.NoError(t, err)
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	blocks := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("(?ms)^```go\n(observer, err := otel\\.New\\(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			blocks++
			var want strings.Builder
			for line := range strings.Lines(m[1]) {
				want.WriteString("\t\t" + line)
			}
			require.Contains(t, string(source), "{\n"+want.String()+"\n", page)
		}
	}
	require.Positive(t, blocks)
}
