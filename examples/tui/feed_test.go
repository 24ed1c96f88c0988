package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tool is one without arguments that does what run does.
func tool(name string, run func(ctx context.Context) (string, error)) agentkernel.Tool {
	t := agentkernel.MustTool(name, "A tool.", func(ctx context.Context, _ struct{}) (string, error) { return run(ctx) })
	t.ReadOnly, t.Label = agentkernel.Always, name
	return t
}

// alone is a tool that does not run beside others.
func alone(name string, run func(ctx context.Context) (string, error)) agentkernel.Tool {
	t := tool(name, run)
	t.ReadOnly = nil
	return t
}

func says(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// events runs an agent with prompts, one after the other, and returns all that its stream said.
// With before, that is asked before each event is delivered.
func events(t *testing.T, cfg agentkernel.Config, before func(*agentkernel.Agent, agentkernel.Event), prompts ...string) []agentkernel.Event {
	agent, err := agentkernel.NewAgent(cfg)
	require.NoError(t, err)
	checker := agenttest.NewChecker()
	var out []agentkernel.Event
	agent.Subscribe(func(ev agentkernel.Event) {
		checker.Listen(ev)
		if before != nil {
			before(agent, ev)
		}
		out = append(out, ev)
	})
	for _, prompt := range prompts {
		_, _ = agent.Run(t.Context(), prompt)
	}
	require.NoError(t, checker.Finish())
	return out
}

// screen folds events and keeps what a screen would show.
type screen struct {
	feed  feed
	paint painter
	lines []string
}

func newScreen() *screen {
	s := &screen{}
	s.paint.resize(60)
	return s
}

// take folds events and prints what they finished.
func (s *screen) take(events ...agentkernel.Event) *screen {
	for _, ev := range events {
		for _, b := range s.feed.fold(ev) {
			s.print(b)
		}
	}
	return s
}

func (s *screen) print(b block) {
	for _, line := range s.paint.block(b) {
		s.lines = append(s.lines, strings.TrimRight(plainText(line), " "))
	}
}

// printed is what was printed, without the blank lines between the blocks.
func (s *screen) printed() string {
	return strings.Join(strings.FieldsFunc(strings.Join(s.lines, "\n"), func(r rune) bool { return r == '\n' }), "\n")
}

// live is the cards of the live area.
func (s *screen) live() string {
	var out []string
	for _, c := range s.feed.cards {
		for _, line := range s.paint.card(c, maxOutputLines) {
			out = append(out, strings.TrimRight(plainText(line), " "))
		}
	}
	return strings.Join(out, "\n")
}

// transcripts are runs, and what they leave on the screen.
var transcripts = []struct {
	name   string
	events func(t *testing.T) []agentkernel.Event
	want   string
}{
	{"an answer with a tool", func(t *testing.T) []agentkernel.Event {
		return events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Thinking("Hm.\nWell.").Text("I look.").Calls("look"), agenttest.Text("It *is* so.").
				Usage(agentkernel.Usage{Input: 5, Output: 2, Total: 7})),
			Tools: []agentkernel.Tool{tool("look", says("seen"))},
		}, nil, "Is it?")
	}, "› Is it?\n  Hm.\n  Well.\nI look.\n● look · 0 ms\n  │ seen\nIt is so.\n── stop · 2 turns · 1 tool call · 7 tokens · 0.0 s"},

	{"an attempt that fails", func(t *testing.T) []agentkernel.Event {
		again := &agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true}
		return events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("Half").Fail(again), agenttest.Text("Whole.")),
			Retry: agentkernel.RetryPolicy{Jitter: -1},
		}, nil, "Hi")
	}, "› Hi\n! what this attempt said is void\n! attempt 1 failed, the next one follows in 1s: server\nWhole.\n── stop · 1 turn · 0 tool calls · 0 tokens · 1.0 s"},

	{"a run that fails", func(t *testing.T) []agentkernel.Event {
		return events(t, agentkernel.Config{Model: agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindAuth}))}, nil, "Hi")
	}, "› Hi\n! auth\n── error · 1 turn · 0 tool calls · 0 tokens · 0.0 s"},

	{"an abort", func(t *testing.T) []agentkernel.Event {
		return events(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("Once upon").Stall())},
			func(agent *agentkernel.Agent, ev agentkernel.Event) {
				if ev.Type == agentkernel.EventMessageUpdate {
					agent.Abort(errUser)
				}
			}, "Hi")
	}, "› Hi\nOnce upon\n── aborted · 1 turn · 0 tool calls · 0 tokens · 0.0 s"},

	{"a history that is replaced", func(t *testing.T) []agentkernel.Event {
		return events(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("One."), agenttest.Text("Two."))},
			func(agent *agentkernel.Agent, ev agentkernel.Event) {
				if ev.Type == agentkernel.EventAgentEnd && len(agent.Messages()) == 2 {
					_ = agent.SetMessages(agentkernel.UserMessage("other"), agentkernel.UserMessage("words"))
				}
			}, "1", "2")
	}, "› 1\nOne.\n── stop · 1 turn · 0 tool calls · 0 tokens · 0.0 s\n" +
		"! the history was replaced (set_messages): 2 messages now\n› 2\nTwo.\n── stop · 1 turn · 0 tool calls · 0 tokens · 0.0 s"},

	{"tools that fail, report, are refused", func(t *testing.T) []agentkernel.Event {
		careful := alone("careful", says("never"))
		careful.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
			return agentkernel.ProgressPayload{Text: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"}, nil
		}
		return events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("fails", "careful", "nope"), agenttest.Text("So.")),
			Tools: []agentkernel.Tool{careful, alone("fails", func(ctx context.Context) (string, error) {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressToolDelta, Text: "on its way"})
				time.Sleep(2 * time.Second)
				return "", errors.New("broken")
			})},
			Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				return agentkernel.GateDecision{Allow: req.Call.Name == "fails", Reason: "not that"}, nil
			},
		}, nil, "Hi")
	}, "› Hi\n✗ fails · failed · 2.0 s\n  │ broken\n✗ careful · denied · 0 ms\n  │ @@ -1 +1 @@\n  │ -old\n  │ +new\n  │ not that\n" +
		"✗ nope {} · unknown · 0 ms\n  │ There is no tool \"nope\". The tools are \"careful\",\n  │ \"fails\".\nSo.\n── stop · 2 turns · 3 tool calls · 0 tokens · 2.0 s"},

	{"steering skips what was not begun", func(t *testing.T) []agentkernel.Event {
		return events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("look"), agenttest.Text("As you say.")),
			Tools: []agentkernel.Tool{tool("look", says("never"))},
			Gate: func(ctx context.Context, _ agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				<-ctx.Done()
				return agentkernel.GateDecision{}, context.Cause(ctx)
			},
		}, func(agent *agentkernel.Agent, ev agentkernel.Event) {
			if ev.Type == agentkernel.EventToolExecStart {
				_ = agent.Steer(agentkernel.UserMessage("Rather not."))
			}
		}, "Hi")
	}, "› Hi\n✗ look · skipped · 0 ms\n  │ The call was skipped because the user had something\n  │ else to say. It was not run.\n› Rather not.\nAs you say.\n── stop · 2 turns · 1 tool call · 0 tokens · 0.0 s"},
}

