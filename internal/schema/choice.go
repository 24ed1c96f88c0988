package schema

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// choice reports that v fits none of the branches of an anyOf, or not exactly one of a
// oneOf. Where only one branch can be meant it says what is wrong there.
func (e *explainer) choice(branches []*jsonschema.Schema, alone *jsonschema.Schema, v any, at *place) {
	if e.holds(e.t.union(alone, branches), v) {
		return
	}
	meant := slices.DeleteFunc(slices.Clone(branches), func(s *jsonschema.Schema) bool { return !e.plausible(s, v) })
	if len(meant) == 1 {
		before := e.count
		if e.visit(meant[0], v, at); e.count > before {
			return
		}
	}
	if types := e.t.typesOfAll(branches); len(meant) == 0 && types != nil {
		e.report(at, wantTypes(types), show(v), typeHint(types, v, at))
		return
	}
	want, hint := "a value that fits one of ", ""
	if alone.OneOf != nil {
		want = "a value that fits exactly one of "
		if e.fits(branches, v) > 1 {
			hint = "it fits more than one"
		}
	}
	e.report(at, want+e.t.describeAll(branches), show(v), hint)
}

// fits counts the branches that v fits.
func (e *explainer) fits(branches []*jsonschema.Schema, v any) int {
	n := 0
	for _, s := range branches {
		if e.holds(e.t.all(s), v) {
			n++
		}
	}
	return n
}

// plausible tells whether v may be meant for s: it is of the type, and the members that
// have fixed values have those.
func (e *explainer) plausible(s *jsonschema.Schema, v any) bool {
	if s = e.t.target(s); isFalse(s) {
		return false
	}
	for _, r := range e.t.rulesOf(s) {
		decides := r.types != nil || r.schema.Enum != nil || r.schema.Const != nil
		if decides && !e.holds(r, v) {
			return false
		}
	}
	o, _ := v.(object)
	for name, one := range s.Properties {
		member, present := o[name]
		fixed := one.Const != nil || one.Enum != nil
		if present && fixed && !e.holds(e.t.all(one), member) {
			return false
		}
	}
	return true
}

// target follows the references of s.
func (t *tree) target(s *jsonschema.Schema) *jsonschema.Schema {
	for t.refs[s] != nil {
		s = t.refs[s]
	}
	return s
}

// union returns the rule of an anyOf or oneOf; its first branch stands for the keyword.
func (t *tree) union(alone *jsonschema.Schema, branches []*jsonschema.Schema) rule {
	if len(branches) == 0 {
		return t.rule(alone)
	}
	if known, ok := t.unions.Load(branches[0]); ok {
		return known.(rule)
	}
	known, _ := t.unions.LoadOrStore(branches[0], t.rule(alone))
	return known.(rule)
}

// typesOfAll returns the types of all branches, nil where one does not name its types.
func (t *tree) typesOfAll(branches []*jsonschema.Schema) []string {
	var all []string
	for _, s := range branches {
		s = t.target(s)
		types := typesOf(s)
		if types == nil || s.Enum != nil || s.Const != nil {
			return nil
		}
		for _, name := range types {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
