package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

func TestAgentRun(t *testing.T) {
	model := agenttest.Script(agenttest.Thinking("hm").Calls("echo"), agenttest.Text("done").Usage(agentkernel.Usage{Input: 7, Output: 3, Total: 10}))
	agent := watch(t, agentkernel.Config{Model: model, SystemPrompt: "be brief", Tools: []agentkernel.Tool{echo("echo")}})
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, "done", record.Answer)
	require.Equal(t, agentkernel.EndStop, record.EndReason)
	want := []string{"user: hi", "assistant: ", "tool: {}", "assistant: done"}
	require.Equal(t, want, said(record.NewMessages))
	require.Equal(t, want, said(agent.Messages()))
	state := agent.State()
	require.Equal(t, record.ID, state.RunID)
	require.Equal(t, 10, state.TotalUsage.Total)
	require.Equal(t, 10, *state.ContextTokens)
	require.False(t, state.IsRunning)
	for _, req := range model.Requests() {
		require.Equal(t, "be brief", req.System)
		require.Equal(t, "echo", req.Tools[0].Name)
		require.JSONEq(t, `{"type":"object"}`, string(req.Tools[0].Schema))
	}
}

func TestNewAgentRefuses(t *testing.T) {
	model := agenttest.Script()
	for name, cfg := range map[string]agentkernel.Config{
		"two tools of one name": {Model: model, Tools: []agentkernel.Tool{echo("a"), echo("a")}},
		"a tool without a name": {Model: model, Tools: []agentkernel.Tool{echo("")}},
		"a tool without work":   {Model: model, Tools: []agentkernel.Tool{{Name: "a"}}},
		"a schema that is none": {Model: model, Tools: []agentkernel.Tool{{Name: "a", Execute: echo("").Execute, Schema: func() {}}}},
		"a negative buffer":     {Model: model, EventBuffer: -1},
		"jitter beyond 1":       {Model: model, Retry: agentkernel.RetryPolicy{Jitter: 1.5}},
	} {
		_, err := agentkernel.NewAgent(cfg)
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest, name)
	}
}

// TestMisuseOfTheAgent is told at once, starts nothing and emits nothing.
func TestMisuseOfTheAgent(t *testing.T) {
	ctx := t.Context()
	bare := watch(t, agentkernel.Config{})
	_, err := bare.Prompt(ctx, "hi")
	require.Equal(t, agentkernel.ErrNoModel, err)
	_, err = bare.Run(ctx, "hi")
	require.Equal(t, agentkernel.ErrNoModel, err)

	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	_, err = agent.Continue(ctx)
	require.Equal(t, agentkernel.ErrNoMessages, err)
	_, err = agent.PromptMessages(ctx)
	require.Equal(t, agentkernel.ErrNoMessages, err)
	_, err = agent.PromptMessages(ctx, nil)
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	_, err = agent.PromptMessages(ctx, (*agentkernel.Message)(nil))
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	_, err = agent.PromptMessages(ctx, agentkernel.Message{Role: agentkernel.RoleAssistant})
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	require.ErrorIs(t, agent.SetMessages(nil), agentkernel.KindInvalidRequest)
	require.ErrorIs(t, agent.SetTools(echo("a"), echo("a")), agentkernel.KindInvalidRequest)
	require.Equal(t, agentkernel.ErrNoModel, agent.SetModel(nil))
	for _, err := range agent.Stream(ctx) {
		require.Equal(t, agentkernel.ErrNoMessages, err)
	}
	require.Empty(t, agent.events())
	require.Empty(t, bare.events())

	_, err = agent.Run(ctx, "hi") // it can still be used
	require.NoError(t, err)
	_, err = agent.Continue(ctx)
	require.Equal(t, agentkernel.ErrBadContinuation, err)
}

// TestMessageWhoseMethodPanics does so in the call that brings it in, which leaves the agent
// usable; in a bare loop it is the end of the run.
func TestMessageWhoseMethodPanics(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	require.Panics(t, func() { _ = agent.SetMessages(badMark{}) })
	require.Panics(t, func() { _, _ = agent.PromptMessages(t.Context(), badMark{}) })
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)

	log := drain(t, nil, agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: agenttest.Script()}, nil, badMark{}))
	require.ErrorIs(t, final(log).Err, agentkernel.KindPanic)
}

type badMark struct{ mark }

func (badMark) GetRole() agentkernel.Role { panic("no role") }

