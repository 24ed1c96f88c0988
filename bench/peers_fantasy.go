package main

import (
	"context"
	"errors"
	"strings"

	"charm.land/fantasy"
)

// fantasyLibrary is charm.land/fantasy: Agent.Stream with callbacks, which are its way to see
// a delta. The callbacks run on the goroutine of the caller, as the model does.
func fantasyLibrary() Library {
	return Library{
		Name: "fantasy",
		Text: func(n int, delta string) Run {
			return fantasyRun(&fantasySource{text: delta, n: n})
		},
		Args: func(pieces []string) Run {
			return fantasyRun(&fantasySource{args: pieces, input: strings.Join(pieces, "")})
		},
		Turns: func(turns, calls int) Run {
			return fantasyRun(&fantasySource{calls: callIDs(turns, calls)})
		},
		Wire: fantasyWire(),
	}
}

// fantasySource is the source in fantasy's terms: a model without a network.
type fantasySource struct {
	text  string
	n     int
	args  []string
	input string // all of args
	calls [][]string

	done Done
}

// Stream implements [fantasy.LanguageModel].
func (s *fantasySource) Stream(context.Context, fantasy.Call) (fantasy.StreamResponse, error) {
	turn := s.done.Turns
	s.done.Turns++
	switch {
	case s.n > 0:
		return fantasyText(s.n, s.text), nil
	case turn == 0 && s.args != nil:
		return s.yieldArgs, nil
	case turn < len(s.calls):
		return func(yield func(fantasy.StreamPart) bool) { fantasyCalls(s.calls[turn], yield) }, nil
	}
	return fantasyText(1, answer), nil
}

func fantasyText(n int, text string) fantasy.StreamResponse {
	return func(yield func(fantasy.StreamPart) bool) {
		if !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextStart, ID: "0"}) {
			return
		}
		part := fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: "0", Delta: text}
		for range n {
			if !yield(part) {
				return
			}
		}
		if yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextEnd, ID: "0"}) {
			yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, FinishReason: fantasy.FinishReasonStop})
		}
	}
}

func (s *fantasySource) yieldArgs(yield func(fantasy.StreamPart) bool) {
	const id = "call_0"
	if !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputStart, ID: id, ToolCallName: noopName}) {
		return
	}
	part := fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputDelta, ID: id}
	for _, part.Delta = range s.args {
		if !yield(part) {
			return
		}
	}
	_ = yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputEnd, ID: id}) &&
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: id, ToolCallName: noopName, ToolCallInput: s.input}) &&
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, FinishReason: fantasy.FinishReasonToolCalls})
}

func fantasyCalls(ids []string, yield func(fantasy.StreamPart) bool) {
	for _, id := range ids {
		going := yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputStart, ID: id, ToolCallName: noopName}) &&
			yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputDelta, ID: id, Delta: "{}"}) &&
			yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputEnd, ID: id}) &&
			yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: id, ToolCallName: noopName, ToolCallInput: "{}"})
		if !going {
			return
		}
	}
	yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, FinishReason: fantasy.FinishReasonToolCalls})
}

var errUnused = errors.New("no workload asks for this")

// Generate implements [fantasy.LanguageModel].
func (s *fantasySource) Generate(context.Context, fantasy.Call) (*fantasy.Response, error) {
	return nil, errUnused
}

// GenerateObject implements [fantasy.LanguageModel].
func (s *fantasySource) GenerateObject(context.Context, fantasy.ObjectCall) (*fantasy.ObjectResponse, error) {
	return nil, errUnused
}

// StreamObject implements [fantasy.LanguageModel].
func (s *fantasySource) StreamObject(context.Context, fantasy.ObjectCall) (fantasy.ObjectStreamResponse, error) {
	return nil, errUnused
}

// Provider implements [fantasy.LanguageModel].
func (s *fantasySource) Provider() string { return "bench" }

// Model implements [fantasy.LanguageModel].
func (s *fantasySource) Model() string { return "bench" }

// fantasyTool is the tool that does nothing, without the reflection of fantasy's own wrapper.
type fantasyTool struct{ s *fantasySource }

// Info implements [fantasy.AgentTool].
func (t fantasyTool) Info() fantasy.ToolInfo { return fantasy.ToolInfo{Name: noopName} }

// Run implements [fantasy.AgentTool].
func (t fantasyTool) Run(_ context.Context, call fantasy.ToolCall) (fantasy.ToolResponse, error) {
	t.s.done.Calls++
	t.s.done.Args = call.Input
	return fantasy.NewTextResponse(answer), nil
}

// ProviderOptions implements [fantasy.AgentTool].
func (t fantasyTool) ProviderOptions() fantasy.ProviderOptions { return nil }

// SetProviderOptions implements [fantasy.AgentTool].
func (t fantasyTool) SetProviderOptions(fantasy.ProviderOptions) {}

func fantasyRun(s *fantasySource) Run { return fantasyOf(s, s) }

// fantasyOf is a run of one agent with the model. The agent keeps nothing between runs.
func fantasyOf(m fantasy.LanguageModel, s *fantasySource) Run {
	agent := fantasy.NewAgent(m, fantasy.WithTools(fantasyTool{s}))
	see := func(_, delta string) error {
		s.done.Deltas++
		s.done.Bytes += len(delta)
		return nil
	}
	return func(ctx context.Context) (Done, error) {
		s.done = Done{}
		result, err := agent.Stream(ctx, fantasy.AgentStreamCall{Prompt: "hi", OnTextDelta: see, OnToolInputDelta: see})
		if err != nil {
			return Done{}, err
		}
		done := s.done
		done.Turns = max(done.Turns, 1) // an endpoint's questions are not counted
		done.Text = result.Response.Content.Text()
		return done, nil
	}
}
