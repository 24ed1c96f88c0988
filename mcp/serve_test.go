package mcp_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/mcp"
)

func newAgent(t *testing.T, model agentkernel.ChatModel, tools ...agentkernel.Tool) *agentkernel.Agent {
	t.Helper()
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model, Tools: tools})
	require.NoError(t, err)
	checker := agenttest.NewChecker()
	agent.Subscribe(checker.Listen)
	t.Cleanup(func() { require.NoError(t, checker.Finish()) })
	return agent
}

// An agent asks an agent, over MCP: the answer, the notifications on the way, a failure.
func TestAgentAsServer(t *testing.T) {
	look := agentkernel.MustTool("look", "", func(context.Context, struct{}) (string, error) { return "seen", nil })
	inner := newAgent(t, agenttest.Script(
		agenttest.Calls("look"), agenttest.Text("It is there.").Chunks(4),
		agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindAuth, Op: "model"}),
	), look)
	var mu sync.Mutex
	var told []string
	session := connect(t, mcp.Serve(inner, mcp.ServeConfig{Name: "finder", MaxRate: -1}), mcp.Config{Client: &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, req.Params.Message)
		},
	}})
	ask := tools(t, session)["finder_ask"]
	result := resultOf(t, run(t, t.Context(), call("finder_ask", `{"prompt":"where is it?"}`), ask))
	require.Equal(t, "It is there.", result.TextContent())
	mu.Lock()
	all := strings.Join(told, "|")
	mu.Unlock()
	for _, want := range []string{"turn 1", "look …", "look: ok", "turn 2"} {
		require.Contains(t, all, want)
	}

	result = resultOf(t, run(t, t.Context(), call("finder_ask", `{"prompt":"again"}`), ask))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	require.Contains(t, result.TextContent(), "auth")
	require.Len(t, inner.Messages(), 5, "one conversation")

	result = resultOf(t, run(t, t.Context(), call("finder_ask", `{}`), ask))
	require.Equal(t, agentkernel.ToolInvalid, result.Cause)
}

// A client that cancels aborts the run; the next call is served.
func TestClientCancels(t *testing.T) {
	model := agenttest.Script(agenttest.Text("half").Stall(), agenttest.Text("whole"))
	inner := newAgent(t, model)
	ended := make(chan agentkernel.EndReason, 2)
	agentkernel.On(inner, func(e agentkernel.RunEnded) { ended <- e.Summary.EndReason })
	session := connect(t, mcp.Serve(inner, mcp.ServeConfig{}), mcp.Config{Prefix: "-"})
	ask := tools(t, session)["ask"]
	ctx, cancel := context.WithCancel(t.Context())
	agentkernel.On(inner, func(agentkernel.MessageUpdated) { cancel() })
	result := resultOf(t, run(t, ctx, call("ask", `{"prompt":"hi"}`), ask))
	require.Equal(t, agentkernel.ToolInterrupted, result.Cause)
	require.Equal(t, agentkernel.EndAborted, <-ended)
	result = resultOf(t, run(t, t.Context(), call("ask", `{"prompt":"hi"}`), ask))
	require.Equal(t, "whole", result.TextContent())
}

// Calls of several clients wait for each other; one that gives up waiting is gone.
func TestManyClients(t *testing.T) {
	var replies []agenttest.Reply
	for range 8 {
		replies = append(replies, agenttest.Text("ok").Chunks(1))
	}
	inner := newAgent(t, agenttest.Script(replies...))
	server := mcp.Serve(inner, mcp.ServeConfig{})
	var wg sync.WaitGroup
	for range 8 {
		session := connect(t, server, mcp.Config{Prefix: "-"})
		ask := tools(t, session)["ask"]
		wg.Go(func() {
			require.Equal(t, "ok", resultOf(t, run(t, t.Context(), call("ask", `{"prompt":"hi"}`), ask)).TextContent())
		})
	}
	wg.Wait()
	require.Len(t, inner.Messages(), 16)
}

// While the program has a run of its own going, a client is told so.
func TestBusyAgent(t *testing.T) {
	model := agenttest.Script(agenttest.Stall())
	inner := newAgent(t, model)
	session := connect(t, mcp.Serve(inner, mcp.ServeConfig{}), mcp.Config{Prefix: "-"})
	ask := tools(t, session)["ask"]
	own, err := inner.Prompt(t.Context(), "mine")
	require.NoError(t, err)
	result := resultOf(t, run(t, t.Context(), call("ask", `{"prompt":"hi"}`), ask))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	require.Contains(t, result.TextContent(), "already active")
	own.Abort(nil)
	_, _ = own.Wait(t.Context())
}
