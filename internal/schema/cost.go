package schema

import (
	"iter"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxWork bounds what a check under a costly schema may cost, in the units of [meter].
const maxWork = 20_000_000

// maxUnfolded is how many parts a schema may have, each reference replaced by what it refers to,
// whose checks are not metered.
const maxUnfolded = 10_000

// unfolded counts the parts that a schema without a cycle has where each reference is replaced by
// what it refers to, up to a number past maxUnfolded: references to references may double them at
// each step.
func (t *tree) unfolded() int {
	known := make(map[*jsonschema.Schema]int)
	var count func(s *jsonschema.Schema) int
	count = func(s *jsonschema.Schema) int {
		n, ok := known[s]
		if ok {
			return n
		}
		n = 1
		for one := range t.edges(s) {
			n = min(n+count(one), maxUnfolded+1)
		}
		known[s] = n
		return n
	}
	return count(t.root)
}

// meter estimates from above what the library has to do: it applies each schema that may
// apply and counts for each how many are open above it, since the text of an error is
// copied that many times.
type meter struct {
	t    *tree
	left int
}

// affordable tells whether the library may be asked about v. Under a schema that refers to
// itself the work may grow with the square of the depth, or double with each level; under one
// whose references double it is the same for any v.
func (t *tree) affordable(v any) bool {
	m := &meter{t: t, left: maxWork}
	m.visit(t.root, v, 1)
	return m.left >= 0
}

func (m *meter) visit(s *jsonschema.Schema, v any, open int) {
	if m.left -= open * (1 + size(v)/256); m.left < 0 {
		return
	}
	for same := range m.t.inPlace(s) {
		m.visit(same, v, open+1)
	}
	switch v := v.(type) {
	case array:
		m.items(s, v, open+1)
	case object:
		m.members(s, v, open+1)
	}
}

func (m *meter) items(s *jsonschema.Schema, v array, open int) {
	for i, item := range v {
		if m.left < 0 {
			return
		}
		if one := m.t.item(s, i); one != nil {
			m.visit(one, item, open)
		}
		for _, one := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
			if one != nil {
				m.visit(one, item, open)
			}
		}
	}
}

func (m *meter) members(s *jsonschema.Schema, v object, open int) {
	for name, member := range v {
		if m.left < 0 {
			return
		}
		for one := range m.t.member(s, name) {
			m.visit(one, member, open)
		}
		if s.UnevaluatedProperties != nil {
			m.visit(s.UnevaluatedProperties, member, open)
		}
		if s.PropertyNames != nil {
			m.visit(s.PropertyNames, text(name), open)
		}
	}
}

// size is about how many bytes an error about v may hold.
func size(v any) int {
	switch v := v.(type) {
	case text:
		return len(v)
	case object:
		return 16 * len(v)
	}
	return 0
}

// item returns the schema of item i of an array, nil where s has none for it.
func (t *tree) item(s *jsonschema.Schema, i int) *jsonschema.Schema {
	first, rest := s.PrefixItems, s.Items
	if t.draft7 {
		first = s.ItemsArray
		if first != nil {
			rest = s.AdditionalItems
		}
	}
	if i < len(first) {
		return first[i]
	}
	return rest
}

// member yields the schemas that s has for the property name of an object.
func (t *tree) member(s *jsonschema.Schema, name string) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		known, declared := s.Properties[name]
		if declared && !yield(known) {
			return
		}
		for _, p := range t.patterns[s] {
			if p.name.MatchString(name) {
				declared = true
				if !yield(p.schema) {
					return
				}
			}
		}
		if !declared && s.AdditionalProperties != nil {
			yield(s.AdditionalProperties)
		}
	}
}
