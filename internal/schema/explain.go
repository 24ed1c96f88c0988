package schema

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	explainWork = 5_000_000 // what one explanation may cost, in the units of meter
	visitWork   = 5         // what a visit costs by itself
)

// explainer goes through a schema and a value that the library refused.
type explainer struct {
	violations
	t    *tree
	left int
}

// explain returns all that is wrong with v, as far as it can be localised; nothing where
// the schema has dynamic references.
func (t *tree) explain(v any) []Violation {
	if len(t.dynamic) > 0 {
		return nil
	}
	e := &explainer{t: t, left: explainWork}
	e.visit(t.root, v, nil)
	return e.list()
}

// report adds a violation unless it was found already, by another way to the same place.
func (e *explainer) report(at *place, want, got, hint string) {
	e.add(Violation{Path: at.String(), Want: want, Got: clip(got, maxGot), Hint: clip(hint, maxWant)})
}

// over takes the cost of a step and tells whether the explanation ends before it.
func (e *explainer) over(cost int) bool {
	e.left -= cost
	return e.left < 0 || e.full()
}

// visit reports what s finds wrong with v.
func (e *explainer) visit(s *jsonschema.Schema, v any, at *place) {
	if e.over(visitWork) {
		return
	}
	if isFalse(s) {
		e.report(at, "nothing here", show(v), "leave it out")
		return
	}
	before := e.count
	if ref := e.t.refs[s]; ref != nil {
		e.visit(ref, v, at)
		if e.t.draft7 {
			return
		}
	}
	if !e.judge(s, v, at) {
		return
	}
	e.same(s, v, at)
	switch v := v.(type) {
	case array:
		e.items(s, v, at)
	case object:
		e.members(s, v, at)
	}
	unevaluated := s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
	if unevaluated && e.count == before && !e.holds(e.t.all(s), v) {
		e.report(at, "no items or properties beyond those that the schema names", show(v), "")
	}
}

// judge reports the keywords of s itself that v breaks. It is false where v is of the wrong
// type, so that nothing else about it matters.
func (e *explainer) judge(s *jsonschema.Schema, v any, at *place) bool {
	for _, r := range e.t.rulesOf(s) {
		switch {
		case e.holds(r, v):
		case r.types != nil:
			e.report(at, r.want, show(v), typeHint(r.types, v, at))
			return false
		case r.schema.Enum != nil || r.schema.Const != nil:
			e.report(at, r.want, show(v), valueHint(r.schema, v))
		default:
			e.report(at, r.want, show(v), "")
		}
	}
	return true
}

// holds asks the library. It says yes where it cannot be asked.
func (e *explainer) holds(r rule, v any) bool {
	if r.resolved == nil {
		return true
	}
	m := &meter{t: e.t, left: e.left}
	if m.visit(r.schema, v, 1); m.left < 0 {
		e.left = -1
		return true
	}
	e.left = m.left
	return validate(r.resolved, v) == nil
}

// same goes into the schemas that s applies to the same value.
func (e *explainer) same(s *jsonschema.Schema, v any, at *place) {
	for _, one := range s.AllOf {
		e.visit(one, v, at)
	}
	if s.If != nil {
		then := s.Else
		if e.holds(e.t.all(s.If), v) {
			then = s.Then
		}
		if then != nil {
			e.visit(then, v, at)
		}
	}
	depends := s.DependentSchemas
	if e.t.draft7 {
		depends = s.DependencySchemas
	}
	o, _ := v.(object)
	for _, name := range slices.Sorted(maps.Keys(depends)) {
		if _, present := o[name]; present {
			e.visit(depends[name], v, at)
		}
	}
	if s.AnyOf != nil {
		e.choice(s.AnyOf, &jsonschema.Schema{AnyOf: s.AnyOf}, v, at)
	}
	if s.OneOf != nil {
		e.choice(s.OneOf, &jsonschema.Schema{OneOf: s.OneOf}, v, at)
	}
}

func (e *explainer) items(s *jsonschema.Schema, v array, at *place) {
	here := &place{in: at}
	for i, item := range v {
		if e.left < 0 || e.full() {
			return
		}
		if one := e.t.item(s, i); one != nil {
			here.index = i
			e.visit(one, item, here)
		}
	}
}

func (e *explainer) members(s *jsonschema.Schema, v object, at *place) {
	e.missing(s, v, at)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if e.left < 0 || e.full() {
			return
		}
		here := &place{in: at, name: name, index: -1, optional: !slices.Contains(s.Required, name)}
		for one := range e.t.member(s, name) {
			if one == s.AdditionalProperties && isFalse(one) {
				e.unknown(s, v, name, here)
			} else {
				e.visit(one, v[name], here)
			}
		}
	}
}

// missing reports the required properties that are not there.
func (e *explainer) missing(s *jsonschema.Schema, v object, at *place) {
	for _, name := range s.Required {
		if e.over(visitWork) {
			return
		}
		if _, present := v[name]; present {
			continue
		}
		hint := "add " + quote(name)
		if s.AdditionalProperties == nil || !isFalse(s.AdditionalProperties) {
			if like := nearest(name, undeclared(s, v)); like != "" {
				hint += "; is it what " + quote(like) + " stands for?"
			}
		}
		here := &place{in: at, name: name, index: -1}
		e.report(here, e.t.describe(s.Properties[name])+", which is required", "nothing", hint)
	}
}

// unknown reports a property that no keyword of s allows.
func (e *explainer) unknown(s *jsonschema.Schema, v object, name string, at *place) {
	want := "no properties here"
	known := slices.Sorted(maps.Keys(s.Properties))
	if len(known) > 0 {
		want = "one of the properties " + quoteAll(known, ", ")
	}
	hint := "leave it out"
	known = slices.DeleteFunc(known, func(k string) bool { _, taken := v[k]; return taken })
	if like := nearest(name, known); like != "" {
		hint = "did you mean " + quote(like) + "?"
	}
	e.report(at, clip(want, maxWant), "an unknown property", hint)
}

// isFalse tells whether s is the schema that nothing fits.
func isFalse(s *jsonschema.Schema) bool {
	return s.Not != nil && literal(s) == "false"
}

// undeclared returns the names of v that s does not speak of, if they are few.
func undeclared(s *jsonschema.Schema, v object) []string {
	if len(v) > maxMembers {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(name string) bool {
		_, declared := s.Properties[name]
		return declared
	})
}
