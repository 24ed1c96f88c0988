package agenttest

import (
	"slices"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// phase is where a run is in the grammar.
type phase int

const (
	phaseNone     phase = iota // before AgentStart
	phaseHead                  // after AgentStart, or the Context that follows it
	phaseTurn                  // after TurnStart and whole messages
	phaseContext               // after the Context of an attempt
	phaseAsked                 // after ModelRequest
	phaseStream                // the assistant's message is open
	phaseFailed                // after MessageDiscard
	phaseRetry                 // after Retry
	phaseTools                 // the answer has ended, or calls of the history execute
	phaseResults               // results of calls become messages
	phaseResponse              // after ModelResponse
	phaseTail                  // after the whole message that ends the run
	phaseError                 // after Error
	phaseEnd                   // after AgentEnd
)

var phaseNames = [...]string{
	"before agent_start", "after agent_start", "after turn_start or whole messages",
	"after context", "after model_request", "while an assistant's message is open",
	"after message_discard", "after retry", "before all calls of the answer are executed",
	"among the results of the calls", "after model_response", "after the message that ends the run",
	"after error", "after agent_end",
}

func (p phase) String() string { return phaseNames[p] }

// stops are the phases in which everything opened is closed, so that a run may end there.
var stops = []phase{
	phaseHead, phaseTurn, phaseContext, phaseAsked, phaseFailed, phaseRetry, phaseResponse, phaseTail,
}

// run is the automaton of one run.
type run struct {
	checker    *Checker
	id, parent string
	hosts      map[string]bool // a child's: the parent's calls that it may belong to; nil for none
	over       bool            // AgentEnd was seen
	broken     bool            // a breach was reported
	loose      bool            // events are missing

	phase     phase
	seq       uint64
	delivered uint64 // events, with those that updates stand for
	time      time.Time
	turn      int
	attempt   int
	headDone  bool // the Context of the head was seen

	whole    agentkernel.AgentMessage // the open message that comes whole
	answer   *answer                  // the open assistant message
	discard  *event                   // the attempt's MessageDiscard
	response *message                 // the assistant message that ended in this turn
	last     *message                 // the last assistant message that ended
	tools    *toolTurn
	err      error     // that of the Error event
	aborted  bool      // an assistant message ended as aborted
	stopped  bool      // a call was not started because the run stopped
	leftOpen bool      // a call of this run has no result message
	left     *toolTurn // the last turn that was closed
	marked   bool      // a whole message came after the last turn

	known   bool // history is all of it
	history []agentkernel.AgentMessage
	ended   []agentkernel.AgentMessage
	ids     map[string]bool // of the calls in history
	counts  counts
}

func newRun(c *Checker, ev *event) *run {
	return &run{checker: c, id: ev.RunID, parent: ev.ParentRunID, ids: make(map[string]bool)}
}

// begin gives the run the history that it starts from.
func (r *run) begin(history []agentkernel.AgentMessage, known bool) {
	r.history, r.known = history, known
	for _, m := range history {
		r.learnIDs(m)
	}
}

func (r *run) learnIDs(m agentkernel.AgentMessage) {
	if msg, ok := asMessage(m); ok {
		for _, call := range msg.ToolCalls() {
			r.ids[call.ID] = true
		}
	}
}

// forget drops what an ended run no longer needs.
func (r *run) forget() {
	*r = run{checker: r.checker, id: r.id, parent: r.parent, over: true, broken: r.broken, phase: phaseEnd}
}

// take checks the next event of the run.
func (r *run) take(ev *event) error {
	if r.over {
		return breach(ev, "8", "event after agent_end")
	}
	if err := r.header(ev); err != nil {
		return err
	}
	if err := checkFields(ev); err != nil {
		return err
	}
	if r.loose {
		return r.takeLoose(ev)
	}
	if r.phase == phaseError && ev.Type != agentkernel.EventAgentEnd {
		return breach(ev, "7", "got %s after error, want agent_end", ev.Type)
	}
	if r.whole != nil && ev.Type != agentkernel.EventMessageEnd {
		return breach(ev, "1", "got %s between the message_start and message_end of a whole message", ev.Type)
	}
	return r.dispatch(ev)
}

func (r *run) dispatch(ev *event) error {
	switch ev.Type {
	case agentkernel.EventAgentStart:
		return r.move(ev, phaseHead, phaseNone)
	case agentkernel.EventTurnStart:
		return r.turnStart(ev)
	case agentkernel.EventContext:
		return r.context(ev)
	case agentkernel.EventModelRequest:
		return r.modelRequest(ev)
	case agentkernel.EventMessageStart:
		return r.messageStart(ev)
	case agentkernel.EventMessageUpdate:
		return r.messageUpdate(ev)
	case agentkernel.EventMessageEnd:
		return r.messageEnd(ev)
	case agentkernel.EventMessageDiscard:
		return r.messageDiscard(ev)
	case agentkernel.EventRetry:
		return r.retry(ev)
	case agentkernel.EventToolExecStart:
		return r.execStart(ev)
	case agentkernel.EventToolExecUpdate:
		return r.execUpdate(ev)
	case agentkernel.EventToolExecEnd:
		return r.execEnd(ev)
	case agentkernel.EventModelResponse:
		return r.modelResponse(ev)
	case agentkernel.EventError:
		return r.runError(ev)
	case agentkernel.EventAgentEnd:
		return r.agentEnd(ev)
	}
	return breach(ev, "grammar", "unknown event type %q", ev.Type)
}

// takeLoose checks what can be checked once events are missing.
func (r *run) takeLoose(ev *event) error {
	switch {
	case r.err != nil && ev.Type != agentkernel.EventAgentEnd:
		return breach(ev, "7", "got %s after error, want agent_end", ev.Type)
	case ev.Type == agentkernel.EventError:
		return r.noteError(ev)
	case ev.Type == agentkernel.EventAgentEnd:
		r.phase = phaseEnd
		r.history = slices.Concat(r.history, ev.NewMessages)
		return r.checkEnd(ev)
	}
	return nil
}

// header checks what is on every event.
func (r *run) header(ev *event) error {
	if ev.RunID == "" {
		return breach(ev, "fields", "RunID is empty")
	}
	if ev.ParentRunID != r.parent {
		return breach(ev, "fields", "got ParentRunID %q, want %q as on the run's first event", ev.ParentRunID, r.parent)
	}
	if err := r.checkSeq(ev); err != nil {
		return err
	}
	if err := checkTime(ev, ev.Time, "Time"); err != nil {
		return err
	}
	if ev.Time.IsZero() || ev.Time.Before(r.time) {
		return breach(ev, "5", "got Time %v, want one not before %v", ev.Time, r.time)
	}
	r.time = ev.Time
	return r.checkTurn(ev)
}

func (r *run) checkSeq(ev *event) error {
	last := r.seq
	r.seq = ev.Seq
	if ev.Coalesced < 0 {
		return breach(ev, "5", "got Coalesced %d, want none below 0", ev.Coalesced)
	}
	r.delivered += 1 + uint64(ev.Coalesced)
	switch {
	case ev.Seq <= last:
		return breach(ev, "5", "got Seq %d after %d", ev.Seq, last)
	case r.checker.AllowCoalesced && r.delivered > ev.Seq:
		return breach(ev, "5", "%d events are accounted for, more than Seq says", r.delivered)
	case r.checker.AllowCoalesced && ev.Type != agentkernel.EventAgentEnd, r.loose:
		return nil
	case r.checker.AllowCoalesced && r.delivered == ev.Seq:
		return nil
	case !r.checker.AllowCoalesced && ev.Coalesced != 0:
		return breach(ev, "5", "got Coalesced %d, want 0 on a full stream", ev.Coalesced)
	case !r.checker.AllowCoalesced && ev.Seq == last+1:
		return nil
	case r.checker.AllowGaps:
		r.loose = true
		return nil
	case r.checker.AllowCoalesced:
		return breach(ev, "5", "%d of %d events are accounted for", r.delivered, ev.Seq)
	}
	return breach(ev, "5", "got Seq %d, want %d", ev.Seq, last+1)
}

func (r *run) checkTurn(ev *event) error {
	if r.loose {
		if ev.Turn < r.turn {
			return breach(ev, "fields", "got Turn %d after %d", ev.Turn, r.turn)
		}
		r.turn = ev.Turn
		return nil
	}
	if ev.Type == agentkernel.EventTurnStart {
		r.turn++
	}
	if ev.Turn != r.turn {
		return breach(ev, "fields", "got Turn %d, want %d", ev.Turn, r.turn)
	}
	return nil
}

// expect tells whether the run is in one of the phases in which the event may come.
func (r *run) expect(ev *event, phases ...phase) error {
	if slices.Contains(phases, r.phase) {
		return nil
	}
	return breach(ev, "grammar", "got %s %s", ev.Type, r.phase)
}

// move is expect, then the step to the next phase.
func (r *run) move(ev *event, to phase, from ...phase) error {
	if err := r.expect(ev, from...); err != nil {
		return err
	}
	r.phase = to
	return nil
}

func (r *run) turnStart(ev *event) error {
	if err := r.move(ev, phaseTurn, phaseHead, phaseResponse); err != nil {
		return err
	}
	if r.aborted || r.stopped {
		return breach(ev, "abort", "a turn starts after the run was stopped")
	}
	r.counts.turns++
	r.attempt, r.tools, r.response, r.discard = 0, nil, nil, nil
	return nil
}

func (r *run) context(ev *event) error {
	if ev.Context == nil {
		return breach(ev, "fields", "Context is nil")
	}
	switch {
	case r.phase == phaseHead && !r.headDone:
		r.headDone = true
		clear(r.ids) // the run starts from another history than was thought
	case r.phase == phaseTurn, r.phase == phaseRetry:
		r.phase = phaseContext
	default:
		return breach(ev, "grammar", "got %s %s", ev.Type, r.phase)
	}
	if ev.Context.Reason == "" {
		return breach(ev, "fields", "Context.Reason is empty")
	}
	r.begin(slices.Clip(ev.Context.Messages), true)
	return nil
}

func (r *run) modelRequest(ev *event) error {
	if err := r.move(ev, phaseAsked, phaseTurn, phaseContext, phaseRetry); err != nil {
		return err
	}
	r.attempt++
	switch {
	case ev.Request == nil:
		return breach(ev, "fields", "Request is nil")
	case ev.Attempt != r.attempt:
		return breach(ev, "fields", "got Attempt %d, want %d", ev.Attempt, r.attempt)
	case r.aborted || r.stopped:
		return breach(ev, "abort", "the model is asked after the run was stopped")
	}
	if open := openCalls(r.history); len(open) > 0 {
		return breach(ev, "6", "the model is asked while call %q has no result", open[0].ID)
	}
	if r.attempt > 1 {
		r.counts.retries++
	}
	r.discard = nil
	return nil
}

func (r *run) retry(ev *event) error {
	if err := r.move(ev, phaseRetry, phaseAsked, phaseFailed); err != nil {
		return err
	}
	switch info := ev.RetryInfo; {
	case info == nil || ev.Err == nil || info.Err == nil:
		return breach(ev, "fields", "RetryInfo, its Err or Err is nil")
	case ev.Attempt != r.attempt || info.Attempt != r.attempt:
		return breach(ev, "fields", "got Attempt %d and RetryInfo.Attempt %d, want %d, that which failed", ev.Attempt, info.Attempt, r.attempt)
	case info.Delay < 0:
		return breach(ev, "fields", "got RetryInfo.Delay %v", info.Delay)
	case !sameError(ev.Err, info.Err):
		return breach(ev, "7", "got Err %v, want that of RetryInfo: %v", ev.Err, info.Err)
	case r.discard != nil && !sameError(ev.Err, r.discard.Err):
		return breach(ev, "7", "got Err %v, want that of message_discard: %v", ev.Err, r.discard.Err)
	}
	return nil
}
