package agentkernel

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Enumer is a type with a fixed list of values. [NewTool] makes an enum of it wherever it
// occurs in the arguments: as a field, or within slices, maps, pointers and nested structs.
//
// The type's kind is string, bool or a number. Enum is called once per NewTool, on the zero
// value, and returns the values, each of that type or of one that encoding/json writes
// alike.
type Enumer interface {
	Enum() []any
}

var (
	rawMessageType      = reflect.TypeFor[json.RawMessage]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
)

// inferSchema returns the schema of arguments that go into t.
func inferSchema(t reflect.Type) (*jsonschema.Schema, error) {
	isMap := t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
	if !isMap && t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the arguments are a JSON object, and %v is neither a struct nor a map with string keys", t)
	}
	known := typeSchemas{rawMessageType: {}}
	if err := known.collect(t, make(map[reflect.Type]bool)); err != nil {
		return nil, err
	}
	root, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Struct && root.Properties == nil {
		root.Properties = map[string]*jsonschema.Schema{} // some endpoints want the keyword
	}
	allowNull(root)
	return root, nil
}

// typeSchemas are the types whose schema does not follow from their kind.
type typeSchemas map[reflect.Type]*jsonschema.Schema

// collect adds what t and the types within it need.
func (known typeSchemas) collect(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] || known[t] != nil {
		return nil
	}
	seen[t] = true
	if special, err := known.special(t); special || err != nil {
		return err
	}
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem() == rawMessageType {
			return errors.New("use json.RawMessage, not a pointer to it")
		}
		return known.collect(t.Elem(), seen)
	case reflect.Slice, reflect.Array, reflect.Map:
		return known.collect(t.Elem(), seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%v is an interface with methods, which encoding/json cannot read", t)
		}
	case reflect.Struct:
		return known.fields(t, seen)
	}
	return nil
}

// special adds the schema of a type that is more than its kind.
func (known typeSchemas) special(t reflect.Type) (bool, error) {
	switch value := reflect.New(t).Interface().(type) {
	case *time.Time:
		return true, nil
	case Enumer:
		if isScalar(t.Kind()) {
			s, err := enumSchema(t, value)
			known[t] = s
			return true, err
		}
	}
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Pointer || pointer.Implements(unmarshalerType):
		return false, nil
	case pointer.Implements(textUnmarshalerType):
		known[t] = &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		known[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	}
	return known[t] != nil, nil
}

// fields collects from the fields of a struct, and refuses the tags that the schema cannot
// follow.
func (known typeSchemas) fields(t reflect.Type, seen map[reflect.Type]bool) error {
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !field.IsExported() && !field.Anonymous:
			continue
		case field.Anonymous && name != "":
			return fmt.Errorf("field %s of %v is embedded and has a JSON name; give it a name in Go", field.Name, t)
		case slices.Contains(strings.Split(options, ","), "string"):
			return fmt.Errorf(`field %s of %v has the JSON option "string", which the schema cannot follow`, field.Name, t)
		}
		if err := known.collect(field.Type, seen); err != nil {
			return err
		}
	}
	return nil
}

func isScalar(k reflect.Kind) bool {
	return k == reflect.String || k >= reflect.Bool && k <= reflect.Float64 && k != reflect.Uintptr
}

// enumSchema returns the schema of a scalar type with a list of values.
func enumSchema(t reflect.Type, zero Enumer) (s *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v.Enum panicked: %v", t, p)
		}
	}()
	values := zero.Enum()
	if len(values) == 0 {
		return nil, fmt.Errorf("%v.Enum returned no values", t)
	}
	for _, v := range values {
		raw, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(raw, reflect.New(t).Interface())
		}
		if err != nil || string(raw) == "null" {
			return nil, fmt.Errorf("%v.Enum returned %v, which is no value of the type", t, v)
		}
	}
	if reflect.PointerTo(t).Implements(textUnmarshalerType) {
		return &jsonschema.Schema{Type: "string", Enum: values}, nil
	}
	s, err = jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	s.Enum = slices.Clone(values)
	return s, nil
}

// allowNull makes null one of the values of an enum wherever the type allows it, that is
// behind a pointer.
func allowNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Enum != nil && slices.Contains(s.Types, "null") {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	for _, one := range s.Properties {
		allowNull(one)
	}
	allowNull(s.Items)
	allowNull(s.AdditionalProperties)
}
