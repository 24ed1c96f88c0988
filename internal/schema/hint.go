package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// typeHint says what to do about a value of the wrong type.
func typeHint(types []string, v any, at *place) string {
	wants := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(types, n) })
	}
	switch v := v.(type) {
	case nil:
		if at != nil && at.optional {
			return "leave it out instead of null"
		}
	case text:
		if hint := textHint(wants, string(v)); hint != "" {
			return hint
		}
	case bool, int64, uint64, float64:
		if wants("string") {
			return "put it in quotes"
		}
		if wants("integer") && typeOf(v) == "number" {
			return "send a whole number"
		}
	case object:
		if wants("array") {
			return "put it in an array"
		}
	}
	if wants("array") && v != nil && !wants("object") {
		return "put it in an array"
	}
	return ""
}

// textHint says what to do about a string that holds what was wanted, or should be in a list.
func textHint(wants func(...string) bool, s string) string {
	inner := encoded(s)
	switch {
	case wants("object") && inner == '{':
		return "it is JSON inside a string; send the object itself"
	case wants("array") && inner == '[':
		return "it is JSON inside a string; send the array itself"
	case wants("number", "integer") && inner == '0':
		return "send the number without quotes"
	case wants("boolean") && (inner == 't' || inner == 'f'):
		return "send " + strings.ToLower(s) + " without quotes"
	case wants("null") && inner == 'n':
		return "send null without quotes"
	}
	return ""
}

// encoded tells what JSON a string holds by its first byte: '{', '[', 't', 'f', 'n', '0'
// for any number, 0 for none of these.
func encoded(s string) byte {
	s = strings.TrimSpace(s)
	switch s {
	case "true", "True", "TRUE":
		return 't'
	case "false", "False", "FALSE":
		return 'f'
	}
	if s == "" || !json.Valid([]byte(s)) {
		return 0
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return '0'
	}
	return s[0]
}

// valueHint says what to do about a value that is none of those of an enum or const.
func valueHint(s *jsonschema.Schema, v any) string {
	values := s.Enum
	if s.Const != nil {
		values = []any{*s.Const}
	}
	var known []string
	for _, one := range values {
		if name, ok := one.(string); ok {
			known = append(known, name)
			continue
		}
		if t, ok := v.(text); ok && literal(one) == string(t) {
			return "send " + literal(one) + " without quotes"
		}
	}
	if t, ok := v.(text); ok {
		if like := nearest(string(t), known); like != "" {
			return "did you mean " + quote(like) + "?"
		}
		return ""
	}
	if slices.Contains(known, literal(v)) {
		return "put it in quotes"
	}
	return ""
}

const (
	maxCompared = 500 // names that a misspelt one is compared with
	maxName     = 64  // bytes of a name that is compared
)

// nearest returns the one of known that name is most likely a misspelling of, or "".
func nearest(name string, known []string) string {
	if len(name) > maxName || len(known) > maxCompared {
		return ""
	}
	best, least := "", len(name)/3+1
	for _, k := range known {
		if len(k) > maxName || k == name {
			continue
		}
		if d := distance(plain(name), plain(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// plain drops what spellings of one name differ in.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// distance is the least number of bytes to insert, delete, replace or swap with their
// neighbour that turns a into b.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
