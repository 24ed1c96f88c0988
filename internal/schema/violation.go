package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxViolations is how many violations one check returns, not counting the one that counts
// the rest.
const MaxViolations = 20

const (
	maxCounted = 1000 // how many violations are looked for
	maxGot     = 80   // bytes of Violation.Got
	maxWant    = 200  // bytes of Violation.Want and Hint
	maxPath    = 160  // bytes of Violation.Path
	maxMembers = 64   // an object with more is not shown, but counted
)

// Violation is one thing that is wrong with arguments, in words for a model.
type Violation struct {
	// Path is the JSON pointer to the place; empty is the arguments as a whole. The middle
	// of a very long one is left out.
	Path string
	// Want is what was expected. It is empty only in the violation that counts the rest.
	Want string
	// Got is what came: its type and an excerpt, at most 80 bytes, cut between runes.
	Got string
	// Hint says what to do; it is empty where there is no more to say than Want does.
	Hint string
}

// String returns "path: expected want, got got (hint)".
func (v Violation) String() string {
	if v.Want == "" {
		return v.Hint
	}
	path := v.Path
	if path == "" {
		path = "(root)"
	}
	s := fmt.Sprintf("%s: expected %s, got %s", path, v.Want, v.Got)
	if v.Hint != "" {
		s += " (" + v.Hint + ")"
	}
	return s
}

// violations collects: each once, the first ones whole, the rest as a number.
type violations struct {
	first []Violation
	seen  map[Violation]bool
	count int
}

func (l *violations) add(v Violation) {
	if l.full() || l.seen[v] {
		return
	}
	l.count++
	if len(l.first) == MaxViolations {
		return
	}
	if l.seen == nil {
		l.seen = make(map[Violation]bool)
	}
	l.seen[v] = true
	l.first = append(l.first, v)
}

// full tells that looking for more makes no sense.
func (l *violations) full() bool { return l.count == maxCounted }

func (l *violations) list() []Violation {
	rest, least := l.count-len(l.first), ""
	switch {
	case rest == 0:
		return l.first
	case l.full():
		least = "at least "
	}
	return append(l.first, Violation{Hint: fmt.Sprintf("and %s%d more", least, rest)})
}

// place is where a value stands; nil is the root.
type place struct {
	in       *place
	name     string
	index    int  // of an item; -1 for a member
	optional bool // the member may be left out
}

// String returns the JSON pointer.
func (p *place) String() string {
	var steps []string
	for ; p != nil; p = p.in {
		step := strconv.Itoa(p.index)
		if p.index < 0 {
			step = escape(clip(p.name, maxGot))
		}
		steps = append(steps, "/"+step)
	}
	slices.Reverse(steps)
	s := strings.Join(steps, "")
	if len(s) <= maxPath {
		return s
	}
	return clip(s, maxPath/2) + tail(s, maxPath/2)
}

// show returns the type of v and an excerpt of it, at most maxGot bytes.
func show(v any) string {
	if v == nil {
		return "null"
	}
	if o, ok := v.(object); ok && len(o) > maxMembers {
		return fmt.Sprintf("object with %d properties", len(o))
	}
	var b strings.Builder
	b.WriteString(typeOf(v) + " ")
	write(&b, v)
	return clip(b.String(), maxGot)
}

// write appends v as JSON, and may stop once there is more than show takes.
func write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case object:
		writeObject(b, v)
	case array:
		b.WriteByte('[')
		for i, item := range v {
			if b.Len() > maxGot {
				return
			}
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	case text:
		b.WriteString(quote(string(v[:min(len(v), 2*maxGot)])))
	default:
		b.WriteString(literal(v))
	}
}

func writeObject(b *strings.Builder, v object) {
	if len(v) > maxMembers {
		b.WriteString("{…}")
		return
	}
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(v)) {
		if b.Len() > maxGot {
			return
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(name[:min(len(name), 2*maxGot)]) + ":")
		write(b, v[name])
	}
	b.WriteByte('}')
}

// typeOf names the JSON type of a value for a reader.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case text:
		return "string"
	case array:
		return "array"
	case object:
		return "object"
	}
	return "number"
}

// literal returns v as JSON, without HTML escapes.
func literal(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func quote(s string) string { return literal(s) }

// quoteAll returns the quoted names with sep between them, the last ones as a number where
// there are many.
func quoteAll(names []string, sep string) string {
	const most = 20
	quoted := make([]string, 0, min(len(names), most)+1)
	for i, name := range names {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		quoted = append(quoted, quote(name))
	}
	return strings.Join(quoted, sep)
}

// clip returns s, cut between runes to at most limit bytes with a mark at its end.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// tail returns at most the last limit bytes of s, cut between runes.
func tail(s string, limit int) string {
	start := len(s) - limit
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return s[start:]
}

// bare returns the text of an error of the library without the way to it.
func bare(err error) string {
	s := err.Error()
	for strings.HasPrefix(s, "validating ") {
		_, rest, found := strings.Cut(s, ": ")
		if !found {
			break
		}
		s = rest
	}
	return clip(strings.ToValidUTF8(s, "\uFFFD"), maxWant)
}
