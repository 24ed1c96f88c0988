package agenttest

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// log writes a valid stream by hand, without the kernel: what the checker accepts must not
// depend on what the loop does.
type log struct {
	events  []event
	runs    map[string]*logRun
	history []agentkernel.AgentMessage
	clock   time.Time
}

type logRun struct {
	parent string
	seq    uint64
	turn   int
	ended  []agentkernel.AgentMessage
}

const mainRun = "run"

func newLog(history ...agentkernel.AgentMessage) *log {
	return &log{
		runs:    map[string]*logRun{mainRun: {}},
		history: history,
		clock:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func (l *log) add(ev event) *log { return l.addTo(mainRun, ev) }

func (l *log) addTo(id string, ev event) *log {
	r := l.runs[id]
	r.seq++
	if ev.Type == agentkernel.EventTurnStart {
		r.turn++
	}
	l.clock = l.clock.Add(time.Second)
	ev.RunID, ev.ParentRunID, ev.Seq, ev.Turn, ev.Time = id, r.parent, r.seq, r.turn, l.clock
	if ev.Type == agentkernel.EventMessageEnd {
		r.ended = append(r.ended, ev.Message)
	}
	l.events = append(l.events, ev)
	return l
}

func (l *log) start() *log { return l.add(event{Type: agentkernel.EventAgentStart}) }
func (l *log) turn() *log  { return l.add(event{Type: agentkernel.EventTurnStart}) }

func (l *log) whole(m agentkernel.AgentMessage) *log {
	return l.add(event{Type: agentkernel.EventMessageStart, Message: m}).
		add(event{Type: agentkernel.EventMessageEnd, Message: m})
}

func (l *log) user(text string) *log { return l.whole(userSays(text)) }

func userSays(text string) message {
	return message{Role: agentkernel.RoleUser, Content: []agentkernel.ContentBlock{agentkernel.TextBlock(text)}, Timestamp: sometime}
}

var sometime = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func (l *log) ask(attempt int) *log {
	req := &agentkernel.ModelRequest{System: "Be brief.", Messages: []message{userSays("hi")}}
	return l.add(event{Type: agentkernel.EventModelRequest, Attempt: attempt, Request: req})
}

// delta is one increment of a message that is written by hand.
type delta struct {
	block    int
	kind     agentkernel.ContentType
	text     string
	id, name string
}

// stream writes MessageStart and the updates, and returns the last partial.
func (l *log) stream(attempt int, deltas ...delta) message {
	msg := message{Role: agentkernel.RoleAssistant, Timestamp: sometime, Model: "m-1"}
	for i, d := range deltas {
		msg.Content = slices.Clone(msg.Content)
		ev := event{Type: agentkernel.EventMessageUpdate, Attempt: attempt, Delta: d.text, ContentIndex: d.block, DeltaKind: deltaKinds[d.kind]}
		if d.block == len(msg.Content) {
			msg.Content = append(msg.Content, agentkernel.ContentBlock{Type: d.kind})
		}
		grow(&msg.Content[d.block], d, &ev)
		ev.Message = msg
		if i == 0 {
			l.add(event{Type: agentkernel.EventMessageStart, Attempt: attempt, Message: msg})
		}
		l.add(ev)
	}
	if len(deltas) == 0 {
		l.add(event{Type: agentkernel.EventMessageStart, Attempt: attempt, Message: msg})
	}
	return msg
}

func grow(b *agentkernel.ContentBlock, d delta, ev *event) {
	switch d.kind {
	case agentkernel.ContentText:
		b.Text += d.text
	case agentkernel.ContentThinking:
		b.Thinking += d.text
	default:
		var c agentkernel.ToolCall
		if b.ToolCall != nil {
			c = *b.ToolCall
		}
		c.RawArgs += d.text
		c.ID += d.id
		c.Name += d.name
		b.ToolCall = &c
		ev.ToolID, ev.Tool = c.ID, c.Name
	}
}

// end finishes a partial: its calls get the given args, in their order.
func (l *log) end(attempt int, msg message, stop agentkernel.StopReason, args ...string) message {
	msg.Content = slices.Clone(msg.Content)
	for i := range msg.Content {
		if b := &msg.Content[i]; b.ToolCall != nil {
			c := *b.ToolCall
			c.Args, c.RawArgs, args = json.RawMessage(args[0]), "", args[1:]
			if c.ID == "" {
				c.ID = "minted"
			}
			b.ToolCall = &c
		}
	}
	msg.StopReason, msg.RawStopReason = stop, "raw_"+string(stop)
	msg.Usage = usage(10, 5)
	l.add(event{Type: agentkernel.EventMessageEnd, Attempt: attempt, Message: msg, Duration: time.Second})
	return msg
}

func usage(in, out int) *agentkernel.Usage {
	return &agentkernel.Usage{Input: in, Output: out, Total: in + out, Cost: new(0.25)}
}

func (l *log) execStart(c agentkernel.ToolCall) *log {
	return l.add(event{Type: agentkernel.EventToolExecStart, ToolID: c.ID, Tool: c.Name, ToolLabel: "L", Args: c.Args})
}

func (l *log) execUpdate(c agentkernel.ToolCall, kind agentkernel.ToolExecUpdateKind) *log {
	ev := event{Type: agentkernel.EventToolExecUpdate, ToolID: c.ID, Tool: c.Name, ToolLabel: "L", Args: c.Args, UpdateKind: kind}
	if kind == agentkernel.ToolExecUpdateProgress {
		ev.Progress = &agentkernel.ProgressPayload{Kind: "delta", Text: "p", Data: json.RawMessage(`1`)}
	}
	return l.add(ev)
}

func (l *log) execEnd(c agentkernel.ToolCall, cause agentkernel.ToolCause) agentkernel.ToolResult {
	res := agentkernel.TextResult("result of " + c.Name)
	res.ToolCallID, res.ToolName, res.Cause, res.IsError = c.ID, c.Name, cause, cause != agentkernel.ToolOK
	if cause == agentkernel.ToolOK {
		res.Usage = usage(1, 1)
	}
	l.add(event{
		Type: agentkernel.EventToolExecEnd, ToolID: c.ID, Tool: c.Name, ToolLabel: "L", Args: c.Args,
		Result: &res, IsError: res.IsError, Duration: time.Second,
	})
	return res
}

func (l *log) exec(c agentkernel.ToolCall, cause agentkernel.ToolCause) agentkernel.ToolResult {
	l.execStart(c)
	return l.execEnd(c, cause)
}

func toolMessage(res agentkernel.ToolResult) message {
	return message{
		Role: agentkernel.RoleTool, Content: res.Content, Timestamp: sometime, Usage: res.Usage,
		ToolCallID: res.ToolCallID, ToolName: res.ToolName, IsError: res.IsError, Cause: res.Cause,
	}
}

// respond writes the results as messages, and ModelResponse.
func (l *log) respond(answer message, results ...agentkernel.ToolResult) *log {
	for _, res := range results {
		l.whole(toolMessage(res))
	}
	return l.add(event{Type: agentkernel.EventModelResponse, Message: answer, ToolResults: results, Duration: 2 * time.Second})
}

// say writes a whole answer of one text.
func (l *log) say(attempt int, text string) *log {
	msg := l.stream(attempt, delta{0, agentkernel.ContentText, text, "", ""})
	return l.respond(l.end(attempt, msg, agentkernel.StopReasonStop))
}

// over writes the end of the run, with the numbers counted from the log.
func (l *log) over(reason agentkernel.EndReason, err error) *log {
	if err != nil && reason != agentkernel.EndAborted {
		l.add(event{Type: agentkernel.EventError, Err: err})
	}
	return l.overOf(mainRun, reason, err)
}

func (l *log) overOf(id string, reason agentkernel.EndReason, err error) *log {
	s := &agentkernel.RunSummary{EndReason: reason, Duration: time.Minute}
	for _, ev := range l.events {
		if ev.RunID != id {
			continue
		}
		switch ev.Type {
		case agentkernel.EventTurnStart:
			s.TurnCount++
		case agentkernel.EventModelRequest:
			s.Retries += min(ev.Attempt-1, 1)
		case agentkernel.EventToolExecEnd:
			s.ToolCalls++
			if ev.IsError {
				s.ToolErrors++
			}
		case agentkernel.EventMessageEnd:
			s.Usage = s.Usage.Add(usageOf(ev.Message))
		case agentkernel.EventMessageDiscard:
			s.DiscardedUsage = s.DiscardedUsage.Add(usageOf(ev.Message))
		}
	}
	return l.addTo(id, event{
		Type: agentkernel.EventAgentEnd, NewMessages: l.runs[id].ended, Summary: s, Err: err, Duration: time.Minute,
	})
}

func usageOf(m agentkernel.AgentMessage) agentkernel.Usage {
	if msg, ok := m.(message); ok && msg.Usage != nil {
		return *msg.Usage
	}
	return agentkernel.Usage{}
}

const (
	text     = agentkernel.ContentText
	thinking = agentkernel.ContentThinking
	toolCall = agentkernel.ContentToolCall
)

func failure(kind agentkernel.Kind) error {
	return &agentkernel.Error{Kind: kind, Op: "test", Err: errors.New("why")}
}

// mark is a message of a harness.
type mark struct {
	agentkernel.Message
	Note string
}

// validLogs are streams that keep the contract, by name.
func validLogs() map[string]*log {
	return map[string]*log{
		"tools": toolsLog(), "retry": retryLog(), "aborted": abortedLog(), "aborted early": abortedEarlyLog(),
		"max turns": maxTurnsLog(), "misuse": misuseLog(), "child": childLog(), "context": contextLog(),
		"open calls": openCallsLog(), "length": lengthLog(), "empty": emptyLog(), "refusal": refusalLog(),
		"terminated": terminatedLog(), "suspended": suspendedLog(), "commit": commitLog(),
		"deadline": deadlineLog(),
	}
}

func toolsLog() *log {
	l := newLog().start().turn().user("hi").whole(mark{userSays("status"), "note"}).ask(1)
	msg := l.stream(1,
		delta{0, thinking, "Let me", "", ""}, delta{0, thinking, " see.", "", ""}, delta{1, text, "I look: ä", "", ""},
		delta{2, toolCall, "", "", ""}, delta{2, toolCall, `{"q"`, "", "find"}, delta{3, toolCall, "", "b", "other"},
		delta{2, toolCall, `: 1}`, "", ""}, delta{2, toolCall, ``, "a", ""}, delta{4, text, "Now.", "", ""})
	msg = l.end(1, msg, agentkernel.StopReasonToolUse, `{"q":1}`, `{}`)
	a, b := msg.ToolCalls()[0], msg.ToolCalls()[1]
	l.execStart(a).execUpdate(a, agentkernel.ToolExecUpdatePreview).execStart(b)
	l.execUpdate(a, agentkernel.ToolExecUpdateGate).execUpdate(a, agentkernel.ToolExecUpdateProgress)
	resB := l.execEnd(b, agentkernel.ToolFailed)
	resA := l.execEnd(a, agentkernel.ToolOK)
	l.respond(msg, resA, resB)
	return l.turn().user("steer").ask(1).say(1, "Done.").over(agentkernel.EndStop, nil)
}

func retryLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	part := l.stream(1, delta{0, text, "ha", "", ""}, delta{1, toolCall, `{"x`, "a", "find"})
	part.Usage = usage(3, 1)
	err := failure(agentkernel.KindServer)
	retry := func(n int, err error) {
		l.add(event{Type: agentkernel.EventRetry, Attempt: n, Err: err, RetryInfo: &agentkernel.RetryInfo{Attempt: n, MaxRetries: 3, Delay: time.Second, Err: err}})
	}
	l.add(event{Type: agentkernel.EventMessageDiscard, Attempt: 1, Message: part, Err: err})
	retry(1, err)
	l.ask(2)
	retry(2, failure(agentkernel.KindOverloaded))
	l.ask(3)
	msg := l.stream(3, delta{0, toolCall, `{}`, "a", "find"}) // the id of an attempt that never happened
	msg = l.end(3, msg, agentkernel.StopReasonToolUse, `{}`)
	l.respond(msg, l.exec(msg.ToolCalls()[0], agentkernel.ToolOK))
	return l.turn().ask(1).say(1, "Done.").over(agentkernel.EndStop, nil)
}

func canceled() error { return failure(agentkernel.KindCanceled) }

func abortedLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.stream(1, delta{0, text, "half", "", ""}, delta{1, toolCall, `{}`, "a", "find"}, delta{2, toolCall, `{"x`, "b", "find"})
	kept := msg
	kept.Content = slices.Clone(msg.Content[:2])
	kept = l.end(1, kept, agentkernel.StopReasonAborted, `{}`)
	l.respond(kept, l.exec(kept.ToolCalls()[0], agentkernel.ToolNotStarted))
	return l.user("The run was aborted.").over(agentkernel.EndAborted, canceled())
}

