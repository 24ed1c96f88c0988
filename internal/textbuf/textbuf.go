// Package textbuf holds text that only grows and whose prefixes are handed out as strings
// without copying.
package textbuf

import "unsafe"

// Buffer is an append-only text. The zero value is empty. It is for one goroutine; the
// strings that it hands out are for all.
type Buffer struct {
	b []byte
}

// Append adds s and returns the whole text so far.
//
// The string shares the buffer's bytes: they are never rewritten, later text is written
// behind them or into a larger copy. Appending n bytes in any number of steps costs O(n)
// time and memory in all. A long text that comes first is kept as it is, without a copy.
func (x *Buffer) Append(s string) string {
	if len(x.b) == 0 && len(s) >= long {
		x.b = Bytes(s) // it has no room, so that nothing is ever written behind it
	} else {
		x.b = append(x.b, s...)
	}
	return x.String()
}

// long is the length of a text that is worth keeping: one copy more when it grows is cheap
// beside what most texts of that length do, which is not to grow.
const long = 64 << 10

// String returns the whole text so far, sharing the buffer's bytes.
func (x *Buffer) String() string { return String(x.b) }

// Bytes returns the bytes of s without copying. They must not be written to.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// String returns b as a text without copying. From then on b must not be written to.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Len is the length in bytes.
func (x *Buffer) Len() int { return len(x.b) }
