package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

// message is an event of the stream as the standard calls it.
type message struct {
	// id is the last event id, where hasID: it stays until another one comes.
	id    string
	hasID bool
	data  []byte
	retry time.Duration // 0: not told
}

// parser reads the text/event-stream format: lines that end in CR LF, LF or CR, fields
// "name: value", comments, an empty line behind each event. What stands behind the last
// empty line is dropped, since its end did not come.
type parser struct {
	in   *bufio.Reader
	max  int
	size int // of the event so far, without the lines that mean nothing
	line []byte
	// skip: the last line ended with CR, so that LF is a part of its end.
	skip  bool
	begun bool // the first line was read
}

func newParser(in io.Reader, limit int) *parser {
	return &parser{in: bufio.NewReaderSize(in, 4096), max: limit}
}

// next returns the next event, which may be without data: an id or a retry time alone.
func (p *parser) next() (message, error) {
	var m message
	var any bool
	p.size = 0
	for {
		line, err := p.readLine()
		if err != nil {
			return message{}, err
		}
		switch {
		case len(line) == 0 && any:
			m.data = bytes.TrimSuffix(m.data, []byte("\n"))
			return m, nil
		case len(line) > 0 && m.field(line):
			any = true
		default:
			p.size -= len(line)
		}
	}
}

// field takes one line in. It reports whether it meant anything.
func (m *message) field(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		m.data = append(append(m.data, value...), '\n')
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			return false
		}
		m.id, m.hasID = string(value), true
	case "retry":
		ms, err := strconv.ParseUint(string(value), 10, 32)
		if err != nil {
			return false
		}
		m.retry = time.Duration(ms) * time.Millisecond
	default:
		return false
	}
	return true
}

// readLine returns the next line without its end, valid until the next call. Of a comment it
// returns nothing but the colon, since it may have any length.
func (p *parser) readLine() ([]byte, error) {
	p.line = p.line[:0]
	for {
		c, err := p.in.ReadByte()
		if err != nil {
			return nil, err
		}
		if p.skip {
			p.skip = false
			if c == '\n' {
				continue
			}
		}
		switch c {
		case '\r':
			p.skip = true
			return p.begin(p.line), nil
		case '\n':
			return p.begin(p.line), nil
		}
		if len(p.line) > 0 && p.line[0] == ':' {
			continue
		}
		if p.size++; p.size > p.max {
			return nil, fmt.Errorf("%w: an event of more than %d bytes", errTooLong, p.max)
		}
		p.line = append(p.line, c)
	}
}

// begin cuts off a byte order mark, which may stand at the beginning of the stream.
func (p *parser) begin(line []byte) []byte {
	if !p.begun {
		p.begun = true
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	return line
}
