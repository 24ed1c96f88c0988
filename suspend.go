package agentkernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Suspension is a call that a run left open for a later one, because it never began: its gate
// waits for somebody (see [Suspend]), or it stood behind such a call.
type Suspension struct {
	// Call is the call as it stands in the history. What resumes it must name the very same.
	Call ToolCall `json:"call"`
	// Label is the call's name for people: Event.ToolLabel.
	Label string `json:"label,omitempty"`
	// Args is what the gate was asked about, where Config.RepairToolCall made the call's
	// arguments better: with an answer, that is what is executed.
	Args json.RawMessage `json:"args,omitempty"`
	// Ask is what the gate asks, of kind [ProgressAsk]; nil where it was not asked yet.
	Ask *ProgressPayload `json:"ask,omitempty"`
	// Turn is the turn of the run that left the call open.
	Turn int `json:"turn"`
	// Terminate: another call of the same answer was executed and asked to end the run, which
	// the run that resumes this one will do once the calls are answered.
	Terminate bool `json:"terminate,omitempty"`
}

// UnmarshalJSON refuses arguments that are no object, and compacts them.
func (s *Suspension) UnmarshalJSON(data []byte) error {
	type plainSuspension Suspension
	var read plainSuspension
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	for _, args := range []*json.RawMessage{&read.Args, &read.Call.Args} {
		if string(*args) == "null" {
			*args = nil
		}
		if len(*args) == 0 {
			continue
		}
		object, err := parseObject(string(*args))
		if err != nil {
			return err
		}
		*args = object
	}
	*s = Suspension(read)
	return nil
}

// Resumption is what a run is told of the calls that an earlier one left open.
type Resumption struct {
	// Suspended are the calls: RunSummary.Suspended of the run that left them open. Each must
	// be an open call of the history, with the same id, name and arguments; otherwise the run
	// ends with kind "invalid_request". An open call that is not among them may have begun:
	// see Config.RunOpenCalls.
	Suspended []Suspension
	// Answers are the decisions by call id, each for a call of Suspended. A call with an
	// answer is dealt with as if its gate had given it just now: the gate is not asked. Of
	// the others the gate is asked, which may suspend them again; where the run has prompts
	// they get a result of cause "skipped" instead, since the person said something else.
	Answers map[string]GateDecision
}

// Suspend returns the error by which a Gate says that its answer is not here now, and that
// nobody should wait for it: the run ends with reason "suspended" and without an error, and
// holds no goroutine and no connection until somebody answers, hours later, in any process.
//
// What is asked is shown as an Update of kind "gate" whose progress is ask, with the kind
// [ProgressAsk], and in RunSummary.Suspended. Before the run ends, the calls that were begun
// come to their end, other gates among them, and what was executed has its result in the
// history. The other calls of the answer stay open, without a result: one that had a Start
// gets an End of cause "not_started", one that had none gets neither. An abort or, with
// SteerSkip, steering that comes before the end answers them all instead, as it would a call
// at its gate.
//
// [Agent.Resume] and Config.Resume go on. From anywhere but a Gate it is an error like any
// other, and in a sub-agent's run (see [AgentTool]) a denial: the run that waits for its
// result holds a goroutine.
func Suspend(ask ProgressPayload) error {
	ask.Kind = ProgressAsk
	ask.Text, ask.Tool, ask.Data = validText(ask.Text), validText(ask.Tool), compactJSON(ask.Data)
	return &suspendError{ask: ask}
}

type suspendError struct{ ask ProgressPayload }

func (e *suspendError) Error() string { return "agentkernel: the gate waits for an answer" }

// pendingAsk is of a call whose gate has no answer now.
type pendingAsk struct {
	ask  ProgressPayload
	args json.RawMessage // what it was asked about
}

// own returns a copy that shares nothing with the caller, who may go on to change it.
func (r *Resumption) own() *Resumption {
	if r == nil {
		return nil
	}
	out := &Resumption{Suspended: slices.Clone(r.Suspended), Answers: maps.Clone(r.Answers)}
	for i := range out.Suspended {
		s := &out.Suspended[i]
		s.Args, s.Call.Args, s.Ask = bytes.Clone(s.Args), bytes.Clone(s.Call.Args), s.Ask.clone()
	}
	for id, answer := range out.Answers {
		answer.Args = bytes.Clone(answer.Args)
		out.Answers[id] = answer
	}
	return out
}

