package session_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// mark is a message of the harness's own.
type mark struct{ Text string }

func (m mark) GetRole() agentkernel.Role { return "mark" }
func (m mark) GetTimestamp() time.Time   { return time.Time{} }
func (m mark) TextContent() string       { return m.Text }
func (m mark) ThinkingContent() string   { return "" }
func (m mark) HasToolCalls() bool        { return false }

func init() { agentkernel.RegisterMessage[mark]("mark") }

// TestResume: a session that is opened again has the state that it was left with, the
// harness's own messages among it.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := fileStore(t)
		usage := agentkernel.Usage{Input: 4, Output: 1, Total: 5, Cost: new(0.25)}
		model := agenttest.Script(agenttest.Thinking("hm").Call("c1", "a", `{"x":"<&>"}`).Usage(usage),
			agenttest.Text("é\u2028").Usage(usage), agenttest.Text("again").Usage(usage))
		cfg := session.Config{ID: "s", Agent: agentkernel.Config{Tools: []agentkernel.Tool{{Name: "a",
			Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
				return agentkernel.TextResult("r"), nil
			}}}}}
		o := open(t, store, model, cfg)
		require.NoError(t, o.Steer(mark{"a mark"}))
		require.NoError(t, o.prompt("hi"))
		live := o.State()
		o.close()

		again := open(t, store, model, cfg)
		resumed := again.State()
		require.Equal(t, live.Messages, resumed.Messages)
		require.Contains(t, resumed.Messages, agentkernel.AgentMessage(mark{"a mark"}))
		require.Equal(t, live.TotalUsage, resumed.TotalUsage)
		require.Equal(t, live.ContextTokens, resumed.ContextTokens)
		require.NoError(t, again.prompt("and?"))
		require.Equal(t, texts(again.State().Messages), stored(t, store, "s"))
		require.Empty(t, agentkernel.ValidateHistory(again.State().Messages))
	})
}

// died is a store that has what a process left that died in mid-run: calls without results.
func died(t *testing.T) *session.SQLite {
	t.Helper()
	store := memoryStore(t)
	saved, err := store.Load(t.Context(), "s")
	require.NoError(t, err)
	require.Empty(t, saved.Log)
	call := func(id string) agentkernel.ContentBlock {
		return agentkernel.ContentBlock{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: id, Name: "a", Args: json.RawMessage("{}")}}
	}
	for i, m := range []agentkernel.Message{
		agentkernel.UserMessage("hi"),
		{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{call("1"), call("2")}, StopReason: agentkernel.StopReasonToolUse},
		{Role: agentkernel.RoleTool, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("a")}, ToolCallID: "1", ToolName: "a", Cause: agentkernel.ToolOK},
	} {
		ev := agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "s", Seq: uint64(i + 1), Message: m}
		require.NoError(t, store.Write(t.Context(), "s", session.Change{Message: &ev}))
	}
	return store
}

// TestOpenCalls: the calls that a dead process left are answered before the model is asked:
// as interrupted, or by executing them where the harness says so.
func TestOpenCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		run    bool
		prompt string
		cause  agentkernel.ToolCause
	}{
		"interrupted": {false, "", agentkernel.ToolInterrupted},
		"executed":    {true, "", agentkernel.ToolOK},
		"prompt":      {false, "more", agentkernel.ToolInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := died(t)
				model := agenttest.Script(agenttest.Text("ok"))
				o := open(t, store, model, session.Config{ID: "s", Agent: agentkernel.Config{RunOpenCalls: tt.run, Tools: []agentkernel.Tool{echo("a")}}})
				if tt.prompt == "" {
					require.NoError(t, o.goOn())
				} else {
					require.NoError(t, o.prompt(tt.prompt))
				}
				messages := o.State().Messages
				result := messages[3].(agentkernel.Message)
				require.Equal(t, "2", result.ToolCallID)
				require.Equal(t, tt.cause, result.Cause)
				require.Equal(t, texts(messages), stored(t, store, "s"))
				require.Empty(t, agentkernel.ValidateHistory(messages))
				require.Len(t, model.Requests(), 1)
				require.Len(t, model.Requests()[0].Messages, len(messages)-1)
			})
		})
	}
}
