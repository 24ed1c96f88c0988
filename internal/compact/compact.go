// Package compact takes the blanks out of JSON.
package compact

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// JSON returns src without the blanks between its tokens, in memory of its own, as [json.Compact]
// does. It reports whether src is JSON, which for what is nested unusually deep encoding/json
// decides.
//
// The arguments of calls come here, as a part of what each delta costs: encoding/json takes nine
// times as long for a text.
func JSON(src []byte) ([]byte, bool) {
	if out, ok := quick(src); ok {
		return out, true
	}
	if !json.Valid(src) { // nothing is allocated for what is none
		return nil, false
	}
	var buf bytes.Buffer
	_ = json.Compact(&buf, src)
	return buf.Bytes(), true
}

// quick is JSON for all but what is no JSON, or nested deeper than maxDepth: then it reports false.
func quick(src []byte) ([]byte, bool) {
	r := reader{src: src}
	if !r.value() {
		return nil, false
	}
	r.blanks()
	if r.pos < len(src) {
		return nil, false
	}
	return append(r.out, src[r.kept:]...), true
}

const maxDepth = 64

// reader walks through src. Its methods report whether what they expect is there.
type reader struct {
	src   []byte
	pos   int
	depth int
	out   []byte // src up to kept, without blanks
	kept  int
}

// peek skips blanks and returns the next byte, 0 at the end.
func (r *reader) peek() byte {
	if r.pos < len(r.src) && r.src[r.pos] > ' ' {
		return r.src[r.pos]
	}
	r.blanks()
	if r.pos < len(r.src) {
		return r.src[r.pos]
	}
	return 0
}

// blanks leaves out the blanks at pos.
func (r *reader) blanks() {
	start := r.pos
	for r.pos < len(r.src) && isBlank(r.src[r.pos]) {
		r.pos++
	}
	if r.pos > start {
		r.out = append(r.out, r.src[r.kept:start]...)
		r.kept = r.pos
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (r *reader) value() bool {
	switch c := r.peek(); c {
	case '{':
		return r.items('}', r.member)
	case '[':
		return r.items(']', r.value)
	case '"':
		return r.text()
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	default:
		return r.number()
	}
}

// items reads what stands in brackets, with a comma between one item and the next.
func (r *reader) items(end byte, item func() bool) bool {
	if r.depth++; r.depth > maxDepth {
		return false
	}
	r.pos++
	if r.peek() == end {
		return r.closed()
	}
	for item() {
		switch r.peek() {
		case ',':
			r.pos++
		case end:
			return r.closed()
		default:
			return false
		}
	}
	return false
}

func (r *reader) closed() bool {
	r.pos++
	r.depth--
	return true
}

func (r *reader) member() bool {
	if r.peek() != '"' || !r.text() || r.peek() != ':' {
		return false
	}
	r.pos++
	return r.value()
}

func (r *reader) word(w string) bool {
	if !bytes.HasPrefix(r.src[r.pos:], []byte(w)) {
		return false
	}
	r.pos += len(w)
	return true
}

func (r *reader) number() bool {
	r.word("-")
	if !r.word("0") && !r.digits() {
		return false
	}
	if r.word(".") && !r.digits() {
		return false
	}
	if r.word("e") || r.word("E") {
		_ = r.word("+") || r.word("-")
		return r.digits()
	}
	return true
}

// digits reads at least one.
func (r *reader) digits() bool {
	start := r.pos
	for r.pos < len(r.src) && '0' <= r.src[r.pos] && r.src[r.pos] <= '9' {
		r.pos++
	}
	return r.pos > start
}

// text reads a string from its opening quote.
func (r *reader) text() bool {
	for r.pos++; r.pos < len(r.src); {
		if r.pos+8 <= len(r.src) && isPlain(binary.LittleEndian.Uint64(r.src[r.pos:])) {
			r.pos += 8
			continue
		}
		switch c := r.src[r.pos]; {
		case c == '"':
			r.pos++
			return true
		case c == '\\':
			if !r.escape() {
				return false
			}
		case c < ' ':
			return false
		default:
			r.pos++
		}
	}
	return false
}

// isPlain tells whether none of the 8 bytes in w is a quote, a backslash or below a blank: the
// high bit of a byte is set in x-ones&^x where that byte, or one before it, is 0 in x, and with n
// times ones where it is below n.
func isPlain(w uint64) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	quote, backslash := w^'"'*ones, w^'\\'*ones
	return ((quote-ones)&^quote|(backslash-ones)&^backslash|(w-' '*ones)&^w)&highs == 0
}

// escape reads an escape from its backslash.
func (r *reader) escape() bool {
	r.pos++
	if !r.word("u") {
		r.pos++
		return r.pos <= len(r.src) && bytes.IndexByte([]byte(`"\/bfnrt`), r.src[r.pos-1]) >= 0
	}
	for range 4 {
		if r.pos >= len(r.src) || !isHex(r.src[r.pos]) {
			return false
		}
		r.pos++
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
