package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// jsonWriter writes one JSON value piece by piece and puts the commas in. What encoding/json
// cannot encode is left out and kept as err.
type jsonWriter struct {
	buf bytes.Buffer
	enc *json.Encoder
	err error
}

func newJSONWriter() *jsonWriter {
	w := new(jsonWriter)
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false)
	return w
}

// open begins an object or an array, close ends it.
func (w *jsonWriter) open(bracket byte) {
	w.separate()
	w.buf.WriteByte(bracket)
}

func (w *jsonWriter) close(bracket byte) { w.buf.WriteByte(bracket) }

// key writes the name of the member that comes next.
func (w *jsonWriter) key(name string) {
	w.value(name)
	w.buf.WriteByte(':')
}

// value writes v as encoding/json does, without escapes for HTML.
func (w *jsonWriter) value(v any) {
	w.separate()
	start := w.buf.Len()
	if err := w.enc.Encode(v); err != nil {
		if w.err == nil {
			w.err = err
		}
		w.buf.Truncate(start)
		w.buf.WriteString("null")
		return
	}
	w.buf.Truncate(w.buf.Len() - 1) // the encoder's newline
}

// member writes a name and its value.
func (w *jsonWriter) member(name string, v any) {
	w.key(name)
	w.value(v)
}

// separate writes the comma before a value that is not the first. A value never ends in one
// of the bytes that need none.
func (w *jsonWriter) separate() {
	if b := w.buf.Bytes(); len(b) > 0 && !bytes.ContainsRune([]byte("{[:,"), rune(b[len(b)-1])) {
		w.buf.WriteByte(',')
	}
}

// merge writes the members of the JSON object extra, in the order of their names, without
// those that are taken. Anything but an object is nothing.
func (w *jsonWriter) merge(extra json.RawMessage, taken ...string) {
	members := objectOf(extra)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(taken, name) {
			w.member(name, members[name])
		}
	}
}

// objectOf returns the members of a JSON object, nil for anything else.
func objectOf(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// quotedLen is the length of a text as a JSON string.
func quotedLen[T ~string | ~[]byte](text T) int {
	n := len(text) + len(`""`)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// appendQuoted appends a text as a JSON string.
func appendQuoted[T ~string | ~[]byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(append(dst, text[start:i]...), '\\', c)
		case c < ' ':
			dst = fmt.Appendf(append(dst, text[start:i]...), `\u%04x`, c)
		default:
			continue
		}
		start = i + 1
	}
	return append(append(dst, text[start:]...), '"')
}
