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
