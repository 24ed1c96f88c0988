package agenttest

import (
	"errors"
	"reflect"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// leaves tells whether the call may be left to a later run: it has no exec events, or its
// gate asked something that had no answer.
func (t *toolTurn) leaves(id string) bool {
	x := t.execs[id]
	return x == nil || x.ask != nil && x.result != nil && x.result.Cause == agentkernel.ToolNotStarted
}

// checkSuspended checks which calls a run says that it left open because they never began.
func (r *run) checkSuspended(ev *event) error {
	got, reason, t := ev.Summary.Suspended, ev.Summary.EndReason, r.left
	var want []agentkernel.ToolCall
	asked, ran := false, false
	if t != nil {
		for _, c := range t.calls {
			switch {
			case slices.Contains(t.results, c.ID):
			case t.leaves(c.ID):
				want = append(want, c)
				asked = asked || t.execs[c.ID] != nil
			default:
				ran = true
			}
		}
	}
	switch {
	case reason == agentkernel.EndSuspended && !asked:
		return breach(ev, "6", "end reason %q, but no gate waits for an answer", reason)
	case reason == agentkernel.EndSuspended && ran:
		return breach(ev, "6", "end reason %q, but a call that began has no result message", reason)
	case reason != agentkernel.EndSuspended && len(got) == 0: // also where it had more to answer for than was asked
		return nil
	case reason != agentkernel.EndSuspended && (!asked || !errors.Is(ev.Err, agentkernel.KindCommit)):
		want = nil
	}
	if t == nil || len(want) == 0 {
		if len(got) > 0 {
			return breach(ev, "6", "Summary.Suspended has %d calls, but none is left open so", len(got))
		}
		return nil
	}
	return r.compareSuspended(ev, want)
}

// compareSuspended checks each call that was left open against what the stream says of it.
func (r *run) compareSuspended(ev *event, want []agentkernel.ToolCall) error {
	got, t := ev.Summary.Suspended, r.left
	if t.unknown { // what had no exec events is not known
		got = slices.DeleteFunc(slices.Clone(got), func(s agentkernel.Suspension) bool { return !hasCall(want, s.Call.ID) })
	}
	if len(got) != len(want) {
		return breach(ev, "6", "Summary.Suspended has %d calls, want %d", len(got), len(want))
	}
	ends := slices.ContainsFunc(t.results, func(id string) bool { return t.execs[id].result.Terminate })
	resumed := t.old != nil || t.unknown // it may know more from the run before
	for i, s := range got {
		call, x := want[i], t.execs[want[i].ID]
		var ask *agentkernel.ProgressPayload
		args := s.Args
		if x != nil {
			ask = x.ask
			if args = nil; string(x.args) != string(call.Args) {
				args = x.args
			}
		}
		switch {
		case !reflect.DeepEqual(s.Call, call):
			return breach(ev, "6", "Suspended[%d] is of call %q, want call %q as it was made", i, s.Call.ID, call.ID)
		case s.Turn != r.turn:
			return breach(ev, "6", "got Suspended[%d].Turn %d, want %d", i, s.Turn, r.turn)
		case x != nil && s.Label != x.label:
			return breach(ev, "6", "got Suspended[%d].Label %q, want %q as on tool_exec_start", i, s.Label, x.label)
		case (x != nil || !resumed) && !reflect.DeepEqual(s.Ask, ask):
			return breach(ev, "6", "Suspended[%d].Ask differs from what the gate of call %q asked", i, call.ID)
		case (x == nil && !resumed && s.Args != nil) || string(s.Args) != string(args):
			return breach(ev, "10", "got Suspended[%d].Args %s, want %s", i, short(string(s.Args)), short(string(args)))
		case s.Terminate != ends && !(resumed && s.Terminate):
			return breach(ev, "6", "got Suspended[%d].Terminate %t, want %t", i, s.Terminate, ends)
		}
	}
	return nil
}
