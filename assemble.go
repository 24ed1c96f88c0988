package agentkernel

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel/internal/textbuf"
)

// partial is an assistant message while it streams: it takes increments and hands out
// snapshots. For one goroutine.
//
// A snapshot costs its block headers; the texts in it are views of append-only buffers, so
// that a message of n increments costs O(n) in all.
type partial struct {
	audience audience

	model   string
	started time.Time
	usage   *Usage

	blocks []growing
	calls  []*callSlot          // in the order in which they opened
	byID   map[string]*callSlot // nil while there are few
	byKey  map[string]*callSlot
	// key is the last one that increments came with, keyed the call that it stands for.
	key   string
	keyed *callSlot

	headers headers
	slabs   slabs
	room    struct { // what a message of one block needs, in the same piece of memory
		block  [1]growing
		header [1]ContentBlock
	}
}

// audience is for whom a partial is made.
type audience interface {
	// taken tells whether a call id is used in the history or the run already.
	taken(id string) bool
	// update is told of each change that a snapshot shows, before the next one is made.
	update(g growth)
}

// growing is one block of a partial.
type growing struct {
	kind ContentType
	text textbuf.Buffer // text, thinking or argument text
	// tail is the beginning of a rune whose rest has not come yet.
	tail string
	call *callSlot
	// signature and extra show from MessageEnd on.
	signature string
	extra     json.RawMessage
}

// callSlot is what came of a tool call besides its argument text.
type callSlot struct {
	block      int
	id         string // as shown: the provider's, or minted where that one was taken
	providerID string
	// name is what came so far; it shows once it cannot grow any more, so that a name
	// that comes in pieces is never shown in part.
	name  string
	named bool
	place int        // in headers.calls
	came  increments // the argument text
}

// growth is one change of one block: the fields of a MessageUpdate.
type growth struct {
	kind  DeltaKind
	index int
	delta string
	call  *callSlot
}

func newPartial(a audience) *partial { return new(partial).begin(a) }

// begin makes p, which must be empty, the message that begins now.
func (p *partial) begin(a audience) *partial {
	p.audience, p.started = a, now()
	p.blocks, p.headers.blocks = p.room.block[:0], p.room.header[:0]
	return p
}

// apply adds one increment.
func (p *partial) apply(ev *StreamEvent) {
	if p.model == "" && ev.Model != "" {
		p.model = validText(ev.Model)
	}
	switch ev.Type {
	case StreamEventTextDelta:
		p.applyText(ContentText, ev)
	case StreamEventThinkingDelta:
		p.applyText(ContentThinking, ev)
	case StreamEventToolCallDelta:
		p.applyCall(ev)
	case StreamEventUsage, StreamEventDone:
		if !ev.Usage.isZero() {
			p.usage = ev.Usage.clone()
		}
	}
}

// tell brings the snapshots up to date with a change of a block, and shows it.
func (p *partial) tell(g growth) {
	p.refresh(g.index)
	p.audience.update(g)
}

// applyText adds to the last block if it is of that kind, otherwise to a new one.
func (p *partial) applyText(kind ContentType, ev *StreamEvent) {
	opaque := ev.Signature != "" || len(ev.Extra) > 0
	i := len(p.blocks) - 1
	if ev.Delta == "" && opaque {
		i = p.lastOf(kind)
	}
	opened := i < 0 || p.blocks[i].kind != kind
	if opened {
		if ev.Delta == "" && !opaque {
			return
		}
		i = p.openBlock(growing{kind: kind})
	}
	p.blocks[i].keepOpaque(ev)
	delta := p.blocks[i].grow(ev.Delta)
	if opened || delta != "" {
		p.tell(growth{kind: p.blocks[i].delta(), index: i, delta: delta})
	}
}

// openBlock adds a block and returns its index. Text before it cannot grow any more.
func (p *partial) openBlock(b growing) int {
	n := len(p.blocks)
	if n > 0 && p.blocks[n-1].call == nil {
		p.settleBlock(n - 1)
	}
	p.blocks = append(p.blocks, b)
	return n
}

