package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel/internal/schema"
)

// TestReferencesThatDouble: a schema that refers to itself nowhere may still take for ever.
func TestReferencesThatDouble(t *testing.T) {
	doubling := func(levels int) json.RawMessage {
		var defs strings.Builder
		defs.WriteString(`"a0":{"type":"object"}`)
		for i := 1; i <= levels; i++ {
			fmt.Fprintf(&defs, `,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i-1, i-1)
		}
		return json.RawMessage(fmt.Sprintf(`{"type":"object","$defs":{%s},"properties":{"x":{"$ref":"#/$defs/a%d"}}}`, &defs, levels))
	}
	few, err := schema.Compile(doubling(8))
	require.NoError(t, err)
	require.Empty(t, few.Check(json.RawMessage(`{"x":{}}`)))
	many, err := schema.Compile(doubling(60))
	require.NoError(t, err)
	require.Empty(t, many.Check(json.RawMessage(`{}`)), "nothing doubles here")
	found := many.Check(json.RawMessage(`{"x":{}}`))
	require.Len(t, found, 1)
	require.Contains(t, found[0].String(), "too costly")
}
