package openai

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// errLineTooLong: a line of a stream is longer than Config.MaxLineBytes.
var errLineTooLong = errors.New("a line of the stream is longer than MaxLineBytes")

// sseEvent is one thing that a body says. Its data is a view that holds until the next one.
type sseEvent struct {
	data []byte
	// failed: the endpoint marked the event as an error.
	failed bool
	// done: the event is the [DONE] that ends a stream.
	done bool
	// last: nothing can be added to data any more. Otherwise data may be a line of several;
	// see [filter.hold].
	last bool
	// cut: the body ended within the event.
	cut bool
}

// filter reads a response's body as server-sent events, or as the bare JSON that some send in
// their place. What it yields depends on the body's bytes alone, not on how they come.
//
// It drops comments, blank lines, ids and names of events, takes LF, CR and CRLF as the end
// of a line, a byte order mark, and a last line that has no end. It yields a line of data as
// soon as it has it. A line of data that is no whole JSON is one of several if the reader
// gives it back with hold.
type filter struct {
	src io.Reader
	max int // of a line, negative for none

	buf     []byte
	r, w    int // buf[r:w] is unread
	scanned int // no line ends in buf[r:scanned]
	// parts are the beginning of a long line, before buf[r:]; kept is their length.
	parts      [][]byte
	kept       int
	begun      bool
	skipLF     bool
	err        error // how src ended
	unfinished bool  // the line last read has no end

	failed  bool // the event is named an error
	said    bool // the event had data
	held    []byte
	holding bool
	bare    bool // what is held stood without a field's name
	again   []byte

	// events counts the fields of the protocol that came, so that a body of something else
	// is known.
	events int
	// strange is the beginning of the first line that is none of the protocol's.
	strange []byte
}

const (
	firstBuffer = 8 << 10
	mostStrange = 512
)

func newFilter(src io.Reader, maxLine int) *filter {
	return &filter{src: src, max: maxLine, buf: make([]byte, firstBuffer)}
}

// next returns the next event; at the end of the body the error that it ended with.
func (f *filter) next() (sseEvent, error) {
	for {
		line := f.again
		f.again = nil
		if line == nil {
			var err error
			if line, err = f.line(); err != nil {
				if ev, ok := f.boundary(true); ok {
					return ev, nil
				}
				return sseEvent{}, err
			}
		}
		if ev, ok := f.take(line); ok {
			return ev, nil
		}
	}
}

// hold gives back the data of an event that is not the last of its kind, so that the lines
// that follow are added to it.
func (f *filter) hold(ev sseEvent) {
	f.held = append(f.held[:0], ev.data...)
	f.holding = true
}

// take reads one line. It reports whether that made an event.
func (f *filter) take(line []byte) (sseEvent, bool) {
	if f.holding && f.bare {
		if f.events > 0 && (len(line) == 0 || bytes.HasPrefix(line, []byte("data:"))) {
			return f.resume(line)
		}
		return f.add(line)
	}
	if len(line) == 0 {
		return f.boundary(false)
	}
	name, value := splitField(line)
	switch name {
	case "data":
		return f.data(value)
	case "event":
		f.events++
		f.failed = strings.Contains(strings.ToLower(string(value)), "error")
	case "error":
		return sseEvent{data: value, failed: true, last: true}, true
	case "", "id", "retry":
		f.events++
	default:
		return f.strangeLine(line)
	}
	return sseEvent{}, false
}

// resume ends what is held before the line, which is read next.
func (f *filter) resume(line []byte) (sseEvent, bool) {
	if ev, ok := f.boundary(false); ok {
		f.again = line
		return ev, true
	}
	return f.take(line)
}

func (f *filter) data(value []byte) (sseEvent, bool) {
	f.events++
	if f.holding {
		return f.add(value)
	}
	if value = bytes.TrimSpace(value); len(value) == 0 {
		return sseEvent{}, false
	}
	f.said = true
	f.bare = false
	return sseEvent{data: value, failed: f.failed, done: isDone(value), last: f.unfinished, cut: f.unfinished}, true
}

func isDone(value []byte) bool {
	return string(value) == "[DONE]" || string(value) == `"[DONE]"`
}

// add adds a line to what is held.
func (f *filter) add(value []byte) (sseEvent, bool) {
	if f.max >= 0 && len(f.held)+len(value) >= f.max {
		f.stop(errLineTooLong)
		return sseEvent{}, false
	}
	f.held = append(append(f.held, '\n'), value...)
	return sseEvent{}, false
}

// strangeLine reads a line without a field's name: JSON, or a text that is no stream at all.
func (f *filter) strangeLine(line []byte) (sseEvent, bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return sseEvent{}, false
	}
	if line[0] == '{' || line[0] == '[' {
		f.bare = true
		return sseEvent{data: line, failed: f.failed, done: isDone(line), last: f.unfinished, cut: f.unfinished}, true
	}
	if f.strange == nil {
		f.strange = bytes.Clone(line[:min(len(line), mostStrange)])
	}
	return sseEvent{}, false
}

