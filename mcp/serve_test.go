package mcp_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/mcp"
)

func newAgent(t *testing.T, model agentkernel.ChatModel, tools ...agentkernel.Tool) *agentkernel.Agent {
	t.Helper()
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: model, Tools: tools, Retry: agentkernel.RetryPolicy{BaseDelay: time.Nanosecond},
	})
	require.NoError(t, err)
	checker := agenttest.NewChecker()
	agent.Subscribe(checker.Listen)
	t.Cleanup(func() { require.NoError(t, checker.Finish()) })
	return agent
}

// An agent asks an agent, over MCP: the answer, the notifications on the way, a failure.
func TestAgentAsServer(t *testing.T) {
	look := agentkernel.MustTool("look", "", func(ctx context.Context, _ struct{}) (string, error) {
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressSummary, Text: "under the bed"})
		return "seen", nil
	})
	inner := newAgent(t, agenttest.Script(
		agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Op: "model", Retryable: true}),
		agenttest.Calls("look"), agenttest.Text("It is there.").Chunks(4),
		agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindAuth, Op: "model"}),
	), look)
	told := make(chan string, 100)
	session := connect(t, mcp.Serve(inner, mcp.ServeConfig{Name: "finder", MaxRate: -1}), mcp.Config{Client: &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			told <- req.Params.Message
		},
	}})
	ask := tools(t, session)["finder_ask"]
	result := resultOf(t, run(t, t.Context(), call("finder_ask", `{"prompt":"where is it?"}`), ask))
	require.Equal(t, "It is there.", result.TextContent())
	wanted := []string{"turn 1", "trying again after: ", "look …", "under the bed", "look: ok", "turn 2"}
	for len(wanted) > 0 { // the client may hear of them behind the result
		said := <-told
		wanted = slices.DeleteFunc(wanted, func(want string) bool { return strings.HasPrefix(said, want) })
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

// A client that gives up while another one's call runs is gone: its prompt is never asked.
func TestClientGivesUpWaiting(t *testing.T) {
	model := agenttest.Script(agenttest.Text("half").Stall(), agenttest.Text("unasked"))
	inner := newAgent(t, model)
	server := mcp.Serve(inner, mcp.ServeConfig{})
	arrived, left := make(chan struct{}, 2), make(chan struct{}, 2)
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "tools/call" {
				arrived <- struct{}{}
				defer func() { left <- struct{}{} }()
			}
			return next(ctx, method, req)
		}
	})
	began := make(chan struct{})
	agentkernel.On(inner, func(agentkernel.MessageUpdated) { close(began) })
	var wg sync.WaitGroup
	defer wg.Wait()
	begin := func() (stop func(), result <-chan *agentkernel.ToolResult) {
		ask := tools(t, connect(t, server, mcp.Config{Prefix: "-"}))["ask"]
		ctx, cancel := context.WithCancel(t.Context())
		out := make(chan *agentkernel.ToolResult, 1)
		wg.Go(func() { out <- resultOf(t, run(t, ctx, call("ask", `{"prompt":"hi"}`), ask)) })
		<-arrived
		return cancel, out
	}
	stopFirst, first := begin()
	<-began
	stopSecond, second := begin()
	stopSecond()
	require.Equal(t, agentkernel.ToolInterrupted, (<-second).Cause)
	<-left // the server knows of it
	stopFirst()
	require.Equal(t, agentkernel.ToolInterrupted, (<-first).Cause)
	require.Len(t, model.Requests(), 1)
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

// A run that a gate suspends has no answer: an error that says what is asked.
func TestServedAgentThatWaits(t *testing.T) {
	pay := agentkernel.MustTool("pay", "", func(context.Context, struct{}) (string, error) { return "paid", nil })
	inner, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("pay")), Tools: []agentkernel.Tool{pay},
		Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "Pay 5?"})
		},
	})
	require.NoError(t, err)
	session := connect(t, mcp.Serve(inner, mcp.ServeConfig{}), mcp.Config{Prefix: "-"})
	result := resultOf(t, run(t, t.Context(), call("ask", `{"prompt":"pay"}`), tools(t, session)["ask"]))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	require.Contains(t, result.TextContent(), "pay: Pay 5?")
	require.Len(t, inner.State().Suspended, 1)
}

// TestClientVanishes: the run of a client that is gone is aborted, and the next client is served.
func TestClientVanishes(t *testing.T) {
	begun := make(chan struct{})
	var stopped error
	wait := agentkernel.MustTool("wait", "waits", func(ctx context.Context, _ struct{}) (string, error) {
		close(begun)
		<-ctx.Done()
		stopped = context.Cause(ctx)
		return "", stopped
	})
	agent := newAgent(t, agenttest.Script(agenttest.Call("c1", "wait", `{}`), agenttest.Text("hello")), wait)
	server := mcp.Serve(agent, mcp.ServeConfig{})
	first := connect(t, server, mcp.Config{Prefix: "-"})
	second := connect(t, server, mcp.Config{Prefix: "-"})
	ask := &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"prompt": "go"}}
	ask.SetProgressToken("p")
	failed := make(chan error, 1)
	go func() {
		_, err := first.SDK().CallTool(t.Context(), ask)
		failed <- err
	}()
	<-begun
	_ = first.Close()
	require.Error(t, <-failed)
	got, err := second.SDK().CallTool(t.Context(), ask)
	require.NoError(t, err)
	require.False(t, got.IsError)
	require.Equal(t, "hello", got.Content[0].(*sdk.TextContent).Text)
	require.Error(t, stopped)
}
