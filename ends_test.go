package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestEnds is the table of ends, each way out of the loop, under the checker.
func TestEnds(t *testing.T) {
	finish := tool("finish", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{Terminate: true}, nil
	})
	broken := tool("broken", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{}, errors.New("no luck")
	})
	length := agentkernel.StopReasonLength
	for name, c := range map[string]struct {
		cfg    agentkernel.Config
		script []agenttest.Reply
		want   agentkernel.EndReason
		kind   agentkernel.Kind // "" for an end without Err
		event  bool             // an Error event comes before AgentEnd
	}{
		"text":               {script: replies(agenttest.Text("ok")), want: agentkernel.EndStop},
		"calls, then text":   {script: replies(agenttest.Calls("echo", "echo"), agenttest.Text("ok")), want: agentkernel.EndStop},
		"a tool fails":       {script: replies(agenttest.Calls("broken"), agenttest.Text("ok")), want: agentkernel.EndStop},
		"unknown tool":       {script: replies(agenttest.Calls("reed"), agenttest.Text("ok")), want: agentkernel.EndStop},
		"bad arguments":      {script: replies(agenttest.Call("", "echo", "{"), agenttest.Text("ok")), want: agentkernel.EndStop},
		"terminated":         {script: replies(agenttest.Calls("echo", "finish", "echo")), want: agentkernel.EndTerminated},
		"only a Done":        {script: replies(agenttest.Reply{}), want: agentkernel.EndEmpty},
		"thinking only":      {script: replies(agenttest.Thinking("hm")), want: agentkernel.EndEmpty},
		"usage only":         {script: replies(agenttest.Reply{}.Usage(agentkernel.Usage{Output: 2, Total: 2})), want: agentkernel.EndEmpty},
		"tool_use, no calls": {script: replies(agenttest.Reply{}.Stop(agentkernel.StopReasonToolUse)), want: agentkernel.EndEmpty},
		"refusal":            {script: replies(agenttest.Text("no").Stop(agentkernel.StopReasonRefusal)), want: agentkernel.EndRefusal},
		"refusal, no text":   {script: replies(agenttest.Reply{}.Stop(agentkernel.StopReasonRefusal)), want: agentkernel.EndRefusal},
		"length":             {script: replies(agenttest.Text("abc").Stop(length)), want: agentkernel.EndLength},
		"length, no text":    {script: replies(agenttest.Reply{}.Stop(length)), want: agentkernel.EndLength},
		"length in a call":   {script: replies(agenttest.Call("1", "echo", `{"a`).Stop(length), agenttest.Text("ok")), want: agentkernel.EndStop},
		"stop, but calls":    {script: replies(agenttest.Calls("echo").Stop(agentkernel.StopReasonStop), agenttest.Text("ok")), want: agentkernel.EndStop},
		"unknown reason":     {script: replies(agenttest.Text("ok").Stop("eos")), want: agentkernel.EndStop},

		"max turns": {
			cfg: agentkernel.Config{MaxTurns: 2}, script: replies(agenttest.Calls("echo"), agenttest.Calls("echo"), agenttest.Text("never")),
			want: agentkernel.EndMaxTurns, kind: agentkernel.KindMaxTurns, event: true,
		},
		"last turn answers": {
			cfg: agentkernel.Config{MaxTurns: 2}, script: replies(agenttest.Calls("echo"), agenttest.Text("ok")),
			want: agentkernel.EndStop,
		},
		"provider fails": {
			script: replies(agenttest.Fail(failure(agentkernel.KindAuth, false))),
			want:   agentkernel.EndError, kind: agentkernel.KindAuth, event: true,
		},
		"an error of no kind": {
			script: replies(agenttest.Fail(errors.New("odd"))),
			want:   agentkernel.EndError, kind: agentkernel.KindProvider, event: true,
		},
		"error after text": {
			script: replies(agenttest.Text("par").Fail(failure(agentkernel.KindServer, false))),
			want:   agentkernel.EndError, kind: agentkernel.KindServer, event: true,
		},
		"error after a call": {
			script: replies(agenttest.Call("1", "echo", "{}").Fail(failure(agentkernel.KindServer, false))),
			want:   agentkernel.EndError, kind: agentkernel.KindServer, event: true,
		},
		"error in the second turn": {
			script: replies(agenttest.Calls("echo"), agenttest.Fail(failure(agentkernel.KindQuota, false))),
			want:   agentkernel.EndError, kind: agentkernel.KindQuota, event: true,
		},
		"error after usage only": {
			script: replies(agenttest.Reply{}.Usage(agentkernel.Usage{Input: 3, Total: 3}).Fail(failure(agentkernel.KindServer, false))),
			want:   agentkernel.EndError, kind: agentkernel.KindServer, event: true,
		},
		"the model's own timeout": {
			script: replies(agenttest.Fail(failure(agentkernel.KindTimeout, false))),
			want:   agentkernel.EndTimeout, kind: agentkernel.KindTimeout, event: true,
		},
		"retries used up": {
			cfg:    agentkernel.Config{Retry: agentkernel.RetryPolicy{MaxRetries: 1, BaseDelay: -1}},
			script: replies(agenttest.Text("a").Fail(failure(agentkernel.KindServer, true)), agenttest.Fail(failure(agentkernel.KindOverloaded, true))),
			want:   agentkernel.EndError, kind: agentkernel.KindOverloaded, event: true,
		},
		"nothing at all": {
			cfg: agentkernel.Config{Retry: unretried}, script: replies(agenttest.Reply{}.EndsWithoutDone()),
			want: agentkernel.EndError, kind: agentkernel.KindStreamTruncated, event: true,
		},
		"truncated": {
			cfg: agentkernel.Config{Retry: unretried}, script: replies(agenttest.Text("ab").EndsWithoutDone()),
			want: agentkernel.EndError, kind: agentkernel.KindStreamTruncated, event: true,
		},
		"nil stream": {
			script: replies(agenttest.NilStream()), want: agentkernel.EndError, kind: agentkernel.KindProtocol, event: true,
		},
		"unknown event": {
			script: replies(agenttest.Text("a").Events(agentkernel.StreamEvent{Type: "audio"})),
			want:   agentkernel.EndError, kind: agentkernel.KindProtocol, event: true,
		},
		"model panics": {
			script: replies(agenttest.Panic("boom")), want: agentkernel.EndError, kind: agentkernel.KindPanic, event: true,
		},
		"model panics after text": {
			script: replies(agenttest.Text("a").Panic(errors.New("boom"))),
			want:   agentkernel.EndError, kind: agentkernel.KindPanic, event: true,
		},
		"model leaves its goroutine": {
			script: replies(agenttest.Text("a").Goexit()), want: agentkernel.EndError, kind: agentkernel.KindPanic, event: true,
		},
		"hook fails": {
			cfg: agentkernel.Config{ConvertToLLM: hook(nil, errors.New("no"))}, script: replies(agenttest.Text("never")),
			want: agentkernel.EndError, kind: agentkernel.KindHook, event: true,
		},
		"hook panics": {
			cfg: agentkernel.Config{ConvertToLLM: hook("boom", nil)}, script: replies(agenttest.Text("never")),
			want: agentkernel.EndError, kind: agentkernel.KindPanic, event: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Model = agenttest.Script(c.script...)
			c.cfg.MaxEmptyRetries, c.cfg.MaxLengthRecoveries = -1, -1
			c.cfg.Tools = []agentkernel.Tool{echo("echo"), finish, broken}
			log := play(t, c.cfg)
			end := final(log)
			require.Equal(t, c.want, end.Summary.EndReason)
			require.Len(t, ofType(log, agentkernel.EventAgentEnd), 1)
			require.Len(t, ofType(log, agentkernel.EventError), map[bool]int{true: 1}[c.event])
			if c.kind == "" {
				require.NoError(t, end.Err)
				return
			}
			require.ErrorIs(t, end.Err, c.kind)
			require.Equal(t, end.Err, log[len(log)-2].Err)
		})
	}
}