func (p *partial) lastOf(kind ContentType) int {
	for i := len(p.blocks) - 1; i >= 0; i-- {
		if p.blocks[i].kind == kind {
			return i
		}
	}
	return -1
}

func (p *partial) applyCall(ev *StreamEvent) {
	slot, changed := p.slot(ev.Key, providerID(ev.ID))
	b := &p.blocks[slot.block]
	b.keepOpaque(ev)
	delta := b.grow(ev.Delta)
	slot.learnName(ev.Name)
	if delta != "" {
		slot.came = slot.came.with(len(delta))
		slot.settleName()
		changed = true
	}
	if changed {
		p.tell(growth{kind: DeltaToolCall, index: slot.block, delta: delta, call: slot})
	}
}

// slot finds the call that an increment adds to: by a known id, else by key, else the last one open.
// A new id opens a new slot, unless it is the late id of a slot that has none yet. It
// reports whether the slot or its id is new.
func (p *partial) slot(key, id string) (*callSlot, bool) {
	if s := p.withID(id); s != nil {
		p.pointKey(key, s)
		return s, false
	}
	s := p.withKey(key)
	switch {
	case s == nil:
		s = p.openSlot(key)
	case id == "":
		return s, false
	case s.providerID != "" || key == "" && s.name != "":
		s = p.openSlot(key)
	}
	p.learnID(s, id)
	return s, true
}

// withKey finds the call that increments with that key add to; without one, the last one open.
func (p *partial) withKey(key string) *callSlot {
	switch {
	case key == "" && len(p.calls) == 0:
		return nil
	case key == "":
		return p.calls[len(p.calls)-1]
	case key != p.key:
		p.key, p.keyed = key, p.byKey[key]
	}
	return p.keyed
}

func (p *partial) openSlot(key string) *callSlot {
	if n := len(p.calls); n > 0 {
		if last := p.calls[n-1]; last.settleName() {
			p.tell(growth{kind: DeltaToolCall, index: last.block, call: last})
		}
	}
	s := new(callSlot)
	s.block = p.openBlock(growing{kind: ContentToolCall, call: s})
	p.calls = append(p.calls, s)
	p.pointKey(key, s)
	return s
}

func (p *partial) pointKey(key string, s *callSlot) {
	if key == "" {
		return
	}
	if p.byKey == nil {
		p.byKey = make(map[string]*callSlot)
	}
	p.byKey[key] = s
	p.key, p.keyed = key, s
}

// learnID gives the slot the id that the provider sent, or one of our own where that one
// stands for another call already.
func (p *partial) learnID(s *callSlot, id string) {
	if id == "" {
		return
	}
	s.providerID, s.id = id, id
	if p.audience.taken(s.id) {
		s.id = p.mintID()
	}
	if len(p.calls) <= fewCalls {
		return
	}
	if p.byID == nil {
		p.byID = make(map[string]*callSlot)
		for _, other := range p.calls {
			p.byID[other.providerID] = other
		}
	}
	p.byID[id] = s
}

// fewCalls are found faster by looking at each than by a map.
const fewCalls = 8

// withID finds the call for which the provider sent that id.
func (p *partial) withID(id string) *callSlot {
	if p.byID != nil || id == "" {
		return p.byID[id]
	}
	for _, s := range p.calls {
		if s.providerID == id {
			return s
		}
	}
	return nil
}

func (p *partial) mintID() string { return "call_" + rand.Text() }

// learnName takes a name that came whole, again, or in pieces.
func (s *callSlot) learnName(name string) {
	if s.named || name == "" {
		return
	}
	switch name = validText(name); {
	case name == s.name:
	case strings.HasPrefix(name, s.name):
		s.name = name
	default:
		s.name += name
	}
}

// settleName shows the name from now on. It reports whether that is news.
func (s *callSlot) settleName() bool {
	news := !s.named && s.name != ""
	s.named = s.named || news
	return news
}

