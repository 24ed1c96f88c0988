package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestLoopOfATool is the whole grammar of one run with a tool.
func TestLoopOfATool(t *testing.T) {
	model := agenttest.Script(agenttest.Thinking("hm").Text("look").Calls("echo", "echo"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo")}})
	require.Equal(t, []agentkernel.EventType{
		"agent_start",
		"turn_start", "message_start", "message_end", "model_request",
		"message_start", "message_update", "message_update", "message_update", "message_update", "message_end",
		"tool_exec_start", "tool_exec_end", "tool_exec_start", "tool_exec_end",
		"message_start", "message_end", "message_start", "message_end", "model_response",
		"turn_start", "model_request", "message_start", "message_update", "message_end", "model_response",
		"agent_end",
	}, typesOf(log))
	require.Equal(t, []string{"user: hi", "assistant: look", "tool: {}", "tool: {}", "assistant: ok"}, said(final(log).NewMessages))
	require.Len(t, model.Requests()[1].Messages, 4)
}

// TestLoopChangesNothing that it was given, and keeps nothing between runs.
func TestLoopChangesNothing(t *testing.T) {
	history := make([]agentkernel.AgentMessage, 1, 10)
	history[0] = agentkernel.UserMessage("before")
	prompts := make([]agentkernel.AgentMessage, 1, 10)
	prompts[0] = agentkernel.Message{Role: agentkernel.RoleUser, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("\xffhi")}}
	cfg := agentkernel.Config{Model: agenttest.Script(slices.Repeat(replies(agenttest.Calls("echo"), agenttest.Text("ok")), 2)...), Tools: []agentkernel.Tool{echo("echo")}}
	for range 2 {
		log := agenttest.Run(t, cfg, history, prompts...)
		require.Len(t, final(log).NewMessages, 4)
	}
	require.Nil(t, history[:2][1])
	require.Nil(t, prompts[:2][1])
	require.Equal(t, "\xffhi", prompts[0].TextContent())
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(
			agenttest.Text("a").Usage(agentkernel.Usage{Input: 5, Total: 5}).Fail(failure(agentkernel.KindServer, true)),
			agenttest.Fail(failure(agentkernel.KindOverloaded, true)),
			agenttest.Text("b").EndsWithoutDone(),
			agenttest.Text("ok").Usage(agentkernel.Usage{Input: 7, Total: 7}),
		)
		cfg := agentkernel.Config{Model: model, Retry: agentkernel.RetryPolicy{Jitter: -1}}
		began := time.Now()
		log := play(t, cfg)
		require.Equal(t, 7*time.Second, time.Since(began)) // 1 + 2 + 4
		end := final(log)
		require.NoError(t, end.Err)
		require.Equal(t, []string{"user: hi", "assistant: ok"}, said(end.NewMessages))
		require.Equal(t, 3, end.Summary.Retries)
		require.Equal(t, 7, end.Summary.Usage.Total)
		require.Equal(t, 5, end.Summary.DiscardedUsage.Total)
		retries := ofType(log, agentkernel.EventRetry)
		require.Len(t, retries, 3)
		require.ErrorIs(t, retries[0].Err, agentkernel.KindServer)
		require.ErrorIs(t, retries[1].Err, agentkernel.KindOverloaded)
		require.ErrorIs(t, retries[2].Err, agentkernel.KindStreamTruncated)
		require.Len(t, ofType(log, agentkernel.EventMessageDiscard), 2)
		for _, req := range model.Requests() {
			require.Len(t, req.Messages, 1)
		}
	})
}

// TestRetriesAreBounded: the kernel is the only one that retries, and counts.
func TestRetriesAreBounded(t *testing.T) {
	fail := agenttest.Fail(failure(agentkernel.KindServer, true))
	for retries, want := range map[int]int{-1: 1, 1: 2, 2: 3, 0: 4} {
		model := agenttest.Script(slices.Repeat(replies(fail), 10)...)
		log := play(t, agentkernel.Config{Model: model, Retry: agentkernel.RetryPolicy{MaxRetries: retries, BaseDelay: -1}})
		require.Len(t, model.Requests(), want)
		require.Len(t, ofType(log, agentkernel.EventRetry), want-1)
		require.ErrorIs(t, final(log).Err, agentkernel.KindServer)
	}
}