func abortedEarlyLog() *log {
	return newLog().start().turn().user("hi").ask(1).over(agentkernel.EndAborted, canceled())
}

func deadlineLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	l.end(1, l.stream(1, delta{0, text, "half", "", ""}), agentkernel.StopReasonAborted)
	answer := l.events[len(l.events)-1].Message.(message)
	return l.respond(answer).over(agentkernel.EndTimeout, failure(agentkernel.KindTimeout))
}

func maxTurnsLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.end(1, l.stream(1, delta{0, toolCall, ``, "a", "find"}), agentkernel.StopReasonToolUse, `{}`)
	return l.respond(msg, l.exec(msg.ToolCalls()[0], agentkernel.ToolUnknown)).
		over(agentkernel.EndMaxTurns, failure(agentkernel.KindMaxTurns))
}

func misuseLog() *log {
	return newLog().start().over(agentkernel.EndError, failure(agentkernel.KindInvalidRequest))
}

func childLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.end(1, l.stream(1, delta{0, toolCall, `{}`, "a", "agent"}), agentkernel.StopReasonToolUse, `{}`)
	c := msg.ToolCalls()[0]
	l.execStart(c)
	l.runs["child"] = &logRun{parent: mainRun}
	l.addTo("child", event{Type: agentkernel.EventAgentStart}).addTo("child", event{Type: agentkernel.EventTurnStart})
	l.addTo("child", event{Type: agentkernel.EventError, Err: failure(agentkernel.KindAuth)})
	l.overOf("child", agentkernel.EndError, l.events[len(l.events)-1].Err)
	l.respond(msg, l.execEnd(c, agentkernel.ToolFailed))
	return l.turn().ask(1).say(1, "Done.").over(agentkernel.EndStop, nil)
}

