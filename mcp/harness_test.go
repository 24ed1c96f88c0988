package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/mcp"
)

// newServer is a server with tools of every kind.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	type order struct {
		Item  string `json:"item" jsonschema:"what to order"`
		Count int    `json:"count,omitempty"`
	}
	type receipt struct {
		Total int `json:"total"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "order", Title: "Order something", Description: "Orders."},
		func(_ context.Context, _ *sdk.CallToolRequest, in order) (*sdk.CallToolResult, receipt, error) {
			if in.Item == "unicorn" {
				return nil, receipt{}, errors.New("there are no unicorns")
			}
			return nil, receipt{Total: in.Count * 3}, nil
		})
	hints := &sdk.ToolAnnotations{ReadOnlyHint: true, Title: "Look around"}
	addRaw(s, &sdk.Tool{Name: "look", Annotations: hints}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "a shop"},
			&sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
			&sdk.AudioContent{Data: []byte("12345"), MIMEType: "audio/wav"},
			&sdk.ResourceLink{URI: "shop://list", Name: "list"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "shop://a", MIMEType: "text/plain", Text: "hello"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "shop://b", MIMEType: "image/jpeg", Blob: []byte("jpeg")}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "shop://c", MIMEType: "application/zip", Blob: []byte("zip")}},
		}}, nil
	})
	addRaw(s, &sdk.Tool{Name: "pay", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Message: "counting", Progress: float64(i + 1), Total: 3,
			})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "paid"}}}, nil
	})
	addRaw(s, &sdk.Tool{Name: "crash"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if os.Getenv("AGENTKERNEL_MCP_SERVER") != "" {
			os.Exit(3)
		}
		return nil, errors.New("the shop burnt down")
	})
	return s
}

func addRaw(s *sdk.Server, t *sdk.Tool, h sdk.ToolHandler) {
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	s.AddTool(t, h)
}

// connect gives a session with server in memory.
func connect(t *testing.T, server *sdk.Server, cfg mcp.Config) *mcp.Session {
	t.Helper()
	near, far := sdk.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), far, nil)
	require.NoError(t, err)
	session, err := mcp.Connect(t.Context(), near, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = session.Close()
		_ = serving.Wait()
	})
	return session
}

// tools are those of a session, by name.
func tools(t *testing.T, s *mcp.Session) map[string]agentkernel.Tool {
	t.Helper()
	all, err := mcp.Tools(t.Context(), s)
	require.NoError(t, err)
	byName := map[string]agentkernel.Tool{}
	for _, tool := range all {
		byName[tool.Name] = tool
	}
	return byName
}

// run plays a script with the given tools and checks the stream.
func run(t *testing.T, ctx context.Context, script *agenttest.Model, tools ...agentkernel.Tool) []agentkernel.Event {
	t.Helper()
	var events []agentkernel.Event
	cfg := agentkernel.Config{Model: script, Tools: tools, StopTimeout: 20 * time.Second}
	for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
		events = append(events, ev)
	}
	require.NoError(t, agenttest.CheckRun(nil, events))
	return events
}

// resultOf is the result of the only call of a run.
func resultOf(t *testing.T, events []agentkernel.Event) *agentkernel.ToolResult {
	t.Helper()
	var found *agentkernel.ToolResult
	for _, ev := range events {
		if ev.Type == agentkernel.EventToolExecEnd {
			require.Nil(t, found)
			found = ev.Result
		}
	}
	require.NotNil(t, found)
	return found
}

func call(name, args string) *agenttest.Model {
	return agenttest.Script(agenttest.Call("c1", name, args), agenttest.Text("ok"))
}