// TestRetryBudgetIsPerCall of the model, not per run.
func TestRetryBudgetIsPerCall(t *testing.T) {
	fail := agenttest.Fail(failure(agentkernel.KindServer, true))
	model := agenttest.Script(fail, agenttest.Calls("echo"), fail, agenttest.Text("ok"))
	log := play(t, agentkernel.Config{
		Model: model, Tools: []agentkernel.Tool{echo("echo")},
		Retry: agentkernel.RetryPolicy{MaxRetries: 1, BaseDelay: -1}, MaxTurns: 2,
	})
	require.NoError(t, final(log).Err)
	require.Equal(t, 2, final(log).Summary.Retries)
}

// TestRetryAfter: the server's wait is a lower bound, and beyond MaxDelay the end.
func TestRetryAfter(t *testing.T) {
	after := func(d time.Duration) agenttest.Reply {
		return agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindRateLimit, Retryable: true, RetryAfter: d})
	}
	for name, c := range map[string]struct {
		policy agentkernel.RetryPolicy
		after  time.Duration
		want   time.Duration
		fails  bool
	}{
		"longer than the backoff":  {agentkernel.RetryPolicy{}, 30 * time.Second, 30 * time.Second, false},
		"shorter than the backoff": {agentkernel.RetryPolicy{BaseDelay: 10 * time.Second, Jitter: -1}, time.Second, 10 * time.Second, false},
		"longer than allowed":      {agentkernel.RetryPolicy{}, 61 * time.Second, 0, true},
		"no cap":                   {agentkernel.RetryPolicy{MaxDelay: -1}, time.Hour, time.Hour, false},
		"no wait":                  {agentkernel.RetryPolicy{BaseDelay: -1}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				log := play(t, agentkernel.Config{Model: agenttest.Script(after(c.after), agenttest.Text("ok")), Retry: c.policy})
				require.Equal(t, c.want, time.Since(began))
				require.Equal(t, c.fails, final(log).Err != nil)
			})
		})
	}
}

// TestAbortInBackoff ends the run at once, without another request.
func TestAbortInBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true, RetryAfter: 30 * time.Second}), agenttest.Text("never"))
		agent := watch(t, agentkernel.Config{Model: model})
		began := time.Now()
		time.AfterFunc(50*time.Millisecond, func() { agent.Abort(nil) })
		record, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, 50*time.Millisecond, time.Since(began))
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
		require.Len(t, model.Requests(), 1)
	})
}

// TestCancelledClientError: what a client reports after the run's context ended is no error.
func TestCancelledClientError(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	model := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			cancel(cause)
			yield(agentkernel.StreamEvent{}, errors.New("use of closed network connection"))
		}
	})
	log := drain(t, nil, agentkernel.AgentLoop(ctx, agentkernel.Config{Model: model}, nil, agentkernel.UserMessage("hi")))
	require.ErrorIs(t, final(log).Err, agentkernel.KindCanceled)
	require.ErrorIs(t, final(log).Err, cause)
	require.Empty(t, ofType(log, agentkernel.EventError))
}

func TestUnknownTool(t *testing.T) {
	model := agenttest.Script(agenttest.Calls("reed"), agenttest.Calls("read"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("read"), echo("write")}})
	require.Equal(t, []string{"reed unknown", "read ok"}, causes(log))
	told := model.Requests()[1].Messages[2]
	require.True(t, told.IsError)
	require.Contains(t, told.TextContent(), `"reed"`)
	require.Contains(t, told.TextContent(), `"read", "write"`)
	require.Equal(t, 1, final(log).Summary.ToolErrors)
}

