package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// asked is an assistant message that calls tools: id, id, …
func askedFor(ids ...string) agentkernel.Message {
	m := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonToolUse}
	for _, id := range ids {
		m.Content = append(m.Content, agentkernel.ContentBlock{
			Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: id, Name: "t", Args: json.RawMessage(`{}`)},
		})
	}
	return m
}

// resultOf is a tool message.
func resultOf(id, text string) agentkernel.Message {
	return agentkernel.Message{Role: agentkernel.RoleTool, ToolCallID: id, ToolName: "t", Cause: agentkernel.ToolOK,
		Content: []agentkernel.ContentBlock{agentkernel.TextBlock(text)}}
}

func withArgs(m agentkernel.Message, args string) agentkernel.Message {
	m = m.Clone()
	m.Content[0].ToolCall.Args = json.RawMessage(args)
	return m
}

func stoppedBy(m agentkernel.Message, reason agentkernel.StopReason) agentkernel.Message {
	m.StopReason = reason
	return m
}

// outline is a history as who, with the calls and what they are answered with.
func outline(history []agentkernel.AgentMessage) []string {
	var out []string
	for _, m := range history {
		var line strings.Builder
		line.WriteString(string(m.GetRole()))
		own, ok := m.(agentkernel.Message)
		if ok && own.Role == agentkernel.RoleTool {
			line.WriteString(" " + own.ToolCallID + " " + string(own.Cause))
		}
		if ok {
			for _, c := range own.ToolCalls() {
				line.WriteString(fmt.Sprintf(" %s%s", c.ID, c.Args))
			}
		}
		out = append(out, line.String())
	}
	return out
}

func TestRepairHistory(t *testing.T) {
	user := agentkernel.UserMessage("hi")
	for name, c := range map[string]struct {
		history  []agentkernel.AgentMessage
		want     []string
		problems int
	}{
		"empty":           {nil, nil, 0},
		"sound":           {list(user, askedFor("1", "2"), resultOf("1", ""), resultOf("2", ""), user), []string{"user", "assistant 1{} 2{}", "tool 1 ok", "tool 2 ok", "user"}, 0},
		"no result":       {list(user, askedFor("1"), user), []string{"user", "assistant 1{}", "tool 1 interrupted", "user"}, 1},
		"open at the end": {list(user, askedFor("1", "2"), resultOf("1", "")), []string{"user", "assistant 1{} 2{}", "tool 1 ok", "tool 2 interrupted"}, 1},
		"order of the results": {
			list(user, askedFor("1", "2"), resultOf("2", ""), resultOf("1", "")),
			[]string{"user", "assistant 1{} 2{}", "tool 1 ok", "tool 2 ok"}, 2,
		},
		"a result that comes late": {
			list(user, askedFor("1"), user, resultOf("1", "")), []string{"user", "assistant 1{}", "tool 1 ok", "user"}, 1,
		},
		"a result before its call": {
			list(resultOf("1", ""), user, askedFor("1")), []string{"user", "assistant 1{}", "tool 1 interrupted"}, 2,
		},
		"two results":              {list(askedFor("1"), resultOf("1", "a"), resultOf("1", "b")), []string{"assistant 1{}", "tool 1 ok"}, 1},
		"a result without a call":  {list(user, resultOf("x", "")), []string{"user"}, 1},
		"the harness's in between": {list(askedFor("1"), mark("m"), resultOf("1", ""), mark("n")), []string{"assistant 1{}", "mark", "tool 1 ok", "mark"}, 0},
		"an id again": {
			list(askedFor("1"), resultOf("1", "a"), askedFor("1"), resultOf("1", "b")),
			[]string{"assistant 1{}", "tool 1 ok", "assistant call_2_0_2{}", "tool call_2_0_2 ok"}, 1,
		},
		"an id again, one result": {
			list(askedFor("1"), user, askedFor("1"), resultOf("1", "b")),
			[]string{"assistant 1{}", "tool 1 interrupted", "user", "assistant call_2_0_2{}", "tool call_2_0_2 ok"}, 2,
		},
		"an id twice in a message": {
			list(askedFor("1", "1"), resultOf("1", "a"), resultOf("1", "b")),
			[]string{"assistant 1{} call_0_1_2{}", "tool 1 ok", "tool call_0_1_2 ok"}, 1,
		},
		"no id":               {list(askedFor(""), resultOf("", "a")), []string{"assistant call_0_0_2{}", "tool call_0_0_2 ok"}, 1},
		"answered by its new": {list(askedFor("1"), resultOf("1", ""), askedFor("1"), resultOf("call_2_0_2", "")), []string{"assistant 1{}", "tool 1 ok", "assistant call_2_0_2{}", "tool call_2_0_2 ok"}, 1},
		"an aborted message":  {list(user, stoppedBy(askedFor("1"), agentkernel.StopReasonAborted), resultOf("1", "")), []string{"user", "assistant"}, 2},
		"a failed message":    {list(user, stoppedBy(askedFor("1"), agentkernel.StopReasonError), user), []string{"user", "assistant", "user"}, 1},
		"no arguments":        {list(withArgs(askedFor("1"), ""), resultOf("1", "")), []string{"assistant 1{}", "tool 1 ok"}, 1},
		"null arguments":      {list(withArgs(askedFor("1"), "null"), resultOf("1", "")), []string{"assistant 1{}", "tool 1 ok"}, 1},
		"a list of arguments": {list(withArgs(askedFor("1"), "[1]"), resultOf("1", "")), []string{"assistant 1{}", "tool 1 ok"}, 1},
		"half of arguments":   {list(withArgs(askedFor("1"), `{"a":`), resultOf("1", "")), []string{"assistant 1{}", "tool 1 ok"}, 1},
		"a nil":               {list(user, nil, (*agentkernel.Message)(nil), agentkernel.Message{}), []string{"user"}, 3},
		"a pointer":           {list(&user, new(askedFor("1")), new(resultOf("1", ""))), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := agentkernel.RepairHistory(c.history)
			if c.want != nil || len(c.history) == 0 {
				require.Equal(t, c.want, outline(got))
			}
			require.Len(t, agentkernel.ValidateHistory(c.history), c.problems)
			require.Empty(t, agentkernel.ValidateHistory(got))
			require.Equal(t, got, agentkernel.RepairHistory(got))
			if c.problems == 0 && len(c.history) > 0 {
				require.Same(t, &c.history[0], &got[0], "a sound history is returned as it is")
			}
		})
	}
}

