package agentkernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// TestWireManyBlocks: deltas make no more blocks than a run of the kernel does, since each
// partial lists all of them. An Encoder that is told of more writes the message whole.
func TestWireManyBlocks(t *testing.T) {
	const most = 4096
	m := agentkernel.Message{Role: agentkernel.RoleAssistant, Content: slices.Repeat([]agentkernel.ContentBlock{agentkernel.TextBlock("x")}, most-3)}
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	seq := uint64(0)
	pass := func(ev agentkernel.Event) string {
		seq++
		ev.RunID, ev.Seq, ev.Message = "r", seq, m
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		back, err := dec.Decode(line)
		require.NoError(t, err)
		require.Len(t, back.Message.(agentkernel.Message).Content, len(m.Content))
		return string(line)
	}
	pass(agentkernel.Event{Type: agentkernel.EventMessageStart})
	pass(agentkernel.Event{Type: agentkernel.EventMessageUpdate, ContentIndex: most - 4, Delta: "x"})
	for i := most - 3; i < most+4; i++ {
		m.Content = slices.Concat(m.Content, []agentkernel.ContentBlock{agentkernel.TextBlock("x")})
		line := pass(agentkernel.Event{Type: agentkernel.EventMessageUpdate, ContentIndex: i, Delta: "x"})
		require.Equal(t, i > most, strings.Contains(line, `"message":`), i)
	}
	_, err := dec.Decode(fmt.Appendf(nil, `{"v":1,"type":"message_update","run_id":"r","seq":%d,"turn":0,"content_index":%d,"delta":"x"}`, seq+1, len(m.Content)))
	require.ErrorIs(t, err, agentkernel.WireGarbage)
	_, err = dec.Decode(fmt.Appendf(nil, `{"v":1,"type":"message_end","run_id":"r","seq":%d,"turn":0,"message":{"role":"assistant","content":[]}}`, seq+2))
	require.NoError(t, err)
}

// TestWireManyResults: an answer refers to many calls by their ids, in any order; of calls with
// the same id the first one counts.
func TestWireManyResults(t *testing.T) {
	for _, n := range []int{1, 16, 17, 3000} {
		enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
		seq := uint64(0)
		pass := func(ev agentkernel.Event) (string, agentkernel.Event) {
			seq++
			ev.RunID, ev.Seq = "r", seq
			line, err := enc.Encode(ev)
			require.NoError(t, err)
			back, err := dec.Decode(line)
			require.NoError(t, err)
			return string(line), back
		}
		var results []agentkernel.ToolResult
		for i := range n {
			result := agentkernel.ToolResult{ToolCallID: fmt.Sprint("call ", i), ToolName: "t", Stack: fmt.Sprint(i)}
			results = append(results, result)
			pass(agentkernel.Event{Type: agentkernel.EventToolExecEnd, ToolID: result.ToolCallID, Result: &result})
		}
		pass(agentkernel.Event{Type: agentkernel.EventToolExecEnd, ToolID: "call 0",
			Result: &agentkernel.ToolResult{ToolCallID: "call 0", ToolName: "another"}})
		slices.Reverse(results)
		line, back := pass(agentkernel.Event{Type: agentkernel.EventModelResponse, Message: agentkernel.UserMessage("x"), ToolResults: results})
		require.Contains(t, line, `"tool_result_ids":`)
		require.NotContains(t, line, `"tool_results":`)
		require.Equal(t, results, back.ToolResults)
	}
}