// boundary ends an event: at a blank line, or at the end of the body.
func (f *filter) boundary(end bool) (sseEvent, bool) {
	ev := sseEvent{failed: f.failed, last: true, cut: end}
	ok := f.holding
	if ok {
		ev.data = f.held
		f.holding = false
		if cap(f.held) > largeBuffer {
			f.held = nil
		}
	} else if f.failed && !f.said {
		ok = true // an error without a word
	}
	f.failed, f.said = false, false
	return ev, ok
}

// splitField splits a line into the name of its field and the value. The name of a comment
// is empty.
func splitField(line []byte) (string, []byte) {
	name, value, found := bytes.Cut(line, []byte(":"))
	name = bytes.TrimLeft(name, " \t")
	if found && len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		return "data", value
	case "event":
		return "event", bytes.TrimSpace(value)
	case "error":
		if found {
			return "error", bytes.TrimSpace(value)
		}
	case "id":
		return "id", value
	case "retry":
		return "retry", value
	case "":
		if found {
			return "", nil
		}
	}
	return "?", nil
}

// line returns the next line without its end. A last line without an end is one too.
func (f *filter) line() ([]byte, error) {
	for {
		f.skipMarks()
		if i := lineEnd(f.buf[f.scanned:f.w]); i >= 0 {
			if i += f.scanned; f.tooLong(i) {
				continue
			}
			return f.cut(i), nil
		}
		f.scanned = f.w
		if f.err != nil {
			return f.remainder()
		}
		if f.begun && f.tooLong(f.w) { // before that it may be a mark, which is no part of a line
			continue
		}
		f.fill()
	}
}

// skipMarks skips what stands before a line: a byte order mark, and the LF of a CRLF.
func (f *filter) skipMarks() {
	if f.skipLF && f.r < f.w {
		if f.buf[f.r] == '\n' {
			f.r++
		}
		f.skipLF = false
	}
	const mark = "\xef\xbb\xbf"
	if begin := f.buf[f.r:min(f.r+len(mark), f.w)]; !f.begun {
		if string(begin) == mark {
			f.r += len(mark)
		}
		f.begun = string(begin) == mark || !strings.HasPrefix(mark, string(begin))
	}
	f.scanned = max(f.scanned, f.r)
}

// lineEnd returns the place of the first CR or LF.
func lineEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i >= 0 {
		b = b[:i]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return i
}

// tooLong ends the body before a line that reaches up to buf[i] if that is more than a line
// may have.
func (f *filter) tooLong(i int) bool {
	if f.max < 0 || f.kept+i-f.r <= f.max {
		return false
	}
	f.stop(errLineTooLong)
	return true
}

// stop ends the body here.
func (f *filter) stop(err error) {
	f.err = err
	f.r, f.w, f.scanned = 0, 0, 0
	f.parts, f.kept = nil, 0
	f.holding, f.failed = false, false
}

// cut returns the line that ends at i.
func (f *filter) cut(i int) []byte {
	line := f.whole(f.buf[f.r:i])
	f.skipLF = f.buf[i] == '\r'
	f.r = i + 1
	f.scanned = f.r
	return line
}

// remainder returns the last line of a body, which has no end, and then the body's error.
func (f *filter) remainder() ([]byte, error) {
	if f.kept == 0 && f.r == f.w || f.tooLong(f.w) {
		return nil, f.err
	}
	line := f.whole(f.buf[f.r:f.w])
	f.r, f.scanned = f.w, f.w
	f.unfinished = true
	return line, nil
}

// whole returns the line that ends in last.
func (f *filter) whole(last []byte) []byte {
	if f.kept == 0 {
		return last
	}
	line := make([]byte, 0, f.kept+len(last))
	for _, part := range f.parts {
		line = append(line, part...)
	}
	f.parts, f.kept = nil, 0
	return append(line, last...)
}

// largeBuffer is the size up to which the buffer grows. A line that is longer is kept in
// parts until its end is there, so that it is copied once and not with every growth.
const largeBuffer = 1 << 20

// makeRoom moves what is unread to the front, into another buffer if need be.
func (f *filter) makeRoom() {
	size := len(f.buf)
	switch unread := f.w - f.r; {
	case unread == size && size >= largeBuffer:
		f.parts, f.kept = append(f.parts, f.buf), f.kept+size
		f.buf, f.r, f.w, f.scanned = make([]byte, size), 0, 0, 0
		return
	case unread == size:
		size *= 2
	}
	if size == len(f.buf) && f.r == 0 {
		return
	}
	to := f.buf
	if size != len(f.buf) {
		to = make([]byte, size)
	}
	copy(to, f.buf[f.r:f.w])
	f.buf, f.w, f.scanned, f.r = to, f.w-f.r, f.scanned-f.r, 0
}

// fill reads more.
func (f *filter) fill() {
	f.makeRoom()
	for range 100 {
		n, err := f.src.Read(f.buf[f.w:])
		f.w += n
		if err != nil {
			f.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	f.err = io.ErrNoProgress
}
