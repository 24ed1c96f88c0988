package agentkernel

import "slices"

// wireRun is one run of a wireStream.
type wireRun struct {
	id, parent string
	child      bool // of a run of the same stream
	used       int  // the stream's clock at the last event

	seq     uint64 // of the last event
	floor   uint64 // of the one before; a Decoder's that accepts merged updates
	counted uint64 // events, with those that updates stand for
	doubt   *doubt // of the last record, whose seq nothing has proved; a Decoder's
	lost    bool   // events are missing that the next ones build on; see Decoder
	joined  bool   // children may be open that the stream does not follow
	midway  bool   // its first record may have any seq; a Decoder's

	ended   []AgentMessage
	answer  AgentMessage // the last one of the model that ended; nil where it is not known
	results []ToolResult // of the calls that ended since the last answer or turn began
	err     error        // the last one that was told; a Decoder's

	open openMessage
}

// follow takes in what later records may refer to.
func (r *wireRun) follow(ev *Event) {
	switch ev.Type {
	case EventTurnStart:
		r.results = nil
	case EventMessageStart:
		r.open.start(ev)
	case EventMessageUpdate:
		r.open.grow(ev)
	case EventMessageEnd:
		r.end(ev)
	case EventMessageDiscard:
		r.open = openMessage{}
	case EventToolExecEnd:
		r.results = append(r.results, *ev.Result)
	}
}

func (r *wireRun) end(ev *Event) {
	r.open = openMessage{}
	r.ended = append(r.ended, ev.Message)
	if roleOf(ev.Message) == RoleAssistant {
		r.answer, r.results = ev.Message, nil
	}
}

// manyResults is from how many results on looking for one by one costs more than an index.
const manyResults = 16

// finder finds the results of calls of the last answer by their ids.
func (r *wireRun) finder() func(id string) (ToolResult, bool) {
	find := func(id string) int {
		return slices.IndexFunc(r.results, func(t ToolResult) bool { return t.ToolCallID == id })
	}
	if len(r.results) > manyResults {
		places := make(map[string]int, len(r.results)) // from 1
		for i, t := range slices.Backward(r.results) { // so that the first of an id counts
			places[t.ToolCallID] = i + 1
		}
		find = func(id string) int { return places[id] - 1 }
	}
	return func(id string) (ToolResult, bool) {
		if i := find(id); i >= 0 {
			return r.results[i], true
		}
		return ToolResult{}, false
	}
}

// openMessage is an assistant's message while it streams: what the deltas so far sum up to.
type openMessage struct {
	is   bool
	head Message // without content
	// last is the newest partial, as the writer saw it.
	last Message
	// sums are the lengths of the blocks.
	sums []int
	// built is the message as the reader builds it; nil at the writer's end.
	built *partial
}

func (o *openMessage) start(ev *Event) {
	*o = openMessage{}
	m, ok := ownMessage(ev.Message)
	if !ok || m.Role != RoleAssistant || !streams(&m) {
		return
	}
	o.is, o.head, o.last = true, m, m
	o.head.Content = nil
}

// grow adds an update that fits or that carries all of the message.
func (o *openMessage) grow(ev *Event) {
	m, ok := ownMessage(ev.Message)
	if !ok {
		*o = openMessage{}
		return
	}
	o.last = m
	if o.fits(ev, &m) {
		i := ev.ContentIndex
		if i == len(o.sums) {
			o.sums = append(o.sums, 0)
		}
		o.sums[i] += len(ev.Delta)
		return
	}
	o.adopt(m, lengths(m.Content))
}

// adopt makes the first sums bytes of the blocks of m what the deltas have brought. A message
// that is more than deltas can bring is none that is open.
func (o *openMessage) adopt(m Message, sums []int) {
	if !streams(&m) {
		*o = openMessage{}
		return
	}
	o.is, o.head, o.last, o.sums = true, m, m, sums
	o.head.Content = nil
}

// fits tells whether a reader that knows o can build the partial m of an update from its delta.
func (o *openMessage) fits(ev *Event, m *Message) bool {
	i := ev.ContentIndex
	if !o.is || !sameHead(&o.head, m) || !streams(m) || i < 0 || i > min(len(o.sums), maxBlocks) || i >= len(m.Content) {
		return false
	}
	for j, n := range o.sums {
		if j >= len(m.Content) || n > len(growingText(&m.Content[j])) ||
			!sameSlot(&m.Content[j], &o.last.Content[j], j == i) {
			return false
		}
	}
	had := 0
	if i < len(o.sums) {
		had = o.sums[i]
	}
	b := &m.Content[i]
	return deltaKindOf(b.Type) == ev.DeltaKind && len(growingText(b)) == had+len(ev.Delta) && plainBlock(b, ev)
}

// sameSlot tells whether a is b but for its text, and, where it grows, for what an update of it
// tells.
func sameSlot(a, b *ContentBlock, grows bool) bool {
	return a.Type == b.Type && (grows || a.ToolCall == nil || b.ToolCall == nil ||
		a.ToolCall.ID == b.ToolCall.ID && a.ToolCall.Name == b.ToolCall.Name)
}

// sameHead compares messages that stream beside their content.
func sameHead(a, b *Message) bool {
	return a.Role == b.Role && a.Model == b.Model && a.Timestamp.Equal(b.Timestamp) && b.Usage == nil &&
		b.StopReason == "" && b.RawStopReason == "" && len(b.Metadata) == 0 && b.ToolCallID == ""
}

// streams tells whether m holds nothing that deltas do not bring.
func streams(m *Message) bool {
	if m.Role != RoleAssistant || !sameHead(m, m) {
		return false
	}
	for i := range m.Content {
		var ev Event
		if call := m.Content[i].ToolCall; call != nil {
			ev.ToolID, ev.Tool = call.ID, call.Name
		}
		if !plainBlock(&m.Content[i], &ev) {
			return false
		}
	}
	return true
}

// plainBlock tells whether b holds nothing that an update does not carry.
func plainBlock(b *ContentBlock, ev *Event) bool {
	if b.Signature != "" || b.Extra != nil || b.Image != nil || b.ToolName != "" {
		return false
	}
	switch b.Type {
	case ContentText:
		return b.Thinking == "" && b.ToolCall == nil && ev.ToolID == "" && ev.Tool == ""
	case ContentThinking:
		return b.Text == "" && b.ToolCall == nil && ev.ToolID == "" && ev.Tool == ""
	case ContentToolCall:
		c := b.ToolCall
		return b.Text == "" && b.Thinking == "" && c != nil && c.ID == ev.ToolID && c.Name == ev.Tool &&
			c.Args == nil && c.ArgsError == ""
	}
	return false
}

func deltaKindOf(of ContentType) DeltaKind {
	b := growing{kind: of}
	return b.delta()
}

func contentOf(kind DeltaKind) (ContentType, bool) {
	switch kind {
	case DeltaText:
		return ContentText, true
	case DeltaThinking:
		return ContentThinking, true
	case DeltaToolCall:
		return ContentToolCall, true
	}
	return "", false
}

// growingText is the text of a block that deltas add to.
func growingText(b *ContentBlock) string {
	switch {
	case b.ToolCall != nil:
		return b.ToolCall.RawArgs
	case b.Type == ContentThinking:
		return b.Thinking
	}
	return b.Text
}

func lengths(blocks []ContentBlock) []int {
	out := make([]int, len(blocks))
	for i := range blocks {
		out[i] = len(growingText(&blocks[i]))
	}
	return out
}
