package openai

import (
	"bytes"
	"errors"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel/internal/textbuf"
)

var (
	// errIncomplete: the JSON text ends too early; more of it may come.
	errIncomplete = errors.New("the JSON ends too early")
	errNotJSON    = errors.New("this is no JSON")
	errTooDeep    = errors.New("the JSON is nested too deep")
)

// maxDepth bounds the nesting of a JSON text.
const maxDepth = 500

// scanner reads one JSON text from front to back, without building values nobody asked for.
//
// Its first error sticks: from then on every method does nothing and returns nothing, so
// that a reader checks err once, at the end. It accepts what encoding/json accepts. Bytes
// that it returns are views that hold until the next reset.
type scanner struct {
	data  []byte
	pos   int
	depth int
	// fresh: the bracket of the innermost object or array was just opened.
	fresh bool
	err   error
	// plain holds the strings of this text that had escapes.
	plain []byte
}

func (s *scanner) reset(data []byte) {
	plain := s.plain[:0]
	if cap(plain) > largeBuffer {
		plain = nil
	}
	*s = scanner{data: data, plain: plain}
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
		s.pos = len(s.data)
	}
}

// peek returns the first byte of the next value, 0 at the end of the text.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// finish says that no value may follow.
func (s *scanner) finish() {
	if s.peek() != 0 || s.pos < len(s.data) {
		s.fail(errNotJSON)
	}
}

// open enters an object or an array, and reports whether there is one. Another value is
// skipped.
func (s *scanner) open(bracket byte) bool {
	if s.peek() != bracket {
		s.skip()
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail(errTooDeep)
		return false
	}
	s.pos++
	s.fresh = true
	return true
}

// next moves to the next item of the container that end closes, or out of the container.
func (s *scanner) next(end byte) bool {
	c := s.peek()
	switch {
	case s.err != nil:
		return false
	case c == end:
		s.pos++
		s.depth--
		s.fresh = false
		return false
	case s.fresh:
		s.fresh = false
	case c == ',':
		s.pos++
		c = s.peek()
	default:
		s.unexpected()
		return false
	}
	if c == 0 || c == end {
		s.unexpected()
		return false
	}
	return true
}

// unexpected fails on the byte at pos, or on the end of the text.
func (s *scanner) unexpected() {
	if s.pos >= len(s.data) {
		s.fail(errIncomplete)
		return
	}
	s.fail(errNotJSON)
}

// member moves to the next member of an object and returns its name.
func (s *scanner) member() ([]byte, bool) {
	if !s.next('}') {
		return nil, false
	}
	if s.data[s.pos] != '"' {
		s.fail(errNotJSON)
		return nil, false
	}
	name := s.str()
	if s.peek() != ':' {
		s.unexpected()
		return nil, false
	}
	s.pos++
	return name, s.err == nil
}

// element moves to the next element of an array.
func (s *scanner) element() bool { return s.next(']') }

// text reads a string. Another value is skipped and gives nil.
func (s *scanner) text() []byte {
	if s.peek() != '"' {
		s.skip()
		return nil
	}
	return s.str()
}

// raw reads any value and returns it as it stands.
func (s *scanner) raw() []byte {
	s.peek()
	start := s.pos
	s.skip()
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos]
}

// skip reads any value.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case s.err != nil:
	case c == '"':
		s.str()
	case c == '{':
		s.open('{')
		for _, ok := s.member(); ok; _, ok = s.member() {
			s.skip()
		}
	case c == '[':
		s.open('[')
		for s.element() {
			s.skip()
		}
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		s.unexpected()
	}
}

func (s *scanner) word(w string) {
	rest := s.data[s.pos:]
	switch {
	case len(rest) >= len(w) && string(rest[:len(w)]) == w:
		s.pos += len(w)
	case len(rest) < len(w) && string(rest) == w[:len(rest)]:
		s.fail(errIncomplete)
	default:
		s.fail(errNotJSON)
	}
}

func (s *scanner) number() {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else {
		s.digits()
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		s.digits()
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		s.digits()
	}
}

// digits reads at least one digit.
func (s *scanner) digits() {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.unexpected()
	}
}

// str reads the string at pos.
func (s *scanner) str() []byte {
	start := s.pos + 1
	for i := start; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return s.data[start:i:i]
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			s.fail(errNotJSON)
			return nil
		}
	}
	s.fail(errIncomplete)
	return nil
}

// escaped reads the rest of a string whose first escape is at i.
func (s *scanner) escaped(start, i int) []byte {
	begin := len(s.plain)
	s.plain = append(slices.Grow(s.plain, len(s.data)-start), s.data[start:i]...)
	s.pos = i
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return s.plain[begin:len(s.plain):len(s.plain)]
		case c == '\\':
			s.escape()
		case c < ' ':
			s.fail(errNotJSON)
		default:
			s.pos = s.run()
		}
	}
	s.fail(errIncomplete)
	return nil
}

// run copies the bytes up to the next one that means something, and returns its place.
func (s *scanner) run() int {
	i := s.pos
	for i < len(s.data) && s.data[i] != '"' && s.data[i] != '\\' && s.data[i] >= ' ' {
		i++
	}
	s.plain = append(s.plain, s.data[s.pos:i]...)
	return i
}

const (
	escapeNames  = `"\/bfnrt`
	escapeValues = "\"\\/\b\f\n\r\t"
)

// escape reads the escape at pos.
func (s *scanner) escape() {
	if s.pos+1 >= len(s.data) {
		s.fail(errIncomplete)
		return
	}
	c := s.data[s.pos+1]
	if i := bytes.IndexByte([]byte(escapeNames), c); i >= 0 {
		s.plain = append(s.plain, escapeValues[i])
		s.pos += 2
		return
	}
	if c != 'u' {
		s.fail(errNotJSON)
		return
	}
	r := s.unit(s.pos)
	if s.err != nil {
		return
	}
	s.pos += 6
	if utf16.IsSurrogate(r) {
		r = s.pair(r)
	}
	s.plain = utf8.AppendRune(s.plain, r)
}

// textOf returns a view of a scanner, or of the line that it reads, as a text to keep. A view
// that is longer than largeBuffer is no copy: no memory of that size is used twice.
func textOf(view []byte) string {
	if len(view) > largeBuffer {
		return textbuf.String(view)
	}
	return string(view)
}

// bytesOf is textOf for bytes. They must not be written to.
func bytesOf(view []byte) []byte {
	if len(view) > largeBuffer {
		return slices.Clip(view)
	}
	return bytes.Clone(view)
}

// pair returns the rune that the surrogate high and the escape at pos make, if they do.
func (s *scanner) pair(high rune) rune {
	if s.pos+1 < len(s.data) && s.data[s.pos] == '\\' && s.data[s.pos+1] == 'u' {
		if r := utf16.DecodeRune(high, s.unit(s.pos)); s.err == nil && r != utf8.RuneError {
			s.pos += 6
			return r
		}
	}
	return utf8.RuneError
}

// unit returns the value of the \uXXXX at i.
func (s *scanner) unit(i int) rune {
	var r rune
	for _, c := range s.data[i+2 : min(i+6, len(s.data))] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			s.fail(errNotJSON)
			return 0
		}
	}
	if i+6 > len(s.data) {
		s.fail(errIncomplete)
	}
	return r
}
