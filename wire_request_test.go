package agentkernel_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// requestOf is the first model_request of a run with a system prompt in blocks, two tools and
// all parameters.
func requestOf(t testing.TB) agentkernel.Event {
	tool := echo("echo")
	tool.Description, tool.Schema, tool.Strict = "Says it again.", json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`), true
	log := agenttest.Run(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("ok")), Tools: []agentkernel.Tool{tool, echo("plain")},
		CacheKey: "k", SystemBlocks: []agentkernel.SystemBlock{{Text: "Be brief.", Cache: true}, {Text: "Be kind."}},
		Prepare: func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{ThinkingLevel: agentkernel.ThinkingHigh, Temperature: new(0.25)}, nil
		},
	}, nil, agentkernel.UserMessage("hi"))
	for _, ev := range log {
		if ev.Request != nil {
			return ev
		}
	}
	t.Fatal("no request")
	return agentkernel.Event{}
}

// TestWireRequestWhole: the whole form of a request stands alone, but for its messages.
func TestWireRequestWhole(t *testing.T) {
	ev := requestOf(t)
	line := onWire(t, ev)
	var back agentkernel.Event
	require.NoError(t, json.Unmarshal([]byte(line), &back))
	require.Len(t, back.Request.Messages, 1)
	back.Request.Messages = ev.Request.Messages
	require.Equal(t, ev.Request, back.Request)
	require.Equal(t, 1, strings.Count(line, "Says it again."))
	require.NotContains(t, line, `"hi"`)
}

// TestWireRequestDelta: the delta-only form has the names of the tools and the parameters.
func TestWireRequestDelta(t *testing.T) {
	ev := requestOf(t)
	line := encoded(t, []agentkernel.Event{ev})[0]
	for _, absent := range []string{"Be brief.", "Be kind.", "Says it again.", "properties"} {
		require.NotContains(t, string(line), absent)
	}
	var back agentkernel.Event
	require.NoError(t, json.Unmarshal(line, &back))
	require.Equal(t, []agentkernel.ToolSpec{{Name: "echo"}, {Name: "plain"}}, back.Request.Tools)
	require.Empty(t, back.Request.System)
	require.Equal(t, []any{ev.Request.ThinkingLevel, ev.Request.Temperature, "k"},
		[]any{back.Request.ThinkingLevel, back.Request.Temperature, back.Request.CacheKey})
	require.NoError(t, wireSchema(t).Validate(instance(t, line)))
	require.Equal(t, onDelta(t, ev), onWire(t, back))
}

// TestWireRequestSchemas that no record can hold are left out, and the record is readable.
func TestWireRequestSchemas(t *testing.T) {
	deep := strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990)
	for _, schema := range []string{"", "{", deep} {
		ev := agentkernel.Event{Type: agentkernel.EventModelRequest, RunID: "r", Seq: 1, Request: &agentkernel.ModelRequest{
			Tools: []agentkernel.ToolSpec{{Name: "t", Schema: json.RawMessage(schema)}}}}
		var back agentkernel.Event
		require.NoError(t, json.Unmarshal([]byte(onWire(t, ev)), &back))
		require.Equal(t, []agentkernel.ToolSpec{{Name: "t"}}, back.Request.Tools)
	}
}

// TestWireRequestCount: a number costs no memory, however many messages it says.
func TestWireRequestCount(t *testing.T) {
	line := []byte(`{"v":1,"type":"model_request","run_id":"r","seq":1,"turn":0,"request":{"messages":1000000000}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		require.NoError(t, json.Unmarshal(line, new(agentkernel.Event)))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