var unretried = agentkernel.RetryPolicy{MaxRetries: -1}

func replies(r ...agenttest.Reply) []agenttest.Reply { return r }

// hook is a ConvertToLLM that panics with value, or fails with err.
func hook(value any, err error) func(context.Context, []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
	return func(_ context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
		if value != nil {
			panic(value)
		}
		return agentkernel.DefaultConvertToLLM(history), err
	}
}

// TestEndsOfStops is what a stop from outside does at each place of a run.
func TestEndsOfStops(t *testing.T) {
	cause := errors.New("the user left")
	server := &agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true, RetryAfter: time.Hour}
	for name, c := range map[string]struct {
		at     agentkernel.EventType
		script []agenttest.Reply
		said   []string
		causes []string
	}{
		"at the start":    {agentkernel.EventAgentStart, replies(agenttest.Text("ab").Delay(1)), []string{"user: hi"}, nil},
		"before content":  {agentkernel.EventModelRequest, replies(agenttest.Stall()), []string{"user: hi"}, nil},
		"usage only":      {agentkernel.EventModelRequest, replies(agenttest.Reply{}.Usage(agentkernel.Usage{Input: 1, Total: 1}).Stall()), []string{"user: hi"}, nil},
		"within text":     {agentkernel.EventMessageUpdate, replies(agenttest.Text("ab").Stall()), []string{"user: hi", "assistant: ab"}, nil},
		"within thinking": {agentkernel.EventMessageUpdate, replies(agenttest.Thinking("ab").Stall()), []string{"user: hi", "assistant: "}, nil},
		"within a call":   {agentkernel.EventMessageUpdate, replies(agenttest.Call("1", "wait", `{"a`).Stall()), []string{"user: hi", "assistant: "}, nil},
		"within a call, after text": {
			agentkernel.EventMessageUpdate, replies(agenttest.Text("ab").Call("1", "wait", `{"a":1}`).Stall()),
			[]string{"user: hi", "assistant: ab"}, nil,
		},
		"within tools": {
			agentkernel.EventToolExecStart, replies(agenttest.Calls("wait", "wait"), agenttest.Text("never")),
			[]string{"user: hi", "assistant: ", "tool: *", "tool: *"}, []string{"wait interrupted", "wait not_started"},
		},
		"within the wait for a retry": {
			agentkernel.EventRetry, replies(agenttest.Text("ab").Fail(server), agenttest.Text("never")), []string{"user: hi"}, nil,
		},
		"behind the answer": {agentkernel.EventMessageEnd, replies(agenttest.Stall()), []string{"user: hi"}, nil},
	} {
		for _, kind := range []agentkernel.Kind{agentkernel.KindCanceled, agentkernel.KindTimeout} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					stop := func() { cancel(cause) }
					if kind == agentkernel.KindTimeout {
						var free context.CancelFunc
						ctx, free = context.WithTimeoutCause(t.Context(), time.Minute, cause)
						defer free()
						stop = sync.OnceFunc(func() { time.Sleep(time.Minute) })
					}
					at := c.at
					wait := waiter("wait")
					if at == agentkernel.EventToolExecStart { // from within the tool, so that it has begun
						at = ""
						wait = tool("wait", func(ctx context.Context) (agentkernel.ToolResult, error) {
							stop()
							<-ctx.Done()
							return agentkernel.ToolResult{}, ctx.Err()
						})
					}
					model := agenttest.Script(c.script...)
					cfg := agentkernel.Config{Model: model, Tools: []agentkernel.Tool{wait}, EventBuffer: 1, Retry: agentkernel.RetryPolicy{MaxDelay: -1}}
					events := agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi"))
					log := drain(t, nil, cancelOn(events, at, stop))
					defer cancel(nil)

					end := final(log)
					require.ErrorIs(t, end.Err, kind)
					require.ErrorIs(t, end.Err, cause)
					require.Equal(t, c.causes, causes(log))
					got := said(end.NewMessages)
					for i := range got {
						if i < len(c.said) && c.said[i] == "tool: *" {
							got[i] = c.said[i]
						}
					}
					if c.at != agentkernel.EventAgentStart || len(got) > 0 {
						require.Equal(t, c.said, got)
					}
					wantReason, wantErrors := agentkernel.EndAborted, 0
					if kind == agentkernel.KindTimeout {
						wantReason, wantErrors = agentkernel.EndTimeout, 1
					}
					require.Equal(t, wantReason, end.Summary.EndReason)
					require.Len(t, ofType(log, agentkernel.EventError), wantErrors)
					require.LessOrEqual(t, len(model.Requests()), 1)
				})
			})
		}
	}
}

