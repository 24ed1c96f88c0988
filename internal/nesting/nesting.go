// Package nesting bounds how deep JSON may be nested.
package nesting

import "strings"

// Max is how many objects and arrays may stand in one another, half of what encoding/json
// reads: a message with a value that deep, and what the message stands in, can still be read
// back.
const Max = 5000

// TooDeep tells whether text, which is valid JSON, is nested deeper than [Max]. It reads no
// further than it has to.
func TooDeep(text string) bool {
	if strings.Count(text, "{")+strings.Count(text, "[") <= Max { // as in all but strange ones
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(text) && depth <= Max; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return depth > Max
}
