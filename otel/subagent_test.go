package otel_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/otel"
)

type (
	kv    = attribute.KeyValue
	kvKey = attribute.Key
)

// agentTool is the tool "ask" over two agents, "helper" and "other", with one configuration.
func agentTool(t testing.TB, forward agentkernel.ForwardMode, cfg agentkernel.Config) agentkernel.Tool {
	t.Helper()
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{
		Name: "ask", Forward: forward,
		Agents: []agentkernel.SubAgent{{Name: "helper", Config: cfg}, {Name: "other", Config: cfg}},
	})
	require.NoError(t, err)
	return ask
}

// tasks are the arguments of a call of agentTool, each task "agent: prompt".
func tasks(mode string, list ...string) string {
	type task struct {
		Agent  string `json:"agent"`
		Prompt string `json:"prompt"`
	}
	var all []task
	for _, text := range list {
		agent, prompt, _ := strings.Cut(text, ": ")
		all = append(all, task{agent, prompt})
	}
	b, err := json.Marshal(map[string]any{"mode": mode, "tasks": all})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// answering is a model that answers each prompt with "re: " and the prompt, after a second.
func answering() agentkernel.ChatModel {
	return agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		prompt := req.Messages[len(req.Messages)-1].TextContent()
		return agenttest.Script(agenttest.Text("re: "+prompt).Delay(time.Second).Usage(agentkernel.Usage{Input: 10, Output: 1, Total: 11})).Stream(ctx, req)
	})
}

// TestSubAgents: each child run stands below the call that made it, also where several calls
// are open, under the name of its agent.
func TestSubAgents(t *testing.T) {
	sub := agentkernel.Config{Model: answering()}
	for name, tc := range map[string]struct {
		reply agenttest.Reply
		want  []string
	}{
		"single": {
			agenttest.Call("c1", "ask", tasks("single", "other: a")),
			[]string{"  execute_tool ask", "    invoke_agent other", "      chat sub-x (client)"},
		},
		"chain": {
			agenttest.Call("c1", "ask", tasks("chain", "helper: a", "other: then {previous}!")),
			[]string{"  execute_tool ask", "    invoke_agent helper", "      chat (client)", "    invoke_agent other", "      chat sub-x (client)"},
		},
		"parallel calls": {
			agenttest.Call("c1", "ask", tasks("chain", "helper: a", "other: then {previous}!")).
				Call("c2", "ask", tasks("single", "other: b")).Calls("echo").
				Call("c4", "ask", tasks("chain", "other: c", "helper: {previous}?")),
			[]string{
				"  execute_tool ask", "    invoke_agent helper", "      chat (client)", "    invoke_agent other", "      chat sub-x (client)",
				"  execute_tool ask", "    invoke_agent other", "      chat sub-x (client)",
				"  execute_tool echo",
				"  execute_tool ask", "    invoke_agent other", "      chat sub-x (client)", "    invoke_agent helper", "      chat (client)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, otel.Config{SubAgents: []otel.Identity{{Name: "other", Provider: "anthropic", Model: "sub-x"}}})
				agent := l.agent(t, agentkernel.Config{
					Model: agenttest.Script(tc.reply, agenttest.Text("ok")),
					Tools: []agentkernel.Tool{agentTool(t, agentkernel.ForwardEvents, sub), tool("echo", nil)},
				})
				_, err := agent.Run(t.Context(), "hi")
				require.NoError(t, err)
				require.Equal(t, lines(append(append([]string{"invoke_agent helper", "  chat gpt-x (client)"}, tc.want...), "  chat gpt-x (client)")...), l.tree(t))
				for _, s := range l.done(t) {
					if s.Name == "invoke_agent other" {
						require.Equal(t, "anthropic", attr(s, "gen_ai.provider.name"))
						require.Equal(t, "conv", attr(s, "gen_ai.conversation.id"))
						require.NotEmpty(t, attr(s, "agentkernel.parent_run.id"))
						require.Equal(t, 3*time.Second, s.EndTime.Sub(s.StartTime))
					}
				}
			})
		})
	}
}

