package agentkernel_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// full is a message that fills everything.
func full() agentkernel.Message {
	return agentkernel.Message{
		Role:      agentkernel.RoleAssistant,
		Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC),
		Content: []agentkernel.ContentBlock{
			{Type: agentkernel.ContentThinking, Thinking: "hm", Signature: "sig", Extra: json.RawMessage(`{"a":[1]}`)},
			agentkernel.TextBlock("<b>ü</b>"),
			{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "1", Name: "t", Args: json.RawMessage(`{"x":1}`), RawArgs: "{", ArgsError: "e"}},
			{Type: agentkernel.ContentImage, Image: &agentkernel.Image{URL: "u", Data: []byte{1, 2}, MIMEType: "image/png"}, ToolName: "n"},
		},
		Usage:         &agentkernel.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Total: 6, Cost: new(0.5)},
		StopReason:    agentkernel.StopReasonToolUse,
		RawStopReason: "tool_calls",
		Model:         "m",
		ToolCallID:    "c",
		ToolName:      "t",
		IsError:       true,
		Cause:         agentkernel.ToolFailed,
		Metadata:      map[string]any{"k": "v"},
	}
}

func TestMessageJSON(t *testing.T) {
	raw, err := json.Marshal(full())
	require.NoError(t, err)
	require.JSONEq(t, `{"role":"assistant","timestamp":"2026-01-02T03:04:05.000000678Z","content":[
		{"type":"thinking","thinking":"hm","signature":"sig","extra":{"a":[1]}},
		{"type":"text","text":"<b>ü</b>"},
		{"type":"tool_call","tool_call":{"id":"1","name":"t","args":{"x":1},"raw_args":"{","args_error":"e"}},
		{"type":"image","image":{"url":"u","data":"AQI=","mime_type":"image/png"},"tool_name":"n"}],
		"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5,"total":6,"cost":0.5},
		"stop_reason":"tool_use","raw_stop_reason":"tool_calls","model":"m","tool_call_id":"c","tool_name":"t",
		"is_error":true,"cause":"failed","metadata":{"k":"v"}}`, string(raw))
	var back agentkernel.Message
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, full(), back)
}

