package agenttest

import (
	"errors"
	"math"
	"reflect"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// counts is what the checker saw of what RunSummary says.
type counts struct {
	turns, executed, failed, retries int
	usage, discarded                 agentkernel.Usage
}

func (r *run) runError(ev *event) error {
	if !slices.Contains(stops, r.phase) {
		return breach(ev, "1", "the run fails %s", r.phase)
	}
	r.phase = phaseError
	return r.noteError(ev)
}

func (r *run) noteError(ev *event) error {
	if ev.Err == nil {
		return breach(ev, "fields", "Err is nil")
	}
	r.err = ev.Err
	return nil
}

func (r *run) agentEnd(ev *event) error {
	if r.phase != phaseError && !slices.Contains(stops, r.phase) {
		return breach(ev, "1", "the run ends %s", r.phase)
	}
	from := r.phase
	r.phase = phaseEnd
	if err := r.checkEnd(ev); err != nil {
		return err
	}
	if from != phaseResponse && slices.Contains(normalEnds, ev.Summary.EndReason) {
		return breach(ev, "ends", "end reason %q, but the run ends %s", ev.Summary.EndReason, from)
	}
	if r.marked && ev.Summary.EndReason != agentkernel.EndAborted && ev.Summary.EndReason != agentkernel.EndTimeout {
		return breach(ev, "grammar", "the run ends with a message of its own, but as %q", ev.Summary.EndReason)
	}
	if err := r.checkNewMessages(ev); err != nil {
		return err
	}
	if err := r.checkSummary(ev); err != nil {
		return err
	}
	if err := r.checkSuspended(ev); err != nil {
		return err
	}
	return r.checkReason(ev)
}

// normalEnds are the end reasons that come without an error.
var normalEnds = []agentkernel.EndReason{
	agentkernel.EndStop, agentkernel.EndTerminated, agentkernel.EndEmpty,
	agentkernel.EndRefusal, agentkernel.EndLength, agentkernel.EndSuspended,
}

// failedEnds are the end reasons that have an error of a kind of their own.
var failedEnds = map[agentkernel.EndReason]agentkernel.Kind{
	agentkernel.EndTimeout:   agentkernel.KindTimeout,
	agentkernel.EndMaxTurns:  agentkernel.KindMaxTurns,
	agentkernel.EndLimit:     agentkernel.KindLimit,
	agentkernel.EndStopGuard: agentkernel.KindStopGuard,
}

// checkEnd checks the end reason, Err and the Error event against each other.
func (r *run) checkEnd(ev *event) error {
	switch {
	case ev.Summary == nil:
		return breach(ev, "8", "Summary is nil")
	case ev.Duration < 0 || ev.Duration != ev.Summary.Duration:
		return breach(ev, "10", "got Duration %v and Summary.Duration %v, want them equal", ev.Duration, ev.Summary.Duration)
	case r.err != nil && !sameError(r.err, ev.Err):
		return breach(ev, "7", "got Err %v, want that of error: %v", ev.Err, r.err)
	}
	reason, kind := ev.Summary.EndReason, kindOf(ev.Err)
	want, failed := failedEnds[reason]
	switch {
	case slices.Contains(normalEnds, reason):
		if r.err != nil || ev.Err != nil {
			return breach(ev, "ends", "end reason %q with error %v, want none", reason, ev.Err)
		}
	case reason == agentkernel.EndAborted:
		if r.err != nil || kind != agentkernel.KindCanceled {
			return breach(ev, "ends", "end reason %q with error event %t and Err %v, want no event and kind canceled", reason, r.err != nil, ev.Err)
		}
	case failed:
		if r.err == nil || kind != want {
			return breach(ev, "ends", "end reason %q with error event %t and Err %v, want both of kind %s", reason, r.err != nil, ev.Err, want)
		}
	case reason == agentkernel.EndError:
		if r.err == nil || !otherKind(kind) {
			return breach(ev, "ends", "end reason %q with error event %t and Err %v, want both, of a kind without end reason of its own", reason, r.err != nil, ev.Err)
		}
	default:
		return breach(ev, "ends", "got end reason %q, want one of the documented", reason)
	}
	return nil
}

// kindOf is the kind of an error of the kernel, "" where it is none.
func kindOf(err error) agentkernel.Kind {
	if e, ok := errors.AsType[*agentkernel.Error](err); ok {
		return e.Kind
	}
	return ""
}

// otherKinds are the kinds that end a run as EndError.
var otherKinds = []agentkernel.Kind{
	agentkernel.KindStreamIdle, agentkernel.KindStreamTruncated, agentkernel.KindNetwork,
	agentkernel.KindServer, agentkernel.KindOverloaded, agentkernel.KindRateLimit,
	agentkernel.KindQuota, agentkernel.KindAuth, agentkernel.KindInvalidRequest,
	agentkernel.KindContextOverflow, agentkernel.KindRefusal, agentkernel.KindProtocol,
	agentkernel.KindProvider, agentkernel.KindTool, agentkernel.KindCommit,
	agentkernel.KindHook, agentkernel.KindPanic, agentkernel.KindInternal,
}

func otherKind(k agentkernel.Kind) bool { return slices.Contains(otherKinds, k) }

func (r *run) checkNewMessages(ev *event) error {
	if len(ev.NewMessages) != len(r.ended) {
		return breach(ev, "2", "got %d NewMessages, want the %d that ended", len(ev.NewMessages), len(r.ended))
	}
	for i := range r.ended {
		if !reflect.DeepEqual(ev.NewMessages[i], r.ended[i]) {
			return breach(ev, "2", "NewMessages[%d] differs from the message that ended", i)
		}
	}
	return nil
}

func (r *run) checkSummary(ev *event) error {
	s := ev.Summary
	for _, n := range []struct {
		name      string
		got, want int
	}{
		{"TurnCount", s.TurnCount, r.counts.turns},
		{"ToolCalls", s.ToolCalls, r.counts.executed},
		{"ToolErrors", s.ToolErrors, r.counts.failed},
		{"Retries", s.Retries, r.counts.retries},
		{"Abandoned", min(s.Abandoned, 0), 0},
	} {
		if n.got != n.want {
			return breach(ev, "8", "got Summary.%s %d, want %d", n.name, n.got, n.want)
		}
	}
	if !sameUsage(s.Usage, r.counts.usage) {
		return breach(ev, "8", "got Summary.Usage %s, want %s", usageText(s.Usage), usageText(r.counts.usage))
	}
	if !sameUsage(s.DiscardedUsage, r.counts.discarded) {
		return breach(ev, "8", "got Summary.DiscardedUsage %s, want %s", usageText(s.DiscardedUsage), usageText(r.counts.discarded))
	}
	return nil
}

// sameUsage compares counts exactly and costs up to the rounding of another order of sums.
func sameUsage(a, b agentkernel.Usage) bool {
	x, y := a.Cost, b.Cost
	a.Cost, b.Cost = nil, nil
	if a != b || (x == nil) != (y == nil) {
		return false
	}
	return x == nil || math.Abs(*x-*y) <= 1e-9*max(1, math.Abs(*x))
}

// checkReason checks the end reason against the last answer.
func (r *run) checkReason(ev *event) error {
	reason := ev.Summary.EndReason
	if r.leftOpen && reason != agentkernel.EndSuspended && !errors.Is(ev.Err, agentkernel.KindCommit) {
		return breach(ev, "6", "a call was left without result, but the end reason is %q", reason)
	}
	if r.discard != nil && reason == agentkernel.EndAborted && shows(r.discard.Message) && errors.Is(r.discard.Err, agentkernel.KindCanceled) {
		return breach(ev, "abort", "the abort discarded a message that showed content, want it ended")
	}
	if (r.aborted || r.stopped) && slices.Contains(answeredEnds, reason) || r.aborted && slices.Contains(normalEnds, reason) {
		return breach(ev, "ends", "end reason %q, but the run was stopped", reason)
	}
	if !slices.Contains(answeredEnds, reason) {
		return nil
	}
	if r.last == nil {
		return breach(ev, "ends", "end reason %q, but the model gave no answer", reason)
	}
	if want := answeredEnd(r.last); reason != want {
		return breach(ev, "ends", "got end reason %q, want %q after an answer of stop reason %q", reason, want, r.last.StopReason)
	}
	return nil
}

// answeredEnds are the end reasons that the last answer decides.
var answeredEnds = []agentkernel.EndReason{
	agentkernel.EndStop, agentkernel.EndEmpty, agentkernel.EndRefusal, agentkernel.EndLength,
}

// answeredEnd is the end reason that an answer without calls comes to.
func answeredEnd(m *message) agentkernel.EndReason {
	switch {
	case m.HasToolCalls():
		return "" // it cannot be the end
	case m.StopReason == agentkernel.StopReasonRefusal:
		return agentkernel.EndRefusal
	case m.StopReason == agentkernel.StopReasonLength:
		return agentkernel.EndLength
	case m.TextContent() == "":
		return agentkernel.EndEmpty
	}
	return agentkernel.EndStop
}

func shows(m agentkernel.AgentMessage) bool {
	msg, ok := asMessage(m)
	return ok && len(msg.Content) > 0
}
