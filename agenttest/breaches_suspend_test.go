package agenttest

import "github.com/agentkernel-go/agentkernel"

// suspendCases break what holds for calls that a run leaves open.
func suspendCases() []breachCase {
	last := func(change func(*agentkernel.RunSummary)) *log {
		l := suspendedLog()
		ev := &l.events[len(l.events)-1]
		sum := *ev.Summary
		change(&sum)
		ev.Summary = &sum
		return l
	}
	first := func(change func(*agentkernel.Suspension)) *log {
		return last(func(s *agentkernel.RunSummary) {
			s.Suspended = append([]agentkernel.Suspension(nil), s.Suspended...)
			change(&s.Suspended[0])
		})
	}
	return []breachCase{
		{"suspended without a gate that waits", "6", "no gate waits", func() *log {
			l := newLog().start().turn().user("hi").ask(1)
			msg := l.end(1, l.stream(1, delta{0, toolCall, `{}`, "a", "find"}), agentkernel.StopReasonToolUse, `{}`)
			return l.respond(msg).over(agentkernel.EndSuspended, nil)
		}()},
		{"suspended with a call that ran", "6", "that began has no result", func() *log {
			l, msg, _ := suspendedHead()
			l.add(event{Type: agentkernel.EventModelResponse, Message: msg}) // without the result of the one that ran
			return l.over(agentkernel.EndSuspended, nil)
		}()},
		{"a suspended call is not told", "6", "has 1 calls, want 2", last(func(s *agentkernel.RunSummary) { s.Suspended = s.Suspended[:1] })},
		{"nothing is told", "6", "has 0 calls, want 2", last(func(s *agentkernel.RunSummary) { s.Suspended = nil })},
		{"another end tells of calls", "6", "none is left open", func() *log {
			l := terminatedLog()
			l.events[len(l.events)-1].Summary.Suspended = []agentkernel.Suspension{{}}
			return l
		}()},
		{"it is another call", "6", "as it was made", first(func(s *agentkernel.Suspension) { s.Call.Name = "x" })},
		{"it is asked something else", "6", "differs from what the gate", first(func(s *agentkernel.Suspension) { s.Ask = nil })},
		{"it has other arguments", "10", "Suspended[0].Args", first(func(s *agentkernel.Suspension) { s.Args = []byte(`{"x":1}`) })},
	}
}
