package agentkernel

import (
	"slices"
	"time"
)

// wireStream is what both ends of a delta-only stream know: the events so far as a state,
// and, of each run that has not ended, what later records may refer to.
type wireStream struct {
	state AgentState
	runs  map[string]*wireRun
	born  int // runs so far
	last  wireMark
}

// wireMark is the place of an event.
type wireMark struct {
	runID, parentID string
	seq             uint64
	time            time.Time
	turn            int
}

// wireRun is one run of a wireStream.
type wireRun struct {
	id, parent string
	born       int    // its place among the runs of the stream
	child      bool   // of a run of the same stream
	seq        uint64 // of the last event
	counted    uint64 // events, with those that updates stand for
	lost       bool   // events are missing that the next ones build on; see Decoder
	joined     bool   // the stream began in the middle of it, perhaps in that of children
	midway     bool   // its first record may have any seq; a Decoder's

	ended   []AgentMessage
	answer  AgentMessage // the last one of the model that ended; nil where it is not known
	results []ToolResult // of the calls that ended since the last answer or turn began
	err     error        // the last one that was told; a Decoder's

	open openMessage
}

// maxWireRuns bounds the runs that a stream follows at once.
const maxWireRuns = 1024

// run finds the run of an event. The first event of a run that no run of the stream has made
// ends what was there: an agent runs one after the other, so that it died. While the agent's
// run is open, a run with a parent is a child, also where the parent has not been seen.
func (s *wireStream) run(id, parent string) *wireRun {
	if r := s.runs[id]; r != nil {
		return r
	}
	own := s.runs[s.state.RunID]
	r := &wireRun{id: id, parent: parent}
	r.child = parent != "" && (s.runs[parent] != nil || own != nil && own.parent == "")
	r.midway = r.child && own != nil && own.joined
	if !r.child || len(s.runs) >= maxWireRuns {
		clear(s.runs)
	}
	if s.runs == nil {
		s.runs = make(map[string]*wireRun)
	}
	s.born++
	r.born = s.born
	s.runs[id] = r
	return r
}

// take adds an event that is complete.
func (s *wireStream) take(r *wireRun, ev *Event) {
	s.last = wireMark{ev.RunID, ev.ParentRunID, ev.Seq, ev.Time, ev.Turn}
	s.fold(r, ev)
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
	case EventAgentEnd:
		delete(s.runs, r.id)
	}
}

func (r *wireRun) end(ev *Event) {
	r.open = openMessage{}
	r.ended = append(r.ended, ev.Message)
	if ev.Message.GetRole() == RoleAssistant {
		r.answer, r.results = ev.Message, nil
	}
}

// fold is Reduce for a stream that may begin in the middle of a run, or lose the end of one.
func (s *wireStream) fold(r *wireRun, ev *Event) {
	switch starts := ev.Type == EventAgentStart; {
	case r.child || r.id == s.state.RunID:
	case starts:
		s.state = interruptedState(s.state)
	case r.parent == "": // otherwise perhaps the child of a run that has not been seen yet
		s.state = interruptedState(s.state)
		s.state.RunID, s.state.IsRunning, s.state.Suspended = r.id, true, nil
	}
	s.state = Reduce(s.state, *ev)
}

// interruptedState is the state of an agent whose run died in the middle: what was open never
// happened.
func interruptedState(s AgentState) AgentState {
	s.IsRunning, s.StreamMessage, s.PendingToolCalls = false, nil, nil
	return s
}

// result finds the result of a call of the last answer.
func (r *wireRun) result(id string) (ToolResult, bool) {
	i := slices.IndexFunc(r.results, func(t ToolResult) bool { return t.ToolCallID == id })
	if i < 0 {
		return ToolResult{}, false
	}
	return r.results[i], true
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
	if !o.is || !sameHead(&o.head, m) || i < 0 || i > len(o.sums) || i >= len(m.Content) {
		return false
	}
	for j, n := range o.sums {
		if j >= len(m.Content) || n > len(growingText(&m.Content[j])) {
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
