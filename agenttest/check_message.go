package agenttest

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel"
)

// answer is an assistant message while it streams.
type answer struct {
	start   message
	last    message  // the newest partial; without content before the first update
	sums    [][]byte // of the deltas, by block: a copy that shares nothing with the stream
	updates int
}

// messageStart opens the assistant's message of an attempt, or a message that comes whole.
func (r *run) messageStart(ev *event) error {
	if ev.Message == nil {
		return breach(ev, "fields", "Message is nil")
	}
	if r.phase != phaseAsked || ev.Message.GetRole() != agentkernel.RoleAssistant {
		return r.wholeStart(ev)
	}
	msg, err := r.ownMessage(ev)
	if err != nil {
		return err
	}
	if len(msg.Content) > 1 && !r.checker.AllowCoalesced {
		return breach(ev, "3", "the message starts with %d blocks, want its first content", len(msg.Content))
	}
	if err := checkPartial(ev, &msg); err != nil {
		return err
	}
	r.phase = phaseStream
	r.answer = &answer{start: msg, last: msg}
	r.answer.last.Content = nil
	return nil
}

// wholeStart opens a user, steering or tool-result message, or the mark that ends a run.
func (r *run) wholeStart(ev *event) error {
	switch {
	case ev.Attempt != 0:
		return breach(ev, "fields", "got Attempt %d on a message that is not the model's", ev.Attempt)
	case isAssistant(ev.Message):
		return breach(ev, "grammar", "an assistant's message starts %s", r.phase)
	}
	r.whole = ev.Message
	switch r.phase {
	case phaseTurn:
		return r.checkAdmitted(ev)
	case phaseTools, phaseResults:
		return r.resultStart(ev)
	case phaseHead, phaseContext, phaseAsked, phaseFailed, phaseRetry, phaseResponse:
		if ev.Message.GetRole() == agentkernel.RoleTool {
			return breach(ev, "6", "a tool's result comes %s", r.phase)
		}
		r.phase, r.marked = phaseTail, true
		return nil
	}
	return breach(ev, "grammar", "got message_start of role %q %s", ev.Message.GetRole(), r.phase)
}

// checkAdmitted checks what is said at the head of a turn: nothing but results may come
// before the calls that the history left open have theirs.
func (r *run) checkAdmitted(ev *event) error {
	open := openCalls(r.history)
	if ev.Message.GetRole() != agentkernel.RoleTool {
		if len(open) > 0 {
			return breach(ev, "6", "a message of role %q comes before call %q has its result", ev.Message.GetRole(), open[0].ID)
		}
		return nil
	}
	if msg, ok := asMessage(ev.Message); ok && r.known && !hasCall(open, msg.ToolCallID) {
		return breach(ev, "6", "result of call %q, which is not open", msg.ToolCallID)
	}
	return nil
}

func (r *run) messageUpdate(ev *event) error {
	if err := r.expect(ev, phaseStream); err != nil {
		return err
	}
	msg, err := r.ownMessage(ev)
	if err != nil {
		return err
	}
	if err := checkPartial(ev, &msg); err != nil {
		return err
	}
	if err := r.checkGrowth(ev, &msg); err != nil {
		return err
	}
	a := r.answer
	if a.updates == 0 && !r.startsWith(&msg) {
		return breach(ev, "3", "the first update's partial differs from that of message_start")
	}
	a.updates++
	a.last = msg
	return nil
}

// startsWith tells whether the first update shows what MessageStart showed.
func (r *run) startsWith(msg *message) bool {
	start := &r.answer.start
	if r.checker.AllowCoalesced {
		return len(start.Content) <= len(msg.Content)
	}
	return reflect.DeepEqual(start, msg)
}

// checkPartial checks what holds for each partial alone.
func checkPartial(ev *event, msg *message) error {
	if msg.StopReason != "" || msg.RawStopReason != "" {
		return breach(ev, "3", "a message that is still open has stop reason %q", msg.StopReason)
	}
	for i := range msg.Content {
		b := &msg.Content[i]
		if err := checkBlock(ev, i, b); err != nil {
			return err
		}
		if b.ToolCall != nil && (b.ToolCall.Args != nil || b.ToolCall.ArgsError != "") {
			return breach(ev, "calls", "block %d has Args or ArgsError while the message streams", i)
		}
	}
	return nil
}