// TestContextThatEndedBefore: the run still begins, says its prompt or not, and ends.
func TestContextThatEndedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	model := agenttest.Script(agenttest.Text("never"))
	log := drain(t, nil, agentkernel.AgentLoop(ctx, agentkernel.Config{Model: model}, nil, agentkernel.UserMessage("hi")))
	require.Equal(t, agentkernel.EndAborted, endReason(log))
	require.Empty(t, model.Requests())
}

// TestMisuseOfTheLoop: an Error of kind invalid_request and AgentEnd, nothing else.
func TestMisuseOfTheLoop(t *testing.T) {
	model := agenttest.Script(agenttest.Text("ok"))
	user := agentkernel.UserMessage("hi")
	answer := agentkernel.Message{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("a")}, StopReason: agentkernel.StopReasonStop}
	with := func(change func(*agentkernel.Config)) agentkernel.Config {
		cfg := agentkernel.Config{Model: model}
		change(&cfg)
		return cfg
	}
	for name, c := range map[string]struct {
		cfg     agentkernel.Config
		history []agentkernel.AgentMessage
		prompts []agentkernel.AgentMessage
		is      error
	}{
		"no model":          {agentkernel.Config{}, nil, list(user), agentkernel.ErrNoModel},
		"nothing to answer": {with(func(*agentkernel.Config) {}), nil, nil, agentkernel.ErrNoMessages},
		"a finished answer": {with(func(*agentkernel.Config) {}), list(user, answer), nil, agentkernel.ErrBadContinuation},
		"only a mark":       {with(func(*agentkernel.Config) {}), list(mark("m")), nil, agentkernel.ErrNoMessages},
		"a nil prompt":      {with(func(*agentkernel.Config) {}), nil, list(nil), nil},
		"a nil *Message":    {with(func(*agentkernel.Config) {}), nil, list((*agentkernel.Message)(nil)), nil},
		"a nil in history":  {with(func(*agentkernel.Config) {}), list(user, nil), list(user), nil},
		"a prompt by the assistant": {
			with(func(*agentkernel.Config) {}), nil, list(answer), nil,
		},
		"two tools of one name": {with(func(c *agentkernel.Config) { c.Tools = []agentkernel.Tool{echo("a"), echo("a")} }), nil, list(user), nil},
		"a tool without a name": {with(func(c *agentkernel.Config) { c.Tools = []agentkernel.Tool{echo("")} }), nil, list(user), nil},
		"a tool that does nothing": {
			with(func(c *agentkernel.Config) { c.Tools = []agentkernel.Tool{{Name: "a"}} }), nil, list(user), nil,
		},
		"a schema that is none": {
			with(func(c *agentkernel.Config) {
				t := echo("a")
				t.Schema = json.RawMessage(`"x"`)
				c.Tools = []agentkernel.Tool{t}
			}), nil, list(user), nil,
		},
		"a negative buffer": {
			with(func(c *agentkernel.Config) { c.EventBuffer = -1 }), nil, list(user), nil,
		},
		"jitter beyond 1": {with(func(c *agentkernel.Config) { c.Retry.Jitter = 2 }), nil, list(user), nil},
	} {
		t.Run(name, func(t *testing.T) {
			log := drain(t, c.history, agentkernel.AgentLoop(t.Context(), c.cfg, c.history, c.prompts...))
			require.Equal(t, []agentkernel.EventType{agentkernel.EventAgentStart, agentkernel.EventError, agentkernel.EventAgentEnd}, typesOf(log))
			require.ErrorIs(t, final(log).Err, agentkernel.KindInvalidRequest)
			require.Equal(t, agentkernel.EndError, endReason(log))
			if c.is != nil {
				require.ErrorIs(t, final(log).Err, c.is)
			}
		})
	}
}

