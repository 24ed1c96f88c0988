package agentkernel_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// TestWireBadFieldBeforeType: a record whose bad field stands before its type is garbage, not
// a record of an unknown type.
func TestWireBadFieldBeforeType(t *testing.T) {
	for name, field := range map[string]string{
		"message_end": `"message":{}`, "message_start": `"message":7`, "context": `"context":7`,
		"tool_exec_end": `"result":[]`, "snapshot": `"state":7`,
	} {
		line := `{` + field + `,"v":1,"type":"` + name + `","run_id":"r","seq":1,"turn":0}`
		var ev agentkernel.Event
		require.Error(t, json.Unmarshal([]byte(line), &ev), line)
		_, err := agentkernel.NewDecoder(agentkernel.AgentState{}).Decode([]byte(line))
		require.Error(t, err, line)
	}
}

// TestTimesThatJSONCannotWrite become no time, so that the message can be stored.
func TestTimesThatJSONCannotWrite(t *testing.T) {
	m := agentkernel.UserMessage("hi")
	m.Timestamp = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -24*3600+60))
	agent, err := agentkernel.NewAgent(agentkernel.Config{})
	require.NoError(t, err)
	require.NoError(t, agent.SetMessages(m))
	data, err := json.Marshal(agent.Messages()[0])
	require.NoError(t, err)
	require.NotContains(t, string(data), "10000")
}

// TestWireRawIsOneLine: a record of a newer version that was written over several lines is
// one line where it goes on.
func TestWireRawIsOneLine(t *testing.T) {
	var ev agentkernel.Event
	require.NoError(t, json.Unmarshal([]byte("{\"v\":1,\n\"type\":\"newer\",\"run_id\":\"r\",\n\"seq\":1}"), &ev))
	require.NotContains(t, string(ev.Raw), "\n")
	data, err := json.Marshal(ev)
	require.NoError(t, err)
	require.NotContains(t, string(data), "\n")
}

// TestWireDeepDetails are left out, since the record could not be read back.
func TestWireDeepDetails(t *testing.T) {
	deep := json.RawMessage(strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990))
	ev := agentkernel.Event{Type: agentkernel.EventToolExecEnd, RunID: "r", Seq: 1, ToolID: "c", Tool: "t", Args: json.RawMessage(`{}`),
		Result: &agentkernel.ToolResult{ToolCallID: "c", ToolName: "t", Cause: agentkernel.ToolOK, Details: deep}}
	data, err := json.Marshal(ev)
	require.NoError(t, err)
	var back agentkernel.Event
	require.NoError(t, json.Unmarshal(data, &back))
	require.Nil(t, back.Result.Details)
}

// TestWireDurationWithAnExponent is read as the number that it is.
func TestWireDurationWithAnExponent(t *testing.T) {
	var ev agentkernel.Event
	line := `{"v":1,"type":"agent_end","run_id":"r","seq":1,"turn":1,"duration_ms":1.1234567e3,"summary":{"end_reason":"stop"}}`
	require.NoError(t, json.Unmarshal([]byte(line), &ev))
	require.Equal(t, 1_123_456_700*time.Nanosecond, ev.Duration)
}

// TestWireManyResultIDs: a record that names the same result again and again costs nothing.
func TestWireManyResultIDs(t *testing.T) {
	dec := new(agentkernel.Decoder)
	_, errs := decodeAll(dec, [][]byte{
		[]byte(`{"v":1,"type":"agent_start","run_id":"r","seq":1,"turn":0}`),
		[]byte(`{"v":1,"type":"message_end","run_id":"r","seq":2,"turn":1,"message":{"role":"assistant","content":[]}}`),
		[]byte(`{"v":1,"type":"tool_exec_end","run_id":"r","seq":3,"turn":1,"tool_id":"a","result":{"tool_call_id":"a","tool_name":"t"}}`),
	})
	require.Empty(t, errs)
	line := `{"v":1,"type":"model_response","run_id":"r","seq":4,"turn":1,"tool_result_ids":["a"` + strings.Repeat(`,"a"`, 100_000) + `]}`
	_, err := dec.Decode([]byte(line))
	require.ErrorIs(t, err, agentkernel.WireReference)
}

// TestWireOddJSON: numbers that do not fit are garbage; of members that come twice the last
// holds; names in upper case are those in lower.
func TestWireOddJSON(t *testing.T) {
	for _, field := range []string{`"seq":1e400`, `"seq":18446744073709551616`, `"seq":1.5`, `"turn":1e30`, `"seq":1,"coalesced":9223372036854775808`,
		`"seq":1,"duration_ms":1e400`, `"seq":1,"attempt":` + strings.Repeat("9", 100_000), `"seq":1,"args":` + strings.Repeat("[", 100_000)} {
		_, err := new(agentkernel.Decoder).Decode([]byte(`{"v":1,"type":"turn_start","run_id":"r","turn":0,` + field + `}`))
		require.ErrorIs(t, err, agentkernel.WireGarbage, "%.60s", field)
	}
	ev, err := new(agentkernel.Decoder).Decode([]byte(`{"v":2,"V":1,"type":"agent_end","TYPE":"turn_start","run_id":"r","turn":0,"seq":7,"seq":1}`))
	require.NoError(t, err)
	require.Equal(t, agentkernel.EventTurnStart, ev.Type)
	require.Equal(t, uint64(1), ev.Seq)
}
