package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// filler yields a text over and over, n bytes of it in all, without holding them.
type filler struct {
	text string
	n    int
	at   int
}

// Read implements [io.Reader].
func (f *filler) Read(p []byte) (int, error) {
	if f.n == 0 {
		return 0, io.EOF
	}
	read := 0
	for read < len(p) && f.n > 0 {
		k := copy(p[read:min(len(p), read+f.n)], f.text[f.at:])
		f.at = (f.at + k) % len(f.text)
		f.n -= k
		read += k
	}
	return read, nil
}

// heap tells how much memory is held, and how much was allocated, since it was made.
type heap struct {
	held, allocated uint64
	most            uint64 // that look saw held
}

func newHeap() *heap {
	h := new(heap)
	h.held, h.allocated = h.measure()
	return h
}

func (h *heap) measure() (held, allocated uint64) {
	for range 2 { // what came to be while the first one ran counts as held
		runtime.GC()
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - min(h.held, sample[0].Value.Uint64()), sample[1].Value.Uint64() - h.allocated
}

func (h *heap) look() {
	held, _ := h.measure()
	h.most = max(h.most, held)
}

// looked calls look before each read.
type looked struct {
	io.Reader
	look func()
}

func (l looked) Read(p []byte) (int, error) {
	l.look()
	return l.Reader.Read(p)
}

// largeBodies are bodies most of which is one thing: fill, over and over.
var largeBodies = map[string]struct{ head, fill, tail string }{
	"text in one delta":         {`data: {"choices":[{"delta":{"content":"`, "all work and no play ", `"}}]}` + "\n\n" + aFinish},
	"text with escapes":         {`data: {"choices":[{"delta":{"content":"`, `a line\n\"<b>\u00e4\" `, `"}}]}` + "\n\n" + aFinish},
	"text in many deltas":       {"", aDelta(`"content":"` + strings.Repeat("text ", 2000) + `"`), aFinish},
	"thinking in one delta":     {`data: {"choices":[{"delta":{"reasoning":"`, "hm ", `"}}]}` + "\n\n" + aChunk + aFinish},
	"details of thinking":       {`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"`, "hm ", `"}]}}]}` + "\n\n" + aChunk + aFinish},
	"opaque data of thinking":   {`data: {"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"type":"x","data":"`, "all work ", `"}]}}]}` + "\n\n" + aChunk + aFinish},
	"arguments in one delta":    {aCallOf(`{\"a\":\"`), "all work and no play ", `\"}"}}]}}]}` + "\n\n" + aFinish},
	"arguments in many deltas":  {aCallOf(`{\"a\":\"`) + `"}}]}}]}` + "\n\n", anArgument(strings.Repeat("text ", 2000)), anArgument(`\"}`) + aFinish},
	"arguments that are none":   {aCallOf(`{\"a\":`), "all work and no play ", `"}}]}}]}` + "\n\n" + aFinish},
	"arguments as an object":    {strings.TrimSuffix(aCallOf(""), `"`) + `{"a":"`, "all work ", `"}}}]}}]}` + "\n\n" + aFinish},
	"opaque data of a call":     {aCallOf("{}") + `"},"extra_content":{"x":"`, "all work and no play ", `"}}]}}]}` + "\n\n" + aFinish},
	"a completion":              {`{"choices":[{"message":{"content":"`, "all work and no play ", `"},"finish_reason":"stop"}]}`},
	"an error":                  {`data: {"error":{"message":"`, "all work and no play ", `"}}` + "\n\n"},
	"a comment":                 {": ", "all work and no play ", "\n\n" + aChunk + aFinish},
	"a page":                    {"<html>", "all work and no play ", "</html>"},
	"no JSON":                   {"data: ", "all work and no play ", "\n\n"},
	"a line without end":        {`data: {"choices":[{"delta":{"content":"`, "all work and no play ", ""},
	"an event of several lines": {`data: {"choices":[{"delta":{"content":"x"}}],`, "\"a\":\ndata: 1234567,\ndata: ", "\"b\":1}\n\n" + aFinish},
}

func aDelta(members string) string { return `data: {"choices":[{"delta":{` + members + `}}]}` + "\n\n" }

// aCallOf is the beginning of a frame, up to what the call's arguments begin with.
func aCallOf(args string) string {
	return `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"A","function":{"name":"echo","arguments":"` + args
}

func anArgument(args string) string {
	return aDelta(`"tool_calls":[{"index":0,"function":{"arguments":"` + args + `"}}]`)
}

// allocations are how many times the body a run may allocate in all, where it is more than four:
// what is put together from pieces grows in steps, and of arguments and opaque data history,
// events, state and tool have each their own.
var allocations = map[string]uint64{
	"text in many deltas":      7,
	"details of thinking":      7,
	"opaque data of thinking":  7,
	"opaque data of a call":    7,
	"arguments in one delta":   8,
	"arguments as an object":   8,
	"arguments in many deltas": 11,
	"an error":                 5,
}

// TestMemoryOfLargeBodies: wherever a run waits, for the endpoint or for a tool, and at its
// end, it holds no more than four times what the endpoint sent. What it allocates in all has a
// bound too.
func TestMemoryOfLargeBodies(t *testing.T) {
	const base = 1 << 20 // for what any run takes
	size := 8 << 20
	if raced {
		size = 3 << 20 // each byte takes its time
	}
	for name, body := range largeBodies {
		for _, kind := range []string{"loop", "agent"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				h := newHeap()
				m := inMemory(t, Config{}, roundTrip(func(req *http.Request) (*http.Response, error) {
					fill := &filler{text: body.fill, n: size / len(body.fill) * len(body.fill)}
					src := io.MultiReader(strings.NewReader(body.head), fill, looked{strings.NewReader(body.tail), h.look})
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(src), Request: req, ProtoMajor: 2}, nil
				}))
				cfg := agentkernel.Config{
					Model: m, MaxTurns: 1, Retry: agentkernel.RetryPolicy{MaxRetries: -1},
					Tools: []agentkernel.Tool{{Name: "echo", Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
						h.look()
						runtime.KeepAlive(args)
						return agentkernel.TextResult("ok"), nil
					}}},
				}
				run(t, kind, cfg, h.look)
				_, allocated := h.measure()
				t.Logf("%.2f times the body held, %.2f allocated", float64(h.most)/float64(size), float64(allocated)/float64(size))
				require.Less(t, h.most, uint64(4*size+base), "held")
				if raced {
					return // some of the standard library allocates twice then
				}
				require.Less(t, allocated, cmp.Or(allocations[name], 4)*uint64(size)+base, "allocated")
			})
		}
	}
}

// run makes a run of a loop or of an agent and looks at the memory at its end.
func run(t *testing.T, kind string, cfg agentkernel.Config, look func()) {
	if kind == "agent" {
		agent, err := agentkernel.NewAgent(cfg)
		require.NoError(t, err)
		_, _ = agent.Run(t.Context(), "hi")
		look()
		runtime.KeepAlive(agent)
		return
	}
	for ev := range agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
		if ev.Type == agentkernel.EventAgentEnd {
			look()
			runtime.KeepAlive(ev)
		}
	}
}