func TestBadArguments(t *testing.T) {
	for args, place := range map[string]string{`{"p": a}`: "offset 7", `[1,2]`: "no object", `{"p"`: "offset 4"} {
		ran := false
		model := agenttest.Script(agenttest.Call("1", "t", args), agenttest.Text("ok"))
		log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
			ran = true
			return agentkernel.ToolResult{}, nil
		})}})
		require.False(t, ran)
		require.Equal(t, []string{"t invalid"}, causes(log))
		sent := model.Requests()[1].Messages
		require.Equal(t, "{}", string(sent[1].ToolCalls()[0].Args))
		require.Contains(t, sent[2].TextContent(), place)
		require.Contains(t, sent[2].TextContent(), args)
	}
}

// TestCutOffCalls: a call that the output limit cut is never executed; those before it are.
func TestCutOffCalls(t *testing.T) {
	length := agentkernel.StopReasonLength
	for name, c := range map[string]struct {
		first agenttest.Reply
		want  []string
	}{
		"half an object":       {agenttest.Call("1", "echo", `{"a":1}`).Call("2", "echo", `{"a"`).Stop(length), []string{"echo ok", "echo cut_off"}},
		"blank":                {agenttest.Call("1", "echo", ``).Stop(length), []string{"echo cut_off"}},
		"a whole object":       {agenttest.Call("1", "echo", `{"a":1}`).Stop(length), []string{"echo ok"}},
		"text behind the call": {agenttest.Call("1", "echo", `{"a":1}`).Text("and").Stop(length), []string{"echo ok"}},
		"bad one before":       {agenttest.Call("1", "echo", `{"a"`).Call("2", "echo", `{}`).Stop(length), []string{"echo invalid", "echo ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: agenttest.Script(c.first, agenttest.Text("ok")), Tools: []agentkernel.Tool{echo("echo")}})
			require.Equal(t, c.want, causes(log))
			require.NoError(t, final(log).Err)
		})
	}
}

// TestResultsAreTheKernels: named, valid, and sharing nothing with the tool.
func TestResultsAreTheKernels(t *testing.T) {
	blocks := []agentkernel.ContentBlock{agentkernel.TextBlock("a\xff")}
	usage := &agentkernel.Usage{Input: 3, Total: 3}
	raw := json.RawMessage(`{"x": "<"}`)
	one := tool("one", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{Content: blocks, JSON: raw, Usage: usage, Cause: "lie", ToolName: "lie", Details: 7}, nil
	})
	two := tool("two", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{JSON: raw}, nil
	})
	log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("one", "two"), agenttest.Text("ok")), Tools: []agentkernel.Tool{one, two}})
	blocks[0].Text, raw[1], usage.Input = "changed", 'X', 99
	ends := ofType(log, agentkernel.EventToolExecEnd)
	require.Equal(t, "one", ends[0].Result.ToolName)
	require.Equal(t, agentkernel.ToolOK, ends[0].Result.Cause)
	require.Equal(t, 7, ends[0].Result.Details)
	require.Equal(t, "a\uFFFD", ends[0].Result.Content[0].Text)
	require.JSONEq(t, `{"x":"<"}`, string(ends[0].Result.JSON))
	require.Equal(t, 3, ends[0].Result.Usage.Input)
	require.Equal(t, 3, final(log).Summary.Usage.Total)
	require.Equal(t, `{"x":"\u003c"}`, final(log).NewMessages[3].TextContent())
}

// TestHarnessMessages travel in the history and are dropped before a model sees them.
func TestHarnessMessages(t *testing.T) {
	model := agenttest.Script(agenttest.Text("ok"))
	log := agenttest.Run(t, agentkernel.Config{Model: model}, list(mark("old")), mark("new"), agentkernel.UserMessage("hi"))
	require.Equal(t, []string{"mark: new", "user: hi", "assistant: ok"}, said(final(log).NewMessages))
	require.Len(t, model.Requests()[0].Messages, 1)
}

