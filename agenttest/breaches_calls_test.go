package agenttest

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// callCases break what holds for calls, their execution and their results.
func callCases() []breachCase {
	setArgs := func(l *log, args, raw, problem string) *log {
		return rewritten(l, func(m *message) {
			c := *m.Content[0].ToolCall
			c.Args, c.RawArgs, c.ArgsError = json.RawMessage(args), raw, problem
			m.Content = slices.Clone(m.Content)
			m.Content[0].ToolCall = &c
		})
	}
	return slices.Concat(resultCases(), suspendCases(), []breachCase{
		{"args are no object", "calls", "want one compacted JSON object", setArgs(maxTurnsLog(), `[]`, "", "")},
		{"args are not compact", "calls", "want one compacted JSON object", setArgs(maxTurnsLog(), `{ }`, "", "")},
		{"args are missing", "calls", "want one compacted JSON object", setArgs(maxTurnsLog(), ``, "", "")},
		{"args are not those streamed", "calls", "want \"{}\"", setArgs(maxTurnsLog(), `{"x":1}`, "", "")},
		{"placeholder is not resolved", "calls", `want "{\"n\":1}"`, setArgs(terminatedLog(), `{}`, "", "")},
		{"raw args without error", "calls", "RawArgs is kept", setArgs(terminatedLog(), `{"n":1}`, `{}{"n":1}`, "")},
		{"error for good args", "calls", "ArgsError is set", setArgs(terminatedLog(), `{}`, `{}{"n":1}`, "bad")},
		{"raw args are lost", "calls", "with ArgsError", func() *log {
			l := ask1()
			return l.badCall(`{"x`, ``)
		}()},
		{"cut call is not marked", "calls", "cut off by the output limit", func() *log {
			l := ask1()
			l.end(1, l.stream(1, delta{0, toolCall, "", "a", "find"}), agentkernel.StopReasonLength, `{}`)
			return l
		}()},
		{"unfinished call survives the abort", "calls", "was not removed", func() *log {
			l := ask1()
			l.end(1, l.stream(1, delta{0, toolCall, `{"x`, "a", "find"}), agentkernel.StopReasonAborted, `{}`)
			return l
		}()},
		{"id is missing", "calls", "has no id", rewritten(terminatedLog(), func(m *message) {
			c := *m.Content[0].ToolCall
			c.ID = ""
			m.Content = []agentkernel.ContentBlock{{Type: toolCall, ToolCall: &c}}
		})},
		{"id changes", "calls", "became", edited(maxTurnsLog(), finished, func(ev *event) { ev.Message.(message).Content[0].ToolCall.ID = "z" })},
		{"id changes while streaming", "calls", "became", func() *log {
			l := ask1()
			l.stream(1, delta{0, toolCall, `{`, "a", "find"}, delta{0, toolCall, `}`, "b", ""})
			return l
		}()},
		{"name changes while streaming", "calls", "became", func() *log {
			l := ask1()
			l.stream(1, delta{0, toolCall, `{`, "a", "fi"}, delta{0, toolCall, `}`, "", "nd"})
			return l
		}()},
		{"id twice in a message", "calls", "is taken", func() *log {
			l := ask1()
			l.stream(1, delta{0, toolCall, `{}`, "a", "find"}, delta{1, toolCall, `{}`, "a", "find"})
			return l
		}()},
		{"minted id is taken", "calls", "is taken", func() *log {
			l := ask1(asks("minted"), toolMessage(agentkernel.ToolResult{ToolCallID: "minted"}))
			l.end(1, l.stream(1, delta{0, toolCall, `{}`, "", "find"}), agentkernel.StopReasonToolUse, `{}`)
			return l
		}()},
		{"id of an earlier turn", "calls", "is taken", func() *log {
			l, msg := calls1()
			c := msg.ToolCalls()
			l.respond(msg, l.exec(c[0], agentkernel.ToolOK), l.exec(c[1], agentkernel.ToolOK)).turn().ask(1)
			l.stream(1, delta{0, toolCall, `{}`, "a", "find"})
			return l
		}()},
		{"id of the history", "calls", "is taken", func() *log {
			l := ask1(asks("a"), toolMessage(agentkernel.ToolResult{ToolCallID: "a"}))
			l.stream(1, delta{0, toolCall, `{}`, "a", "find"})
			return l
		}()},
		{"bad call is executed", "calls", "has no arguments", func() *log {
			l := ask1().badCall(`{"x`, `{"x`)
			l.exec(agentkernel.ToolCall{ID: "a", Name: "find", Args: json.RawMessage(`{}`)}, agentkernel.ToolOK)
			return l
		}()},
	})
}

