package openai

import "bytes"

// frame is what one JSON text of a response says, in the few words that all endpoints
// share: a chunk of a stream, a whole completion, or an error. Its bytes are views that hold
// until the next decode; the decode reuses its slices.
type frame struct {
	scan scanner

	model   []byte
	choices []choice
	// chunk tells that there is a list of choices, be it empty.
	chunk bool
	usage usage
	// failure is the JSON that reports an error: the frame's, nil where there is none.
	failure []byte
}

// choice is one of the answers that a frame adds to.
type choice struct {
	index int
	// role tells that the frame names the role of the answer, as its first one does.
	role  bool
	parts []piece
	calls []callDelta
	// details are the reasoning details as they came.
	details [][]byte
	// signature is that of the thinking.
	signature []byte
	finish    []byte
	usage     usage
	failure   []byte
	// whole tells that the choice is the answer itself and no increment of it.
	whole bool
}

// pieceKind says what a piece of text adds to.
type pieceKind uint8

const (
	pieceText pieceKind = iota
	pieceThinking
	pieceRefusal
)

// piece is a text with the field that it came in.
type piece struct {
	kind  pieceKind
	field string
	text  []byte
}

// decodeFrame reads a JSON text into f. The error is errIncomplete where the text is the
// beginning of a JSON text.
//
// Null, and a value of a type that makes no sense, are the same as an absent member.
func decodeFrame(data []byte, f *frame) error {
	s := &f.scan
	s.reset(data)
	f.clear()
	if s.peek() == '[' {
		s.open('[')
		for first := true; s.element(); first = false {
			if first {
				f.object()
			} else {
				s.skip()
			}
		}
	} else {
		f.object()
	}
	s.finish()
	return s.err
}

func (f *frame) clear() {
	f.model, f.failure = nil, nil
	f.choices, f.chunk = f.choices[:0], false
	f.usage = usage{}
}

func (f *frame) object() {
	s := &f.scan
	s.peek()
	start := s.pos
	if !s.open('{') {
		return
	}
	// failed tells of an error, flat of what is one in a frame without choices: the fields
	// of an error in the frame itself.
	failed, flat := false, false
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "choices":
			f.chunk = f.chunk || s.peek() == '['
			f.list()
		case "model":
			f.model = s.text()
		case "usage":
			f.usage.read(s)
		case "cost":
			f.usage.readCost(s)
		case "x_groq":
			failed = f.vendor() || failed
		case "error", "errors":
			failed = isFailure(s.raw()) || failed
		case "message", "detail", "msg", "Message", "error_msg", "error_message":
			flat = !bytes.Equal(s.raw(), null) || flat
		case "object", "type":
			kind := s.text()
			flat = flat || string(kind) == "error"
		default:
			s.skip()
		}
	}
	if (failed || flat && !f.chunk) && s.err == nil {
		f.failure = s.data[start:s.pos]
	}
}

var null = []byte("null")

// isFailure tells whether the value of an error member reports one.
func isFailure(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return false
	}
	return true
}

// vendor reads a vendor's own object for the usage in it, of which what stands in the usual
// place counts more. It reports whether the object holds an error.
func (f *frame) vendor() bool {
	s := &f.scan
	if !s.open('{') {
		return false
	}
	failed := false
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch {
		case string(name) == "usage" && !f.usage.counted():
			f.usage.read(s)
		case string(name) == "error":
			failed = isFailure(s.raw()) || failed
		default:
			s.skip()
		}
	}
	return failed
}

// list reads the choices.
func (f *frame) list() {
	s := &f.scan
	if !s.open('[') {
		return
	}
	for s.element() {
		f.addChoice().read(s)
	}
}

// addChoice returns an empty choice at the end of the list, in memory used before.
func (f *frame) addChoice() *choice {
	n := len(f.choices)
	if n < cap(f.choices) {
		f.choices = f.choices[:n+1]
	} else {
		f.choices = append(f.choices, choice{})
	}
	c := &f.choices[n]
	*c = choice{parts: c.parts[:0], calls: c.calls[:0], details: c.details[:0]}
	return c
}

func (c *choice) read(s *scanner) {
	if !s.open('{') {
		return
	}
	var message, delta bool
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "delta":
			if s.peek() == '{' && message {
				// The message stands for all so far, the delta for what is new.
				c.parts, c.calls, c.details = c.parts[:0], c.calls[:0], c.details[:0]
			}
			delta = delta || s.peek() == '{'
			c.message(s)
		case "message":
			if delta {
				s.skip()
				continue
			}
			message = s.peek() == '{'
			c.message(s)
		case "finish_reason":
			c.finish = s.text()
		case "index":
			c.index = count(s.raw())
		case "usage":
			c.usage.read(s)
		case "error":
			if raw := s.raw(); isFailure(raw) {
				c.failure = raw
			}
		default:
			s.skip()
		}
	}
	c.whole = message && !delta
}