// TestSubAgentTokens: the tokens of a sub-agent are counted once, however its events show.
func TestSubAgentTokens(t *testing.T) {
	for forward, want := range map[agentkernel.ForwardMode]string{
		agentkernel.ForwardEvents: "gen_ai.operation.name=chat,gen_ai.provider.name=unknown,gen_ai.token.type=input 2 20",
		agentkernel.ForwardNone:   "gen_ai.operation.name=invoke_agent,gen_ai.provider.name=unknown,gen_ai.token.type=input 1 20",
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, otel.Config{})
			agent := l.agent(t, agentkernel.Config{
				Model: agenttest.Script(agenttest.Call("c1", "ask", tasks("parallel", "helper: a", "other: b")), agenttest.Text("ok")),
				Tools: []agentkernel.Tool{agentTool(t, forward, agentkernel.Config{Model: answering()})},
			})
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			var tokens []string
			for _, point := range l.points(t) {
				if strings.HasPrefix(point, "gen_ai.client.token.usage") && strings.Contains(point, "=input") {
					tokens = append(tokens, strings.TrimPrefix(point, "gen_ai.client.token.usage "))
				}
			}
			require.Equal(t, []string{want}, tokens)
		})
	}
}

// TestSubAgentAbort: an abort ends the spans of all depths, also of a child that does not stop.
func TestSubAgentAbort(t *testing.T) {
	for name, stall := range map[string]agenttest.Reply{"stops": agenttest.Text("half").Stall(), "is deaf": agenttest.Text("half").Stall().IgnoringContext()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, otel.Config{})
				model := agenttest.Script(stall, stall)
				inner := agentkernel.Config{Model: model}
				middle := agentkernel.Config{
					Model: agenttest.Script(agenttest.Call("c1", "ask", tasks("single", "other: deeper"))),
					Tools: []agentkernel.Tool{agentTool(t, agentkernel.ForwardEvents, inner)},
				}
				agent := l.agent(t, agentkernel.Config{
					Model: agenttest.Script(agenttest.Call("c1", "ask", tasks("single", "helper: deep"))),
					Tools: []agentkernel.Tool{agentTool(t, agentkernel.ForwardEvents, middle)},
				})
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				run.Abort(errors.New("enough"))
				_, err = run.Wait(t.Context())
				require.ErrorIs(t, err, agentkernel.KindCanceled)
				require.Equal(t, lines("invoke_agent helper !canceled", "  chat gpt-x (client)", "  execute_tool ask !interrupted",
					"    invoke_agent helper !canceled", "      chat (client)", "      execute_tool ask !interrupted",
					"        invoke_agent other !canceled", "          chat (client) !canceled"), l.tree(t))
				model.Release()
			})
		})
	}
}

// TestChildLeftBehind: a child run whose end does not come ends with its call.
func TestChildLeftBehind(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, args := range []string{tasks("single", "other: a"), `{}`, `{"tasks":7}`} {
		l := newLab(t, otel.Config{})
		listen, stop := l.Listener(t.Context(), helper)
		listen(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "r", Seq: 1, Time: at})
		listen(agentkernel.Event{Type: agentkernel.EventToolExecStart, RunID: "r", Seq: 2, Time: at, ToolID: "c1", Tool: "ask", Args: json.RawMessage(args)})
		listen(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "k", ParentRunID: "r", Seq: 1, Time: at})
		listen(agentkernel.Event{Type: agentkernel.EventMessageStart, RunID: "k", ParentRunID: "r", Seq: 2, Time: at, Message: agentkernel.UserMessage("a")})
		listen(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "k2", ParentRunID: "r", Seq: 1, Time: at})
		listen(agentkernel.Event{Type: agentkernel.EventToolExecEnd, RunID: "r", Seq: 3, Time: at.Add(time.Second), ToolID: "c1", Tool: "ask", IsError: true})
		listen(agentkernel.Event{Type: agentkernel.EventAgentEnd, RunID: "r", Seq: 4, Time: at.Add(time.Second), Err: errors.New("plain")})
		stop()
		child := "    invoke_agent …"
		if strings.Contains(args, "other") {
			child = "    invoke_agent other …"
		}
		require.Equal(t, lines("invoke_agent helper !_OTHER", "  execute_tool ask !_OTHER", child, "  invoke_agent …"), l.tree(t))
	}
}