// ownMessage is the message of an event that belongs to the attempt's answer.
func (r *run) ownMessage(ev *event) (message, error) {
	msg, ok := ev.Message.(message)
	switch {
	case !ok || msg.Role != agentkernel.RoleAssistant:
		return msg, breach(ev, "3", "Message is a %T of role %q, want an assistant's Message", ev.Message, msg.Role)
	case ev.Attempt != r.attempt:
		return msg, breach(ev, "fields", "got Attempt %d, want %d", ev.Attempt, r.attempt)
	case msg.ToolCallID != "" || msg.ToolName != "" || msg.IsError || msg.Cause != "":
		return msg, breach(ev, "3", "an assistant's message has the fields of a tool message")
	}
	return msg, nil
}

// checkBlock checks that an assistant's block holds what its type names and nothing else.
func checkBlock(ev *event, i int, b *agentkernel.ContentBlock) error {
	ok := b.Image == nil && b.ToolName == ""
	switch b.Type {
	case agentkernel.ContentText:
		ok = ok && b.Thinking == "" && b.ToolCall == nil
	case agentkernel.ContentThinking:
		ok = ok && b.Text == "" && b.ToolCall == nil
	case agentkernel.ContentToolCall:
		ok = ok && b.Text == "" && b.Thinking == "" && b.ToolCall != nil
	default:
		ok = false
	}
	if !ok {
		return breach(ev, "3", "block %d of type %q does not hold what its type names", i, b.Type)
	}
	return nil
}

// checkGrowth checks one update against the partial before it.
func (r *run) checkGrowth(ev *event, msg *message) error {
	a, i := r.answer, ev.ContentIndex
	before, now := a.last.Content, msg.Content
	opened := len(now) - len(before)
	switch {
	case i < 0 || i >= len(now):
		return breach(ev, "3", "got ContentIndex %d of %d blocks", i, len(now))
	case deltaKinds[now[i].Type] != ev.DeltaKind:
		return breach(ev, "3", "got DeltaKind %q for a block of type %q", ev.DeltaKind, now[i].Type)
	case !utf8.ValidString(ev.Delta):
		return breach(ev, "3", "Delta %q is not valid UTF-8", ev.Delta)
	case opened < 0:
		return breach(ev, "3", "the partial has %d blocks after %d", len(now), len(before))
	case !r.checker.AllowCoalesced && (opened > 1 || opened == 1 && i != len(before)):
		return breach(ev, "3", "the partial has %d blocks after %d, and block %d grew", len(now), len(before), i)
	case !sameEnvelope(&a.last, msg):
		return breach(ev, "3", "the partial's model, timestamp or metadata changed")
	}
	for len(a.sums) < len(now) {
		a.sums = append(a.sums, nil)
	}
	a.sums[i] = append(a.sums[i], ev.Delta...)
	if err := checkCallNames(ev, &now[i]); err != nil {
		return err
	}
	return r.checkBlocks(ev, before, now)
}

var deltaKinds = map[agentkernel.ContentType]agentkernel.DeltaKind{
	agentkernel.ContentText:     agentkernel.DeltaText,
	agentkernel.ContentThinking: agentkernel.DeltaThinking,
	agentkernel.ContentToolCall: agentkernel.DeltaToolCall,
}

// sameEnvelope tells whether two states of a message agree beside their content, where the
// model's name may have become known.
func sameEnvelope(before, now *message) bool {
	return (before.Model == "" || before.Model == now.Model) &&
		before.Timestamp.Equal(now.Timestamp) && reflect.DeepEqual(before.Metadata, now.Metadata)
}

// checkCallNames checks that an update of a call, and no other, names the call.
func checkCallNames(ev *event, b *agentkernel.ContentBlock) error {
	var call agentkernel.ToolCall
	if b.ToolCall != nil {
		call = *b.ToolCall
	}
	if ev.ToolID != call.ID || ev.Tool != call.Name {
		return breach(ev, "3", "got ToolID %q and Tool %q, want %q and %q as in the block", ev.ToolID, ev.Tool, call.ID, call.Name)
	}
	return nil
}

