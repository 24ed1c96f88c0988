package openai

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

const benchChunks = 10_000

// benchStream is a stream of 10,000 chunks as the larger endpoints send them.
func benchStream() *wire {
	var b strings.Builder
	for i := range benchChunks {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-0123456789abcdefghijklmnopqrs","object":"chat.completion.chunk","created":1700000000,"model":"m-test","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" w%03d"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n", i%1000)
	}
	b.WriteString(`data: {"id":"c","model":"m-test","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	w := sse(b.String())
	w.pieces = func(int) int { return 16 << 10 }
	return w
}

// readers are those who read a stream of benchChunks: the kernel through the adapter, the
// adapter alone, and the bare loop of the go-openai client.
func readers(tb testing.TB, s *wireServer) map[string]func() {
	m := s.model(tb, Config{})
	conf := goopenai.DefaultConfig("")
	conf.BaseURL, conf.HTTPClient = s.URL, s.Client()
	client := goopenai.NewClientWithConfig(conf)
	return map[string]func(){
		"kernel": func() {
			updates := 0
			for ev := range agentkernel.AgentLoop(tb.Context(), agentkernel.Config{Model: m}, nil, agentkernel.UserMessage("hi")) {
				if ev.Type == agentkernel.EventMessageUpdate {
					updates++
				}
			}
			require.Equal(tb, benchChunks, updates)
		},
		"adapter": func() {
			for _, err := range m.Stream(tb.Context(), oneQuestion) {
				require.NoError(tb, err)
			}
		},
		"client": func() {
			stream, err := client.CreateChatCompletionStream(tb.Context(), goopenai.ChatCompletionRequest{
				Model: "m-test", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "hi"}},
			})
			require.NoError(tb, err)
			for err == nil {
				_, err = stream.Recv()
			}
			require.ErrorIs(tb, err, io.EOF)
			require.NoError(tb, stream.Close())
		},
	}
}

// BenchmarkStream measures a stream through adapter and kernel, per chunk, against the bare
// loop of the go-openai client on the same server.
func BenchmarkStream(b *testing.B) {
	s := newWireServer(b)
	s.wire.Store(benchStream())
	read := readers(b, s)
	for _, name := range []string{"kernel", "adapter", "client"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read[name]()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchChunks, "ns/chunk")
		})
	}
}

// TestStreamCosts: a chunk through adapter and kernel takes no longer than the client's bare
// loop takes for it, and allocates at most half as often.
func TestStreamCosts(t *testing.T) {
	s := newWireServer(t)
	s.wire.Store(benchStream())
	read := readers(t, s)
	took, allocated := map[string]time.Duration{}, map[string]float64{}
	for range 5 {
		for _, name := range []string{"kernel", "client"} {
			took[name] = min(cmp.Or(took[name], time.Hour), duration(read[name]))
		}
	}
	for _, name := range []string{"kernel", "client"} {
		allocated[name] = testing.AllocsPerRun(1, read[name]) / benchChunks
	}
	t.Logf("time %.2f, allocations %.1f of %.1f", took["kernel"].Seconds()/took["client"].Seconds(), allocated["kernel"], allocated["client"])
	require.LessOrEqual(t, took["kernel"], took["client"])
	require.LessOrEqual(t, allocated["kernel"], allocated["client"]/2)
	require.Less(t, allocated["kernel"], 3.0)
}

func duration(of func()) time.Duration {
	began := time.Now()
	of()
	return time.Since(began)
}