func contextLog() *log {
	l := newLog(userSays("old")).start()
	l.add(event{Type: agentkernel.EventContext, Context: &agentkernel.ContextInfo{Reason: agentkernel.ContextSetMessages, Messages: []agentkernel.AgentMessage{userSays("new")}}})
	l.turn().user("hi").ask(1)
	err := failure(agentkernel.KindContextOverflow)
	l.add(event{Type: agentkernel.EventRetry, Attempt: 1, Err: err, RetryInfo: &agentkernel.RetryInfo{Attempt: 1, MaxRetries: 3, Err: err}})
	l.add(event{Type: agentkernel.EventContext, Context: &agentkernel.ContextInfo{Reason: "recover", TokensBefore: 9, TokensAfter: 1}})
	return l.ask(2).say(2, "Done.").over(agentkernel.EndStop, nil)
}

// asks is an assistant message of the history with calls of the given ids.
func asks(ids ...string) message {
	msg := message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonToolUse}
	for _, id := range ids {
		msg.Content = append(msg.Content, agentkernel.ContentBlock{
			Type: toolCall, ToolCall: &agentkernel.ToolCall{ID: id, Name: "find", Args: json.RawMessage(`{}`)},
		})
	}
	return msg
}

func openCallsLog() *log {
	old := asks("o1", "o2", "o3")
	done := toolMessage(agentkernel.ToolResult{ToolCallID: "o1", ToolName: "find", Cause: agentkernel.ToolOK})
	l := newLog(userSays("old"), old, done).start().turn()
	c := old.ToolCalls()
	l.respond(old, l.exec(c[1], agentkernel.ToolInterrupted), l.exec(c[2], agentkernel.ToolInterrupted))
	return l.turn().user("hi").ask(1).say(1, "Done.").over(agentkernel.EndStop, nil)
}

func lengthLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.stream(1, delta{0, toolCall, `{"n":1}`, "a", "find"}, delta{1, toolCall, `{"n":`, "b", "find"})
	msg.Content = slices.Clone(msg.Content)
	cut := *msg.Content[1].ToolCall
	msg.Content[1].ToolCall = &cut
	done := l.end(1, msg, agentkernel.StopReasonLength, `{"n":1}`, `{}`)
	done.Content[1].ToolCall.RawArgs, done.Content[1].ToolCall.ArgsError = `{"n":`, "cut off"
	a, b := done.ToolCalls()[0], done.ToolCalls()[1]
	l.respond(done, l.exec(a, agentkernel.ToolOK), l.exec(b, agentkernel.ToolCutOff))
	l.turn().ask(1)
	last := l.end(1, l.stream(1, delta{0, text, "long", "", ""}), agentkernel.StopReasonLength)
	return l.respond(last).over(agentkernel.EndLength, nil)
}

func emptyLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	return l.respond(l.end(1, l.stream(1), agentkernel.StopReasonStop)).over(agentkernel.EndEmpty, nil)
}

func refusalLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.end(1, l.stream(1, delta{0, text, "No.", "", ""}), agentkernel.StopReasonRefusal)
	return l.respond(msg).over(agentkernel.EndRefusal, nil)
}

func terminatedLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.end(1, l.stream(1, delta{0, toolCall, `{}{"n":1}`, "", "find"}), agentkernel.StopReasonStop, `{"n":1}`)
	return l.respond(msg, l.exec(msg.ToolCalls()[0], agentkernel.ToolOK)).over(agentkernel.EndTerminated, nil)
}

// mayI is what the gate of suspendedLog asks.
var mayI = &agentkernel.ProgressPayload{Kind: agentkernel.ProgressAsk, Text: "May I?", Data: json.RawMessage(`{"to":"b"}`)}

// suspendedLog ends with a call that waits for a person, and one behind it.
func suspendedLog() *log {
	l, msg, done := suspendedHead()
	calls := msg.ToolCalls()
	l.respond(msg, done).over(agentkernel.EndSuspended, nil)
	l.events[len(l.events)-1].Summary.Suspended = []agentkernel.Suspension{
		{Call: calls[0], Label: "finds", Ask: mayI, Turn: 1}, {Call: calls[2], Turn: 1},
	}
	return l
}

// suspendedHead is suspendedLog until its calls have ended, and the result of the one that ran.
func suspendedHead() (*log, message, agentkernel.ToolResult) {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.end(1, l.stream(1, delta{0, toolCall, `{}`, "a", "find"}, delta{1, toolCall, `{}`, "b", "find"},
		delta{2, toolCall, `{}`, "c", "find"}), agentkernel.StopReasonToolUse, `{}`, `{}`, `{}`)
	calls := msg.ToolCalls()
	l.add(event{Type: agentkernel.EventToolExecStart, ToolID: "a", Tool: "find", ToolLabel: "finds", Args: calls[0].Args})
	l.add(event{Type: agentkernel.EventToolExecUpdate, ToolID: "a", Tool: "find", ToolLabel: "finds", Args: calls[0].Args,
		UpdateKind: agentkernel.ToolExecUpdateGate, Progress: mayI})
	waits := agentkernel.ErrorResult("not run yet")
	waits.ToolCallID, waits.ToolName, waits.Cause = "a", "find", agentkernel.ToolNotStarted
	done := l.exec(calls[1], agentkernel.ToolOK)
	l.add(event{Type: agentkernel.EventToolExecEnd, ToolID: "a", Tool: "find", ToolLabel: "finds", Args: calls[0].Args, Result: &waits, IsError: true})
	return l, msg, done
}

// commitLog ends where Commit refused the second result.
func commitLog() *log {
	l := newLog().start().turn().user("hi").ask(1)
	msg := l.end(1, l.stream(1, delta{0, toolCall, `{}`, "a", "find"}, delta{1, toolCall, `{}`, "b", "find"}), agentkernel.StopReasonToolUse, `{}`, `{}`)
	a, b := l.exec(msg.ToolCalls()[0], agentkernel.ToolOK), l.exec(msg.ToolCalls()[1], agentkernel.ToolOK)
	l.whole(toolMessage(a))
	l.add(event{Type: agentkernel.EventModelResponse, Message: msg, ToolResults: []agentkernel.ToolResult{a, b}})
	return l.over(agentkernel.EndError, failure(agentkernel.KindCommit))
}

// check is CheckRun from the log's history.
func (l *log) check(events []event) error { return CheckRun(l.history, events) }
