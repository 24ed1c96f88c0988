package agenttest

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agentkernel-go/agentkernel"
)

type (
	yield  = func(agentkernel.StreamEvent, error) bool
	stream = iter.Seq2[agentkernel.StreamEvent, error]
)

// broken is a model whose stream is play.
func broken(play func(ctx context.Context, req agentkernel.ModelRequest, yield yield)) agentkernel.ChatModel {
	return agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) stream {
		return func(y func(agentkernel.StreamEvent, error) bool) { play(ctx, req, y) }
	})
}

func textDelta(s string) agentkernel.StreamEvent {
	return agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: s}
}

var done = agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: agentkernel.StopReasonStop}

// say plays events and stops where it should.
func say(y yield, events ...agentkernel.StreamEvent) {
	for _, ev := range events {
		if !y(ev, nil) {
			return
		}
	}
}

func TestModelSuiteNoticesWrongStreams(t *testing.T) {
	text := Scenario{Name: "text", Text: "ok", Stop: agentkernel.StopReasonStop}
	for _, c := range []struct {
		name, says string
		scenario   Scenario
		play       func(ctx context.Context, req agentkernel.ModelRequest, y yield)
	}{
		{"nothing after Done", "yield was called again", text, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			say(y, textDelta("ok"), done, textDelta("more"))
		}},
		{"no Done", "without Done", text, func(_ context.Context, _ agentkernel.ModelRequest, y yield) { say(y, textDelta("ok")) }},
		{"an error", "the stream fails", text, func(_ context.Context, _ agentkernel.ModelRequest, y yield) { y(done, errors.New("x")) }},
		{"after an error", "yield was called again", text, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			y(agentkernel.StreamEvent{}, errors.New("x"))
			y(done, nil)
		}},
		{"unknown type", "has type", text, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			say(y, agentkernel.StreamEvent{Type: "ping"}, done)
		}},
		{"another goroutine", "another goroutine", text, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			over := make(chan struct{})
			go func() { // waited for
				defer close(over)
				say(y, textDelta("ok"), done)
			}()
			<-over
		}},
		{"changes the request", "request was changed", text, func(_ context.Context, req agentkernel.ModelRequest, y yield) {
			req.Messages[0].Content[0].Text = "ho"
			say(y, textDelta("ok"), done)
		}},
		{"cut off, with Done", "ends with Done", Scenario{Text: "ok", Truncated: true}, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			say(y, textDelta("ok"), done)
		}},
		{"cut off, wrong kind", "want kind stream_truncated", Scenario{Text: "ok", Truncated: true}, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			y(agentkernel.StreamEvent{}, io.EOF)
		}},
		{"status, plain error", "want an *agentkernel.Error", Scenario{Status: 401}, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			y(agentkernel.StreamEvent{}, errors.New("401"))
		}},
		{"status, wrong kind", "got kind server", Scenario{Status: 401}, failing(agentkernel.Error{Kind: agentkernel.KindServer, Status: 401})},
		{"status, none", "got Status 0", Scenario{Status: 401}, failing(agentkernel.Error{Kind: agentkernel.KindAuth})},
		{"status, not retryable", "got Retryable false", Scenario{Status: 503}, failing(agentkernel.Error{Kind: agentkernel.KindOverloaded, Status: 503})},
		{"status, after events", "events before the failure", Scenario{Status: 401}, func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			say(y, textDelta("x"))
			y(agentkernel.StreamEvent{}, errors.New("401"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) { wants(t, checkStream(t.Context(), broken(c.play), c.scenario), c.says) })
	}
	nilStream := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) stream { return nil })
	wants(t, checkStream(t.Context(), nilStream, text), "the stream is nil")
}

func failing(e agentkernel.Error) func(context.Context, agentkernel.ModelRequest, yield) {
	return func(_ context.Context, _ agentkernel.ModelRequest, y yield) { y(agentkernel.StreamEvent{}, &e) }
}

func wants(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want an error that says %q", err, says)
	}
}

func TestModelSuiteNoticesWrongAnswers(t *testing.T) {
	want := Scenario{
		Thinking: "hm", Text: "ok", Calls: []agentkernel.ToolCall{call("a", `{"n": 1}`)},
		Usage: &agentkernel.Usage{Input: 1, Output: 2, Total: 3}, Stop: agentkernel.StopReasonToolUse,
	}
	if err := checkLoop(t.Context(), Script(want.Reply()), want); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*Scenario){
		"got text":        func(s *Scenario) { s.Text = "okay" },
		"got thinking":    func(s *Scenario) { s.Thinking = "" },
		"got 2 calls":     func(s *Scenario) { s.Calls = append(s.Calls, call("b", `{}`)) },
		"call 0 is":       func(s *Scenario) { s.Calls = []agentkernel.ToolCall{call("a", `{"n":2}`)} },
		"got usage":       func(s *Scenario) { s.Usage = nil },
		"got usage in=2":  func(s *Scenario) { s.Usage = &agentkernel.Usage{Input: 2, Output: 2, Total: 3} },
		"got stop reason": func(s *Scenario) { s.Stop = agentkernel.StopReasonLength },
		"the run has no answer; it ends with": func(s *Scenario) {
			s.Truncated = true
		},
	} {
		got := want
		got.Calls = slices.Clone(want.Calls)
		change(&got)
		wants(t, checkLoop(t.Context(), Script(got.Reply()), want), says)
	}
	wants(t, checkLoop(t.Context(), Script(want.Reply()), Scenario{Status: 401}), "the run ends with")
	wants(t, checkLoop(t.Context(), Script(want.Reply()), Scenario{Truncated: true}), "the run ends with")
	wants(t, checkGenerate(t.Context(), Script(want.Reply()), Scenario{Status: 401}), "Generate ends with")
	wants(t, checkGenerate(t.Context(), Script(Fail(io.EOF)), want), "Generate ends with")
}

func TestModelSuiteNoticesWhatDoesNotStop(t *testing.T) {
	stubborn := broken(func(_ context.Context, _ agentkernel.ModelRequest, y yield) { say(y, textDelta("a"), done) })
	wants(t, checkCancel(t.Context(), stubborn), "ends with Done")
	wants(t, checkCanceled(t.Context(), stubborn), "ends with Done")

	echoes := broken(func(ctx context.Context, _ agentkernel.ModelRequest, y yield) {
		if say(y, textDelta("a")); ctx.Err() != nil {
			y(agentkernel.StreamEvent{}, errors.New("connection closed"))
		}
	})
	wants(t, checkCancel(t.Context(), echoes), "want kind canceled")
	wants(t, checkCanceled(t.Context(), echoes), "want kind canceled")

	goesOn := broken(func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
		y(textDelta("a"), nil)
		y(textDelta("b"), nil)
	})
	wants(t, checkLeave(t.Context(), goesOn), "yield was called again")

	synctest.Test(t, func(t *testing.T) { // five seconds pass at once
		deaf := Script(Text("a").Stall().IgnoringContext())
		defer deaf.Release()
		wants(t, checkCancel(t.Context(), deaf), "did not stop within")
	})
}

func TestModelSuiteNoticesLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		leaky := broken(func(_ context.Context, _ agentkernel.ModelRequest, y yield) {
			go func() { <-free }() // the leak: ends with the test
			say(y, textDelta("a"), done)
		})
		wants(t, checkLeave(t.Context(), leaky), "goroutines before")
	})
}