// TestRepairHistoryChangesNothing of what it was given.
func TestRepairHistoryChangesNothing(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		history := randomHistory(rng.IntN)
		before := look(agentkernel.Message{Metadata: map[string]any{"h": fmt.Sprintf("%#v", history)}})
		agentkernel.RepairHistory(history)
		require.Equal(t, before, look(agentkernel.Message{Metadata: map[string]any{"h": fmt.Sprintf("%#v", history)}}))
	}
}

// randomHistory is a history that anything may be wrong with.
func randomHistory(n func(int) int) []agentkernel.AgentMessage {
	ids := []string{"", "1", "2", "3", "call_1_0_2", "call_2_0_2", "null"}
	var out []agentkernel.AgentMessage
	for range n(9) {
		switch n(8) {
		case 0:
			out = append(out, agentkernel.UserMessage("u"))
		case 1:
			out = append(out, mark("m"))
		case 2, 3:
			m := askedFor(ids[n(len(ids))])
			for range n(3) {
				m.Content = append(m.Content, askedFor(ids[n(len(ids))]).Content...)
			}
			m = withArgs(m, argTexts[n(len(argTexts))])
			m.StopReason = []agentkernel.StopReason{"tool_use", "tool_use", "tool_use", "length", "aborted", "error", ""}[n(7)]
			out = append(out, m)
		case 4, 5, 6:
			out = append(out, resultOf(ids[n(len(ids))], "r"))
		case 7:
			out = append(out, []agentkernel.AgentMessage{nil, agentkernel.Message{}, (*agentkernel.Message)(nil), new(askedFor("1")), new(resultOf("1", ""))}[n(5)])
		}
	}
	return out
}

// sound tells what a provider would refuse.
func sound(history []agentkernel.Message) error {
	ids := map[string]bool{}
	for i := 0; i < len(history); i++ {
		m := history[i]
		if m.Role == agentkernel.RoleTool {
			return fmt.Errorf("message %d: a result without a call", i)
		}
		for _, c := range m.ToolCalls() {
			var object map[string]any
			if c.ID == "" || ids[c.ID] || json.Unmarshal(c.Args, &object) != nil || object == nil {
				return fmt.Errorf("message %d: call %q with %s", i, c.ID, c.Args)
			}
			ids[c.ID] = true
			if i++; i >= len(history) || history[i].Role != agentkernel.RoleTool || history[i].ToolCallID != c.ID {
				return fmt.Errorf("message %d is not the result of %q", i, c.ID)
			}
		}
	}
	return nil
}

