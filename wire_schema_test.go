package agentkernel_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
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
	for _, name := range []string{"whole", "delta"} {
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
	for range 10 {
		seed := rand.Uint64()
		w := &world{dice: &dice{rng: rand.New(rand.NewPCG(seed, 1))}}
		synctest.Test(t, w.play)
		enc := new(agentkernel.Encoder)
		for _, ev := range w.log {
			require.NoError(t, schema.Validate(instance(t, []byte(onWire(t, ev)))), "AGENTKERNEL_FUZZ_SEED=%d", seed)
			line, err := enc.Encode(ev)
			require.NoError(t, err)
			require.NoError(t, schema.Validate(instance(t, line)), "AGENTKERNEL_FUZZ_SEED=%d: %s", seed, line)
		}
		snapshot, err := enc.Snapshot()
		require.NoError(t, err)
		require.NoError(t, schema.Validate(instance(t, snapshot)), "%s", snapshot)
	}
}

// TestWireSchemaRefuses what no reader could use, and a name that is misspelt.
func TestWireSchemaRefuses(t *testing.T) {
	schema := wireSchema(t)
	for _, bad := range []string{
		`{}`, `{"v":2,"type":"agent_start","run_id":"r","seq":1,"turn":0}`, `{"v":1,"type":"agent_start","seq":1,"turn":0}`,
		`{"v":1,"type":"agent_end","run_id":"r","seq":1,"turn":0}`, `{"v":1,"type":"message_end","run_id":"r","seq":1,"turn":0}`,
		`{"v":1,"type":"error","run_id":"r","seq":1,"turn":0,"err":{"kind":"auth"}}`,
		`{"v":1,"type":"turn_start","run_id":"r","seq":1,"turn":1,"toolId":"x"}`,
		`{"v":1,"type":"message_end","run_id":"r","seq":1,"turn":0,"message":{"role":"user"}}`,
	} {
		require.Error(t, schema.Validate(instance(t, []byte(bad))), bad)
	}
	require.NoError(t, schema.Validate(instance(t, []byte(`{"v":1,"type":"from_the_future","run_id":"r","seq":1,"turn":1,"anything":1}`))))
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
		"progress": reflect.TypeFor[agentkernel.ProgressPayload](), "summary": reflect.TypeFor[agentkernel.RunSummary](),
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
}