// message reads a delta or a message.
func (c *choice) message(s *scanner) {
	if !s.open('{') {
		return
	}
	thought := len(c.parts)
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "role":
			c.role = len(s.text()) > 0
		case "content":
			c.content(s, pieceText)
		case "refusal":
			c.add(pieceRefusal, "", s.text())
		case "reasoning_content":
			c.thinking(s, fieldReasoningContent, thought)
		case "reasoning":
			c.thinking(s, fieldReasoning, thought)
		case "reasoning_text":
			c.thinking(s, fieldReasoningText, thought)
		case "thinking":
			c.thinking(s, fieldThinking, thought)
		case "reasoning_details":
			c.readDetails(s, thought)
		case "reasoning_signature", "thinking_signature", "signature":
			c.sign(s.text())
		case "tool_calls":
			c.readCalls(s)
		case "function_call":
			c.readFunctionCall(s)
		default:
			s.skip()
		}
	}
}

func (c *choice) add(kind pieceKind, field string, text []byte) {
	if len(text) > 0 {
		c.parts = append(c.parts, piece{kind, field, text})
	}
}

func (c *choice) sign(signature []byte) {
	if len(signature) > 0 {
		c.signature = signature
	}
}

// The further names under which thinking comes.
const (
	fieldReasoningText = "reasoning_text"
	fieldThinking      = "thinking"
)

// fieldRank orders the fields of thinking. Endpoints send the same thinking under several
// names; the first of these counts.
var fieldRank = map[string]int{
	fieldReasoningContent: 1,
	fieldReasoning:        2,
	fieldReasoningText:    3,
	fieldThinking:         4,
	fieldReasoningDetails: 5,
}

// thinking reads a field of thinking. thought is where the parts of this message begin.
func (c *choice) thinking(s *scanner, field string, thought int) {
	at := len(c.parts)
	c.content(s, pieceThinking)
	for i := at; i < len(c.parts); i++ {
		c.parts[i].field = field
	}
	c.once(field, thought, at)
}

// once keeps the thinking of one field: what came since at in field, or what came before.
func (c *choice) once(field string, thought, at int) {
	if len(c.parts) == at {
		return
	}
	kept := c.parts[:thought]
	better := true
	for _, p := range c.parts[thought:at] {
		if p.kind == pieceThinking && p.field != fieldContent && fieldRank[p.field] <= fieldRank[field] {
			better = false
		}
	}
	if !better {
		c.parts = c.parts[:at]
		return
	}
	for i, p := range c.parts[thought:] {
		if i+thought >= at || p.kind != pieceThinking || p.field == fieldContent {
			kept = append(kept, p)
		}
	}
	c.parts = kept
}

// content reads a text, a part, or a list of those. Text in it is of kind, unless a part
// says what it is.
func (c *choice) content(s *scanner, kind pieceKind) {
	switch s.peek() {
	case '"':
		c.add(kind, "", s.text())
	case '[':
		s.open('[')
		for s.element() {
			c.content(s, kind)
		}
	case '{':
		c.part(s, kind)
	default:
		s.skip()
	}
}

// part reads one part of a content. Its type may stand behind its text.
func (c *choice) part(s *scanner, kind pieceKind) {
	s.open('{')
	at := len(c.parts)
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "type":
			if k, ok := partKinds[string(s.text())]; ok {
				kind = max(kind, k)
			}
		case "text", "content", "refusal", "summary":
			c.content(s, kind)
		case "thinking", "reasoning":
			kind = pieceThinking
			c.content(s, kind)
		case "signature":
			c.sign(s.text())
		default:
			s.skip()
		}
	}
	for i := at; i < len(c.parts); i++ {
		p := &c.parts[i]
		if p.kind = max(p.kind, kind); p.kind == pieceThinking {
			p.field = fieldContent
		}
	}
}

var partKinds = map[string]pieceKind{
	"thinking":       pieceThinking,
	"reasoning":      pieceThinking,
	"reasoning.text": pieceThinking,
	"refusal":        pieceRefusal,
}

// readDetails reads a list of reasoning details: as they are, and as the thinking that they hold.
func (c *choice) readDetails(s *scanner, thought int) {
	if !s.open('[') {
		return
	}
	at := len(c.parts)
	for s.element() {
		s.peek()
		start := s.pos
		c.detail(s)
		if s.err == nil && s.data[start] == '{' {
			c.details = append(c.details, s.data[start:s.pos])
		}
	}
	c.once(fieldReasoningDetails, thought, at)
}

func (c *choice) detail(s *scanner) {
	if !s.open('{') {
		return
	}
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "text", "summary":
			c.add(pieceThinking, fieldReasoningDetails, s.text())
		case "signature":
			c.sign(s.text())
		default:
			s.skip()
		}
	}
}
