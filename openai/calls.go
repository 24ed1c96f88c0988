package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/agentkernel-go/agentkernel"
)

// callTracker tells the calls of one answer apart. Endpoints leave out ids and indexes,
// repeat them, use one for several calls, and make new ones up for each chunk; the kernel is
// given a key for each call that is right by itself.
type callTracker struct {
	byIndex map[string]*trackedCall
	byID    map[string]*trackedCall
	all     []*trackedCall
}

// trackedCall is a call as far as it came.
type trackedCall struct {
	key string
	// id is the one that the kernel knows, sentID the one that the endpoint uses: another
	// call may own it.
	id, sentID string
	index      string
	name       string
	args       argsProgress
	extra      map[string]json.RawMessage
	unsent     bool // extra has changed since it was yielded
}

// event turns the delta at position of a list of n into a stream event. It reports false
// where the delta brings nothing new.
func (t *callTracker) event(d *callDelta, position, n int) (agentkernel.StreamEvent, bool) {
	ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta}
	index := d.index
	if index == nil && n > 1 {
		index = strconv.AppendInt(nil, int64(position), 10)
	}
	call, id := t.find(d, index)
	opened := call == nil
	switch {
	case opened && d.isEmpty():
		return ev, false
	case opened:
		call = t.open(d, index)
	}
	if id != "" {
		call.id = id
		t.byID[id] = call
	}
	ev.Key, ev.ID = call.key, id
	if len(d.name) > 0 && string(d.name) != call.name {
		call.name = string(d.name)
		ev.Name = call.name
	}
	call.args.feed(d.args)
	ev.Delta = textOf(d.args)
	if opened {
		ev.Extra = call.begin(d.extra)
	} else {
		call.keep(d.extra)
	}
	return ev, opened || ev.ID != "" || ev.Name != "" || ev.Delta != ""
}

// find returns the call that d continues, nil where it begins one, and the id that the
// kernel is to learn of that call.
func (t *callTracker) find(d *callDelta, index []byte) (*trackedCall, string) {
	owner := t.byID[string(d.id)]
	at := t.byIndex[string(index)]
	if index == nil && len(t.all) > 0 {
		at = t.all[len(t.all)-1]
	}
	switch {
	case at != nil && len(d.id) > 0 && at.sentID == string(d.id) && !at.endedBefore(d):
		return at, ""
	case owner != nil && !owner.othersBegin(d, index):
		return owner, ""
	case owner != nil:
		return nil, "" // one id for several calls: the kernel makes one up for this
	case at == nil:
		return nil, string(d.id)
	case len(d.id) == 0:
		if at.id == "" && at.endedBefore(d) {
			return nil, ""
		}
		return at, ""
	case at.sentID == "" && !at.endedBefore(d) && (index != nil || at.name == ""):
		at.sentID = string(d.id)
		return at, at.sentID
	case index != nil && at.sentID != "" && len(d.name) == 0 && !at.args.whole():
		return at, "" // a new id for each chunk
	}
	return nil, string(d.id)
}

func (t *callTracker) open(d *callDelta, index []byte) *trackedCall {
	if t.byID == nil {
		t.byID = make(map[string]*trackedCall)
		t.byIndex = make(map[string]*trackedCall)
	}
	call := &trackedCall{key: strconv.Itoa(len(t.all)), sentID: string(d.id), index: string(index)}
	t.all = append(t.all, call)
	if index != nil {
		t.byIndex[call.index] = call
	}
	return call
}

// endedBefore tells that d begins another call: c has all of its arguments, and d names a
// tool and brings arguments that are not the same ones again.
func (c *trackedCall) endedBefore(d *callDelta) bool {
	return len(d.name) > 0 && c.args.whole() && len(bytes.TrimSpace(d.args)) > 0 && !c.args.are(d.args)
}

// othersBegin tells that d, with the id of c, begins another call.
func (c *trackedCall) othersBegin(d *callDelta, index []byte) bool {
	if d.index != nil && string(index) != c.index && len(d.name) > 0 {
		return c.args.whole() || c.args.empty()
	}
	return c.endedBefore(d)
}

// begin takes the members that come with the first delta of a call and returns them as an
// object, nil where there are none. It keeps them as parts of that object.
func (c *trackedCall) begin(extra []member) json.RawMessage {
	if len(extra) == 0 {
		return nil
	}
	c.extra = make(map[string]json.RawMessage, len(extra))
	for _, m := range extra {
		c.extra[string(m.name)] = m.value
	}
	return objectJSON(c.extra)
}

// keep merges the members that the endpoint added to a call.
func (c *trackedCall) keep(extra []member) {
	for _, m := range extra {
		if bytes.Equal(c.extra[string(m.name)], m.value) {
			continue
		}
		if c.extra == nil {
			c.extra = make(map[string]json.RawMessage)
		}
		c.extra[string(m.name)] = bytesOf(m.value)
		c.unsent = true
	}
}

func (c *trackedCall) extraJSON() json.RawMessage {
	c.unsent = false
	return objectJSON(c.extra)
}

// late calls yield with the extras that came after the begin of their calls.
func (t *callTracker) late(yield func(agentkernel.StreamEvent) bool) bool {
	for _, call := range t.all {
		if call.unsent && !yield(agentkernel.StreamEvent{
			Type:  agentkernel.StreamEventToolCallDelta,
			Key:   call.key,
			Extra: call.extraJSON(),
		}) {
			return false
		}
	}
	return true
}

// objectJSON encodes members whose values are JSON, in the order of their names. From then on
// the values are parts of the result.
func objectJSON(members map[string]json.RawMessage) json.RawMessage {
	size := len("{}")
	for name, value := range members {
		size += quotedLen(name) + len(":,") + len(value)
	}
	raw := append(make(json.RawMessage, 0, size), '{')
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(appendQuoted(raw, name), ':')
		begin := len(raw)
		raw = append(raw, members[name]...)
		members[name] = raw[begin:len(raw):len(raw)]
	}
	return append(raw, '}')
}

// argsProgress follows the text of a call's arguments to its end, without keeping it.
type argsProgress struct {
	depth            int
	inText, escaped  bool
	length, brackets int
	sum              uint64
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (p *argsProgress) feed(text []byte) {
	p.sum = fnv(p.start(), text)
	p.length += len(text)
	for _, c := range text {
		switch {
		case p.escaped:
			p.escaped = false
		case p.inText:
			p.escaped = c == '\\'
			p.inText = c != '"'
		case c == '"':
			p.inText = true
		case c == '{' || c == '[':
			p.depth++
			p.brackets++
		case c == '}' || c == ']':
			p.depth--
		}
	}
}

func (p *argsProgress) start() uint64 {
	if p.length == 0 {
		return fnvOffset
	}
	return p.sum
}

func fnv(sum uint64, text []byte) uint64 {
	for _, c := range text {
		sum = (sum ^ uint64(c)) * fnvPrime
	}
	return sum
}

func (p *argsProgress) empty() bool { return p.length == 0 }

// whole tells that the text is a whole value, and not the {} that some send first.
func (p *argsProgress) whole() bool {
	return p.brackets > 0 && p.depth <= 0 && !p.inText && p.length > len("{}")
}

// are tells that text is the whole text so far once more.
func (p *argsProgress) are(text []byte) bool {
	return p.length == len(text) && p.start() == fnv(fnvOffset, text)
}
