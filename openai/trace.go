package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// thinkingTrace gathers the opaque data of one block of thinking: where it came from, its
// signature, and the provider's details, whose pieces are put together. It is yielded once
// the block ends, and once more at the end of the answer if more came.
type thinkingTrace struct {
	field     string
	signature string
	details   []*detail
	bySlot    map[detailSlot]*detail
	scan      scanner
	unsent    bool
	// sealed: the block has ended and was yielded.
	sealed bool
}

// detailSlot says which pieces belong together.
type detailSlot struct{ kind, index string }

// detail is an entry of reasoning_details. Its texts come in pieces, the rest as a whole.
type detail struct {
	members map[string]json.RawMessage
	texts   map[string][]byte
}

// came notes the field that thinking came in.
func (t *thinkingTrace) came(field string) {
	if t.field == "" && field != "" {
		t.field = field
		t.unsent = true
	}
}

func (t *thinkingTrace) sign(signature []byte) {
	if len(signature) > 0 && string(signature) != t.signature {
		t.signature = string(signature)
		t.unsent = true
	}
}

// add takes one detail in, which is a JSON object.
func (t *thinkingTrace) add(raw []byte) {
	t.unsent = true
	d := t.read(raw)
	slot := detailSlot{string(d.members["type"]), string(d.members["index"])}
	old := t.bySlot[slot]
	if slot.index == "" && len(t.details) > 0 && len(d.texts) > 0 {
		old = t.details[len(t.details)-1]
	}
	if old != nil && old.continuedBy(d) {
		old.merge(d)
		return
	}
	t.details = append(t.details, d)
	if slot.index != "" {
		if t.bySlot == nil {
			t.bySlot = make(map[detailSlot]*detail)
		}
		t.bySlot[slot] = d
	}
}

// read splits a detail into its members.
func (t *thinkingTrace) read(raw []byte) *detail {
	d := &detail{members: make(map[string]json.RawMessage)}
	s := &t.scan
	s.reset(raw)
	s.open('{')
	for name, ok := s.member(); ok; name, ok = s.member() {
		isText := (string(name) == "text" || string(name) == "summary") && s.peek() == '"'
		switch {
		case isText && d.texts == nil:
			d.texts = map[string][]byte{string(name): bytesOf(s.text())}
		case isText:
			d.texts[string(name)] = bytesOf(s.text())
		default:
			d.members[string(name)] = bytesOf(s.raw())
		}
	}
	return d
}

// continuedBy tells that e is a further piece of d.
func (d *detail) continuedBy(e *detail) bool {
	if !bytes.Equal(d.members["type"], e.members["type"]) || e.members["data"] != nil {
		return false
	}
	id, other := d.members["id"], e.members["id"]
	return says(id) == says(other) && bytes.Equal(id, other) || !says(id) || !says(other)
}

// says tells that a value is neither absent nor null nor an empty text.
func says(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""`
}

func (d *detail) merge(e *detail) {
	for name, text := range e.texts {
		if d.texts == nil {
			d.texts = make(map[string][]byte)
		}
		d.texts[name] = append(d.texts[name], text...)
	}
	for name, value := range e.members {
		if says(value) || d.members[name] == nil {
			d.members[name] = value
		}
	}
}

// names are those of the detail's members and texts, in their order.
func (d *detail) names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(d.texts)), maps.Keys(d.members))
	slices.Sort(names)
	return slices.Compact(names)
}

// size is no less than the length of the detail in JSON.
func (d *detail) size() int {
	n := len("{},")
	for name, value := range d.members {
		n += quotedLen(name) + len(":,") + len(value)
	}
	for name, text := range d.texts {
		n += quotedLen(name) + len(":,") + quotedLen(text)
	}
	return n
}

func (d *detail) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, name := range d.names() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, name), ':')
		if text, ok := d.texts[name]; ok {
			dst = appendQuoted(dst, text)
		} else {
			dst = append(dst, d.members[name]...)
		}
	}
	return append(dst, '}')
}

// event is the stream event that gives the block its opaque data.
func (t *thinkingTrace) event() agentkernel.StreamEvent {
	t.unsent = false
	return agentkernel.StreamEvent{
		Type:      agentkernel.StreamEventThinkingDelta,
		Signature: t.signature,
		Extra:     t.extra(),
	}
}

// extra is the [thinkingExtra] of the block in JSON, in one piece of memory: the details may
// be large.
func (t *thinkingTrace) extra() json.RawMessage {
	field := t.field
	if field == "" && len(t.details) > 0 {
		field = fieldReasoningDetails
	}
	if field == "" {
		return json.RawMessage("{}")
	}
	size := len(`{"field":,"reasoning_details":[]}`) + quotedLen(field)
	for _, d := range t.details {
		size += d.size()
	}
	raw := append(make([]byte, 0, size), `{"field":`...)
	raw = appendQuoted(raw, field)
	for i, d := range t.details {
		if i == 0 {
			raw = append(raw, `,"reasoning_details":[`...)
		} else {
			raw = append(raw, ',')
		}
		raw = d.appendJSON(raw)
	}
	if len(t.details) > 0 {
		raw = append(raw, ']')
	}
	return append(raw, '}')
}
