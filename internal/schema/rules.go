package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// rule is one keyword of a schema, as a schema of its own that the library judges.
type rule struct {
	want     string
	types    []string // of a type rule
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved // nil where it cannot stand alone; such a rule says nothing
}

// rulesOf returns the keywords of s that speak of the value itself, without those that the
// explainer goes into. The type comes first: where it is wrong, the rest is moot.
func (t *tree) rulesOf(s *jsonschema.Schema) []rule {
	if known, ok := t.rules.Load(s); ok {
		return known.([]rule)
	}
	var rules []rule
	add := func(present bool, alone *jsonschema.Schema, format string, args ...any) {
		if present {
			r := t.rule(alone)
			r.want = clip(fmt.Sprintf(format, args...), maxWant)
			rules = append(rules, r)
		}
	}
	if types := typesOf(s); types != nil {
		add(true, &jsonschema.Schema{Type: s.Type, Types: s.Types}, "%s", wantTypes(types))
		rules[0].types = types
	}
	addValues(s, add)
	addNumbers(s, add)
	addStrings(s, add)
	addArrays(s, add)
	addObjects(s, add)
	needs := s.DependentRequired
	if t.draft7 {
		needs = s.DependencyStrings
	}
	addNeeds(needs, add)
	add(s.Not != nil, &jsonschema.Schema{Not: s.Not}, "a value that the schema does not exclude")
	known, _ := t.rules.LoadOrStore(s, rules)
	return known.([]rule)
}

// rule makes a rule of a schema whose parts are those of the tree.
func (t *tree) rule(s *jsonschema.Schema) rule {
	alone := s.CloneSchemas()
	alone.Schema, alone.Definitions, alone.Defs = t.root.Schema, nil, nil
	if refers(alone) {
		alone.Defs = map[string]*jsonschema.Schema{"root": t.root.CloneSchemas()}
	}
	resolved, err := alone.Resolve(nil)
	if err != nil {
		return rule{schema: s}
	}
	return rule{schema: s, resolved: resolved}
}

// refers tells whether s holds a reference.
func refers(s *jsonschema.Schema) bool {
	return s.Ref != "" || slices.ContainsFunc(children(s), func(c child) bool { return refers(c.schema) })
}

// all returns the rule that is s as a whole.
func (t *tree) all(s *jsonschema.Schema) rule {
	if known, ok := t.whole.Load(s); ok {
		return known.(rule)
	}
	known, _ := t.whole.LoadOrStore(s, t.rule(s))
	return known.(rule)
}

type adder = func(present bool, alone *jsonschema.Schema, format string, args ...any)

func addValues(s *jsonschema.Schema, add adder) {
	values := make([]string, len(s.Enum))
	for i, v := range s.Enum {
		values[i] = literal(v)
	}
	add(s.Enum != nil, &jsonschema.Schema{Enum: s.Enum}, "one of %s", strings.Join(values, ", "))
	if s.Const != nil {
		add(true, &jsonschema.Schema{Const: s.Const}, "exactly %s", literal(*s.Const))
	}
}

func addNumbers(s *jsonschema.Schema, add adder) {
	bound := func(limit *float64, alone *jsonschema.Schema, words string) {
		if limit != nil {
			add(true, alone, "a number %s %s", words, literal(*limit))
		}
	}
	bound(s.Minimum, &jsonschema.Schema{Minimum: s.Minimum}, "of at least")
	bound(s.Maximum, &jsonschema.Schema{Maximum: s.Maximum}, "of at most")
	bound(s.ExclusiveMinimum, &jsonschema.Schema{ExclusiveMinimum: s.ExclusiveMinimum}, "greater than")
	bound(s.ExclusiveMaximum, &jsonschema.Schema{ExclusiveMaximum: s.ExclusiveMaximum}, "less than")
	bound(s.MultipleOf, &jsonschema.Schema{MultipleOf: s.MultipleOf}, "that is a multiple of")
}

func addStrings(s *jsonschema.Schema, add adder) {
	bound := func(limit *int, alone *jsonschema.Schema, words string) {
		if limit != nil {
			add(true, alone, "a string of %s", countOf(words, *limit, "character", "characters"))
		}
	}
	bound(s.MinLength, &jsonschema.Schema{MinLength: s.MinLength}, "at least")
	bound(s.MaxLength, &jsonschema.Schema{MaxLength: s.MaxLength}, "at most")
	add(s.Pattern != "", &jsonschema.Schema{Pattern: s.Pattern}, "a string that matches %s", s.Pattern)
}

func addArrays(s *jsonschema.Schema, add adder) {
	bound := func(limit *int, alone *jsonschema.Schema, words string) {
		if limit != nil {
			add(true, alone, "an array of %s", countOf(words, *limit, "item", "items"))
		}
	}
	bound(s.MinItems, &jsonschema.Schema{MinItems: s.MinItems}, "at least")
	bound(s.MaxItems, &jsonschema.Schema{MaxItems: s.MaxItems}, "at most")
	add(s.UniqueItems, &jsonschema.Schema{UniqueItems: true}, "an array without equal items")
	contains := &jsonschema.Schema{Contains: s.Contains, MinContains: s.MinContains, MaxContains: s.MaxContains}
	add(s.Contains != nil, contains, "an array with the right number of items like %s", sketch(s.Contains))
}

func addObjects(s *jsonschema.Schema, add adder) {
	bound := func(limit *int, alone *jsonschema.Schema, words string) {
		if limit != nil {
			add(true, alone, "an object with %s", countOf(words, *limit, "property", "properties"))
		}
	}
	bound(s.MinProperties, &jsonschema.Schema{MinProperties: s.MinProperties}, "at least")
	bound(s.MaxProperties, &jsonschema.Schema{MaxProperties: s.MaxProperties}, "at most")
	add(s.PropertyNames != nil, &jsonschema.Schema{PropertyNames: s.PropertyNames},
		"an object whose property names fit %s", sketch(s.PropertyNames))
}

func addNeeds(needs map[string][]string, add adder) {
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		one := map[string][]string{name: needs[name]}
		add(true, &jsonschema.Schema{DependentRequired: one, DependencyStrings: one},
			"an object that with %s also has %s", quote(name), quoteAll(needs[name], ", "))
	}
}

func countOf(words string, n int, one, many string) string {
	if n != 1 {
		one = many
	}
	return fmt.Sprintf("%s %d %s", words, n, one)
}

// sketch returns an excerpt of a schema.
func sketch(s *jsonschema.Schema) string {
	if s == nil {
		return ""
	}
	return clip(literal(s), maxGot)
}

// wantTypes returns types as "a string, an integer or null".
func wantTypes(types []string) string {
	var words []string
	for _, name := range types {
		switch name {
		case "null":
		case "array", "object", "integer":
			words = append(words, "an "+name)
		default:
			words = append(words, "a "+name)
		}
	}
	if slices.Contains(types, "null") {
		words = append(words, "null")
	}
	if len(words) == 0 {
		return "no value at all"
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