// FuzzMessageJSON: what was read once is written and read the same for ever, and so is what
// a run puts into the history of it.
func FuzzMessageJSON(f *testing.F) {
	raw, err := json.Marshal(full())
	require.NoError(f, err)
	f.Add(raw)
	f.Add([]byte(`{"role":"user","content":[{"type":"text","text":"\ud800 \u2028<"}],"timestamp":"2020-02-30T00:00:00+05:30"}`))
	f.Add([]byte(`{"role":"user","content":null,"timestamp":"2020-02-03T00:00:00.5+05:30","usage":{"cost":1e-9}}`))
	f.Add([]byte(`{"content":[{"type":"tool_call","tool_call":{"args":null}},{"extra":null},{"image":{}}],"metadata":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m agentkernel.Message
		if json.Unmarshal(raw, &m) != nil {
			return
		}
		first, err := json.Marshal(m)
		if err != nil {
			return // a year beyond 9999
		}
		var back agentkernel.Message
		require.NoError(t, json.Unmarshal(first, &back))
		second, err := json.Marshal(back)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))

		clone, err := json.Marshal(m.Clone())
		require.NoError(t, err)
		require.Equal(t, string(first), string(clone))

		m.Role = agentkernel.RoleUser
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
		run, err := agent.PromptMessages(t.Context(), m)
		require.NoError(t, err)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
	})
}

// TestHistoryIsAFixedPoint of encoding/json, whatever the harness puts in.
func TestHistoryIsAFixedPoint(t *testing.T) {
	m := agentkernel.Message{
		Role: agentkernel.RoleUser,
		Content: []agentkernel.ContentBlock{
			{Type: agentkernel.ContentText, Text: "a\xffb", Extra: json.RawMessage(`{ "b" : "<" }`), Signature: "s\xff"},
			{Type: agentkernel.ContentImage, ToolName: "\xff", Image: &agentkernel.Image{URL: "u\xff", MIMEType: "\xff"}},
			{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "\xff", Name: "\xff", ArgsError: "\xff", Args: json.RawMessage(`{ "a": not`)}},
		},
		Timestamp: time.Now().In(time.FixedZone("x", 3600)),
		Model:     "\xff", RawStopReason: "\xff", ToolName: "\xff", ToolCallID: "\xff",
	}
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"), agenttest.Text("ok"))})
	run, err := agent.PromptMessages(t.Context(), m)
	require.NoError(t, err)
	_, err = run.Wait(t.Context())
	require.NoError(t, err)
	require.NoError(t, agent.SetMessages(append(agent.Messages(), m, &m)...))
	for _, kept := range agent.Messages() {
		first, err := json.Marshal(kept)
		require.NoError(t, err)
		var back agentkernel.Message
		require.NoError(t, json.Unmarshal(first, &back))
		require.Equal(t, kept, back)
	}
	require.Equal(t, "a\xffb", m.Content[0].Text, "the caller's own message is as it was")
}

// TestCloneSharesNothing, except what Metadata's values refer to.
func TestCloneSharesNothing(t *testing.T) {
	m := full()
	c := m.Clone()
	require.Equal(t, m, c)
	c.Content[0].Thinking = "X"
	c.Content[0].Extra[0] = 'X'
	c.Content[2].ToolCall.ID = "X"
	c.Content[2].ToolCall.Args[0] = 'X'
	c.Content[3].Image.Data[0] = 9
	c.Content[3].Image.URL = "X"
	*c.Usage.Cost = 9
	c.Usage.Input = 9
	c.Metadata["k"] = "X"
	require.Equal(t, full(), m)
	require.Equal(t, agentkernel.Message{}, agentkernel.Message{}.Clone())
}

func TestTextContent(t *testing.T) {
	block := agentkernel.TextBlock
	one := strings.Repeat("text", 100)
	m := agentkernel.Message{Content: []agentkernel.ContentBlock{{Type: agentkernel.ContentThinking, Thinking: "hm"}, block(one)}}
	require.Same(t, unsafe.StringData(one), unsafe.StringData(m.TextContent()), "not a copy")
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = m.TextContent() }))
	m.Content = append(m.Content, block("x"), block(""), block("y"))
	require.Equal(t, one+"xy", m.TextContent())
	require.Equal(t, "hm", m.ThinkingContent())
	require.Empty(t, agentkernel.Message{}.TextContent())
	require.False(t, m.HasToolCalls())
	require.True(t, full().HasToolCalls())
	require.Len(t, full().ToolCalls(), 1)
}

// TestUsageAdd: the sum shares no memory, and an unknown cost is not nothing.
func TestUsageAdd(t *testing.T) {
	cost := 0.25
	a := agentkernel.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Total: 6, Cost: &cost}
	b := agentkernel.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40, Reasoning: 50, Total: 60}
	sum := a.Add(b)
	require.Equal(t, agentkernel.Usage{Input: 11, Output: 22, CacheRead: 33, CacheWrite: 44, Reasoning: 55, Total: 66, Cost: new(0.25)}, sum)
	require.NotSame(t, a.Cost, sum.Cost)
	require.NotSame(t, a.Cost, b.Add(a).Cost)
	require.InDelta(t, 0.5, *a.Add(a).Cost, 0)
	require.Nil(t, b.Add(b).Cost)
	require.InDelta(t, 0.25, cost, 0)
}

func TestDefaultConvertToLLM(t *testing.T) {
	call := agentkernel.ContentBlock{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "1", Name: "t"}}
	thinking := agentkernel.ContentBlock{Type: agentkernel.ContentThinking, Thinking: "hm"}
	text := agentkernel.TextBlock("text")
	message := func(role agentkernel.Role, stop agentkernel.StopReason, blocks ...agentkernel.ContentBlock) agentkernel.Message {
		return agentkernel.Message{Role: role, StopReason: stop, Content: blocks}
	}
	result := agentkernel.Message{Role: agentkernel.RoleTool, ToolCallID: "1"}
	user := message(agentkernel.RoleUser, "", text)
	for name, c := range map[string]struct{ in, want []agentkernel.AgentMessage }{
		"the harness's own": {list(mark("m"), user, mark("m")), list(user)},
		"a pointer":         {list(&user), list(user)},
		"no content":        {list(user, message(agentkernel.RoleAssistant, "stop")), list(user)},
		"an empty text":     {list(user, message(agentkernel.RoleAssistant, "stop", agentkernel.TextBlock(""))), list(user)},
		"thinking only":     {list(user, message(agentkernel.RoleAssistant, "stop", thinking)), list(user)},
		"an answer":         {list(message(agentkernel.RoleAssistant, "stop", thinking, text)), list(message(agentkernel.RoleAssistant, "stop", thinking, text))},
		"calls":             {list(message(agentkernel.RoleAssistant, "tool_use", call), result), list(message(agentkernel.RoleAssistant, "tool_use", call), result)},
		"an aborted one":    {list(message(agentkernel.RoleAssistant, "aborted", thinking, text, call), result), list(message(agentkernel.RoleAssistant, "aborted", text))},
		"a failed one":      {list(message(agentkernel.RoleAssistant, "error", call), result, user), list(user)},
	} {
		var want []agentkernel.Message
		for _, m := range c.want {
			want = append(want, m.(agentkernel.Message))
		}
		require.Equal(t, want, agentkernel.DefaultConvertToLLM(c.in), name)
	}
}

// TestUsageAddStaysFinite: sums of any costs can be written as JSON.
func TestUsageAddStaysFinite(t *testing.T) {
	for _, cost := range []float64{math.MaxFloat64, -math.MaxFloat64} {
		u := agentkernel.Usage{Cost: new(cost)}
		require.Equal(t, cost, *u.Add(u).Cost)
	}
}
