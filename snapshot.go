package agentkernel

import "unsafe"

// headers are the blocks of a partial as snapshots show them, kept from one snapshot to the
// next, so that each costs a copy of them and no more.
type headers struct {
	blocks []ContentBlock // without the calls, which each snapshot has its own of
	calls  []headerCall
}

// slabs are where snapshots take their memory.
type slabs struct {
	singles     slab[single]
	singleCalls slab[singleCall]
	messages    slab[Message]
	blocks      slab[ContentBlock]
	calls       slab[ToolCall]
}

// single is a message with its one block.
type single struct {
	message Message
	block   [1]ContentBlock
}

// parts are the message, with its block, and room for its calls.
func (s *single) parts() (*Message, []ToolCall) {
	s.message.Content = s.block[:]
	return &s.message, nil
}

// singleCall is a message with its one block, a call.
type singleCall struct {
	message Message
	block   [1]ContentBlock
	call    [1]ToolCall
}

func (s *singleCall) parts() (*Message, []ToolCall) {
	s.message.Content = s.block[:]
	return &s.message, s.call[:]
}

type headerCall struct {
	ToolCall
	block int
}

// refresh brings the header of block i up to date. It follows each change of a block that
// snapshots show.
func (p *partial) refresh(i int) {
	h := &p.headers
	for n := len(h.blocks); n <= i; n++ {
		h.blocks = append(h.blocks, ContentBlock{Type: p.blocks[n].kind})
		if call := p.blocks[n].call; call != nil {
			call.place = len(h.calls)
			h.calls = append(h.calls, headerCall{block: n})
		}
	}
	switch b := &p.blocks[i]; {
	case b.call != nil:
		call := &h.calls[b.call.place].ToolCall
		call.RawArgs = b.text.String()
		if name := b.call.shownName(); call.ID != b.call.id || call.Name != name {
			call.ID, call.Name = b.call.id, name
		}
	case b.kind == ContentThinking:
		h.blocks[i].Thinking = b.text.String()
	default:
		h.blocks[i].Text = b.text.String()
	}
}

// snapshot is the message so far. It stands alone: the memory of those that events carry holds
// on to the texts of those before.
func (p *partial) snapshot() *Message {
	n, calls := len(p.headers.blocks), len(p.headers.calls)
	switch {
	case n == 1 && calls == 1:
		return p.copyTo(new(singleCall).parts())
	case n == 1:
		return p.copyTo(new(single).parts())
	}
	return p.copyTo(&Message{Content: make([]ContentBlock, n)}, make([]ToolCall, calls))
}

// boxed is a snapshot as an event carries it.
func (p *partial) boxed() AgentMessage {
	n, calls, s := len(p.headers.blocks), len(p.headers.calls), &p.slabs
	switch {
	case n == 1 && calls == 1:
		return inPlace(p.copyTo(s.singleCalls.take(1)[0].parts()))
	case n == 1:
		return inPlace(p.copyTo(s.singles.take(1)[0].parts()))
	}
	m := &s.messages.take(1)[0]
	m.Content = s.blocks.take(n)
	return inPlace(p.copyTo(m, s.calls.take(calls)))
}

// copyTo makes m, which has room for the blocks, the message so far, with its calls in calls.
func (p *partial) copyTo(m *Message, calls []ToolCall) *Message {
	m.Role, m.Timestamp, m.Model = RoleAssistant, p.started, p.model
	p.headers.copyTo(m.Content, calls)
	return m
}

// inPlace returns the Message that m points to as an AgentMessage, which refers to it where it
// is: a conversion would allocate a copy for each. It must not be changed any more.
func inPlace(m *Message) AgentMessage {
	var boxed AgentMessage = Message{}
	(*struct{ kind, data unsafe.Pointer })(unsafe.Pointer(&boxed)).data = unsafe.Pointer(m)
	return boxed
}

// copyTo writes the blocks into memory that nobody else has. It copies the fields that are in
// use, since a copy of the whole would tell the garbage collector of all of them.
func (h *headers) copyTo(content []ContentBlock, calls []ToolCall) {
	for i := range content {
		from, to := &h.blocks[i], &content[i]
		switch to.Type = from.Type; from.Type {
		case ContentText:
			to.Text = from.Text
		case ContentThinking:
			to.Thinking = from.Thinking
		}
	}
	for i := range calls {
		from, to := &h.calls[i], &calls[i]
		to.ID, to.Name, to.RawArgs = from.ID, from.Name, from.RawArgs
		content[from.block].ToolCall = to
	}
}

// slab hands out items that are allocated many at once, the more the longer it is in use.
type slab[T any] struct {
	items []T
	used  int
}

const (
	firstSlab = 2
	// usualSlab is what a slab takes, in bytes, mostSlab what one for snapshots of many blocks does:
	// beyond that allocating gets dear, and one snapshot at a time has to do.
	usualSlab = 16 << 10
	mostSlab  = 2 * usualSlab
)

// take returns n new items.
func (s *slab[T]) take(n int) []T {
	if len(s.items)-s.used < n {
		size := int(unsafe.Sizeof(*new(T)))
		more := min(max(firstSlab, 3*len(s.items)), max(usualSlab/size, min(4*n, mostSlab/size)))
		s.items, s.used = make([]T, max(more/n*n, n)), 0
	}
	s.used += n
	return s.items[s.used-n : s.used : s.used]
}
