package otel_test

import (
	"context"
	"errors"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// scenario is a run and the spans that it leaves.
type scenario struct {
	cfg   func() agentkernel.Config // called in the bubble
	abort bool                      // as soon as nothing moves
	want  string
}

var wait = tool("wait", func(ctx context.Context) (agentkernel.ToolResult, error) {
	<-ctx.Done()
	return agentkernel.ToolResult{}, context.Cause(ctx)
})

var slow = tool("slow", func(context.Context) (agentkernel.ToolResult, error) {
	time.Sleep(2 * time.Second)
	return agentkernel.TextResult("late"), nil
})

// summarizer is a context manager that makes a word of what was said, once there is more.
type summarizer struct{}

func (summarizer) Project(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	if len(req.History) == 1 {
		return agentkernel.ContextResult{}, nil
	}
	return agentkernel.ContextResult{Messages: []agentkernel.AgentMessage{agentkernel.UserMessage("hi")}}, nil
}

func (summarizer) Recover(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	return agentkernel.ContextResult{}, nil
}

var scenarios = map[string]scenario{
	"text": {
		cfg:  func() agentkernel.Config { return agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello"))} },
		want: lines("invoke_agent helper", "  chat gpt-x (client)"),
	},
	"thinking and a tool": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Thinking("hm").Calls("echo"), agenttest.Text("ok")), Tools: []agentkernel.Tool{tool("echo", nil)}}
		},
		want: lines("invoke_agent helper", "  chat gpt-x (client)", "  execute_tool echo", "  chat gpt-x (client)"),
	},
	"parallel tools": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{
				Model: agenttest.Script(agenttest.Calls("slow", "echo", "fail", "crash", "none"), agenttest.Text("ok").Delay(time.Second)),
				Tools: []agentkernel.Tool{slow, tool("echo", nil),
					tool("fail", func(context.Context) (agentkernel.ToolResult, error) {
						return agentkernel.ToolResult{}, errors.New("no")
					}),
					tool("crash", func(context.Context) (agentkernel.ToolResult, error) { panic("oh") })},
			}
		},
		want: lines("invoke_agent helper", "  chat gpt-x (client)", "  execute_tool slow", "  execute_tool echo",
			"  execute_tool fail !failed", "  execute_tool crash !panic [exception]", "  execute_tool none !unknown", "  chat gpt-x (client)"),
	},
	"failed attempts, then an answer": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Fail(overloaded), agenttest.Text("hal").EndsWithoutDone(), agenttest.Text("hello"))}
		},
		want: lines("invoke_agent helper [agentkernel.retry] [agentkernel.retry]", "  chat gpt-x (client) !overloaded",
			"  chat gpt-x (client) !stream_truncated [agentkernel.discard]", "  chat gpt-x (client)"),
	},
	"a history that is replaced": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Calls("echo"), agenttest.Text("ok")), Tools: []agentkernel.Tool{tool("echo", nil)}, ContextManager: summarizer{}}
		},
		want: lines("invoke_agent helper [agentkernel.context]", "  chat gpt-x (client)", "  execute_tool echo", "  chat gpt-x (client)"),
	},
	"failed for good": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindAuth, Op: "model"}))}
		},
		want: lines("invoke_agent helper !auth", "  chat gpt-x (client) !auth"),
	},
	"failed for good, half-way": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Text("a").Fail(&agentkernel.Error{Kind: agentkernel.KindQuota, Op: "model"}))}
		},
		want: lines("invoke_agent helper !quota", "  chat gpt-x (client) !quota [agentkernel.discard]"),
	},
	"a model that panics": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Text("a").Panic("oh"))}
		},
		want: lines("invoke_agent helper !panic", "  chat gpt-x (client) !panic [agentkernel.discard]"),
	},
	"a model that leaves": {
		cfg:  func() agentkernel.Config { return agentkernel.Config{Model: agenttest.Script(agenttest.Goexit())} },
		want: lines("invoke_agent helper !panic", "  chat gpt-x (client) !panic"),
	},
	"too many turns": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{MaxTurns: 1, Model: agenttest.Script(agenttest.Calls("echo")), Tools: []agentkernel.Tool{tool("echo", nil)}}
		},
		want: lines("invoke_agent helper !max_turns", "  chat gpt-x (client)", "  execute_tool echo"),
	},
	"aborted while it asks": {
		cfg: func() agentkernel.Config { return agentkernel.Config{Model: agenttest.Script(agenttest.Stall())} }, abort: true,
		want: lines("invoke_agent helper !canceled", "  chat gpt-x (client) !canceled"),
	},
	"aborted in an answer": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Text("hal").Stall())}
		}, abort: true,
		want: lines("invoke_agent helper !canceled", "  chat gpt-x (client) !canceled"),
	},
	"aborted in a call": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Calls("wait")), Tools: []agentkernel.Tool{wait}}
		}, abort: true,
		want: lines("invoke_agent helper !canceled", "  chat gpt-x (client)", "  execute_tool wait !interrupted"),
	},
	"fallback": {
		cfg: func() agentkernel.Config {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindQuota, Op: "model"})),
				Fallbacks: []agentkernel.ChatModel{agenttest.Script(agenttest.Calls("echo"), agenttest.Text("ok"))}, Tools: []agentkernel.Tool{tool("echo", nil)}, MaxTurns: 1}
		},
		want: lines("invoke_agent helper !max_turns [agentkernel.retry]", "  chat gpt-x (client) !quota", "  chat (client)", "  execute_tool echo"),
	},
}