// TestFold: what each kind of run leaves on the screen. All types of events are among them.
func TestFold(t *testing.T) {
	seen := make(map[agentkernel.EventType]bool)
	for _, tt := range transcripts {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := tt.events(t)
				s := newScreen().take(log...)
				assert.Equal(t, tt.want, s.printed())
				assert.Empty(t, s.feed.cards, "a card is left")
				assert.False(t, s.feed.waiting)
				assert.False(t, s.feed.state.IsRunning)
				for _, ev := range log {
					seen[ev.Type] = true
				}
			})
		})
	}
	for _, typ := range []agentkernel.EventType{
		agentkernel.EventAgentStart, agentkernel.EventAgentEnd, agentkernel.EventTurnStart, agentkernel.EventModelRequest,
		agentkernel.EventMessageStart, agentkernel.EventMessageUpdate, agentkernel.EventMessageEnd, agentkernel.EventMessageDiscard,
		agentkernel.EventToolExecStart, agentkernel.EventToolExecUpdate, agentkernel.EventToolExecEnd, agentkernel.EventModelResponse,
		agentkernel.EventRetry, agentkernel.EventContext, agentkernel.EventError,
	} {
		assert.True(t, seen[typ], "no transcript has %s", typ)
	}
}

// TestFoldMerged: a screen that was told of the last update of each message only, as a slow
// one is, shows what one shows that was told of all.
func TestFoldMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events(t, agentkernel.Config{Model: agenttest.Script(agenttest.Thinking("Let me see.").Text("It is so.").Chunks(2))}, nil, "Hi")
		slow, prompt := newScreen(), newScreen()
		for i, ev := range log {
			prompt.take(ev)
			if ev.Type == agentkernel.EventMessageUpdate && log[i+1].Type == agentkernel.EventMessageUpdate {
				continue
			}
			slow.take(ev)
			assert.Equal(t, prompt.feed.state.StreamMessage, slow.feed.state.StreamMessage)
		}
		assert.Equal(t, prompt.printed(), slow.printed())
	})
}

