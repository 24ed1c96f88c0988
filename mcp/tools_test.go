package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/mcp"
)

func TestToolsOfAServer(t *testing.T) {
	got := tools(t, connect(t, newServer(), mcp.Config{}))
	require.Len(t, got, 4)
	order := got["shop_order"]
	require.Equal(t, "Orders.", order.Description)
	require.Equal(t, "Order something", order.Label)
	require.Nil(t, order.ReadOnly)
	require.False(t, order.Idempotent)
	look := got["shop_look"]
	require.True(t, look.ReadOnly(nil))
	require.Equal(t, "Look around", look.Label)
	require.Equal(t, agentkernel.InterruptCancel, look.Interrupt)
	require.True(t, got["shop_pay"].Idempotent)
	require.Nil(t, got["shop_pay"].ReadOnly)
}

func TestUntrustedHintsAreNotBelieved(t *testing.T) {
	got := tools(t, connect(t, newServer(), mcp.Config{Untrusted: true, Prefix: "x"}))
	require.Nil(t, got["x_look"].ReadOnly)
	require.Equal(t, agentkernel.InterruptBlock, got["x_look"].Interrupt)
	require.False(t, got["x_pay"].Idempotent)
}

func TestStructuredResult(t *testing.T) {
	got := tools(t, connect(t, newServer(), mcp.Config{Prefix: "-"}))
	result := resultOf(t, run(t, t.Context(), call("order", `{"item":"tea","count":2}`), got["order"]))
	require.Equal(t, agentkernel.ToolOK, result.Cause)
	require.JSONEq(t, `{"total":6}`, string(result.JSON))
	require.JSONEq(t, `{"total":6}`, result.TextContent())
}

func TestErrorsAreResults(t *testing.T) {
	got := tools(t, connect(t, newServer(), mcp.Config{Prefix: "-"}))
	result := resultOf(t, run(t, t.Context(), call("order", `{"item":"unicorn"}`), got["order"]))
	require.True(t, result.IsError)
	require.Contains(t, result.TextContent(), "there are no unicorns")

	result = resultOf(t, run(t, t.Context(), call("order", `{"count":"two"}`), got["order"]))
	require.Equal(t, agentkernel.ToolInvalid, result.Cause, "the server's schema is checked before it is asked")

	result = resultOf(t, run(t, t.Context(), call("crash", `{}`), got["crash"]))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	require.Contains(t, result.TextContent(), "burnt down")
}

func TestContentOfEveryKind(t *testing.T) {
	got := tools(t, connect(t, newServer(), mcp.Config{Prefix: "-"}))
	result := resultOf(t, run(t, t.Context(), call("look", `{}`), got["look"]))
	var said []string
	for _, b := range result.Content {
		if b.Image != nil {
			said = append(said, fmt.Sprintf("image %s %s", b.Image.MIMEType, b.Image.Data))
			continue
		}
		said = append(said, b.Text)
	}
	require.Equal(t, []string{
		"a shop", "image image/png png", "[audio of type audio/wav, 5 bytes]", "[resource shop://list, list]",
		"[resource shop://a]\nhello", "image image/jpeg jpeg", "[resource shop://c of type application/zip, 3 bytes]",
	}, said)
}

// A server whose results do not fit its own output schema: the model is told, and shown it.
func TestServerThatLiesAboutItsResults(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "liar"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	addRaw(s, &sdk.Tool{Name: "count", OutputSchema: schema}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": "many"}, Content: []sdk.Content{&sdk.TextContent{Text: "many"}}}, nil
	})
	got := tools(t, connect(t, s, mcp.Config{Prefix: "-"}))
	result := resultOf(t, run(t, t.Context(), call("count", `{}`), got["count"]))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	require.Contains(t, result.TextContent(), "does not fit its own output schema")
	require.Contains(t, result.TextContent(), "many")
}

// listing answers tools/list with what the SDK's server would not let pass.
func listing(list func(cursor string) *sdk.ListToolsResult) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "odd"}, nil)
	s.AddTool(&sdk.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if p, ok := req.GetParams().(*sdk.ListToolsParams); ok && method == "tools/list" {
				cursor := ""
				if p != nil {
					cursor = p.Cursor
				}
				return list(cursor), nil
			}
			return next(ctx, method, req)
		}
	})
	return s
}

func TestToolsThatCannotBeUsedAreLeftOut(t *testing.T) {
	object := map[string]any{"type": "object"}
	s := listing(func(string) *sdk.ListToolsResult {
		return &sdk.ListToolsResult{Tools: []*sdk.Tool{
			{Name: "good", InputSchema: object},
			{Name: "", InputSchema: object},
			{Name: "odd schema", InputSchema: map[string]any{"type": 7}},
			{Name: "odd output", InputSchema: object, OutputSchema: map[string]any{"pattern": "("}},
			{Name: "also good", InputSchema: object},
		}}
	})
	got, err := mcp.Tools(t.Context(), connect(t, s, mcp.Config{Prefix: "-"}))
	require.Len(t, got, 2)
	require.Equal(t, "good", got[0].Name)
	require.Equal(t, "also_good", got[1].Name)
	for _, name := range []string{`tool ""`, `tool "odd schema"`, `tool "odd output"`} {
		require.ErrorContains(t, err, name)
	}
}

func TestServerWithoutEnd(t *testing.T) {
	for name, list := range map[string]func(string) *sdk.ListToolsResult{
		"tools": func(cursor string) *sdk.ListToolsResult {
			return &sdk.ListToolsResult{NextCursor: cursor + "x", Tools: []*sdk.Tool{
				{Name: "t" + cursor, InputSchema: map[string]any{"type": "object"}},
			}}
		},
		"empty pages": func(cursor string) *sdk.ListToolsResult {
			return &sdk.ListToolsResult{NextCursor: cursor + "x", Tools: []*sdk.Tool{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mcp.Tools(t.Context(), connect(t, listing(list), mcp.Config{MaxTools: 20}))
			require.ErrorIs(t, err, agentkernel.KindLimit)
			require.LessOrEqual(t, len(got), 20)
		})
	}
}

// Names are those that every provider takes, different ones, and the same in each session.
func TestNames(t *testing.T) {
	list := func(string) *sdk.ListToolsResult {
		object := map[string]any{"type": "object"}
		return &sdk.ListToolsResult{Tools: []*sdk.Tool{
			{Name: "a.b", InputSchema: object}, {Name: "a/b", InputSchema: object}, {Name: "ä", InputSchema: object},
			{Name: strings.Repeat("long", 40), InputSchema: object}, {Name: strings.Repeat("long", 41), InputSchema: object},
		}}
	}
	names := func() (all []string) {
		got, err := mcp.Tools(t.Context(), connect(t, listing(list), mcp.Config{}))
		require.NoError(t, err)
		for _, tool := range got {
			require.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, tool.Name)
			require.NotContains(t, all, tool.Name)
			all = append(all, tool.Name)
		}
		return all
	}
	first := names()
	require.Len(t, first, 5)
	require.Equal(t, "odd_a_b", first[0])
	require.Equal(t, first, names())
}
