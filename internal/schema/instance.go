package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Values as the library sees them. It prints what it refuses, and repeats that at every
// level above; types that print as an excerpt keep this cheap however large a value is.
type (
	object map[string]any
	array  []any
	text   string
)

// Format writes an excerpt, whatever the verb.
func (v object) Format(f fmt.State, _ rune) { fmt.Fprint(f, show(v)) }

// Format writes an excerpt, whatever the verb.
func (v array) Format(f fmt.State, _ rune) { fmt.Fprint(f, show(v)) }

// Format writes an excerpt, whatever the verb.
func (v text) Format(f fmt.State, _ rune) { fmt.Fprint(f, show(v)) }

// decoder builds the value of rest, which begins with valid JSON, and notes the properties
// that come twice. It checks nothing: who hands them in did, and has bounded their depth.
type decoder struct {
	rest  []byte
	twice violations
}

// decode returns the value of args, which are valid JSON, and a violation for each property
// that an object of them names twice.
func decode(args json.RawMessage) (any, []Violation) {
	d := &decoder{rest: args}
	v := d.value(nil)
	return v, d.twice.list()
}

func (d *decoder) value(at *place) any {
	switch d.peek() {
	case '{':
		return d.members(at)
	case '[':
		return d.items(at)
	case '"':
		return text(d.str())
	}
	end := bytes.IndexAny(d.rest, " \t\r\n,]}")
	if end < 0 {
		end = len(d.rest)
	}
	switch word := string(d.take(end)); word {
	case "null":
		return nil
	case "true", "false":
		return word == "true"
	default:
		return number(word)
	}
}

func (d *decoder) items(at *place) array {
	list := array{}
	here := &place{in: at}
	for d.take(1); d.peek() != ']'; {
		here.index = len(list)
		list = append(list, d.value(here))
		d.comma()
	}
	d.take(1)
	return list
}

func (d *decoder) members(at *place) object {
	all := object{}
	here := &place{in: at, index: -1}
	for d.take(1); d.peek() != '}'; {
		name := d.str()
		d.peek()
		d.take(len(":"))
		here.name = name
		_, again := all[name]
		all[name] = d.value(here)
		if again && !d.twice.full() {
			d.twice.add(Violation{Path: here.String(), Want: "one value", Got: "the property twice", Hint: "send each property once"})
		}
		d.comma()
	}
	d.take(1)
	return all
}

// str reads a string. One without escapes shares the bytes of the arguments.
func (d *decoder) str() string {
	end := 1 + bytes.IndexByte(d.rest[1:], '"')
	plain := bytes.IndexByte(d.rest[:end], '\\') < 0
	if !plain {
		end = 1
		for ; d.rest[end] != '"'; end++ {
			if d.rest[end] == '\\' {
				end++
			}
		}
	}
	literal := d.take(end + 1)
	if plain && utf8.Valid(literal) {
		return unsafe.String(&literal[1], end-1)
	}
	var s string
	_ = json.Unmarshal(literal, &s)
	return s
}

// peek skips blanks and returns the next byte.
func (d *decoder) peek() byte {
	d.rest = bytes.TrimLeft(d.rest, " \t\r\n")
	return d.rest[0]
}

// comma skips one, if there is one.
func (d *decoder) comma() {
	if d.peek() == ',' {
		d.take(1)
	}
}

func (d *decoder) take(n int) []byte {
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

// number returns the value of a JSON number: exact if it is an integer of up to 64 bits,
// else the nearest float, which is the greatest one for what is beyond all floats.
func number(literal string) any {
	if !strings.ContainsAny(literal, ".eE") {
		if i, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(literal, 10, 64); err == nil {
			return u
		}
	}
	f, _ := strconv.ParseFloat(literal, 64)
	return max(-math.MaxFloat64, min(f, math.MaxFloat64))
}
