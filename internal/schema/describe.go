package schema

import (
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// describe says in a few words what fits s.
func (t *tree) describe(s *jsonschema.Schema) string {
	if s == nil {
		return "a value"
	}
	s = t.target(s)
	for _, r := range t.rulesOf(s) {
		if r.schema.Enum != nil || r.schema.Const != nil {
			return r.want
		}
	}
	if types := typesOf(s); types != nil {
		return wantTypes(types)
	}
	for _, branches := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if types := t.typesOfAll(branches); types != nil {
			return wantTypes(types)
		}
	}
	return "a value"
}

// describeAll says what fits each of the branches, numbered by the schema's own order.
func (t *tree) describeAll(branches []*jsonschema.Schema) string {
	parts := make([]string, len(branches))
	for i, s := range branches {
		s = t.target(s)
		parts[i] = t.describe(s)
		if len(s.Required) > 0 {
			parts[i] += " with " + quoteAll(s.Required, ", ")
		}
	}
	return clip(strings.Join(parts, "; "), maxWant)
}
