package otel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/otel"
)

// TestParallelAgentCalls: of calls that are open at the same time each has its own child runs.
// One that could be of several stands below the run, and the call that it was of links to it.
func TestParallelAgentCalls(t *testing.T) {
	call := func(args ...string) []string { return args }
	for name, tc := range map[string]struct {
		calls []string
		want  []string
		links int
	}{
		"a later task of a chain has another call's prompt": {
			calls: call(tasks("chain", "helper: a", "other: b"), tasks("single", "helper: b")),
			want: []string{"  execute_tool ask", "    invoke_agent helper", "      chat (client)", "    invoke_agent other", "      chat (client)",
				"  execute_tool ask", "    invoke_agent helper", "      chat (client)"},
		},
		"two chains that pass their answers on": {
			calls: call(tasks("chain", "helper: a", "other: {previous}"), tasks("chain", "other: b", "helper: {previous}", "other: {previous}")),
			want: []string{"  execute_tool ask", "    invoke_agent helper", "      chat (client)", "    invoke_agent other", "      chat (client)",
				"  execute_tool ask", "    invoke_agent other", "      chat (client)", "    invoke_agent helper", "      chat (client)",
				"    invoke_agent other", "      chat (client)"},
		},
		"one call asks both agents the same": {
			calls: call(tasks("parallel", "helper: a", "other: a"), tasks("single", "other: b")),
			want: []string{"  execute_tool ask", "    invoke_agent", "      chat (client)", "    invoke_agent", "      chat (client)",
				"  execute_tool ask", "    invoke_agent other", "      chat (client)"},
		},
		"two calls ask the same": {
			calls: call(tasks("single", "other: a"), tasks("single", "other: a")),
			want: []string{"  execute_tool ask", "  execute_tool ask",
				"  invoke_agent other", "    chat (client)", "  invoke_agent other", "    chat (client)"},
			links: 2,
		},
		"two calls ask both agents the same": {
			calls: call(tasks("single", "helper: a"), tasks("chain", "other: a", "other: then {previous}")),
			want: []string{"  execute_tool ask", "  execute_tool ask", "    invoke_agent other", "      chat (client)",
				"  invoke_agent", "    chat (client)", "  invoke_agent", "    chat (client)"},
			links: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, owners := playAgentCalls(t, tc.calls, nil)
				require.Equal(t, lines(append(append([]string{"invoke_agent helper", "  chat gpt-x (client)"}, tc.want...), "  chat gpt-x (client)")...), l.tree(t))
				require.Equal(t, tc.links, requireOwners(t, l.done(t), owners))
				requireTokensOnce(t, l, len(owners))
			})
		})
	}
}

// TestRewrittenAgentCalls: what is executed tells the call, not what the model asked.
func TestRewrittenAgentCalls(t *testing.T) {
	asked := []string{tasks("single", "helper: b"), tasks("single", "helper: a")}
	gate := func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		executed := tasks("parallel", "other: a", "helper: c")
		if req.Call.ID == "c1" {
			executed = tasks("chain", "other: b", "other: {previous}")
		}
		return agentkernel.GateDecision{Allow: true, Args: json.RawMessage(executed)}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		var decided, early []agentkernel.Event // the gate's decisions, and children's events before both were there
		inOrder := newLab(t, otel.Config{})
		listen, stop := inOrder.Listener(t.Context(), helper)
		_, owners := playAgentCalls(t, asked, gate, func(ev agentkernel.Event) {
			if ev.UpdateKind == agentkernel.ToolExecUpdateGate {
				decided = append(decided, ev)
			}
			if ev.ParentRunID != "" && len(decided) < len(asked) {
				early = append(early, ev)
				return
			}
			listen(ev)
			if len(decided) == len(asked) {
				for _, ev := range early {
					listen(ev)
				}
				early = nil
			}
		})
		defer stop()
		require.Len(t, owners, 4)
		require.Zero(t, requireOwners(t, inOrder.done(t), owners), inOrder.tree(t))
		requireTokensOnce(t, inOrder, len(owners))
	})
}

// playAgentCalls runs an agent that makes the calls "c0", "c1" … at once, and tells which child
// run was which call's.
func playAgentCalls(t *testing.T, args []string, gate func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error), more ...func(agentkernel.Event)) (l *lab, owners map[string]string) {
	t.Helper()
	l, owners = newLab(t, otel.Config{}), make(map[string]string)
	reply := agenttest.Text("so")
	for i, a := range args {
		reply = reply.Call(fmt.Sprint("c", i), "ask", a)
	}
	agent := l.agent(t, agentkernel.Config{
		Model: agenttest.Script(reply, agenttest.Text("ok")),
		Tools: []agentkernel.Tool{agentTool(t, agentkernel.ForwardEvents, agentkernel.Config{Model: answering()})},
		Gate:  gate,
	})
	for _, fn := range more {
		agent.Subscribe(fn)
	}
	agentkernel.On(agent, func(e agentkernel.ToolEnded) {
		var answers []struct {
			RunID string `json:"run_id"`
		}
		require.NoError(t, json.Unmarshal(e.Result.JSON, &answers))
		for _, a := range answers {
			owners[a.RunID] = e.ToolID
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	return l, owners
}

// requireOwners proves that a child that stands below a call, or is linked to from one, is that
// call's, and that all are. It returns the number of links.
func requireOwners(t *testing.T, spans tracetest.SpanStubs, owners map[string]string) (links int) {
	t.Helper()
	found := make(map[string]string)
	for _, call := range spans {
		id := attr(call, "gen_ai.tool.call.id")
		if id == "" {
			continue
		}
		for _, child := range spans {
			if child.Parent.SpanID() == call.SpanContext.SpanID() {
				found[attr(child, "agentkernel.run.id")] = id
			}
			for _, link := range call.Links {
				if link.SpanContext.SpanID() == child.SpanContext.SpanID() {
					found[attr(child, "agentkernel.run.id")] = id
					links++
				}
			}
		}
	}
	require.Equal(t, owners, found)
	return links
}

// requireTokensOnce proves that the tokens of each child were counted, and once.
func requireTokensOnce(t *testing.T, l *lab, children int) {
	t.Helper()
	var got []string
	for _, point := range l.points(t) {
		if strings.HasPrefix(point, "gen_ai.client.token.usage") && strings.Contains(point, "=input") {
			got = append(got, strings.TrimPrefix(point, "gen_ai.client.token.usage "))
		}
	}
	require.Equal(t, []string{fmt.Sprintf(
		"gen_ai.operation.name=chat,gen_ai.provider.name=unknown,gen_ai.token.type=input %d %d", children, 10*children)}, got)
}