func list(messages ...agentkernel.AgentMessage) []agentkernel.AgentMessage { return messages }

// mark is a message of the harness's own.
type mark string

func (m mark) GetRole() agentkernel.Role { return "mark" }
func (mark) GetTimestamp() time.Time     { return time.Time{} }
func (m mark) TextContent() string       { return string(m) }
func (mark) ThinkingContent() string     { return "" }
func (mark) HasToolCalls() bool          { return false }

// TestModelThatYieldsOn: what a model yields after Done, or after an abort, changes nothing.
func TestModelThatYieldsOn(t *testing.T) {
	text := agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "a"}
	deaf := func(stop func()) agentkernel.ChatModelFunc {
		return func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
			return func(yield func(agentkernel.StreamEvent, error) bool) {
				yield(text, nil)
				stop()
				for range 3 {
					yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
				}
			}
		}
	}
	log := play(t, agentkernel.Config{Model: deaf(func() {}), Retry: unretried})
	require.Equal(t, agentkernel.EndStop, endReason(log))
	require.Equal(t, []string{"user: hi", "assistant: a"}, said(final(log).NewMessages))

	ctx, cancel := context.WithCancel(t.Context())
	log = drain(t, nil, agentkernel.AgentLoop(ctx, agentkernel.Config{Model: deaf(cancel)}, nil, agentkernel.UserMessage("hi")))
	require.Equal(t, agentkernel.EndAborted, endReason(log))
	require.Equal(t, []string{"user: hi", "assistant: a"}, said(final(log).NewMessages))
}

// TestNoHalfMessageAtError: when Error is delivered no half-made message is in the state.
func TestNoHalfMessageAtError(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("par").Fail(failure(agentkernel.KindServer, false)))})
	var at agentkernel.AgentState
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventError {
			at = agent.State()
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.ErrorIs(t, err, agentkernel.KindServer)
	require.Nil(t, at.StreamMessage)
	require.Equal(t, []string{"user: hi"}, said(at.Messages))
	require.Equal(t, err, at.Err)
	discard := ofType(agent.events(), agentkernel.EventMessageDiscard)
	require.Len(t, discard, 1)
	require.Equal(t, "par", discard[0].Message.TextContent())
	require.False(t, slices.ContainsFunc(agent.Messages(), func(m agentkernel.AgentMessage) bool { return m.GetRole() == agentkernel.RoleAssistant }))
}
