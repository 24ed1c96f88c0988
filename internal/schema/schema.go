// Package schema checks the arguments of a tool call against the tool's JSON schema and
// says everything that is wrong with them.
//
// What is valid is decided by google/jsonschema-go alone: draft 2020-12, or draft-07 where
// "$schema" says so. It stops at the first error, so that after a refusal an explainer goes
// through the schema and has the library judge it piece by piece.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a schema that is ready for use. Its methods may be called from any goroutine.
type Schema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved // the schema as it was given: it decides
	tree     *tree                // the same with plain references: it explains
	open     bool                 // any object will do
}

// Compile makes a Schema of anything that encoding/json turns into a JSON object, and of
// the bytes of one. Nil stands for an object of any shape.
//
// It refuses what is no schema for the arguments of a tool: no object, a keyword of the
// wrong type, an unknown type, a reference that does not resolve (nothing is ever loaded)
// or that leads back to itself for the same value, a dialect that the library does not
// know, a root whose type is not "object".
func Compile(schema any) (*Schema, error) {
	raw, err := encode(schema)
	if err != nil {
		return nil, err
	}
	given, err := parse(raw)
	if err != nil {
		return nil, err
	}
	resolved, err := given.root.Resolve(nil)
	if err != nil {
		return nil, err
	}
	tree, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if err := tree.link(); err != nil {
		return nil, err
	}
	return &Schema{raw: raw, resolved: resolved, tree: tree, open: string(raw) == anyObject}, tree.check()
}

// JSON returns the schema as the model gets it: compacted, in the order in which it was
// given. It is shared and read-only.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Check returns what is wrong with args, which must be JSON, or nil where they are valid.
//
// Valid are arguments that the library accepts and that name no property of an object
// twice, since readers of such an object disagree on what it says. Integers are compared
// exactly as far as 64 bits reach. Arguments of which checking would take out of all
// proportion, such as thousands of levels under a schema that refers to itself, or any under
// references that double at each step, are refused with one violation.
//
// At most [MaxViolations] are returned; where there are more, a last one counts the rest.
func (s *Schema) Check(args json.RawMessage) []Violation {
	if s.open && string(args) == "{}" { // as of each tool that takes nothing
		return nil
	}
	v, twice := decode(args)
	if len(twice) > 0 {
		return twice
	}
	if _, ok := v.(object); ok && s.open {
		return nil
	}
	if s.tree.costly && !s.tree.affordable(v) {
		return []Violation{{
			Want: "arguments that are smaller or less deeply nested",
			Got:  fmt.Sprintf("%d bytes that are too costly to check against the schema's references", len(args)),
		}}
	}
	err := validate(s.resolved, v)
	if err == nil {
		return nil
	}
	if found := s.tree.explain(v); len(found) > 0 {
		return found
	}
	return []Violation{{Want: "arguments that fit the schema", Got: show(v), Hint: bare(err)}}
}

// anyObject is the schema of an object of any shape.
const anyObject = `{"type":"object"}`

// validate asks the library, and takes its panic for a refusal.
func validate(rs *jsonschema.Resolved, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the schema cannot be applied: %v", p)
		}
	}()
	return rs.Validate(v)
}

// encode returns the compacted bytes of a schema.
func encode(schema any) (json.RawMessage, error) {
	switch s := schema.(type) {
	case nil:
		return json.RawMessage(anyObject), nil
	case []byte:
		schema = json.RawMessage(s)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	if raw[0] != '{' {
		return nil, fmt.Errorf("a schema is a JSON object, not %s", clip(string(raw), maxGot))
	}
	return raw, nil
}

// check refuses what the library would resolve and then apply to no arguments, or for ever.
func (t *tree) check() error {
	root := t.root
	if !slices.Contains(dialects, root.Schema) {
		return fmt.Errorf("the dialect %q is not supported", root.Schema)
	}
	if types := typesOf(root); types != nil && !slices.Equal(types, []string{"object"}) {
		return fmt.Errorf(`the root type is %s, not "object"`, quoteAll(types, " or "))
	}
	for s, pointer := range t.pointers {
		for _, name := range typesOf(s) {
			if !slices.Contains(typeNames, name) {
				return fmt.Errorf("unknown type %q at #%s", name, pointer)
			}
		}
	}
	if s := t.cycle(t.inPlace); s != nil {
		return fmt.Errorf("#%s refers to itself for the same value", t.pointers[s])
	}
	t.costly = t.cycle(t.edges) != nil || t.unfolded() > maxUnfolded
	return nil
}

var dialects = []string{
	"",
	"https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#",
	"https://json-schema.org/draft-07/schema#",
}

var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// typesOf returns the types that s itself names, nil where it names none.
func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// parse reads a schema and finds the place of each of its parts.
func parse(raw json.RawMessage) (*tree, error) {
	root := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, root); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			keyword := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
			return nil, fmt.Errorf("keyword %q: a JSON %s makes no sense here", keyword, wrong.Value)
		}
		return nil, err
	}
	t := &tree{root: root, pointers: make(map[*jsonschema.Schema]string)}
	t.place(root, "")
	t.restoreNumbers(raw)
	return t, nil
}
