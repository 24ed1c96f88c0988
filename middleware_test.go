package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestMiddlewareOrder: the outermost comes first; rewrites of arguments travel inwards, and
// the event shows what was executed.
func TestMiddlewareOrder(t *testing.T) {
	var order []string
	layer := func(name string) agentkernel.Middleware {
		return func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
				order = append(order, name+" in "+string(call.Args))
				require.Empty(t, call.RawArgs)
				call.Args = json.RawMessage(fmt.Sprintf(`{ "by": %q }`, name))
				result, err := next(ctx, call)
				order = append(order, name+" out "+result.Content[0].Text)
				result.Content = []agentkernel.ContentBlock{agentkernel.TextBlock(result.Content[0].Text + " " + name)}
				return result, err
			}
		}
	}
	log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{echo("t")},
		Middleware: []agentkernel.Middleware{layer("outer"), layer("inner")}}, "t", `{"by":"model"}`)
	require.Equal(t, []string{`outer in {"by":"model"}`, `inner in { "by": "outer" }`, `inner out { "by": "inner" }`, `outer out { "by": "inner" } inner`}, order)
	require.Equal(t, `{ "by": "inner" } inner outer`, got.Content[0].Text)
	require.Equal(t, `{"by":"model"}`, string(ofType(log, agentkernel.EventToolExecStart)[0].Args))
	require.Equal(t, `{"by":"inner"}`, string(ofType(log, agentkernel.EventToolExecEnd)[0].Args))
}

// TestMiddlewareThatBlanks: arguments of which nothing is left are an empty object, for the tool as
// for those who look on.
func TestMiddlewareThatBlanks(t *testing.T) {
	for _, blank := range []string{"", " ", "null"} {
		blanks := func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
				call.Args = json.RawMessage(blank)
				return next(ctx, call)
			}
		}
		log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{echo("t")},
			Middleware: []agentkernel.Middleware{blanks}}, "t", `{"by":"model"}`)
		require.Equal(t, `{}`, got.Content[0].Text, "%q", blank)
		require.Equal(t, `{}`, string(ofType(log, agentkernel.EventToolExecEnd)[0].Args), "%q", blank)
	}
}

// TestMiddlewareThatRedacts: what it removes reaches neither the event nor the model, in
// text, in content blocks, in JSON and in errors.
func TestMiddlewareThatRedacts(t *testing.T) {
	redact := func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
		return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
			result, err := next(ctx, call)
			for i := range result.Content {
				result.Content[i].Text = strings.ReplaceAll(result.Content[i].Text, "SECRET", "[gone]")
			}
			result.JSON = json.RawMessage(strings.ReplaceAll(string(result.JSON), "SECRET", "[gone]"))
			if err != nil {
				err = errors.New(strings.ReplaceAll(err.Error(), "SECRET", "[gone]"))
			}
			return result, err
		}
	}
	for name, tt := range map[string]struct {
		result agentkernel.ToolResult
		err    error
	}{
		"text":    {agentkernel.TextResult("a SECRET"), nil},
		"content": {agentkernel.ToolResult{Content: []agentkernel.ContentBlock{agentkernel.TextBlock("x"), agentkernel.TextBlock("SECRET")}}, nil},
		"JSON":    {agentkernel.ToolResult{JSON: json.RawMessage(`{"key":"SECRET"}`)}, nil},
		"error":   {agentkernel.ToolResult{}, errors.New("SECRET")},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok"))
			log := play(t, agentkernel.Config{Model: model, Middleware: []agentkernel.Middleware{redact}, Tools: []agentkernel.Tool{
				tool("t", func(context.Context) (agentkernel.ToolResult, error) { return tt.result, tt.err })}})
			for _, ev := range log {
				raw, err := json.Marshal([]any{ev.Message, ev.Result, ev.ToolResults, ev.NewMessages, ev.Request})
				require.NoError(t, err)
				require.NotContains(t, string(raw), "SECRET", ev.Type)
			}
			require.Contains(t, told(model, 2)[0], "[gone]")
		})
	}
}

// TestMiddlewareThatAnswers itself: the tool does not run.
func TestMiddlewareThatAnswers(t *testing.T) {
	ran := false
	cached := func(agentkernel.ToolHandler) agentkernel.ToolHandler {
		return func(context.Context, agentkernel.ToolCall) (agentkernel.ToolResult, error) {
			return agentkernel.TextResult("from the cache"), nil
		}
	}
	_, got := once(t, agentkernel.Config{Middleware: []agentkernel.Middleware{cached}, Tools: []agentkernel.Tool{
		tool("t", func(context.Context) (agentkernel.ToolResult, error) {
			ran = true
			return agentkernel.ToolResult{}, nil
		})}}, "t", "{}")
	require.False(t, ran)
	require.Equal(t, agentkernel.ToolOK, got.Cause)
	require.Equal(t, "from the cache", got.Content[0].Text)
}

// TestMiddlewareAfterTheGate: what the gate denies does not reach it.
func TestMiddlewareAfterTheGate(t *testing.T) {
	reached := false
	_, got := once(t, agentkernel.Config{
		Tools: []agentkernel.Tool{echo("t")},
		Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			return agentkernel.GateDecision{}, nil
		},
		Middleware: []agentkernel.Middleware{func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			reached = true
			return next
		}},
	}, "t", "{}")
	require.False(t, reached)
	require.Equal(t, agentkernel.ToolDenied, got.Cause)
}

func TestNilMiddlewareIsRefused(t *testing.T) {
	_, err := agentkernel.NewAgent(agentkernel.Config{Middleware: []agentkernel.Middleware{nil}})
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
}

func ExampleMiddleware() {
	redact := func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
		return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
			result, err := next(ctx, call)
			for i := range result.Content {
				result.Content[i].Text = strings.ReplaceAll(result.Content[i].Text, "hunter2", "***")
			}
			return result, err
		}
	}
	read := agentkernel.MustTool("read", "Reads the settings.", func(context.Context, struct{}) (string, error) {
		return "password=hunter2", nil
	})
	cfg := agentkernel.Config{
		Model:      agenttest.Script(agenttest.Calls("read"), agenttest.Text("Done.")),
		Tools:      []agentkernel.Tool{read},
		Middleware: []agentkernel.Middleware{redact},
	}
	for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("Read.")) {
		if ev.Type == agentkernel.EventToolExecEnd {
			fmt.Println(ev.Result.Content[0].Text)
		}
	}
	// Output: password=***
}