// marksOf are the harness's own messages.
func marksOf(history []agentkernel.AgentMessage) []string {
	var out []string
	for _, m := range history {
		if own, ok := m.(mark); ok {
			out = append(out, string(own))
		}
	}
	return out
}

func FuzzRepairHistory(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 3))
		history := randomHistory(rng.IntN)
		got := agentkernel.RepairHistory(history)
		require.NoError(t, sound(agentkernel.DefaultConvertToLLM(got)), "%v\n%v", fmt.Sprint(history), outline(got))
		require.Empty(t, agentkernel.ValidateHistory(got))
		require.Equal(t, got, agentkernel.RepairHistory(got))
		require.Equal(t, marksOf(history), marksOf(got))

		// What a model is asked on such a history is sound too, and so is what is written then.
		var clean []agentkernel.AgentMessage
		for _, m := range history {
			if p, ok := m.(*agentkernel.Message); m != nil && (!ok || p != nil) {
				clean = append(clean, m)
			}
		}
		model := agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok"))
		log := slices.Collect(func(yield func(agentkernel.Event) bool) {
			for ev := range agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}}, clean, agentkernel.UserMessage("go")) {
				yield(ev)
			}
		})
		require.NoError(t, final(log).Err)
		for _, req := range model.Requests() {
			require.NoError(t, sound(req.Messages), "%v", fmt.Sprint(clean))
		}
	})
}

// TestKernelHistoriesNeedNoMending, whatever happened in them: see also the random worlds.
func TestKernelHistoriesNeedNoMending(t *testing.T) {
	for name, script := range map[string][]agenttest.Reply{
		"tools":       replies(agenttest.Calls("t", "reed", "t"), agenttest.Text("ok")),
		"same ids":    replies(agenttest.Call("1", "t", "{}"), agenttest.Call("1", "t", "{}"), agenttest.Text("ok")),
		"bad args":    replies(agenttest.Call("", "t", "[1"), agenttest.Call("", "t", `"x"`), agenttest.Text("ok")),
		"cut":         replies(agenttest.Call("1", "t", `{"a`).Stop(agentkernel.StopReasonLength), agenttest.Text("ok")),
		"failed":      replies(agenttest.Calls("t").Fail(failure(agentkernel.KindAuth, false))),
		"interrupted": replies(agenttest.Calls("t"), agenttest.Calls("t").Panic("x")),
	} {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: agenttest.Script(script...), Tools: []agentkernel.Tool{echo("t")}})
			require.Empty(t, agentkernel.ValidateHistory(final(log).NewMessages))
		})
	}
}

// TestConversionIsMended: what ConvertToLLM returns reaches no provider unsound.
func TestConversionIsMended(t *testing.T) {
	model := agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok"))
	play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")},
		ConvertToLLM: func(_ context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
			out := agentkernel.DefaultConvertToLLM(history)
			return append(out[:len(out):len(out)], resultOf("x", ""), askedFor("y"), withArgs(askedFor("y"), "7")), nil
		}})
	for i, req := range model.Requests() {
		require.NoError(t, sound(req.Messages))
		require.Equal(t, []string{"y", "call_"}, []string{req.Messages[len(req.Messages)-4].ToolCalls()[0].ID, req.Messages[len(req.Messages)-2].ToolCalls()[0].ID[:5]}, i)
	}
}

// TestHistoriesOfOthersAreMendedForTheModelOnly: the state keeps what it was given.
func TestHistoriesOfOthersAreMendedForTheModelOnly(t *testing.T) {
	model := agenttest.Script(agenttest.Text("ok"), agenttest.Text("ok"))
	agent := watch(t, agentkernel.Config{Model: model})
	history := list(agentkernel.UserMessage("hi"), askedFor("1"), agentkernel.UserMessage("and"), resultOf("x", ""))
	require.NoError(t, agent.SetMessages(history...))
	for range 2 {
		_, err := agent.Run(t.Context(), "go")
		require.NoError(t, err)
	}
	require.Equal(t, outline(history), outline(agent.Messages()[:4]))
	for _, req := range model.Requests() {
		require.NoError(t, sound(req.Messages))
	}
	require.True(t, reflect.DeepEqual(outline(history), outline(agent.Messages()[:len(history)])))
}
