package schema

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// FuzzCheck: nothing panics, and what is valid is what the library says: of the schema and
// the arguments as Check reads them, and, where all numbers are small, as anyone does. The
// explainer finds nothing wrong with what is valid.
func FuzzCheck(f *testing.F) {
	for _, tt := range hostile(1 << 20) {
		if len(tt[1]) < 1000 {
			f.Add([]byte(tt[0]), []byte(tt[1]))
		}
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^a"},"l":{"items":{"$ref":"#"}}},"required":["a"],"additionalProperties":false}`,
		`{"anyOf":[{"required":["a"]},{"properties":{"b":{"const":1}}}],"not":{"required":["c"]},"unevaluatedProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{"enum":[1]}],"additionalItems":{"type":["null","array"]}}}}`,
		`{"$id":"http://a.test/","$defs":{"x":{"$id":"x","$anchor":"y","minimum":3}},"additionalProperties":{"$ref":"x#y"}}`,
	} {
		for _, args := range []string{`{"a":"b","l":[{"a":1},null]}`, `{"b":1,"c":[[]]}`, `{"l":[1,2],"a":"ab"}`, `[]`} {
			f.Add([]byte(schema), []byte(args))
		}
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		s, err := Compile(schema)
		if err != nil || !json.Valid(args) {
			return
		}
		got := s.Check(args)
		for _, v := range got {
			require.NotEmpty(t, v.String())
		}
		v, twice := decode(args)
		if twice != nil || s.tree.costly && !s.tree.affordable(v) {
			require.NotEmpty(t, got)
			return
		}
		require.Equal(t, validate(s.resolved, v) == nil, got == nil, "%v", got)
		if got == nil {
			require.Empty(t, s.tree.explain(v), "violations of valid arguments")
		}
		if simple(args) && simple(schema) {
			require.Equal(t, library(t, schema, args) == nil, got == nil, "%v", got)
		}
	})
}

// library is what the library says without us.
func library(t *testing.T, schema, args []byte) error {
	root := new(jsonschema.Schema)
	require.NoError(t, json.Unmarshal(schema, root))
	resolved, err := root.Resolve(nil)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(args, &v))
	return validate(resolved, v)
}

// simple tells that JSON has no number of which floats know only a part, nor broken text.
func simple(doc []byte) bool {
	digits := 0
	for _, c := range doc {
		switch {
		case c >= 0x80 || c == '\\':
			return false
		case c >= '0' && c <= '9' || c == '.':
			digits++
		default:
			digits = 0
		}
		if digits > 15 {
			return false
		}
	}
	return true
}