// checkBlocks checks that each block continues what it was, and that only the named one grew.
func (r *run) checkBlocks(ev *event, before, now []agentkernel.ContentBlock) error {
	for i := range now {
		var was agentkernel.ContentBlock
		if i < len(before) {
			was = before[i]
		} else {
			was.Type = now[i].Type
		}
		if err := r.checkContinues(ev, i, &was, &now[i]); err != nil {
			return err
		}
	}
	i := ev.ContentIndex
	if ev.Delta == "" && i < len(before) && !newlyNamed(&before[i], &now[i]) {
		return breach(ev, "3", "the update adds nothing to block %d", i)
	}
	if i < len(before) && ev.Delta != "" && now[i].ToolCall == nil && len(openedCalls(now[i+1:])) > 0 {
		return breach(ev, "3", "block %d of type %q grew after a call opened, want a new block", i, now[i].Type)
	}
	return nil
}

func (r *run) checkContinues(ev *event, i int, was, now *agentkernel.ContentBlock) error {
	old, text := blockText(was), blockText(now)
	grows := i == ev.ContentIndex
	switch {
	case was.Type != now.Type:
		return breach(ev, "3", "block %d was %q and is %q", i, was.Type, now.Type)
	case !strings.HasPrefix(text, old):
		return breach(ev, "3", "block %d does not begin with what it was: got %s, was %s", i, short(text), short(old))
	case grows && !strings.HasSuffix(text, ev.Delta):
		return breach(ev, "3", "block %d does not end with the delta: got %s, delta %s", i, short(text), short(ev.Delta))
	case r.checker.AllowCoalesced:
	case !grows && len(text) != len(old):
		return breach(ev, "3", "block %d grew in an update of block %d", i, ev.ContentIndex)
	case grows && len(text) != len(old)+len(ev.Delta):
		return breach(ev, "3", "block %d grew by %s, the delta is %s", i, short(text[len(old):]), short(ev.Delta))
	case !grows && newlyNamed(was, now):
		return breach(ev, "3", "block %d changed in an update of block %d", i, ev.ContentIndex)
	}
	if now.ToolCall == nil {
		return nil
	}
	var call agentkernel.ToolCall
	if was.ToolCall != nil {
		call = *was.ToolCall
	}
	if call.ID != "" && call.ID != now.ToolCall.ID || call.Name != "" && call.Name != now.ToolCall.Name {
		return breach(ev, "calls", "call %q of %q became %q of %q", call.ID, call.Name, now.ToolCall.ID, now.ToolCall.Name)
	}
	if id := now.ToolCall.ID; id != "" && id != call.ID && r.idTaken(id, i) {
		return breach(ev, "calls", "call id %q is taken", id)
	}
	return nil
}

// idTaken tells whether an id that has just become known belongs to another call.
func (r *run) idTaken(id string, block int) bool {
	for i, b := range r.answer.last.Content {
		if i != block && b.ToolCall != nil && b.ToolCall.ID == id {
			return true
		}
	}
	return r.ids[id]
}

// newlyNamed tells whether a block learned an id, a name or opaque data.
func newlyNamed(was, now *agentkernel.ContentBlock) bool {
	if was.Signature != now.Signature || string(was.Extra) != string(now.Extra) {
		return true
	}
	return was.ToolCall != nil && now.ToolCall != nil &&
		(was.ToolCall.ID != now.ToolCall.ID || was.ToolCall.Name != now.ToolCall.Name)
}

func openedCalls(blocks []agentkernel.ContentBlock) []agentkernel.ToolCall {
	return message{Content: blocks}.ToolCalls()
}

// blockText is what the deltas of a block concatenate to.
func blockText(b *agentkernel.ContentBlock) string {
	switch {
	case b.ToolCall != nil:
		return b.ToolCall.RawArgs
	case b.Type == agentkernel.ContentThinking:
		return b.Thinking
	}
	return b.Text
}

// isAssistant tells whether m is the kernel's message of a model; the harness's own may say
// of themselves what they like.
func isAssistant(m agentkernel.AgentMessage) bool {
	own, ok := m.(agentkernel.Message)
	return ok && own.Role == agentkernel.RoleAssistant
}
