package agenttest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel"
)

// Reply is one answer of a scripted model: steps that are played in the order in which
// they were written down, then a Done. The zero Reply is a Done alone.
//
// A Reply is a value. Its methods return a changed copy, so that a prefix can be shared,
// and a Reply may be used in several scripts at once.
//
// The Done names the stop reason of Stop, or tool_use where the reply calls a tool, or
// stop. No Done follows a step that ends the stream (Fail, Panic, Goexit, EndsWithoutDone)
// or a raw Done among Events.
type Reply struct {
	steps     []step
	calls     int
	delay     time.Duration
	stop      agentkernel.StopReason
	model     string
	deaf      bool
	nilStream bool
}

type stepKind int

const (
	stepEmit stepKind = iota
	stepStall
	stepFail
	stepPanic
	stepGoexit
	stepEnd
)

type step struct {
	kind  stepKind
	event agentkernel.StreamEvent
	// mint makes the model give the event the next call id of its own.
	mint  bool
	err   error
	value any
}

// Text is a reply of one text delta.
func Text(text string) Reply { return Reply{}.Text(text) }

// Thinking is a reply that begins with one thinking delta.
func Thinking(text string) Reply { return Reply{}.Thinking(text) }

// Calls is a reply that calls the named tools, each with the arguments {} and an id that
// the model mints: call_1, call_2, … in the order in which they are played.
func Calls(names ...string) Reply { return Reply{}.Calls(names...) }

// Call is a reply that calls one tool. See [Reply.Call].
func Call(id, name, args string) Reply { return Reply{}.Call(id, name, args) }

// Events is a reply of raw stream events. See [Reply.Events].
func Events(events ...agentkernel.StreamEvent) Reply { return Reply{}.Events(events...) }

// Fail is a reply that fails before any increment.
func Fail(err error) Reply { return Reply{}.Fail(err) }

// Stall is a reply that says nothing. See [Reply.Stall].
func Stall() Reply { return Reply{}.Stall() }

// Panic is a reply whose stream panics at once.
func Panic(value any) Reply { return Reply{}.Panic(value) }

// Goexit is a reply whose stream leaves its goroutine at once.
func Goexit() Reply { return Reply{}.Goexit() }

// NilStream is a reply that is no stream: Stream returns nil.
func NilStream() Reply { return Reply{nilStream: true} }

func (r Reply) with(s step) Reply {
	r.steps = append(slices.Clip(r.steps), s)
	return r
}

func (r Reply) emit(ev agentkernel.StreamEvent) Reply { return r.with(step{event: ev}) }

// Text adds one text delta.
func (r Reply) Text(text string) Reply {
	return r.emit(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: text})
}

// Thinking adds one thinking delta.
func (r Reply) Thinking(text string) Reply {
	return r.emit(agentkernel.StreamEvent{Type: agentkernel.StreamEventThinkingDelta, Delta: text})
}

// Calls adds a call of each named tool, with the arguments {} and a minted id.
func (r Reply) Calls(names ...string) Reply {
	for _, name := range names {
		r = r.Call("", name, "{}")
		r.steps[len(r.steps)-1].mint = true
	}
	return r
}

// Call adds one call, as one delta. An empty id stays empty: the provider sends none.
func (r Reply) Call(id, name, args string) Reply {
	key := strconv.Itoa(r.calls)
	r.calls++
	return r.emit(agentkernel.StreamEvent{
		Type: agentkernel.StreamEventToolCallDelta, Key: key, ID: id, Name: name, Delta: args,
	})
}

// Events adds raw stream events, as they are.
func (r Reply) Events(events ...agentkernel.StreamEvent) Reply {
	for _, ev := range events {
		r = r.emit(ev)
	}
	return r
}

// Usage adds a usage event.
func (r Reply) Usage(u agentkernel.Usage) Reply {
	u = u.Add(agentkernel.Usage{})
	return r.emit(agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Usage: &u})
}

// Model names the model that answers: it stands on the first event of the stream.
func (r Reply) Model(name string) Reply {
	r.model = name
	return r
}

// Stop sets the stop reason of the Done.
func (r Reply) Stop(reason agentkernel.StopReason) Reply {
	r.stop = reason
	return r
}

// Chunks cuts every delta so far into pieces of n bytes. A piece never splits a rune, so
// it may be longer; Events can split one.
func (r Reply) Chunks(n int) Reply {
	return r.cut(func() int { return max(n, 1) })
}

// Split cuts every delta so far into pieces of random length, 1 to 9 bytes, but never
// within a rune. It draws from rng at once, not when the reply is played.
func (r Reply) Split(rng *rand.Rand) Reply {
	return r.cut(func() int { return 1 + rng.IntN(9) })
}

func (r Reply) cut(size func() int) Reply {
	var out []step
	for _, s := range r.steps {
		rest := s.event.Delta
		for first := true; first || rest != ""; first = false {
			n := pieceLen(rest, size())
			s.event.Delta, rest = rest[:n], rest[n:]
			out = append(out, s)
			s.mint, s.event.ID, s.event.Name = false, "", ""
			s.event.Signature, s.event.Extra = "", nil
		}
	}
	r.steps = out
	return r
}

// pieceLen is at least n, unless text is shorter, and ends between two runes.
func pieceLen(text string, n int) int {
	n = min(n, len(text))
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	return n
}

// Delay makes the model wait d before each increment and before the Done. The wait ends
// with the context.
func (r Reply) Delay(d time.Duration) Reply {
	r.delay = d
	return r
}

// Stall adds a silence that lasts until the context ends, which ends the stream with the
// context's error, or until [Model.Release], after which the reply goes on.
func (r Reply) Stall() Reply { return r.with(step{kind: stepStall}) }

// Fail ends the stream with err.
func (r Reply) Fail(err error) Reply { return r.with(step{kind: stepFail, err: err}) }

// Panic ends the stream with a panic.
func (r Reply) Panic(value any) Reply { return r.with(step{kind: stepPanic, value: value}) }

// Goexit ends the stream with runtime.Goexit.
func (r Reply) Goexit() Reply { return r.with(step{kind: stepGoexit}) }

// EndsWithoutDone ends the stream where it is, as a connection does that breaks.
func (r Reply) EndsWithoutDone() Reply { return r.with(step{kind: stepEnd}) }

// IgnoringContext makes the whole reply deaf: it plays on after the context has ended,
// its delays run to their end, and its stalls last until [Model.Release].
func (r Reply) IgnoringContext() Reply {
	r.deaf = true
	return r
}