func TestConcurrentPrompts(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one").Stall(), agenttest.Text("two"))})
	var started, refused atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			switch _, err := agent.Prompt(t.Context(), "hi"); err {
			case nil:
				started.Add(1)
			case agentkernel.ErrAlreadyRunning:
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, started.Load())
	require.EqualValues(t, 49, refused.Load())
	for !agent.State().IsRunning || agent.State().StreamMessage == nil {
		runtime.Gosched()
	}
	agent.Abort(nil)
	for {
		if record, err := agent.Run(t.Context(), "again"); err != agentkernel.ErrAlreadyRunning {
			require.NoError(t, err)
			require.Equal(t, "two", record.Answer)
			break
		}
		runtime.Gosched()
	}
	require.Equal(t, []string{"user: hi", "assistant: one", "user: again", "assistant: two"}, said(agent.Messages()))
}

func TestIdleAbortDoesNothing(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one"), agenttest.Text("two"))})
	agent.Abort(errors.New("early"))
	run, err := agent.Prompt(t.Context(), "x")
	require.NoError(t, err)
	_, err = run.Wait(t.Context())
	require.NoError(t, err)
	run.Abort(errors.New("late"))
	agent.Abort(errors.New("late"))
	_, err = agent.Run(t.Context(), "y")
	require.NoError(t, err)
	_, err = run.Wait(t.Context())
	require.NoError(t, err)
}

// TestManyRunsLeaveNothingBehind: no goroutine and nothing on the caller's context.
func TestManyRunsLeaveNothingBehind(t *testing.T) {
	ctx := &countingContext{Context: context.Background(), done: make(chan struct{})}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agentkernel.ChatModelFunc(
		func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
			return agenttest.Script(agenttest.Text("ok")).Stream(context.Background(), agentkernel.ModelRequest{})
		})})
	require.NoError(t, err)
	before := 0
	for i := range 1000 {
		_, err := agent.Run(ctx, "hi")
		require.NoError(t, err)
		require.NoError(t, agent.Reset())
		if i == 10 {
			before = runtime.NumGoroutine()
		}
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+50, "far fewer than the runs: the last ones may still be leaving")
	require.Zero(t, ctx.hooks.Load(), "what hangs on the caller's context")
}

// countingContext counts the hooks on it, as context.WithCancel and context.AfterFunc set them.
type countingContext struct {
	context.Context
	done  chan struct{}
	hooks atomic.Int64
}

func (c *countingContext) Done() <-chan struct{} { return c.done }

func (c *countingContext) AfterFunc(f func()) func() bool {
	c.hooks.Add(1)
	return func() bool {
		c.hooks.Add(-1)
		return true
	}
}

// TestAbortLeavesNoCallUnanswered, and the next request is acceptable to a provider.
func TestAbortLeavesNoCallUnanswered(t *testing.T) {
	model := agenttest.Script(agenttest.Calls("echo", "wait", "echo"), agenttest.Text("went on"))
	var agent *watched
	wait := tool("wait", func(ctx context.Context) (agentkernel.ToolResult, error) {
		agent.Abort(nil)
		<-ctx.Done()
		return agentkernel.ToolResult{}, ctx.Err()
	})
	agent = watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo"), wait}})
	_, err := agent.Run(t.Context(), "hi")
	require.ErrorIs(t, err, agentkernel.KindCanceled)
	require.Equal(t, []string{"echo ok", "wait interrupted", "echo not_started"}, causes(agent.events()))
	require.Empty(t, agent.State().PendingToolCalls)
	require.Len(t, model.Requests(), 1)

	record, err := agent.Run(t.Context(), "go on")
	require.NoError(t, err)
	require.Equal(t, "went on", record.Answer)
	var roles []agentkernel.Role
	for _, m := range model.Requests()[1].Messages {
		roles = append(roles, m.Role)
	}
	require.Equal(t, []agentkernel.Role{"user", "assistant", "tool", "tool", "tool", "user"}, roles)
}

// TestAbortedMessagesGoBackWithoutHalves: what a provider would refuse is not sent.
func TestAbortedMessagesGoBackWithoutHalves(t *testing.T) {
	for name, c := range map[string]struct {
		first agenttest.Reply
		want  []string
	}{
		"before content": {agenttest.Stall(), []string{"user: hi", "user: again"}},
		"thinking only":  {agenttest.Thinking("hm").Stall(), []string{"user: hi", "user: again"}},
		"half a call":    {agenttest.Call("1", "echo", `{"a`).Stall(), []string{"user: hi", "user: again"}},
		"text and half a call": {
			agenttest.Thinking("hm").Text("so").Call("1", "echo", `{"a`).Stall(),
			[]string{"user: hi", "assistant: so", "user: again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(c.first, agenttest.Text("ok"))
				agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo")}})
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				run.Abort(nil)
				_, err = run.Wait(t.Context())
				require.ErrorIs(t, err, agentkernel.KindCanceled)
				_, err = agent.Run(t.Context(), "again")
				require.NoError(t, err)
				sent := model.Requests()[1].Messages
				var got []string
				for _, m := range sent {
					require.Empty(t, m.ThinkingContent())
					require.False(t, m.HasToolCalls())
					got = append(got, string(m.Role)+": "+m.TextContent())
				}
				require.Equal(t, c.want, got)
			})
		})
	}
}

