package agentkernel_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// unreadableEvents are events of the type that they name which no reader could take, or which no
// snapshot could tell of.
func unreadableEvents() map[string]agentkernel.Event {
	deep := json.RawMessage(strings.Repeat(`{"a":`, 9_998) + "1" + strings.Repeat("}", 9_998))
	call := func(args json.RawMessage) agentkernel.Message {
		return agentkernel.Message{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{
			{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "a", Name: "t", Args: args}}}}
	}
	text := func(change func(*agentkernel.Message)) agentkernel.Message {
		m := agentkernel.Message{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("x")}}
		change(&m)
		return m
	}
	end := func(m agentkernel.AgentMessage) agentkernel.Event {
		return agentkernel.Event{Type: agentkernel.EventMessageEnd, Message: m}
	}
	raw := func(text string) agentkernel.Event {
		return agentkernel.Event{Type: "newer", Raw: json.RawMessage(text)}
	}
	return map[string]agentkernel.Event{
		"no type":        {},
		"no role":        end(text(func(m *agentkernel.Message) { m.Role = "" })),
		"no messages":    {Type: agentkernel.EventAgentEnd, Summary: new(agentkernel.RunSummary), NewMessages: list(nil)},
		"args null":      end(call(json.RawMessage("null"))),
		"args a list":    {Type: agentkernel.EventContext, Context: &agentkernel.ContextInfo{Messages: list(call(json.RawMessage("[]")))}},
		"args no JSON":   end(call(json.RawMessage("{"))),
		"args deep":      end(call(deep)),
		"extra deep":     end(text(func(m *agentkernel.Message) { m.Content[0].Extra = deep })),
		"foreign deep":   end(agentkernel.ForeignMessage{Name: "n", Role: "r", Value: deep}),
		"call deep":      {Type: agentkernel.EventToolExecStart, ToolID: "a", Args: deep},
		"progress deep":  {Type: agentkernel.EventToolExecUpdate, ToolID: "a", UpdateKind: "progress", Progress: &agentkernel.ProgressPayload{Data: deep}},
		"result deep":    {Type: agentkernel.EventToolExecEnd, ToolID: "a", Result: &agentkernel.ToolResult{JSON: deep}},
		"cost no number": end(text(func(m *agentkernel.Message) { m.Usage = &agentkernel.Usage{Cost: new(math.NaN())} })),
		"year 20000":     end(text(func(m *agentkernel.Message) { m.Timestamp = time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC) })),
		"raw empty":      raw(""),
		"raw no record":  raw("{}"),
		"raw no JSON":    raw("{\n"),
		"raw of another": raw(`{"v":1,"type":"newer","run_id":"s","seq":3}`),
		"raw of version": raw(`{"v":2,"type":"newer","run_id":"r","seq":3}`),
		"raw of a known": {Type: agentkernel.EventTurnStart, Raw: json.RawMessage(`{"v":1,"type":"turn_start","run_id":"r","seq":3,"turn":1}`)},
	}
}

// TestEncoderWritesWhatReadersTake: what no Decoder would take is refused, changes nothing and
// spoils no later snapshot, at the beginning of a run and in it.
func TestEncoderWritesWhatReadersTake(t *testing.T) {
	for name, bad := range unreadableEvents() {
		enc := new(agentkernel.Encoder)
		for _, seq := range []uint64{1, 2} {
			before, err := enc.Snapshot()
			require.NoError(t, err)
			bad.RunID, bad.Seq = "r", 3
			_, err = enc.Encode(bad)
			require.Error(t, err, name)
			after, err := enc.Snapshot()
			require.NoError(t, err, name)
			require.Equal(t, string(before), string(after), name)
			_, err = new(agentkernel.Decoder).Decode(after)
			require.NoError(t, err, name)
			_, err = enc.Encode(agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "r", Seq: seq})
			require.NoError(t, err)
		}
	}
}

// TestEncoderRawIsOneLine: a record of a newer version that a harness wrote over several lines
// is one line of the stream.
func TestEncoderRawIsOneLine(t *testing.T) {
	line, err := new(agentkernel.Encoder).Encode(agentkernel.Event{Type: "newer", RunID: "r", Seq: 1,
		Raw: json.RawMessage("{\"v\":1,\r\n\"type\":\"newer\",\n\"run_id\":\"r\",\"seq\":1}")})
	require.NoError(t, err)
	require.Equal(t, `{"v":1,"type":"newer","run_id":"r","seq":1}`, string(line))
}

// TestEncoderKeepsWhatCannotBeWritten: an event whose own time cannot be written has its place,
// and the snapshot that stands for it can be written.
func TestEncoderKeepsWhatCannotBeWritten(t *testing.T) {
	enc := new(agentkernel.Encoder)
	_, err := enc.Encode(agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "r", Seq: 1,
		Time: time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC), Message: agentkernel.UserMessage("hi")})
	require.Error(t, err)
	snapshot, err := enc.Snapshot()
	require.NoError(t, err)
	dec := new(agentkernel.Decoder)
	_, err = dec.Decode(snapshot)
	require.NoError(t, err)
	require.Len(t, dec.State().Messages, 1)
}