// check says what of r does not fit the open calls of history.
func (r *Resumption) check(history []AgentMessage) error {
	if r == nil {
		return nil
	}
	open := openCalls(history)
	known := make(map[string]bool)
	for i, s := range r.Suspended {
		id := s.Call.ID
		if known[id] || !open.has(&s.Call) {
			return invalid("resume", "Suspended %d, call %q, is no open call of the history", i, id)
		}
		known[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(r.Answers)) {
		if !known[id] {
			return invalid("resume", "the answer for %q is for no call that is suspended", id)
		}
	}
	return nil
}

// find returns the suspension of a call, nil where it is not suspended, and its answer.
func (r *Resumption) find(id string) (*Suspension, *GateDecision) {
	if r == nil {
		return nil, nil
	}
	i := slices.IndexFunc(r.Suspended, func(s Suspension) bool { return s.Call.ID == id })
	if i < 0 {
		return nil, nil
	}
	if answer, ok := r.Answers[id]; ok {
		return &r.Suspended[i], &answer
	}
	return &r.Suspended[i], nil
}

// terminates tells whether a call beside those that are resumed asked to end the run.
func (r *Resumption) terminates() bool {
	return r != nil && slices.ContainsFunc(r.Suspended, func(s Suspension) bool { return s.Terminate })
}

// has tells whether the very call is open. A nil turn has none.
func (t *openTurn) has(call *ToolCall) bool {
	return t != nil && slices.ContainsFunc(t.calls, func(c ToolCall) bool {
		return c.ID == call.ID && c.Name == call.Name && c.RawArgs == call.RawArgs &&
			bytes.Equal(c.Args, call.Args)
	})
}

// stillOpen is what of suspended a run on the history would find open: of a history that others
// wrote it mends the ids first.
func stillOpen(suspended []Suspension, history []AgentMessage) []Suspension {
	if len(suspended) == 0 {
		return nil
	}
	open := openCalls(mend(history, true).result())
	var out []Suspension
	for _, s := range suspended {
		if open.has(&s.Call) {
			out = append(out, s)
		}
	}
	return out
}

// suspend is the answer of a gate that has none: the call waits, unless nobody may wait here.
func (p *pipeline) suspend(s *suspendError) *ToolResult {
	if p.bound {
		const reason = "somebody would have to be asked first, and the run of a sub-agent cannot wait for that"
		p.showDecision(GateDecision{Reason: reason})
		return new(denied(reason))
	}
	p.asking = &pendingAsk{ask: *s.ask.clone(), args: p.args}
	p.box.post(callUpdate{kind: ToolExecUpdateGate, payload: *s.ask.clone()})
	return new(unanswered())
}

// settle is where every call that was begun has come to its end: it closes those whose gate
// waits, and leaves them and what did not begin to a later run, unless the turn has changed
// its mind meanwhile.
func (b *batch) settle() {
	if !b.suspended {
		return
	}
	select {
	case <-b.steer:
		b.interrupt()
	default:
	}
	stopped := b.r.stopped()
	if stopped || b.skip {
		for i, c := range b.calls {
			if c.state == callWaiting {
				b.next = i
				b.startNext() // which answers it
			}
		}
	}
	var left []Suspension
	for _, c := range b.calls {
		switch {
		case c.waits != nil && c.state == callOpen && stopped:
			b.r.closeCall(c, notStarted())
		case c.waits != nil && c.state == callOpen, c.state == callWaiting:
			left = append(left, b.leave(c))
		}
	}
	b.r.answer.suspended = left
}

// leave leaves the call open for a later run.
func (b *batch) leave(c *callRun) Suspension {
	s := Suspension{Call: c.call, Label: c.label, Turn: b.r.turn}
	if w := c.waits; w != nil {
		s.Ask = &w.ask
		if !bytes.Equal(w.args, c.call.Args) {
			s.Args = w.args
		}
		b.r.closeCall(c, unanswered())
	} else if c.resumed != nil {
		s.Args, s.Ask = c.resumed.Args, c.resumed.Ask
	}
	s.Call.Args = bytes.Clone(c.call.Args)
	c.left = true
	return s
}

// unanswered is the result of a call whose gate waits. No model sees it.
func unanswered() ToolResult {
	return unstarted(ToolNotStarted, "The call waits for an answer and was not run yet.")
}

// asSuspend finds what Suspend returned in err.
func asSuspend(err error) *suspendError {
	s, _ := errors.AsType[*suspendError](err)
	return s
}
