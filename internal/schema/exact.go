package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// restoreNumbers gives the schema's numbers back what the library lost when it read them as
// floats: enum and const become exact, and a bound that was rounded moves outwards, so that
// no value is refused that the schema allows.
func (t *tree) restoreNumbers(raw json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc any
	if dec.Decode(&doc) != nil {
		return
	}
	for s, pointer := range t.pointers {
		at, ok := lookup(doc, pointer)
		if !ok {
			continue
		}
		restoreValues(s, at)
		restoreBounds(s, at)
	}
}

func restoreValues(s *jsonschema.Schema, at map[string]any) {
	if values, ok := at["enum"].([]any); ok && len(values) == len(s.Enum) {
		for i, v := range values {
			s.Enum[i] = exact(v)
		}
	}
	if v, ok := at["const"]; ok && s.Const != nil {
		*s.Const = exact(v)
	}
}

func restoreBounds(s *jsonschema.Schema, at map[string]any) {
	outwards(s.Minimum, at["minimum"], math.Inf(-1))
	outwards(s.ExclusiveMinimum, at["exclusiveMinimum"], math.Inf(-1))
	outwards(s.Maximum, at["maximum"], math.Inf(1))
	outwards(s.ExclusiveMaximum, at["exclusiveMaximum"], math.Inf(1))
}

// outwards moves a bound to the next float in the direction of end if rounding took it the
// other way.
func outwards(bound *float64, literal any, end float64) {
	n, ok := literal.(json.Number)
	if bound == nil || !ok || strings.ContainsAny(n.String(), ".eE") {
		return
	}
	want, ok := new(big.Int).SetString(n.String(), 10)
	if !ok || math.IsInf(*bound, 0) {
		return
	}
	got, _ := big.NewFloat(*bound).Int(nil)
	if side := want.Cmp(got); side > 0 && end > 0 || side < 0 && end < 0 {
		*bound = math.Nextafter(*bound, end)
	}
}

// exact turns the numbers in v into what instances have.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = exact(v[name])
		}
	}
	return v
}

// lookup returns the object at pointer.
func lookup(doc any, pointer string) (map[string]any, bool) {
	steps := strings.Split(pointer, "/")[1:] // a pointer is empty or begins with a slash
	for _, step := range steps {
		switch at := doc.(type) {
		case map[string]any:
			doc = at[nameOf.Replace(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(at) {
				return nil, false
			}
			doc = at[i]
		default:
			return nil, false
		}
	}
	object, ok := doc.(map[string]any)
	return object, ok
}

var nameOf = strings.NewReplacer("~1", "/", "~0", "~")