// badCall ends an answer with a call of the id a whose arguments raw are no JSON.
func (l *log) badCall(raw, kept string) *log {
	msg := l.stream(1, delta{0, toolCall, raw, "a", "find"})
	c := *msg.Content[0].ToolCall
	c.Args, c.RawArgs, c.ArgsError = json.RawMessage(`{}`), kept, "bad"
	msg.Content = []agentkernel.ContentBlock{{Type: toolCall, ToolCall: &c}}
	msg.StopReason = agentkernel.StopReasonToolUse
	return l.add(event{Type: agentkernel.EventMessageEnd, Attempt: 1, Message: msg})
}

// resultCases break rule 6, 9 and 10.
func resultCases() []breachCase {
	run := func(then func(l *log, msg message, a, b agentkernel.ToolCall)) *log {
		l, msg := calls1()
		c := msg.ToolCalls()
		then(l, msg, c[0], c[1])
		return l
	}
	ok, failed := agentkernel.ToolOK, agentkernel.ToolFailed
	return []breachCase{
		{"results in another order", "6", "in the order of the calls", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra, rb := l.exec(a, ok), l.exec(b, ok)
			l.respond(msg, rb, ra)
		})},
		{"result twice", "6", "second result", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra := l.exec(a, ok)
			l.exec(b, ok)
			l.respond(msg, ra, ra)
		})},
		{"result while a call runs", "6", "executes", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra := l.exec(a, ok)
			l.execStart(b).respond(msg, ra)
		})},
		{"call without result", "6", "left without result", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			l.respond(msg, l.exec(a, ok))
			l.turn().ask(1)
		}).unansweredEnd()},
		{"call without exec, then a request", "6", "is asked while call \"b\"", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			l.respond(msg, l.exec(a, ok)).turn().ask(1)
		})},
		{"user speaks before the result", "6", "comes before call", newLog(asks("a")).start().turn().user("hi")},
		{"user speaks among the results", "6", "among the results", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra := l.exec(a, ok)
			l.exec(b, ok)
			l.whole(toolMessage(ra)).user("hi")
		})},
		{"result of a call that is not open", "6", "not open", newLog().start().turn().whole(toolMessage(agentkernel.ToolResult{ToolCallID: "x"}))},
		{"call starts twice", "6", "starts twice", run(func(l *log, _ message, a, _ agentkernel.ToolCall) { l.exec(a, ok); l.execStart(a) })},
		{"call of nobody", "6", "none of this turn", run(func(l *log, _ message, a, _ agentkernel.ToolCall) { a.ID = "z"; l.execStart(a) })},
		{"old call of nobody", "6", "no call is open", newLog().start().turn().execStart(asks("x").ToolCalls()[0])},
		{"other tool", "6", "got Tool", run(func(l *log, _ message, a, _ agentkernel.ToolCall) { a.Name = "z"; l.execStart(a) })},
		{"end twice", "1", "which has ended", run(func(l *log, _ message, a, _ agentkernel.ToolCall) { l.exec(a, ok); l.execEnd(a, ok) })},
		{"update after the end", "1", "which has ended", run(func(l *log, _ message, a, _ agentkernel.ToolCall) {
			l.exec(a, ok)
			l.execUpdate(a, agentkernel.ToolExecUpdateProgress)
		})},
		{"update before the start", "1", "was not started", run(func(l *log, _ message, a, _ agentkernel.ToolCall) { l.execUpdate(a, agentkernel.ToolExecUpdateGate) })},
		{"unknown cause", "6", "got Cause", run(func(l *log, _ message, a, _ agentkernel.ToolCall) { l.exec(a, "maybe") })},
		{"progress of a call that did not start", "6", "reported progress", run(func(l *log, _ message, a, _ agentkernel.ToolCall) {
			l.execStart(a).execUpdate(a, agentkernel.ToolExecUpdateProgress).execEnd(a, agentkernel.ToolNotStarted)
		})},
		{"message tells another cause", "6", "got IsError", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra, rb := l.exec(a, ok), l.exec(b, failed)
			ra.Cause, ra.IsError = failed, true
			l.respond(msg, ra, rb)
		})},
		{"message tells another text", "6", "content differs", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra, rb := l.exec(a, ok), l.exec(b, failed)
			ra.Content = []agentkernel.ContentBlock{agentkernel.TextBlock("z")}
			l.respond(msg, ra, rb)
		})},
		{"response while a call runs", "1", "model_response while", run(func(l *log, msg message, a, _ agentkernel.ToolCall) { l.execStart(a).respond(msg) })},
		{"response lacks a result", "9", "ToolResults", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra, rb := l.exec(a, ok), l.exec(b, ok)
			l.whole(toolMessage(ra)).whole(toolMessage(rb))
			l.add(event{Type: agentkernel.EventModelResponse, Message: msg, ToolResults: []agentkernel.ToolResult{ra}})
		})},
		{"response in another order", "9", "ToolResults[0]", run(func(l *log, msg message, a, b agentkernel.ToolCall) {
			ra, rb := l.exec(a, ok), l.exec(b, ok)
			l.whole(toolMessage(ra)).whole(toolMessage(rb))
			l.add(event{Type: agentkernel.EventModelResponse, Message: msg, ToolResults: []agentkernel.ToolResult{rb, ra}})
		})},
		{"response of another message", "9", "Message differs", func() *log {
			l, msg := ask1().endText("x")
			msg.Usage = nil
			return l.respond(msg)
		}()},
		{"start tells other args", "10", "what the model asked", run(func(l *log, _ message, a, _ agentkernel.ToolCall) {
			a.Args = json.RawMessage(`{"z":1}`)
			l.execStart(a)
		})},
		{"end without args", "10", "want what was executed", run(func(l *log, _ message, a, _ agentkernel.ToolCall) {
			l.execStart(a)
			a.Args = nil
			l.execEnd(a, ok)
		})},
		{"call of an aborted answer runs", "abort", "of an aborted answer ran", func() *log {
			l := ask1()
			msg := l.end(1, l.stream(1, delta{0, toolCall, `{}`, "a", "find"}), agentkernel.StopReasonAborted, `{}`)
			l.exec(msg.ToolCalls()[0], ok)
			return l
		}()},
	}
}

