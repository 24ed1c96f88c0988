package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
)

// einoChunks says whether each delta is a message of its own.
type einoChunks bool

const (
	fresh  einoChunks = false // as it must be where deltas differ
	reused einoChunks = true  // one message is sent again and again, which only a benchmark can
)

// einoLibrary is github.com/cloudwego/eino: a ChatModelAgent behind a Runner with streaming,
// whose events and message streams are read to their ends. The model writes from a goroutine of
// its own into a pipe of so many messages, as eino's models do.
func einoLibrary(name string, pipe int, chunks einoChunks) Library {
	of := func(s *einoSource) Run {
		s.pipe, s.chunks = pipe, chunks
		return s.program()
	}
	return Library{
		Name:  name,
		Text:  func(n int, delta string) Run { return of(&einoSource{text: delta, n: n}) },
		Args:  func(pieces []string) Run { return of(&einoSource{args: pieces}) },
		Turns: func(turns, calls int) Run { return of(&einoSource{calls: callIDs(turns, calls)}) },
	}
}

// einoSource is the source in eino's terms: a model without a network, and its tool.
type einoSource struct {
	pipe   int
	chunks einoChunks

	text  string
	n     int
	args  []string
	calls [][]string

	turns, called int64
	got           atomic.Pointer[string] // the arguments that the tool got last
}

// Stream implements [model.ToolCallingChatModel].
func (s *einoSource) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	turn := int(s.turns)
	s.turns++
	switch {
	case s.n > 0:
		return s.stream(s.sendText), nil
	case turn == 0 && s.args != nil:
		return s.stream(s.sendArgs), nil
	case turn < len(s.calls):
		// One chunk needs neither pipe nor goroutine.
		return schema.StreamReaderFromArray([]*schema.Message{schema.AssistantMessage("", einoCalls(s.calls[turn]))}), nil
	}
	return schema.StreamReaderFromArray([]*schema.Message{schema.AssistantMessage(answer, nil)}), nil
}

// stream returns what send sends. The goroutine ends when all is sent, or the reader is gone.
func (s *einoSource) stream(send func(*schema.StreamWriter[*schema.Message])) *schema.StreamReader[*schema.Message] {
	r, w := schema.Pipe[*schema.Message](s.pipe)
	go func() {
		defer w.Close()
		send(w)
	}()
	return r
}

func (s *einoSource) sendText(w *schema.StreamWriter[*schema.Message]) {
	m := schema.AssistantMessage(s.text, nil)
	for range s.n {
		if s.chunks == fresh {
			m = schema.AssistantMessage(s.text, nil)
		}
		if w.Send(m, nil) {
			return
		}
	}
}

func (s *einoSource) sendArgs(w *schema.StreamWriter[*schema.Message]) {
	index := 0
	call := schema.ToolCall{Index: &index, ID: "call_0", Type: "function", Function: schema.FunctionCall{Name: noopName}}
	for _, call.Function.Arguments = range s.args {
		if w.Send(schema.AssistantMessage("", []schema.ToolCall{call}), nil) {
			return
		}
		call.ID, call.Type, call.Function.Name = "", "", ""
	}
}

func einoCalls(ids []string) []schema.ToolCall {
	calls := make([]schema.ToolCall, len(ids))
	for i, id := range ids {
		calls[i] = schema.ToolCall{Index: &i, ID: id, Type: "function", Function: schema.FunctionCall{Name: noopName, Arguments: "{}"}}
	}
	return calls
}

// Generate implements [model.ToolCallingChatModel].
func (s *einoSource) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	return nil, errUnused
}

// WithTools implements [model.ToolCallingChatModel].
func (s *einoSource) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return s, nil }

// Info implements [tool.InvokableTool].
func (s *einoSource) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: noopName, Desc: "does nothing"}, nil
}

// InvokableRun implements [tool.InvokableTool]. The calls of a turn may come at once.
func (s *einoSource) InvokableRun(_ context.Context, args string, _ ...tool.Option) (string, error) {
	atomic.AddInt64(&s.called, 1)
	s.got.Store(&args)
	return answer, nil
}

// program is a run of one agent, the same for all runs. Where no call will come it has no tool,
// since eino then takes a shorter way.
func (s *einoSource) program() Run {
	conf := &adk.ChatModelAgentConfig{Name: "bench", Description: "bench", Model: s, MaxIterations: 1 << 20}
	if s.n == 0 {
		conf.ToolsConfig.Tools = []tool.BaseTool{s}
	}
	agent, err := adk.NewChatModelAgent(context.Background(), conf)
	if err != nil {
		return failed(err)
	}
	runner := adk.NewRunner(context.Background(), adk.RunnerConfig{Agent: agent, EnableStreaming: true})
	return func(ctx context.Context) (Done, error) {
		s.turns, s.called = 0, 0
		s.got.Store(nil)
		var done Done
		events := runner.Query(ctx, "hi")
		for {
			ev, ok := events.Next()
			if !ok {
				break
			}
			if ev.Err != nil {
				return Done{}, ev.Err
			}
			if err := einoRead(ev, &done); err != nil {
				return Done{}, err
			}
		}
		done.Turns, done.Calls = int(s.turns), int(atomic.LoadInt64(&s.called))
		if args := s.got.Load(); args != nil {
			done.Args = *args
		}
		return done, nil
	}
}

// einoRead reads the message of an event to its end. An assistant's text becomes that of done.
func einoRead(ev *adk.AgentEvent, done *Done) error {
	if ev.Output == nil || ev.Output.MessageOutput == nil {
		return nil
	}
	out := ev.Output.MessageOutput
	if !out.IsStreaming || out.Role != schema.Assistant {
		return nil
	}
	defer out.MessageStream.Close()
	var text strings.Builder
	for {
		m, err := out.MessageStream.Recv()
		if errors.Is(err, io.EOF) {
			done.Text = text.String()
			return nil
		}
		if err != nil {
			return err
		}
		if m.Content != "" {
			done.Deltas++
			done.Bytes += len(m.Content)
			text.WriteString(m.Content)
		}
		for i := range m.ToolCalls {
			done.Deltas++
			done.Bytes += len(m.ToolCalls[i].Function.Arguments)
		}
	}
}
