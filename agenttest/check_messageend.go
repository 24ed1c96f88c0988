package agenttest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/internal/nesting"
)

func (r *run) messageEnd(ev *event) error {
	if ev.Message == nil {
		return breach(ev, "fields", "Message is nil")
	}
	if err := checkStored(ev); err != nil {
		return err
	}
	if r.whole != nil {
		return r.wholeEnd(ev)
	}
	if r.phase != phaseStream {
		return breach(ev, "1", "message_end without message_start, %s", r.phase)
	}
	return r.answerEnd(ev)
}

func (r *run) wholeEnd(ev *event) error {
	start := r.whole
	r.whole = nil
	switch {
	case ev.Attempt != 0 || ev.Duration != 0:
		return breach(ev, "fields", "Attempt or Duration is set on a message that is not the model's")
	case !reflect.DeepEqual(start, ev.Message):
		return breach(ev, "1", "message_end carries another message than its message_start")
	}
	if r.phase == phaseResults {
		if err := r.resultEnd(ev); err != nil {
			return err
		}
	}
	r.append(ev.Message)
	return nil
}

// append puts a message into the history.
func (r *run) append(m agentkernel.AgentMessage) {
	r.ended = append(r.ended, m)
	r.history = append(r.history, m)
	r.learnIDs(m)
	if msg, ok := asMessage(m); ok && msg.Usage != nil {
		r.counts.usage = r.counts.usage.Add(*msg.Usage)
	}
}

// answerEnd closes the assistant's message: it may differ from the last partial only in
// what rule 3 names.
func (r *run) answerEnd(ev *event) error {
	msg, err := r.ownMessage(ev)
	switch {
	case err != nil:
		return err
	case ev.Duration < 0:
		return breach(ev, "10", "got Duration %v", ev.Duration)
	case !slices.Contains(stopReasons, msg.StopReason):
		return breach(ev, "3", "got stop reason %q, want one of the documented", msg.StopReason)
	}
	if err := r.checkFinished(ev, &msg); err != nil {
		return err
	}
	if err := r.checkCallIDs(ev, &msg); err != nil {
		return err
	}
	r.aborted = r.aborted || msg.StopReason == agentkernel.StopReasonAborted
	r.answer, r.response, r.last = nil, &msg, &msg
	r.tools = newToolTurn(&msg)
	r.phase = phaseTools
	r.append(msg)
	return nil
}

var stopReasons = []agentkernel.StopReason{
	agentkernel.StopReasonStop, agentkernel.StopReasonLength, agentkernel.StopReasonToolUse,
	agentkernel.StopReasonRefusal, agentkernel.StopReasonError, agentkernel.StopReasonAborted,
}

// checkFinished compares a finished message with its last partial and the sums of the deltas.
func (r *run) checkFinished(ev *event, msg *message) error {
	before := r.answer.last
	if !sameEnvelope(&before, msg) {
		return breach(ev, "3", "the message's model, timestamp or metadata differs from the last partial's")
	}
	if err := r.checkSums(ev); err != nil {
		return err
	}
	j := 0
	var dropped error // why the last call that is missing was not found
	for i := range before.Content {
		var err error = breach(ev, "3", "block %d is missing", i)
		if j < len(msg.Content) {
			err = checkFinishedBlock(ev, &before.Content[i], msg, j)
		}
		switch {
		case err == nil:
			j++
		case msg.StopReason == agentkernel.StopReasonAborted && before.Content[i].ToolCall != nil:
			dropped = err // an abort removes calls that were not finished
		default:
			return err
		}
	}
	if j < len(msg.Content) && dropped != nil {
		return dropped
	}
	if j < len(msg.Content) {
		return breach(ev, "3", "block %d of message_end was never streamed", j)
	}
	return nil
}

// checkSums compares the last partial with the sums of all deltas, which were collected
// apart, so that a partial that was rewritten after it was handed out shows.
func (r *run) checkSums(ev *event) error {
	for i := range r.answer.last.Content {
		got, want := blockText(&r.answer.last.Content[i]), string(r.answer.sums[i])
		if got != want {
			return breach(ev, "3", "block %d of the last partial is %s, its deltas sum up to %s", i, short(got), short(want))
		}
	}
	return nil
}

// checkFinishedBlock checks block j of a finished message against what it was last.
func checkFinishedBlock(ev *event, was *agentkernel.ContentBlock, msg *message, j int) error {
	b := &msg.Content[j]
	if err := checkBlock(ev, j, b); err != nil {
		return err
	}
	if was.Type != b.Type || was.ToolCall == nil && blockText(was) != blockText(b) {
		return breach(ev, "3", "block %d is %s, the last partial has %s", j, short(blockText(b)), short(blockText(was)))
	}
	if was.ToolCall == nil {
		return nil
	}
	id, name := was.ToolCall.ID, was.ToolCall.Name
	if id != "" && id != b.ToolCall.ID || name != "" && name != b.ToolCall.Name {
		return breach(ev, "calls", "call %q of %q became %q of %q", id, name, b.ToolCall.ID, b.ToolCall.Name)
	}
	last := len(openedCalls(msg.Content[j+1:])) == 0
	if problem := argsProblem(was.ToolCall.RawArgs, b.ToolCall, msg.StopReason, last); problem != "" {
		return breach(ev, "calls", "call %q: %s", b.ToolCall.ID, problem)
	}
	return nil
}