// unansweredEnd replaces the log's last turn by a normal end.
func (l *log) unansweredEnd() *log {
	l.events = l.events[:len(l.events)-2]
	l.runs[mainRun].seq -= 2
	l.runs[mainRun].turn--
	return l.over(agentkernel.EndTerminated, nil)
}

// endCases break rules 2, 5, 7 and 8 and the table of ends.
func endCases() []breachCase {
	say := func() *log { return ask1().say(1, "x") }
	err := failure(agentkernel.KindProvider)
	last := func(l *log, change func(*event)) *log { return edited(l, ofType(agentkernel.EventAgentEnd), change) }
	done := func() *log { return say().over(agentkernel.EndStop, nil) }
	return slices.Concat(tableCases(), []breachCase{
		{"messages in another order", "2", "NewMessages[0]", last(done(), func(ev *event) { slices.Reverse(ev.NewMessages) })},
		{"message is missing", "2", "got 1 NewMessages", last(done(), func(ev *event) { ev.NewMessages = ev.NewMessages[:1] })},
		{"seq jumps", "5", "got Seq 5, want 4", done().without(3)},
		{"time goes back", "5", "got Time", edited(done(), ofType(agentkernel.EventModelRequest), func(ev *event) { ev.Time = sometime })},
		{"merged update on a full stream", "5", "Coalesced", edited(done(), ofType(agentkernel.EventMessageUpdate), func(ev *event) { ev.Coalesced = 1 })},
		{"something after error", "7", "after error", newLog().start().add(event{Type: agentkernel.EventError, Err: err}).turn()},
		{"two errors", "7", "after error", newLog().start().add(event{Type: agentkernel.EventError, Err: err}).add(event{Type: agentkernel.EventError, Err: err})},
		{"end tells another error", "7", "want that of error", last(misuseLog(), func(ev *event) { ev.Err = failure(agentkernel.KindAuth) })},
		{"no end", "8", "stops without agent_end", say()},
		{"something after the end", "8", "event after agent_end", done().turn()},
		{"wrong count of turns", "8", "TurnCount", last(done(), func(ev *event) { ev.Summary.TurnCount++ })},
		{"wrong count of retries", "8", "Retries", last(retryLog(), func(ev *event) { ev.Summary.Retries++ })},
		{"wrong usage", "8", "Summary.Usage", last(done(), func(ev *event) { ev.Summary.Usage.Input++ })},
		{"wrong discarded usage", "8", "Summary.DiscardedUsage", last(retryLog(), func(ev *event) { ev.Summary.DiscardedUsage = agentkernel.Usage{} })},
		{"turn after an abort", "abort", "a turn starts", func() *log {
			l := ask1()
			return l.respond(l.end(1, l.stream(1, delta{0, text, "x", "", ""}), agentkernel.StopReasonAborted)).turn()
		}()},
		{"shown content is discarded by the abort", "abort", "want it ended", func() *log {
			l := ask1()
			msg := l.stream(1, delta{0, text, "x", "", ""})
			l.add(event{Type: agentkernel.EventMessageDiscard, Attempt: 1, Message: msg, Err: canceled()})
			return l.over(agentkernel.EndAborted, canceled())
		}()},
		{"refusal ends as stop", "ends", "want \"refusal\"", last(refusalLog(), func(ev *event) { ev.Summary.EndReason = agentkernel.EndStop })},
		{"cut answer ends as stop", "ends", "want \"length\"", last(lengthLog(), func(ev *event) { ev.Summary.EndReason = agentkernel.EndStop })},
		{"nothing ends as stop", "ends", "want \"empty\"", last(emptyLog(), func(ev *event) { ev.Summary.EndReason = agentkernel.EndStop })},
		{"open calls end as stop", "ends", "want \"\"", last(terminatedLog(), func(ev *event) { ev.Summary.EndReason = agentkernel.EndStop })},
		{"old calls end as stop", "ends", "gave no answer", func() *log {
			l := newLog(asks("a")).start().turn()
			return l.respond(asks("a"), l.exec(asks("a").ToolCalls()[0], agentkernel.ToolInterrupted)).over(agentkernel.EndStop, nil)
		}()},
		{"aborted answer ends as terminated", "ends", "the run was stopped", func() *log {
			l := ask1()
			return l.respond(l.end(1, l.stream(1, delta{0, text, "x", "", ""}), agentkernel.StopReasonAborted)).over(agentkernel.EndTerminated, nil)
		}()},
		{"request after a call was not started", "abort", "a turn starts", func() *log {
			l, msg := calls1()
			c := msg.ToolCalls()
			return l.respond(msg, l.exec(c[0], agentkernel.ToolOK), l.exec(c[1], agentkernel.ToolNotStarted)).turn()
		}()},
		{"run stops without a word", "ends", "the run ends after model_request", ask1().over(agentkernel.EndStop, nil)},
		{"wrong attempt", "fields", "got Attempt 2, want 1", ask1().shiftedAttempt()},
		{"retry tells another error", "7", "want that of message_discard", edited(retryLog(), ofType(agentkernel.EventMessageDiscard), func(ev *event) { ev.Err = errors.New("other") })},
	})
}

