package agentkernel_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// goldenLines is every record of the golden files.
func goldenLines(t testing.TB) [][]byte {
	t.Helper()
	var lines [][]byte
	for _, name := range []string{"whole", "delta", "suspended"} {
		raw, err := os.ReadFile("testdata/wire/" + name + ".jsonl")
		require.NoError(t, err)
		lines = append(lines, bytes.Split(bytes.TrimSpace(raw), []byte("\n"))...)
	}
	return lines
}

func wireSchema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	raw, err := os.ReadFile("docs/event.schema.json")
	require.NoError(t, err)
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(raw, &schema))
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	return resolved
}

func instance(t testing.TB, line []byte) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(line, &v), "%s", line)
	return v
}

// TestWireSchema: the golden files and the runs of random agents, in both encodings, are what
// the schema says, which knows every name in them.
func TestWireSchema(t *testing.T) {
	schema := wireSchema(t)
	for _, line := range goldenLines(t) {
		require.NoError(t, schema.Validate(instance(t, line)), "%s", line)
	}
	property(t, 10, func(t *testing.T, seed uint64) int {
		w := &world{dice: &dice{rng: rand.New(rand.NewPCG(seed, 1))}}
		synctest.Test(t, w.play)
		enc := new(agentkernel.Encoder)
		for _, ev := range w.log {
			require.NoError(t, schema.Validate(instance(t, []byte(onWire(t, ev)))), seeded, seed)
			line, err := enc.Encode(ev)
			require.NoError(t, err)
			require.NoError(t, schema.Validate(instance(t, line)), seeded+": %s", seed, line)
		}
		snapshot, err := enc.Snapshot()
		require.NoError(t, err)
		require.NoError(t, schema.Validate(instance(t, snapshot)), seeded+": %s", seed, snapshot)
		return 1
	})
}

// TestWireSchemaRefuses what no reader could use, and a name that is misspelt.
func TestWireSchemaRefuses(t *testing.T) {
	schema := wireSchema(t)
	for _, bad := range []string{
		`{}`, `{"v":2,"type":"agent_start","run_id":"r","seq":1,"turn":0}`, `{"v":1,"type":"agent_start","seq":1,"turn":0}`,
		`{"v":1,"type":"agent_end","run_id":"r","seq":1,"turn":0}`, `{"v":1,"type":"message_end","run_id":"r","seq":1,"turn":0}`,
		`{"v":1,"type":"error","run_id":"r","seq":1,"turn":0,"err":{"kind":"auth"}}`,
		`{"v":1,"type":"message_end","run_id":"r","seq":1,"turn":0,"message":{"role":"user"}}`,
		`{"v":1,"type":"turn_start","run_id":"","seq":1,"turn":1}`, `{"v":1,"type":"turn_start","run_id":"r","seq":0,"turn":1}`,
		`{"v":1,"type":"turn_start","run_id":"r","seq":1,"turn":-1}`, `{"v":1,"type":"from_the_future","run_id":"r","seq":0,"turn":1}`,
		`{"v":1,"type":"message_update","run_id":"r","seq":1,"turn":1,"content_index":-1}`,
		`{"v":1,"type":"tool_exec_start","run_id":"r","seq":1,"turn":1,"args":{}}`,
		`{"v":1,"type":"tool_exec_start","run_id":"r","seq":1,"turn":1,"tool_id":"a"}`,
		`{"v":1,"type":"tool_exec_update","run_id":"r","seq":1,"turn":1,"tool_id":"a","progress":{"kind":"k"}}`,
		`{"v":1,"type":"tool_exec_update","run_id":"r","seq":1,"turn":1,"update_kind":"progress","progress":{"kind":"k"}}`,
		`{"v":1,"type":"tool_exec_end","run_id":"r","seq":1,"turn":1,"result":{"tool_call_id":"a","tool_name":"t"}}`,
	} {
		require.Error(t, schema.Validate(instance(t, []byte(bad))), bad)
		require.ErrorIs(t, json.Unmarshal([]byte(bad), new(agentkernel.Event)), refusalOf(bad), bad)
	}
	misspelt := []byte(`{"v":1,"type":"turn_start","run_id":"r","seq":1,"turn":1,"toolId":"x"}`)
	require.Error(t, schema.Validate(instance(t, misspelt)))
	require.NoError(t, json.Unmarshal(misspelt, new(agentkernel.Event))) // a reader passes it over
	require.NoError(t, schema.Validate(instance(t, []byte(`{"v":1,"type":"from_the_future","run_id":"r","seq":1,"turn":1,"anything":1}`))))
}

func refusalOf(line string) agentkernel.WireProblem {
	if strings.Contains(line, `"v":2`) {
		return agentkernel.WireVersionMismatch
	}
	return agentkernel.WireGarbage
}

// TestWireSchemaNames: the schema lists the names of the Go types, so that a field that is
// added there shows up here.
func TestWireSchemaNames(t *testing.T) {
	raw, err := os.ReadFile("docs/event.schema.json")
	require.NoError(t, err)
	var schema struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(raw, &schema))
	for name, of := range map[string]reflect.Type{
		"message": reflect.TypeFor[agentkernel.Message](), "block": reflect.TypeFor[agentkernel.ContentBlock](),
		"tool_call": reflect.TypeFor[agentkernel.ToolCall](), "image": reflect.TypeFor[agentkernel.Image](),
		"usage": reflect.TypeFor[agentkernel.Usage](), "result": reflect.TypeFor[agentkernel.ToolResult](),
		"system_block": reflect.TypeFor[agentkernel.SystemBlock](), "tool_spec": reflect.TypeFor[agentkernel.ToolSpec](),
		"progress": reflect.TypeFor[agentkernel.ProgressPayload](), "summary": reflect.TypeFor[agentkernel.RunSummary](),
		"suspension": reflect.TypeFor[agentkernel.Suspension](),
	} {
		var want []string
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "duration" {
				name = "duration_ms"
			}
			want = append(want, name)
		}
		var got []string
		for p := range schema.Defs[name].Properties {
			got = append(got, p)
		}
		require.ElementsMatch(t, want, got, name)
	}
	var types struct {
		If struct {
			Properties struct {
				Type struct{ Enum []agentkernel.EventType }
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &types))
	want := []agentkernel.EventType{agentkernel.EventSnapshot}
	for _, p := range payloads {
		want = append(want, p.wire)
	}
	require.ElementsMatch(t, want, types.If.Properties.Type.Enum)
	ev := fullEvent(t)
	got := func(def string, beside ...string) {
		t.Helper()
		names := slices.Collect(maps.Keys(schema.Defs[def].Properties))
		whole := instance(t, []byte(onWire(t, ev)))
		for _, field := range beside {
			whole, _ = whole[field].(map[string]any)
		}
		if def == "known" { // of the delta-only form and of a snapshot
			for _, name := range []string{"tool_result_ids", "new_messages_count", "state", "runs", "ended_runs"} {
				whole[name] = true
			}
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(whole)), names, def)
	}
	got("known")
	got("retry_info", "retry_info")
	got("request", "request")
	got("context", "context")
	got("error", "err")
	raw, err = json.Marshal(fullState(t))
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Collect(maps.Keys(instance(t, raw))), slices.Collect(maps.Keys(schema.Defs["state"].Properties)))
}
