package openai

import (
	"github.com/agentkernel-go/agentkernel"
)

// mostBlocks bounds the texts, thoughts and calls of one answer, and mostDetails the details
// of one thought: no model makes as many, and each costs memory at every increment.
const (
	mostBlocks  = 1000
	mostDetails = 5000
)

// reply turns the frames of one response into stream events.
type reply struct {
	yield func(agentkernel.StreamEvent, error) bool
	// left: the one who ranges over the stream wants no more.
	left bool

	model  string
	picker picker
	calls  callTracker
	trace  thinkingTrace
	// last is the kind of the block that was added to last, "" before the first.
	last agentkernel.ContentType
	// blocks counts them.
	blocks int

	usage agentkernel.Usage
	// cost is the last one named, which may stand apart from the usage.
	cost    *float64
	finish  string
	refused bool
	// whole: a frame held the answer itself, not an increment of it.
	whole bool
}

// take yields what a frame adds. Its error is the failure that the frame reports.
func (a *reply) take(f *frame) *report {
	if len(f.model) > 0 && string(f.model) != a.model {
		a.model = string(f.model)
	}
	a.count(&f.usage)
	for i := range f.choices {
		a.count(&f.choices[i].usage)
	}
	c := a.picker.pick(f.choices)
	if f.failure != nil {
		return new(readReport(f.failure))
	}
	if c == nil {
		return nil
	}
	if c.failure != nil {
		return new(readReport(c.failure))
	}
	if !c.whole || a.last == "" {
		a.payload(c)
	}
	a.whole = a.whole || c.whole
	if len(c.finish) > 0 {
		if stopReasonOf(string(c.finish)) == agentkernel.StopReasonError {
			return &report{message: "the model stopped with finish reason " + string(c.finish)}
		}
		a.finish = string(c.finish)
	}
	return nil
}

// count keeps the last usage that counts anything, never a sum.
func (a *reply) count(u *usage) {
	if u.counted() {
		a.usage = u.Usage
	}
	if u.Cost != nil {
		a.cost = u.Cost
	}
}

// payload yields the deltas of a choice.
func (a *reply) payload(c *choice) {
	if a.last != agentkernel.ContentThinking && c.thinks() {
		a.flush()
		a.trace = thinkingTrace{}
	}
	for i := 0; i < len(c.details) && !a.overfull(); i++ {
		a.trace.add(c.details[i])
	}
	a.trace.sign(c.signature)
	for i := 0; i < len(c.parts) && !a.overfull(); i++ {
		a.text(&c.parts[i])
	}
	for i := 0; i < len(c.calls) && !a.overfull(); i++ {
		if ev, ok := a.calls.event(&c.calls[i], i, len(c.calls)); ok {
			a.enter(agentkernel.ContentToolCall)
			a.send(ev)
		}
	}
}

// thinks tells whether the choice holds thinking to show.
func (c *choice) thinks() bool {
	for i := range c.parts {
		if c.parts[i].kind == pieceThinking {
			return true
		}
	}
	return false
}

func (a *reply) text(p *piece) {
	ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: textOf(p.text)}
	kind := agentkernel.ContentText
	switch p.kind {
	case pieceThinking:
		ev.Type = agentkernel.StreamEventThinkingDelta
		kind = agentkernel.ContentThinking
	case pieceRefusal:
		a.refused = true
	}
	a.enter(kind)
	if kind == agentkernel.ContentThinking {
		a.trace.came(p.field)
	}
	a.send(ev)
}

// enter notes what is added to next. A block of thinking that ends is given its opaque data.
func (a *reply) enter(kind agentkernel.ContentType) {
	if kind != a.last && kind != agentkernel.ContentThinking && !a.trace.sealed {
		a.flush()
		a.trace.sealed = true
	}
	if kind != a.last && kind != agentkernel.ContentToolCall {
		a.blocks++
	}
	a.last = kind
}

// flush yields the opaque data of thinking that was not yielded yet.
func (a *reply) flush() {
	if a.trace.unsent {
		a.send(a.trace.event())
	}
}

// overfull tells that the answer holds more than any model writes.
func (a *reply) overfull() bool {
	return a.blocks+len(a.calls.all) > mostBlocks || len(a.trace.details) > mostDetails
}

// finished tells that the answer is whole whatever comes or does not come after it.
func (a *reply) finished() bool { return a.finish != "" || a.whole }

// done ends the answer.
func (a *reply) done() {
	a.flush()
	a.calls.late(a.send)
	a.sendUsage()
	stop := stopReasonOf(a.finish)
	if a.refused {
		stop = agentkernel.StopReasonRefusal
	}
	a.send(agentkernel.StreamEvent{
		Type:          agentkernel.StreamEventDone,
		StopReason:    stop,
		RawStopReason: a.finish,
	})
}

// fail ends the answer with an error. What it used up until then is told first.
func (a *reply) fail(err error) {
	a.sendUsage()
	if !a.left {
		a.left = true
		a.yield(agentkernel.StreamEvent{}, err)
	}
}

func (a *reply) sendUsage() {
	if a.usage == (agentkernel.Usage{}) && a.cost == nil {
		return
	}
	u := a.usage
	u.Cost = a.cost
	a.send(agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Usage: &u})
}

func (a *reply) send(ev agentkernel.StreamEvent) bool {
	if a.left {
		return false
	}
	ev.Model = a.model
	a.left = !a.yield(ev, nil)
	return !a.left
}