// without drops an event as a consumer does that misses it.
func (l *log) without(i int) *log {
	l.events = slices.Delete(l.events, i, i+1)
	return l
}

func (l *log) shiftedAttempt() *log {
	l.events[len(l.events)-1].Attempt = 2
	return l
}

// tableCases are all pairs of end reason and error that the table of ends does not have.
func tableCases() []breachCase {
	kinds := []agentkernel.Kind{
		"", agentkernel.KindCanceled, agentkernel.KindTimeout, agentkernel.KindMaxTurns,
		agentkernel.KindLimit, agentkernel.KindStopGuard, agentkernel.KindServer, "invented",
	}
	var out []breachCase
	for _, reason := range slices.Concat(normalEnds, []agentkernel.EndReason{
		agentkernel.EndAborted, agentkernel.EndTimeout, agentkernel.EndMaxTurns,
		agentkernel.EndLimit, agentkernel.EndStopGuard, agentkernel.EndError, "invented",
	}) {
		for _, kind := range kinds {
			for _, announced := range []bool{false, true} {
				if l := tableLog(reason, kind, announced); l != nil {
					name := string(reason) + " with " + string(kind)
					if announced {
						name += " announced"
					}
					out = append(out, breachCase{name, "ends", "end reason", l})
				}
			}
		}
	}
	return out
}

// tableLog is a run that ends so, or nil where the table allows that.
func tableLog(reason agentkernel.EndReason, kind agentkernel.Kind, announced bool) *log {
	var err error
	if kind != "" {
		err = failure(kind)
	}
	switch {
	case err == nil && announced:
		return nil // an Error without Err breaks another rule
	case slices.Contains(normalEnds, reason) && err == nil:
		return nil
	case reason == agentkernel.EndAborted && kind == agentkernel.KindCanceled && !announced:
		return nil
	case failedEnds[reason] == kind && err != nil && announced:
		return nil
	case reason == agentkernel.EndError && kind == agentkernel.KindServer && announced:
		return nil
	}
	l := ask1().say(1, "x")
	if announced {
		l.add(event{Type: agentkernel.EventError, Err: err})
	}
	return l.overOf(mainRun, reason, err)
}

// runCases break what holds between runs.
func runCases() []breachCase {
	child := func(l *log) *log {
		l.runs["child"] = &logRun{parent: mainRun}
		return l.addTo("child", event{Type: agentkernel.EventAgentStart})
	}
	other := ask1()
	other.runs["other"] = &logRun{}
	return []breachCase{
		{"second run within the first", "runs", "before run", other.addTo("other", event{Type: agentkernel.EventAgentStart})},
		{"child without call", "runs", "executes no call", child(ask1())},
		{"child outlives its call", "runs", "before its child run", func() *log {
			l, msg := calls1()
			c := msg.ToolCalls()
			l.execStart(c[0])
			child(l)
			l.execStart(c[1]).execEnd(c[1], agentkernel.ToolOK)
			l.execEnd(c[0], agentkernel.ToolOK)
			return l
		}()},
	}
}