// TestConvertToLLM decides what the model sees, and sees the whole history each time.
func TestConvertToLLM(t *testing.T) {
	var seen []int
	model := agenttest.Script(agenttest.Calls("echo"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo")},
		ConvertToLLM: func(_ context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
			seen = append(seen, len(history))
			_ = append(history, mark("does not reach the run"))
			return []agentkernel.Message{agentkernel.UserMessage("instead")}, nil
		}})
	require.Equal(t, []int{1, 3}, seen)
	require.Equal(t, "instead", model.Requests()[1].Messages[0].TextContent())
	require.Len(t, model.Requests()[1].Messages, 1)
	require.Len(t, final(log).NewMessages, 4)
}

// TestEmptyAnswerIsNotSentBack.
func TestEmptyAnswerIsNotSentBack(t *testing.T) {
	for name, first := range map[string]agenttest.Reply{
		"only a Done":   {},
		"thinking only": agenttest.Thinking("hm"),
		"tool_use":      agenttest.Reply{}.Stop(agentkernel.StopReasonToolUse),
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(first, agenttest.Text("ok"))
			agent := watch(t, agentkernel.Config{Model: model, MaxEmptyRetries: -1})
			record, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.Equal(t, agentkernel.EndEmpty, record.EndReason)
			require.Len(t, model.Requests(), 1)
			_, err = agent.Run(t.Context(), "again")
			require.NoError(t, err)
			for _, m := range model.Requests()[1].Messages {
				require.Equal(t, agentkernel.RoleUser, m.Role)
			}
		})
	}
}

// TestBackpressure: a full channel blocks the run, and nothing is lost.
func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("abcd", 300)
		cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Text(text).Chunks(4)), EventBuffer: 3}
		events := agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi"))
		var log []agentkernel.Event
		for ev := range events {
			time.Sleep(time.Minute)
			synctest.Wait()
			require.LessOrEqual(t, len(events), 3)
			log = append(log, ev)
		}
		require.NoError(t, agenttest.CheckRun(nil, log))
		require.Len(t, ofType(log, agentkernel.EventMessageUpdate), 300)
	})
}

// TestAbandonedChannel: whose context is cancelled leaves nothing behind, and how the run
// ended stays in the channel.
func TestAbandonedChannel(t *testing.T) {
	for name, c := range map[string]struct {
		buffer  int
		drain   time.Duration
		read    int
		wait    time.Duration
		timeout bool
	}{
		"never read":           {buffer: 2, drain: 0, read: 0, wait: 5 * time.Second},
		"read a little":        {buffer: 2, drain: time.Second, read: 4, wait: time.Second},
		"a larger buffer":      {buffer: 8, drain: time.Second, read: 0, wait: time.Second},
		"least buffer":         {buffer: 1, drain: time.Second, read: 1, wait: time.Second},
		"a deadline, an Error": {buffer: 2, drain: time.Second, read: 1, wait: time.Second, timeout: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				cfg := agentkernel.Config{
					Model:       agenttest.Script(agenttest.Text(strings.Repeat("a", 100)).Chunks(1)),
					EventBuffer: c.buffer, DrainTimeout: c.drain,
				}
				events := agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi"))
				var log []agentkernel.Event
				for range c.read {
					log = append(log, <-events)
				}
				synctest.Wait()
				if c.timeout {
					<-ctx.Done()
				} else {
					cancel()
				}
				time.Sleep(c.wait - 1)
				synctest.Wait()
				// The run ends exactly DrainTimeout after: until then all of it is waiting.
				require.Len(t, events, cap(events))
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				for ev := range events { // closed, so that this ends
					log = append(log, ev)
				}
				checker := agenttest.Checker{AllowGaps: true}
				checker.StartFrom(nil)
				for _, ev := range log {
					checker.Listen(ev)
				}
				require.NoError(t, checker.Finish())
				require.Len(t, log, c.read+cap(events))
				require.Greater(t, int(final(log).Seq), len(log), "Seq shows the gap")
				if c.timeout {
					require.Equal(t, []agentkernel.EventType{"error", "agent_end"}, typesOf(log[len(log)-2:]))
					require.ErrorIs(t, final(log).Err, agentkernel.KindTimeout)
				}
			})
		})
	}
}

