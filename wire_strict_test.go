package agentkernel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// mutant is a record with one value replaced, or taken out.
type mutant struct {
	record []byte
	path   []string
	value  any // taken for what takes it out
}

type taken struct{}

// mutants replaces each value of a record by one of each type of JSON, and takes it out.
// Of those of the same type and place it makes one.
func mutants(t testing.TB, line []byte, seen map[string]bool, yield func(mutant)) {
	root := instance(t, line)
	var walk func(v any, path []string, set func(any))
	walk = func(v any, path []string, set func(any)) {
		for _, other := range []any{nil, true, -1.0, 1.5, "x", []any{}, map[string]any{}, taken{}} {
			key := fmt.Sprint(root["type"], path, other)
			if seen[key] {
				continue
			}
			seen[key] = true
			set(other)
			data, err := json.Marshal(root)
			require.NoError(t, err)
			yield(mutant{data, path, other})
			set(v)
		}
		switch v := v.(type) {
		case map[string]any:
			for name, member := range maps.Clone(v) {
				walk(member, append(slices.Clone(path), name), func(to any) {
					if v[name] = to; to == (taken{}) {
						delete(v, name)
					}
				})
			}
		case []any:
			for i, member := range v {
				walk(member, append(slices.Clone(path), "item"), func(to any) {
					if to != any(taken{}) {
						v[i] = to
					}
				})
			}
		}
	}
	for name, member := range maps.Clone(root) {
		walk(member, []string{name}, func(to any) {
			if root[name] = to; to == (taken{}) {
				delete(root, name)
			}
		})
	}
}

// lenient tells what a reader takes although the schema does not say it: the list that
// docs/event.schema.json gives in its description.
func lenient(m mutant) bool {
	switch m.value {
	case nil: // as if it were absent
		return true
	case -1.0: // a number that it does not expect
		return slices.Contains([]string{"attempt", "duration_ms", "delay_ms", "messages", "new_messages_count"}, m.path[len(m.path)-1])
	case "x": // a word
		return m.path[0] == "delta_kind" || m.path[0] == "update_kind"
	case taken{}: // of an object within the record
		return len(m.path) > 1
	}
	_, object := m.value.(map[string]any) // the same: an object that lacks members
	return object
}

// beyond tells whether a reader refuses what no schema can: a text that is no time, which is of
// the format that the schema names, and a snapshot that contradicts itself.
func beyond(m mutant, err error) bool {
	last := m.path[len(m.path)-1]
	return m.value == "x" && (last == "time" || last == "timestamp") || strings.Contains(err.Error(), "makes no sense")
}

// TestWireSchemaIsTheReaders: what the schema refuses the reader refuses too, but for what the
// schema lists; what it takes, the reader takes.
func TestWireSchemaIsTheReaders(t *testing.T) {
	schema := wireSchema(t)
	seen := make(map[string]bool)
	n := 0
	for _, line := range append(goldenLines(t), []byte(onWire(t, requestOf(t)))) {
		mutants(t, line, seen, func(m mutant) {
			n++
			refused := schema.Validate(instance(t, m.record))
			_, err := new(agentkernel.Decoder).Decode(m.record)
			garbage := err != nil && (strings.Contains(err.Error(), "garbage") || strings.Contains(err.Error(), "wire version"))
			if refused != nil && !garbage && !lenient(m) {
				t.Errorf("the schema refuses and the reader takes %v = %v: %v\n%.300s", m.path, m.value, refused, m.record)
			}
			if refused == nil && garbage && !beyond(m, err) {
				t.Errorf("the schema takes and the reader refuses %v = %v: %v\n%.300s", m.path, m.value, err, m.record)
			}
		})
	}
	t.Logf("%d mutants", n)
}