// shownName is the name as far as it is known to be whole.
func (s *callSlot) shownName() string {
	if s.named {
		return s.name
	}
	return ""
}

// providerID is the id as sent, or "" for the words that stand for none.
func providerID(id string) string {
	if id == "" { // as in all increments but the first
		return ""
	}
	switch strings.ToLower(strings.TrimSpace(id)) {
	case "", "null", "undefined", "none", "nil":
		return ""
	}
	return validText(id)
}

func (b *growing) keepOpaque(ev *StreamEvent) {
	if ev.Signature != "" {
		b.signature = validText(ev.Signature)
	}
	if len(ev.Extra) > 0 {
		b.extra = compactJSON(ev.Extra)
	}
}

// grow adds s and returns what a snapshot shows of it: whole runes only.
func (b *growing) grow(s string) string {
	if b.tail != "" || !utf8.ValidString(s) {
		s, b.tail = wholeRunes(b.tail + s)
	}
	if s != "" {
		b.text.Append(s)
	}
	return s
}

// wholeRunes splits off the beginning of a rune at the end of s and makes the rest valid.
func wholeRunes(s string) (text, tail string) {
	for i := len(s) - 1; i >= 0 && i >= len(s)-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				s, tail = s[:i], s[i:]
			}
			break
		}
	}
	return validText(s), tail
}

// settle shows what waited for more that never came: names, and halves of runes.
func (p *partial) settle() {
	for i := range p.blocks {
		p.settleBlock(i)
	}
}

func (p *partial) settleBlock(i int) {
	b := &p.blocks[i]
	g := growth{kind: b.delta(), index: i, delta: validText(b.tail), call: b.call}
	b.text.Append(g.delta)
	b.tail = ""
	if g.call != nil && g.delta != "" {
		g.call.came = g.call.came.with(len(g.delta))
	}
	if g.call != nil && g.call.settleName() || g.delta != "" {
		p.tell(g)
	}
}

func (b *growing) delta() DeltaKind {
	switch b.kind {
	case ContentThinking:
		return DeltaThinking
	case ContentToolCall:
		return DeltaToolCall
	}
	return DeltaText
}

// discarded is the message of an attempt that failed: what was shown, and what it cost.
func (p *partial) discarded() *Message {
	m := p.snapshot()
	m.Usage = p.usage.clone()
	m.StopReason = StopReasonError
	return m
}

// aborted is the message of an attempt that was stopped: text and thinking, no calls, since
// none of them is known to be whole.
func (p *partial) aborted() *Message {
	m := p.whole()
	kept := m.Content[:0:0]
	for _, b := range m.Content {
		if b.Type != ContentToolCall {
			kept = append(kept, b)
		}
	}
	m.Content = kept
	m.StopReason = StopReasonAborted
	return m
}

// finished is the message that the model said is done: ids filled in, arguments normalised.
func (p *partial) finished(stop StopReason, raw string) *Message {
	m := p.whole()
	m.RawStopReason = validText(raw)
	m.StopReason = stopReason(stop, len(p.calls) > 0)
	for i, s := range p.calls {
		call := m.Content[s.block].ToolCall
		if call.ID == "" {
			call.ID = p.mintID()
		}
		last := i == len(p.calls)-1
		finishArgs(call, s.came, m.StopReason == StopReasonLength && last)
	}
	return m
}

// whole is a snapshot with all that shows only at the end.
func (p *partial) whole() *Message {
	m := p.snapshot()
	m.Usage = p.usage.clone()
	for i := range p.blocks {
		m.Content[i].Signature = p.blocks[i].signature
		m.Content[i].Extra = p.blocks[i].extra
	}
	return m
}

// stopReason makes the model's reason agree with what it wrote. A message that is done was
// neither aborted nor did it fail, and a reason that is not ours says no more than that.
func stopReason(stop StopReason, calls bool) StopReason {
	switch {
	case stop == StopReasonLength || stop == StopReasonRefusal:
		return stop
	case calls:
		return StopReasonToolUse
	}
	return StopReasonStop
}
