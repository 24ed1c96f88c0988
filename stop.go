package agentkernel

import (
	"errors"
	"fmt"
)

// StopRequest is a run that would end normally.
type StopRequest struct {
	RunID string
	Turn  int
	// Reason is how it would end.
	Reason EndReason
	// Answer is the model's last message, History all that was said. Both are read-only.
	Answer  Message
	History []AgentMessage
}

// StopAction is a stop guard's answer.
type StopAction string

// The actions.
const (
	StopAllow     StopAction = ""          // the run ends
	StopGoOn      StopAction = "continue"  // the run goes on with StopDecision.Message
	StopTerminate StopAction = "terminate" // the run ends as terminated
	StopEscalate  StopAction = "escalate"  // the run ends as failed, with kind "stop_guard"
)

// StopDecision is what a stop guard decides.
type StopDecision struct {
	Action StopAction
	// Message is what the model is told where the run goes on: a user's, or the harness's own.
	// Without one StopGoOn ends the run with kind "hook".
	Message AgentMessage
	// Reason is the text of the error where the guard escalates.
	Reason string

	messages []AgentMessage // Message as it enters the history
}

// rest is where the model has answered and wants nothing more: the run goes on with what
// was cut off or queued, or ends.
func (r *run) rest(m Message) step {
	reason := endOf(m)
	if reason == EndLength && r.recoveries < r.cfg.MaxLengthRecoveries {
		r.recoveries++
		r.prompts = []AgentMessage{UserMessage(r.cfg.LengthPrompt)}
		return (*run).nextTurn
	}
	if r.leaseQueued() {
		return (*run).nextTurn
	}
	return r.guard(m, reason)
}

// endOf tells how a run ends that ends with m.
func endOf(m Message) EndReason {
	switch {
	case m.StopReason == StopReasonRefusal:
		return EndRefusal
	case m.StopReason == StopReasonLength:
		return EndLength
	case m.TextContent() == "":
		return EndEmpty
	}
	return EndStop
}

// guard asks the stop guard whether the run may end.
func (r *run) guard(m Message, reason EndReason) step {
	if r.cfg.StopGuard == nil {
		return r.conclude(reason)
	}
	ctx, req := r.ctx, StopRequest{RunID: r.runID, Turn: r.turn, Reason: reason, Answer: m.Clone(),
		History: r.history[:len(r.history):len(r.history)]}
	decision, err := enclose(r.fence, func() (StopDecision, error) {
		d, err := r.cfg.StopGuard(ctx, req)
		if err == nil && d.Action == StopGoOn {
			d.messages, err = d.prompts()
		}
		return d, err
	})
	switch {
	case r.stopped():
		return (*run).stop
	case err != nil:
		return r.fail(hookError("StopGuard", err))
	}
	switch decision.Action {
	case StopAllow:
		return r.conclude(reason)
	case StopTerminate:
		return r.conclude(EndTerminated)
	case StopEscalate:
		return r.fail(&Error{Kind: KindStopGuard, Op: "hook StopGuard", Err: errors.New(decision.Reason)})
	case StopGoOn:
		r.prompts = decision.messages
		return (*run).nextTurn
	}
	return r.fail(hookError("StopGuard", fmt.Errorf("unknown action %q", decision.Action)))
}

// prompts are what the run goes on with.
func (d *StopDecision) prompts() ([]AgentMessage, error) {
	if m, own := d.Message.(*Message); d.Message == nil || own && m == nil {
		return nil, errors.New("StopGoOn needs a Message")
	}
	return asPrompts("StopGuard", []AgentMessage{d.Message})
}

// conclude ends the run as it should, unless something was queued in the last moment.
func (r *run) conclude(reason EndReason) step {
	for reason != EndTerminated && r.closing != nil && !r.closing(false) {
		if r.leaseQueued() {
			return (*run).nextTurn
		}
	}
	return r.finish(reason)
}