// TestFoldWaiting: the spinner turns from the start of a turn to its first delta, and again
// while the next attempt is waited for.
func TestFoldWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := &agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true}
		log := events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("look"), agenttest.Text("Half").Fail(again), agenttest.Text("Whole.")),
			Tools: []agentkernel.Tool{tool("look", says("seen"))},
			Retry: agentkernel.RetryPolicy{Jitter: -1},
		}, nil, "Hi")
		var f feed
		var got []string
		for _, ev := range log {
			was := f.waiting
			f.fold(ev)
			if f.waiting != was {
				got = append(got, string(ev.Type))
			}
		}
		assert.Equal(t, []string{"turn_start", "message_start", "turn_start", "message_start", "model_request", "message_start"}, got)
	})
}

// TestFoldParallel: calls that run side by side stay apart, and each is printed whole when it
// has ended.
func TestFoldParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talks := func(name string, steps int) agentkernel.Tool {
			return tool(name, func(ctx context.Context) (string, error) {
				for i := range steps {
					agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressToolDelta, Text: name + " speaks\n"})
					agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Text: strings.Repeat("*", i+1)})
					time.Sleep(time.Second)
				}
				return name + " is done", nil
			})
		}
		s := newScreen()
		var lives []string
		agent, err := agentkernel.NewAgent(agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("slow", "quick"), agenttest.Text("So.")),
			Tools: []agentkernel.Tool{talks("slow", 2), talks("quick", 1)},
		})
		require.NoError(t, err)
		log := make(chan agentkernel.Event, 100)
		agent.Subscribe(func(ev agentkernel.Event) { log <- ev })
		_, err = agent.Prompt(t.Context(), "Hi")
		require.NoError(t, err)
		for range 4 {
			time.Sleep(600 * time.Millisecond)
			synctest.Wait()
			for len(log) > 0 {
				s.take(<-log)
			}
			lives = append(lives, s.live())
		}
		assert.Equal(t, []string{
			"◌ slow · *\n  │ slow speaks\n◌ quick · *\n  │ quick speaks",
			"◌ slow · **\n  │ slow speaks\n  │ slow speaks",
			"◌ slow · **\n  │ slow speaks\n  │ slow speaks",
			"",
		}, lives)
		assert.Contains(t, s.printed(), "● quick · 1.0 s\n  │ quick is done\n● slow · 2.0 s\n  │ slow is done\nSo.")
	})
}