// TestContinue goes on from each history that can be continued.
func TestContinue(t *testing.T) {
	user := agentkernel.UserMessage("hi")
	calls := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonToolUse, Content: []agentkernel.ContentBlock{
		{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "1", Name: "echo", Args: json.RawMessage(`{"a":1}`)}},
		{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "2", Name: "echo", Args: json.RawMessage(`{}`)}},
	}}
	result := agentkernel.Message{Role: agentkernel.RoleTool, ToolCallID: "1", ToolName: "echo", Content: []agentkernel.ContentBlock{agentkernel.TextBlock("r")}}
	second := result
	second.ToolCallID = "2"
	aborted := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonAborted, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("half")}}
	for name, c := range map[string]struct {
		history []agentkernel.AgentMessage
		execute bool
		said    []string
		causes  []string
	}{
		"after a user":          {list(user), false, []string{"assistant: ok"}, nil},
		"after a mark":          {list(user, mark("m")), false, []string{"assistant: ok"}, nil},
		"after all results":     {list(user, calls, result, second), false, []string{"assistant: ok"}, nil},
		"after an aborted":      {list(user, aborted), false, []string{"user: Continue exactly where you left off.", "assistant: ok"}, nil},
		"with open calls":       {list(user, calls), false, []string{"tool: *", "tool: *", "assistant: ok"}, []string{"echo interrupted", "echo interrupted"}},
		"with one open call":    {list(user, calls, result), false, []string{"tool: *", "assistant: ok"}, []string{"echo interrupted"}},
		"open calls that may":   {list(user, calls), true, []string{`tool: {"a":1}`, "tool: {}", "assistant: ok"}, []string{"echo ok", "echo ok"}},
		"open calls and a mark": {list(user, calls, mark("m")), true, []string{`tool: {"a":1}`, "tool: {}", "assistant: ok"}, []string{"echo ok", "echo ok"}},
		"open calls of a cut-off": {
			list(user, func() agentkernel.Message {
				m := calls.Clone()
				m.Content = m.Content[:1]
				m.Content[0].ToolCall.ArgsError = "cut"
				m.Content[0].ToolCall.RawArgs = "{"
				m.StopReason = agentkernel.StopReasonLength
				return m
			}()), true, []string{"tool: *", "assistant: ok"}, []string{"echo cut_off"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := watch(t, agentkernel.Config{
				Model: agenttest.Script(agenttest.Text("ok")), Tools: []agentkernel.Tool{echo("echo")}, RunOpenCalls: c.execute,
			})
			require.NoError(t, agent.SetMessages(c.history...))
			run, err := agent.Continue(t.Context())
			require.NoError(t, err)
			record, err := run.Wait(t.Context())
			require.NoError(t, err)
			got := said(record.NewMessages)
			for i := range got {
				if i < len(c.said) && c.said[i] == "tool: *" {
					got[i] = c.said[i]
				}
			}
			require.Equal(t, c.said, got)
			require.Equal(t, c.causes, causes(agent.events()))
			require.Len(t, agent.Messages(), len(c.history)+len(got))

			cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok")), Tools: []agentkernel.Tool{echo("echo")}, RunOpenCalls: c.execute}
			log := agenttest.Run(t, cfg, c.history)
			require.Len(t, final(log).NewMessages, len(got))
		})
	}
}

// TestPromptAfterOpenCalls answers them first.
func TestPromptAfterOpenCalls(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("a"), agentkernel.Message{
		Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonToolUse,
		Content: []agentkernel.ContentBlock{{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "1", Name: "gone"}}},
	}))
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, agentkernel.RoleTool, record.NewMessages[0].GetRole())
	require.Equal(t, "user: hi", said(record.NewMessages)[1])
	require.Equal(t, 2, record.Summary.TurnCount)
}

