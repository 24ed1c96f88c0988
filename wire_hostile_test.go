package agentkernel_test

import (
	"encoding/json"
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
