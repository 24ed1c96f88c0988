package agentkernel_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestWirePayloads: a payload's wire form is that of its event, both ways, for every kind.
func TestWirePayloads(t *testing.T) {
	tool := echo("echo")
	tool.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
		return agentkernel.ProgressPayload{Text: "would echo"}, nil
	}
	log := agenttest.Run(t, agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Text("hal").Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true}),
			agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindContextOverflow}),
			agenttest.Text("look").Calls("echo").Usage(agentkernel.Usage{Input: 1, Output: 2, Total: 3}),
			agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindAuth}),
		),
		Tools: []agentkernel.Tool{tool}, ContextManager: lastOnly{}, Retry: agentkernel.RetryPolicy{BaseDelay: -1},
	}, nil, agentkernel.UserMessage("one"), agentkernel.UserMessage("two"))
	seen := make(map[agentkernel.EventType]bool)
	for _, ev := range log {
		seen[ev.Type] = true
		whole, err := json.Marshal(ev)
		require.NoError(t, err)
		p := ev.Payload()
		narrow, err := json.Marshal(p)
		require.NoError(t, err)
		require.JSONEq(t, string(whole), string(narrow))

		back := reflect.New(reflect.TypeOf(p))
		require.NoError(t, json.Unmarshal(narrow, back.Interface()))
		again, err := json.Marshal(back.Interface())
		require.NoError(t, err)
		require.JSONEq(t, string(whole), string(again))
	}
	require.Len(t, seen, 15)

	var wrong agentkernel.TurnStarted
	data, err := json.Marshal(log[0])
	require.NoError(t, err)
	require.ErrorContains(t, json.Unmarshal(data, &wrong), "agent_start")
}
