package main

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/openai"
)

// libraries are those under measurement, the kernel first.
func libraries() []Library {
	return []Library{ours(), fantasyLibrary(), einoLibrary("eino128", 128, fresh), einoLibrary("eino1", 1, fresh)}
}

// ours is the kernel: an Agent with one listener that reads deltas, all else by default.
func ours() Library {
	return Library{
		Name:  "ours",
		Text:  func(n int, delta string) Run { return agentRun(&source{text: delta, n: n}, 1) },
		Args:  func(pieces []string) Run { return agentRun(&source{args: pieces}, 1) },
		Turns: func(turns, calls int) Run { return agentRun(&source{calls: callIDs(turns, calls)}, 1) },
		Wire: func(url string, client *http.Client) Run {
			m, err := openai.New(openai.Config{Model: wireModel, BaseURL: url, HTTPClient: client})
			if err != nil {
				return failed(err)
			}
			return agentOf(agentkernel.Config{Model: m}, new(source), readDelta, 1)
		},
	}
}

// failed is the Run of a program that could not be prepared.
func failed(err error) Run {
	return func(context.Context) (Done, error) { return Done{}, err }
}

// source is a model without a network, and the tool that it calls: it yields what it holds
// with as little work as can be. For one run at a time.
type source struct {
	// One of these is set: n deltas of text; pieces of arguments; the ids of calls, by turns.
	text  string
	n     int
	args  []string
	calls [][]string

	done Done
}

// begin makes the source begin again, for a further run.
func (s *source) begin() { s.done = Done{} }

// Stream implements [agentkernel.ChatModel].
func (s *source) Stream(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	turn := s.done.Turns
	s.done.Turns++
	switch {
	case s.n > 0:
		return deltas(s.n, s.text)
	case turn == 0 && s.args != nil:
		return s.yieldArgs
	case turn < len(s.calls):
		return func(yield func(agentkernel.StreamEvent, error) bool) { yieldCalls(s.calls[turn], yield) }
	}
	return deltas(1, answer)
}

func deltas(n int, text string) iter.Seq2[agentkernel.StreamEvent, error] {
	ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: text}
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		for range n {
			if !yield(ev, nil) {
				return
			}
		}
		yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
	}
}

func (s *source) yieldArgs(yield func(agentkernel.StreamEvent, error) bool) {
	ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, Key: "0", ID: "call_0", Name: noopName}
	for _, piece := range s.args {
		ev.Delta = piece
		if !yield(ev, nil) {
			return
		}
		ev.ID, ev.Name = "", ""
	}
	yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
}

func yieldCalls(ids []string, yield func(agentkernel.StreamEvent, error) bool) {
	for _, id := range ids {
		if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: id, Name: noopName, Delta: "{}"}, nil) {
			return
		}
	}
	yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
}

const noopName = "noop"

// noop is the tool that does nothing.
func (s *source) noop() agentkernel.Tool {
	return agentkernel.Tool{Name: noopName, Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		s.done.Calls++
		s.done.Args = string(args)
		return agentkernel.TextResult(answer), nil
	}}
}

// reader returns a listener that counts in saw what it reads of each update. The listeners are
// plain functions of an event: one that handed it on by its address would move it to the heap.
type reader func(saw *Done) func(agentkernel.Event)

// readDelta reads what each update adds.
func readDelta(saw *Done) func(agentkernel.Event) {
	return func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			saw.Deltas++
			saw.Bytes += len(ev.Delta)
		}
	}
}

// readWhole reads the whole text so far at each update, and counts all of the last one.
func readWhole(saw *Done) func(agentkernel.Event) {
	return func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			saw.Deltas++
			saw.Bytes = len(ev.Message.TextContent())
		}
	}
}

// agentRun is a run of an Agent at the source with so many listeners that read deltas.
func agentRun(s *source, listeners int) Run {
	return agentOf(agentkernel.Config{Model: s}, s, readDelta, listeners)
}

// agentOf is a run of an Agent with so many listeners. The agent is the same for all
// runs; each begins with an empty history.
func agentOf(cfg agentkernel.Config, s *source, read reader, listeners int) Run {
	cfg.Tools, cfg.MaxTurns = []agentkernel.Tool{s.noop()}, -1
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		return failed(err)
	}
	saw := make([]Done, listeners)
	for i := range saw {
		agent.Subscribe(read(&saw[i]))
	}
	return func(ctx context.Context) (Done, error) {
		s.begin()
		clear(saw)
		record, err := agent.Run(ctx, "hi")
		if err != nil {
			return Done{}, err
		}
		if err := agent.Reset(); err != nil {
			return Done{}, err
		}
		return s.seen(saw[0].Deltas, saw[len(saw)-1].Bytes, record.NewMessages), nil
	}
}

// loopRun is a run of a bare AgentLoop at the source, whose events are read to the end.
func loopRun(s *source) Run {
	cfg := agentkernel.Config{Model: s, Tools: []agentkernel.Tool{s.noop()}, MaxTurns: -1}
	return func(ctx context.Context) (Done, error) {
		s.begin()
		saw, read := 0, 0
		var end agentkernel.Event
		for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
			switch ev.Type {
			case agentkernel.EventMessageUpdate:
				saw++
				read += len(ev.Delta)
			case agentkernel.EventAgentEnd:
				end = ev
			}
		}
		return s.seen(saw, read, end.NewMessages), end.Err
	}
}

// seen is what the run did whose consumer saw so much and which ended with the messages.
func (s *source) seen(deltas, bytes int, messages []agentkernel.AgentMessage) Done {
	done := s.done
	done.Deltas, done.Bytes = deltas, bytes
	done.Turns = max(done.Turns, 1) // an endpoint's questions are not counted
	if n := len(messages); n > 0 {
		done.Text = messages[n-1].TextContent()
	}
	return done
}
