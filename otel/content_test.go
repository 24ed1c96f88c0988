package otel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/otel"
)

// TestErrorText: what failed is told by its kind. The text of an error may quote what was said,
// so that it is recorded with that alone, and no longer than it.
func TestErrorText(t *testing.T) {
	secret := &agentkernel.Error{Kind: agentkernel.KindOverloaded, Op: "model", Retryable: true, Err: errors.New("secret overload " + strings.Repeat("x", 200))}
	for _, capture := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, otel.Config{CaptureContent: capture, MaxContentBytes: 100})
			agent := l.agent(t, agentkernel.Config{
				Model: agenttest.Script(
					agenttest.Fail(secret), agenttest.Text("half").Fail(secret), agenttest.Calls("fail", "crash"),
					agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindInvalidRequest, Op: "model", Err: errors.New("secret prompt is no good")})),
				Tools: []agentkernel.Tool{
					tool("fail", func(context.Context) (agentkernel.ToolResult, error) {
						return agentkernel.ToolResult{}, errors.New("secret result")
					}),
					tool("crash", func(context.Context) (agentkernel.ToolResult, error) { panic("secret value") }),
				},
			})
			_, err := agent.Run(t.Context(), "hi")
			require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
			var got []string
			for _, s := range l.done(t) {
				if s.Status.Code == codes.Error {
					got = append(got, s.Status.Description)
					require.NotEmpty(t, attr(s, "error.type"))
				}
			}
			if !capture {
				require.ElementsMatch(t, []string{"overloaded", "overloaded", "failed", "panic", "invalid_request", "invalid_request"}, got)
				require.NotContains(t, fmt.Sprintf("%+v", l.done(t)), "secret")
				require.NotContains(t, strings.Join(l.points(t), "\n"), "secret")
				return
			}
			overload := ("model: overloaded: secret overload " + strings.Repeat("x", 200))[:100]
			require.ElementsMatch(t, []string{overload, overload, "failed", "panic",
				"model: invalid_request: secret prompt is no good", "model: invalid_request: secret prompt is no good"}, got)
		})
	}
}

// TestContent: what was said is recorded where that is asked for, in the conventions' JSON.
func TestContent(t *testing.T) {
	l := newLab(t, otel.Config{CaptureContent: true})
	agent := l.agent(t, agentkernel.Config{
		SystemPrompt: "be kind",
		Model:        agenttest.Script(agenttest.Thinking("hm").Text("wait").Call("c1", "echo", `{"x":1}`), agenttest.Text("done")),
		Tools:        []agentkernel.Tool{tool("echo", nil)},
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	spans := l.done(t)
	first, call, last := spans[0], spans[1], spans[2]
	require.JSONEq(t, `[{"type":"text","content":"be kind"}]`, attr(first, "gen_ai.system_instructions"))
	require.JSONEq(t, `[{"type":"function","name":"echo","description":"Tool echo.","parameters":{"type":"object"}}]`, attr(first, "gen_ai.tool.definitions"))
	require.JSONEq(t, `[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`, attr(first, "gen_ai.input.messages"))
	answer := `{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"wait"},` +
		`{"type":"tool_call","id":"c1","name":"echo","arguments":{"x":1}}]%s}`
	require.JSONEq(t, "["+fmt.Sprintf(answer, `,"finish_reason":"tool_use"`)+"]", attr(first, "gen_ai.output.messages"))
	require.JSONEq(t, `{"x":1}`, attr(call, "gen_ai.tool.call.arguments"))
	require.Equal(t, "echo", attr(call, "gen_ai.tool.call.result"))
	require.JSONEq(t, `[{"role":"user","parts":[{"type":"text","content":"hi"}]},`+fmt.Sprintf(answer, "")+
		`,{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"echo"}]}]`, attr(last, "gen_ai.input.messages"))
	require.JSONEq(t, `[{"role":"assistant","parts":[{"type":"text","content":"done"}],"finish_reason":"stop"}]`, attr(last, "gen_ai.output.messages"))
}

// TestContentBound: the newest messages that fit are kept, whole.
func TestContentBound(t *testing.T) {
	l := newLab(t, otel.Config{CaptureContent: true, MaxContentBytes: 120})
	agent := l.agent(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("é", 100)), agenttest.Text("b"))})
	for _, prompt := range []string{"one", "two"} {
		_, err := agent.Run(t.Context(), prompt)
		require.NoError(t, err)
	}
	var chats []string
	for _, s := range l.done(t) {
		if s.Name != "chat gpt-x" {
			continue
		}
		for _, key := range []string{"gen_ai.input.messages", "gen_ai.output.messages"} {
			value := attr(s, kvKey(key))
			require.LessOrEqual(t, len(value), 120)
			require.True(t, value == "" || json.Valid([]byte(value)))
			chats = append(chats, value+attr(s, kvKey("agentkernel.left_out."+key)))
		}
	}
	require.Equal(t, []string{
		`[{"role":"user","parts":[{"type":"text","content":"one"}]}]`, "1",
		`[{"role":"user","parts":[{"type":"text","content":"two"}]}]2`,
		`[{"role":"assistant","parts":[{"type":"text","content":"b"}],"finish_reason":"stop"}]`,
	}, chats)
}