// TestSettersHoldFromTheNextTurn, also in a running run; a retried attempt keeps its turn's.
func TestSettersHoldFromTheNextTurn(t *testing.T) {
	second := agenttest.Script(agenttest.Text("by the second"))
	first := agenttest.Script(
		agenttest.Text("x").Fail(failure(agentkernel.KindServer, true)),
		agenttest.Calls("a"))
	agent := watch(t, agentkernel.Config{
		Model: first, SystemPrompt: "one", Tools: []agentkernel.Tool{echo("a")},
		Retry: agentkernel.RetryPolicy{BaseDelay: -1},
	})
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventRetry {
			require.NoError(t, agent.SetModel(second))
			require.NoError(t, agent.SetSystemPrompt("two"))
			require.NoError(t, agent.SetTools(echo("b")))
		}
	})
	// Settings of a turn are read at its start, which the loop may reach early; hold it back.
	gate := make(chan struct{})
	require.NoError(t, agent.SetTools(tool("a", func(context.Context) (agentkernel.ToolResult, error) {
		<-gate
		return agentkernel.TextResult("a"), nil
	})))
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventToolExecStart {
			close(gate)
		}
	})
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, "by the second", record.Answer)
	require.Equal(t, []string{"a ok"}, causes(agent.events()))
	require.Len(t, first.Requests(), 2)
	require.Equal(t, "one", first.Requests()[1].System)
	require.Equal(t, "a", first.Requests()[1].Tools[0].Name)
	require.Equal(t, "two", second.Requests()[0].System)
	require.Equal(t, "b", second.Requests()[0].Tools[0].Name)
}

// TestConfigIsNotShared: what the caller does with its slices later changes nothing.
func TestConfigIsNotShared(t *testing.T) {
	tools := []agentkernel.Tool{echo("a")}
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("a"), agenttest.Text("ok")), Tools: tools})
	tools[0] = echo("b")
	history := list(agentkernel.UserMessage("one"))
	require.NoError(t, agent.SetMessages(history...))
	history[0] = agentkernel.UserMessage("two")
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, []string{"a ok"}, causes(agent.events()))
	require.Equal(t, "user: one", said(agent.Messages())[0])
}

func TestStream(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello").Chunks(1), agenttest.Text("again"))})
	stream := agent.Stream(t.Context(), agentkernel.UserMessage("hi"))
	require.Empty(t, agent.events(), "nothing starts before it is ranged over")
	var got []agentkernel.Event
	for ev, err := range stream {
		require.NoError(t, err)
		got = append(got, ev)
	}
	require.NoError(t, agenttest.CheckEvents(got))
	require.Equal(t, typesOf(agent.events()), typesOf(got))

	for ev, err := range stream { // each range is a run
		require.NoError(t, err)
		got = append(got, ev)
	}
	require.NoError(t, agenttest.CheckEvents(got))
	require.Len(t, agent.Messages(), 4)
}

// TestStreamLeftEarly neither aborts the run nor waits for it.
func TestStreamLeftEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello").Delay(time.Second).Chunks(1)), EventBuffer: 2})
		for range agent.Stream(t.Context(), agentkernel.UserMessage("hi")) {
			break
		}
		require.True(t, agent.State().IsRunning)
		time.Sleep(time.Minute)
		require.False(t, agent.State().IsRunning)
		require.Equal(t, "assistant: hello", said(agent.Messages())[1])
	})
}

// TestStreamHoldsTheRunBack as a listener does.
func TestStreamHoldsTheRunBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var yielded atomic.Int64
		agent := watch(t, agentkernel.Config{EventBuffer: 2, Model: agentkernel.ChatModelFunc(
			func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
				return func(yield func(agentkernel.StreamEvent, error) bool) {
					for range 100 {
						yielded.Add(1)
						if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "a"}, nil) {
							return
						}
					}
					yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
				}
			})})
		updates := 0
		for ev, err := range agent.Stream(t.Context(), agentkernel.UserMessage("hi")) {
			require.NoError(t, err)
			if ev.Type == agentkernel.EventMessageUpdate {
				updates++
				time.Sleep(time.Second)
				require.LessOrEqual(t, int(yielded.Load()), updates+5)
			}
		}
		require.Equal(t, 100, updates)
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("shut down")
		ctx, cancel := context.WithCancelCause(t.Context())
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("a").Stall())})
		time.AfterFunc(time.Second, func() { cancel(cause) })
		record, err := agent.Run(ctx, "hi")
		require.ErrorIs(t, err, cause)
		require.Equal(t, agentkernel.StatusAborted, record.Status)
		require.Equal(t, "a", record.Answer)
		require.Equal(t, err, agent.State().Err)
	})
}

// TestWaitWithAContextThatEnds leaves the run alone.
func TestWaitWithAContextThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("a").Delay(time.Minute))})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("impatient")
		cancel(cause)
		_, err = run.Wait(ctx)
		require.Equal(t, cause, err)
		record, err := run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, run.ID(), record.ID)
		record, err = run.Wait(ctx) // an ended run has its record at hand
		require.NoError(t, err)
		require.Equal(t, "a", record.Answer)
	})
}
