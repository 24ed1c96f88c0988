package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"
)

const (
	wireChunks = 10_000
	wireModel  = "m-test"
	wirePiece  = 16 << 10 // what the server writes at once
)

// wireDelta is the text of chunk i.
func wireDelta(i int) string { return fmt.Sprintf(" w%03d", i%1000) }

// wireBody is a stream of chunks as the larger endpoints send them, and the text in it.
func wireBody(chunks int) (body []byte, text string) {
	var b, t strings.Builder
	for i := range chunks {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-0123456789abcdefghijklmnopqrs","object":"chat.completion.chunk","created":1700000000,"model":"m-test","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n", wireDelta(i))
		t.WriteString(wireDelta(i))
	}
	b.WriteString(`data: {"id":"chatcmpl-0123456789abcdefghijklmnopqrs","object":"chat.completion.chunk","created":1700000000,"model":"m-test","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	return []byte(b.String()), t.String()
}

// serve starts a server on loopback that answers every question with the body.
func (b *bench) serve(body []byte) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for rest := body; len(rest) > 0; {
			n := min(len(rest), wirePiece)
			if _, err := w.Write(rest[:n]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	}))
	b.closers = append(b.closers, s.Close)
	return s
}

// wireRaces is one stream from one server through everything that reads such streams.
func wireRaces(b *bench) []race {
	n := b.size(wireChunks)
	body, text := wireBody(n)
	s := b.serve(body)
	whole := Done{Deltas: n, Bytes: len(text), Turns: 1, Text: text}
	bare := whole
	bare.Text = ""
	r := race{name: "wire"}
	for _, lib := range libraries() {
		if lib.Wire != nil {
			r.programs = append(r.programs, program{lib.Name, n, lib.Wire(s.URL, s.Client()), whole})
		}
	}
	r.programs = append(r.programs,
		program{"goopenai", n, goOpenAIRun(s), bare},
		program{"goopenai_raw", n, goOpenAIRawRun(s), Done{Deltas: n, Bytes: rawBytes(body), Turns: 1}},
		program{"openaigo", n, openAIGoRun(s), bare},
	)
	return []race{r}
}

// rawBytes is the length of all frames of text in the body.
func rawBytes(body []byte) int {
	n := 0
	for line := range strings.Lines(string(body)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"content"`) {
			n += len(data) - len("\n")
		}
	}
	return n
}

func goOpenAIStream(ctx context.Context, client *goopenai.Client) (*goopenai.ChatCompletionStream, error) {
	return client.CreateChatCompletionStream(ctx, goopenai.ChatCompletionRequest{
		Model: wireModel, Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "hi"}},
	})
}

func goOpenAIClient(s *httptest.Server) *goopenai.Client {
	conf := goopenai.DefaultConfig("none")
	conf.BaseURL, conf.HTTPClient = s.URL, s.Client()
	return goopenai.NewClientWithConfig(conf)
}

// goOpenAIRun is the bare loop of go-openai over Recv.
func goOpenAIRun(s *httptest.Server) Run {
	client := goOpenAIClient(s)
	return func(ctx context.Context) (Done, error) {
		stream, err := goOpenAIStream(ctx, client)
		if err != nil {
			return Done{}, err
		}
		defer stream.Close()
		done := Done{Turns: 1}
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return done, nil
			}
			if err != nil {
				return Done{}, err
			}
			if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
				done.Deltas++
				done.Bytes += len(chunk.Choices[0].Delta.Content)
			}
		}
	}
}

// goOpenAIRawRun is the loop of go-openai over RecvRaw, which decodes nothing: the floor of a
// reader that uses the client.
func goOpenAIRawRun(s *httptest.Server) Run {
	client := goOpenAIClient(s)
	return func(ctx context.Context) (Done, error) {
		stream, err := goOpenAIStream(ctx, client)
		if err != nil {
			return Done{}, err
		}
		defer stream.Close()
		done := Done{Turns: 1}
		last := 0
		for {
			frame, err := stream.RecvRaw()
			if errors.Is(err, io.EOF) { // the frame before was the finish reason
				done.Deltas--
				done.Bytes -= last
				return done, nil
			}
			if err != nil {
				return Done{}, err
			}
			last = len(frame)
			done.Deltas++
			done.Bytes += last
		}
	}
}

// openAIGoRun is the bare loop of openai-go.
func openAIGoRun(s *httptest.Server) Run {
	client := openaigo.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey("none"), option.WithHTTPClient(s.Client()))
	return func(ctx context.Context) (Done, error) {
		stream := client.Chat.Completions.NewStreaming(ctx, openaigo.ChatCompletionNewParams{
			Model: wireModel, Messages: []openaigo.ChatCompletionMessageParamUnion{openaigo.UserMessage("hi")},
		})
		defer stream.Close()
		done := Done{Turns: 1}
		for stream.Next() {
			if chunk := stream.Current(); len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
				done.Deltas++
				done.Bytes += len(chunk.Choices[0].Delta.Content)
			}
		}
		return done, stream.Err()
	}
}

func wireFigures(_ *bench, res results) ([]figure, error) {
	return []figure{
		report("wire_ours", res.of("wire/ours", nanoseconds), nanos),
		report("wire_goopenai_recv", res.of("wire/goopenai", nanoseconds), nanos),
		report("wire_goopenai_recvraw", res.of("wire/goopenai_raw", nanoseconds), nanos),
		report("wire_openaigo", res.of("wire/openaigo", nanoseconds), nanos),
		report("wire_fantasy", res.of("wire/fantasy", nanoseconds), nanos),
		most("wire_ours_over_goopenai", res.ratio("wire/ours", "wire/goopenai"), 0.35, ratio),
		report("wire_ours_over_openaigo", res.ratio("wire/ours", "wire/openaigo"), ratio),
		report("wire_ours_over_recvraw", res.ratio("wire/ours", "wire/goopenai_raw"), ratio),
		least("wire_fantasy_over_ours", res.ratio("wire/fantasy", "wire/ours"), 10, ratio),
		// The adapter's frames come from its filter, so that the target is 4.
		most("wire_allocations_per_chunk", res.of("wire/ours", allocations), 4, allocs),
		report("wire_goopenai_allocations_per_chunk", res.of("wire/goopenai", allocations), allocs),
		report("wire_openaigo_allocations_per_chunk", res.of("wire/openaigo", allocations), allocs),
		report("wire_fantasy_allocations_per_chunk", res.of("wire/fantasy", allocations), allocs),
	}, nil
}