// TestSlowConsumerAfterCancel that still reads gets everything.
func TestSlowConsumerAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("abcdef").Calls("a", "a", "a").Chunks(1)), Tools: []agentkernel.Tool{waiter("a")},
			EventBuffer: 2, DrainTimeout: time.Minute,
		}
		var log []agentkernel.Event
		for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
			if ev.Type == agentkernel.EventToolExecStart {
				cancel()
			}
			time.Sleep(59 * time.Second)
			log = append(log, ev)
		}
		cancel()
		require.NoError(t, agenttest.CheckRun(nil, log))
		require.Equal(t, []string{"a interrupted", "a not_started", "a not_started"}, causes(log))
	})
}

// TestNegativeDrainTimeoutWaits for ever.
func TestNegativeDrainTimeoutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Text("abcdef").Chunks(1)), EventBuffer: 2, DrainTimeout: -1}
		events := agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi"))
		synctest.Wait()
		cancel()
		time.Sleep(24 * time.Hour)
		log := drain(t, nil, events)
		require.Equal(t, agentkernel.EndAborted, endReason(log))
	})
}

// TestCancelWhileToolsEmit: eight runs, cancelled anywhere, end properly; there is no send on a closed channel.
func TestCancelWhileToolsEmit(t *testing.T) {
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 125 {
				ctx, cancel := context.WithCancel(t.Context())
				cfg := agentkernel.Config{
					Model: agenttest.Script(agenttest.Text("abc").Calls("echo", "wait", "echo").Chunks(1), agenttest.Text("x")),
					Tools: []agentkernel.Tool{echo("echo"), waiter("wait")}, EventBuffer: 2,
				}
				var log []agentkernel.Event
				for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
					if log = append(log, ev); len(log) == 1+(i*125+j)%14 {
						cancel()
					}
				}
				cancel()
				if err := agenttest.CheckRun(nil, log); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, runtime.NumGoroutine(), before+50, "far fewer than the runs: the last ones may still be leaving")
}

// TestSnapshotsNeverChange: every partial that was handed out stays as it was, also while
// others read it.
func TestSnapshotsNeverChange(t *testing.T) {
	model := agenttest.Script(
		agenttest.Thinking(strings.Repeat("hm ", 50)).Text(strings.Repeat("text ", 50)).
			Call("1", "echo", `{"a":"`+strings.Repeat("x", 100)+`"}`).Chunks(3),
		agenttest.Text("ok"))
	type snapshot struct {
		message agentkernel.AgentMessage
		looked  string
	}
	var kept []snapshot
	var wg sync.WaitGroup
	for ev := range agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo")}}, nil, agentkernel.UserMessage("hi")) {
		if ev.Message != nil {
			kept = append(kept, snapshot{ev.Message, look(ev.Message)})
			wg.Go(func() { _ = fmt.Sprint(ev.Message) })
		}
	}
	wg.Wait()
	require.Greater(t, len(kept), 150)
	for _, k := range kept {
		require.Equal(t, k.looked, look(k.message))
	}
}

// TestCallIDsAreUnique in the history and the run.
func TestCallIDsAreUnique(t *testing.T) {
	model := agenttest.Script(
		agenttest.Call("1", "echo", "{}").Call("", "echo", "{}").Call("null", "echo", "{}"),
		agenttest.Call("1", "echo", "{}"),
		agenttest.Text("ok"))
	agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo")}})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	seen := make(map[string]bool)
	for _, m := range agent.Messages() {
		for _, call := range m.(agentkernel.Message).ToolCalls() {
			require.NotContains(t, []string{"", "null"}, call.ID)
			require.False(t, seen[call.ID])
			seen[call.ID] = true
		}
	}
	require.Len(t, seen, 4)
	for _, ev := range ofType(agent.events(), agentkernel.EventMessageUpdate) {
		if ev.Turn == 2 {
			require.NotEqual(t, "1", ev.ToolID, "an id that is taken is replaced the moment it arrives")
			require.NotEmpty(t, ev.ToolID)
		}
	}
}
