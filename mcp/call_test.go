package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/mcp"
)

func TestProgressIsShown(t *testing.T) {
	told := make(chan struct{}, 3)
	session := connect(t, slowPayer(told), mcp.Config{Prefix: "-", Client: &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { told <- struct{}{} },
	}})
	events := run(t, t.Context(), call("pay", `{}`), tools(t, session)["pay"])
	var last *agentkernel.ProgressPayload
	for _, ev := range events {
		if ev.Type == agentkernel.EventToolExecUpdate {
			last = ev.Progress
		}
	}
	require.NotNil(t, last)
	require.Equal(t, "counting", last.Text)
	require.Equal(t, 3, last.Count)
	require.Equal(t, 3, last.Of)
}

// slowPayer answers when its client has heard of its progress.
func slowPayer(told <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "payer"}, nil)
	addRaw(s, &sdk.Tool{Name: "pay"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Message: "counting", Progress: float64(i + 1), Total: 3,
			})
			<-told
		}
		return &sdk.CallToolResult{}, nil
	})
	return s
}

// Notifications of calls that are not, with tokens of every kind, do nothing.
func TestStrayProgress(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "stray"}, nil)
	addRaw(s, &sdk.Tool{Name: "go"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, token := range []any{"call-99", 7, 1.5, "", nil, []any{1}, map[string]any{}} {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: -1e300, Total: 1e300})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	})
	result := resultOf(t, run(t, t.Context(), call("go", `{}`), tools(t, connect(t, s, mcp.Config{Prefix: "-"}))["go"]))
	require.Equal(t, "done", result.TextContent())
}

// The end of a run reaches the server.
func TestCancelIsPassedOn(t *testing.T) {
	began, stopped := make(chan struct{}), make(chan struct{})
	s := sdk.NewServer(&sdk.Implementation{Name: "slow"}, nil)
	addRaw(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		close(stopped)
		return nil, ctx.Err()
	})
	wait := tools(t, connect(t, s, mcp.Config{Prefix: "-"}))["wait"]
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-began
		cancel(errors.New("enough"))
	}()
	events := run(t, ctx, call("wait", `{}`), wait)
	require.Equal(t, agentkernel.ToolInterrupted, resultOf(t, events).Cause)
	require.Equal(t, agentkernel.EndAborted, events[len(events)-1].Summary.EndReason)
	<-stopped
}

// A server that dies in a call: an error result, and the session says that it has ended.
func TestStdio(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.Command(self)
	command.Env = append(os.Environ(), "AGENTKERNEL_MCP_SERVER=1")
	session, err := mcp.Connect(t.Context(), &sdk.CommandTransport{Command: command}, mcp.Config{Prefix: "-"})
	require.NoError(t, err)
	defer session.Close()
	got := tools(t, session)
	result := resultOf(t, run(t, t.Context(), call("order", `{"item":"tea","count":1}`), got["order"]))
	require.JSONEq(t, `{"total":3}`, string(result.JSON))

	result = resultOf(t, run(t, t.Context(), call("crash", `{}`), got["crash"]))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	_ = session.Wait() // returns, since the server is gone
	result = resultOf(t, run(t, t.Context(), call("order", `{"item":"tea"}`), got["order"]))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	_, err = mcp.Tools(t.Context(), session)
	require.Error(t, err)
}

func TestStreamableHTTP(t *testing.T) {
	shop := newServer()
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shop }, nil))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	session, err := mcp.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client}, mcp.Config{})
	require.NoError(t, err)
	defer session.Close()
	result := resultOf(t, run(t, t.Context(), call("shop_pay", `{}`), tools(t, session)["shop_pay"]))
	require.Equal(t, "paid", result.TextContent())
}

func TestConnectFails(t *testing.T) {
	_, err := mcp.Connect(t.Context(), &sdk.CommandTransport{Command: exec.Command("no-such-program-anywhere")}, mcp.Config{})
	require.ErrorIs(t, err, agentkernel.KindProvider)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	near, _ := sdk.NewInMemoryTransports()
	_, err = mcp.Connect(ctx, near, mcp.Config{})
	require.ErrorIs(t, err, agentkernel.KindCanceled)
}

// A flood of text is cut as that of any tool.
func TestFloodOfText(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "flood"}, nil)
	addRaw(s, &sdk.Tool{Name: "flood"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 2<<20)}}}, nil
	})
	result := resultOf(t, run(t, t.Context(), call("flood", `{}`), tools(t, connect(t, s, mcp.Config{Prefix: "-"}))["flood"]))
	require.Less(t, len(result.TextContent()), 1<<21)
}