// argsProblem says what is wrong with the arguments that were made of the streamed text
// raw, or returns "". last tells that the call is the message's last.
func argsProblem(raw string, call *agentkernel.ToolCall, stop agentkernel.StopReason, last bool) string {
	cut := last && stop == agentkernel.StopReasonLength
	want, blank := objectOf(raw, cut)
	switch {
	case !isObject(call.Args):
		return "Args is " + short(string(call.Args)) + ", want one compacted JSON object"
	case call.ArgsError == "" && call.RawArgs != "":
		return "RawArgs is kept without ArgsError"
	case call.ArgsError == "" && cut && (blank || want == ""):
		return "it was cut off by the output limit, but ArgsError is empty"
	case call.ArgsError == "" && last && stop == agentkernel.StopReasonAborted && want == "":
		return "the abort left it unfinished, but it was not removed"
	case call.ArgsError == "" && want != "" && string(call.Args) != want:
		return "got Args " + short(string(call.Args)) + ", want " + short(want)
	case call.ArgsError == "":
		return ""
	case last && stop == agentkernel.StopReasonAborted:
		return "the abort left it unfinished, but it was not removed"
	case string(call.Args) != "{}" || call.RawArgs != raw:
		return "with ArgsError, got Args " + short(string(call.Args)) + " and RawArgs " + short(call.RawArgs) + ", want {} and the streamed text"
	case want != "" && !(cut && blank):
		return "ArgsError is set, but the streamed text makes " + short(want)
	}
	return ""
}

// objectOf is the compacted object that an argument text stands for by itself: blank text,
// an object, an object after a placeholder, an object sent twice. "" where it is none of
// these, or one of the rarer forms that a kernel may resolve or not.
// Of a text that may be cut off, only an object is sure to be whole.
func objectOf(raw string, cut bool) (object string, blank bool) {
	text := strings.TrimSpace(raw)
	if text == "" || text == "null" {
		return "{}", true
	}
	candidates := []string{text, strings.TrimPrefix(text, "{}"), text[:len(text)/2]}
	if cut {
		candidates = candidates[:1]
	}
	for _, candidate := range candidates {
		if candidate == text[:len(text)/2] && candidate+candidate != text {
			continue
		}
		if compacted := compact(candidate); strings.HasPrefix(compacted, "{") && !nesting.TooDeep(compacted) {
			return compacted, false
		}
	}
	return "", false
}

// compact returns a JSON text as encoding/json writes it, "" where it is none.
func compact(text string) string {
	out, err := json.Marshal(json.RawMessage(text))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// isObject tells whether raw is one JSON object as encoding/json writes it.
func isObject(raw json.RawMessage) bool {
	return len(raw) > 0 && raw[0] == '{' && compact(string(raw)) == string(raw)
}

func (r *run) checkCallIDs(ev *event, msg *message) error {
	seen := make(map[string]bool)
	for _, call := range msg.ToolCalls() {
		if call.ID == "" {
			return breach(ev, "calls", "a call of %q has no id", call.Name)
		}
		if seen[call.ID] || r.ids[call.ID] {
			return breach(ev, "calls", "call id %q is taken", call.ID)
		}
		seen[call.ID] = true
	}
	return nil
}

func (r *run) messageDiscard(ev *event) error {
	if err := r.expect(ev, phaseStream); err != nil {
		return err
	}
	msg, err := r.ownMessage(ev)
	switch {
	case err != nil:
		return err
	case ev.Err == nil:
		return breach(ev, "fields", "Err is nil")
	case msg.StopReason != "" && !slices.Contains(stopReasons, msg.StopReason):
		return breach(ev, "3", "got stop reason %q, want one of the documented", msg.StopReason)
	case !reflect.DeepEqual(msg.Content, r.answer.last.Content) && len(msg.Content)+len(r.answer.last.Content) > 0:
		// A message that was finished when Commit refused it.
		if err := r.checkFinished(ev, &msg); err != nil {
			return err
		}
	case !sameEnvelope(&r.answer.last, &msg):
		return breach(ev, "3", "the message's model, timestamp or metadata differs from the last partial's")
	}
	if err := r.checkSums(ev); err != nil {
		return err
	}
	if msg.Usage != nil {
		r.counts.discarded = r.counts.discarded.Add(*msg.Usage)
	}
	r.phase, r.answer, r.discard = phaseFailed, nil, ev
	return nil
}

// checkStored checks that a message of the kernel's type is a fixed point of encoding/json.
// Its Metadata is the harness's and left out.
func checkStored(ev *event) error {
	msg, ok := asMessage(ev.Message)
	if !ok {
		return nil
	}
	if !msg.Timestamp.IsZero() {
		if err := checkTime(ev, msg.Timestamp, "Message.Timestamp"); err != nil {
			return err
		}
	}
	msg.Metadata = nil
	first, err := json.Marshal(msg)
	if err != nil {
		return breach(ev, "messages", "the message cannot be written as JSON: %v", err)
	}
	var back message
	if err := json.Unmarshal(first, &back); err != nil {
		return breach(ev, "messages", "the message cannot be read back: %v", err)
	}
	second, err := json.Marshal(back)
	if err != nil || !bytes.Equal(first, second) || !sameText(&msg, &back) {
		return breach(ev, "messages", "the message is no fixed point of encoding/json: %s became %s", short(string(first)), short(string(second)))
	}
	return nil
}

// sameText tells whether reading a message back gave the same content, which bytes alone do
// not show: invalid UTF-8 is written as if it were valid.
func sameText(a, b *message) bool {
	same := func(x, y agentkernel.ContentBlock) bool {
		return blockText(&x) == blockText(&y) && string(x.Extra) == string(y.Extra) && x.Signature == y.Signature
	}
	return slices.EqualFunc(a.Content, b.Content, same)
}

// checkTime checks that a time is in UTC and has no monotonic part.
func checkTime(ev *event, t time.Time, name string) error {
	if t.Location() != time.UTC || t != t.Round(0) {
		return breach(ev, "messages", "%s %v is not in UTC without monotonic part", name, t)
	}
	return nil
}
