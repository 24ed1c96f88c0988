package agenttest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// ask1 is a run up to its first model request.
func ask1(history ...agentkernel.AgentMessage) *log {
	return newLog(history...).start().turn().user("hi").ask(1)
}

// calls1 is a run up to the end of an answer that calls find twice, and that answer.
func calls1() (*log, message) {
	l := ask1()
	msg := l.stream(1, delta{0, toolCall, `{}`, "a", "find"}, delta{1, toolCall, `{}`, "b", "find"})
	return l, l.end(1, msg, agentkernel.StopReasonToolUse, `{}`, `{}`)
}

// edited is a valid log in which one event was changed.
func edited(l *log, is func(*event) bool, change func(*event)) *log {
	for i := range l.events {
		if is(&l.events[i]) {
			l.events[i] = deepEvent(l.events[i])
			change(&l.events[i])
			return l
		}
	}
	panic("no such event")
}

func ofType(et eventType) func(*event) bool {
	return func(ev *event) bool { return ev.Type == et }
}

// finished is the first assistant's message that ends.
func finished(ev *event) bool {
	return ev.Type == agentkernel.EventMessageEnd && ev.Message.GetRole() == agentkernel.RoleAssistant
}

// rewritten changes the finished answer of a log wherever it stands.
func rewritten(l *log, change func(*message)) *log {
	for i := range l.events {
		ev := deepEvent(l.events[i])
		switch {
		case finished(&ev), ev.Type == agentkernel.EventModelResponse:
			msg := ev.Message.(message)
			change(&msg)
			ev.Message = msg
		case ev.Type == agentkernel.EventAgentEnd:
			for j, m := range ev.NewMessages {
				if msg, ok := m.(message); ok && msg.Role == agentkernel.RoleAssistant {
					change(&msg)
					ev.NewMessages[j] = msg
				}
			}
		}
		l.events[i] = ev
	}
	return l
}

func TestCheckNamesTheRule(t *testing.T) {
	for _, c := range breachCases() {
		t.Run(c.name, func(t *testing.T) {
			err := c.log.check(c.log.events)
			b, ok := errors.AsType[*Breach](err)
			if !ok {
				t.Fatalf("got %v, want a breach of rule %s\n%s", err, c.rule, Format(c.log.events))
			}
			if b.Rule != c.rule || !strings.Contains(b.Problem, c.says) {
				t.Errorf("got %v\nwant rule %s and %q", b, c.rule, c.says)
			}
		})
	}
}

type breachCase struct {
	name, rule, says string
	log              *log
}

func breachCases() []breachCase {
	return slices.Concat(orderCases(), streamCases(), callCases(), endCases(), runCases())
}

// orderCases break the grammar.
func orderCases() []breachCase {
	two := func(l *log, et eventType) *log { return l.add(event{Type: et}).add(event{Type: et}) }
	retried := func(l *log, attempt int) *log {
		err := failure(agentkernel.KindServer)
		return l.add(event{Type: agentkernel.EventRetry, Attempt: attempt, Err: err, RetryInfo: &agentkernel.RetryInfo{Attempt: attempt, Err: err}})
	}
	baseline := event{Type: agentkernel.EventContext, Context: &agentkernel.ContextInfo{Reason: "r"}}
	response := event{Type: agentkernel.EventModelResponse, Message: message{Role: agentkernel.RoleAssistant}}
	return []breachCase{
		{"no agent_start", "grammar", "got turn_start before agent_start", newLog().turn()},
		{"two starts", "grammar", "got agent_start after agent_start", two(newLog(), agentkernel.EventAgentStart)},
		{"turn in a turn", "grammar", "got turn_start after turn_start", two(newLog().start(), agentkernel.EventTurnStart)},
		{"message outside of a turn", "grammar", "ends with a message of its own", newLog().start().user("hi").over(agentkernel.EndError, failure(agentkernel.KindHook))},
		{"two messages at the end", "grammar", "after the message that ends the run", newLog().start().turn().ask(1).user("a").user("b")},
		{"two contexts", "grammar", "got context", newLog().start().add(baseline).add(baseline)},
		{"context after messages started", "grammar", "got context after model_request", ask1().add(baseline)},
		{"attempt without retry", "grammar", "got model_request after model_request", ask1().ask(2)},
		{"retry before any request", "grammar", "got retry after turn_start", retried(newLog().start().turn(), 1)},
		{"retry of an answer", "grammar", "got retry before all calls", retried(first(ask1().endText("x")), 1)},
		{"answer without request", "grammar", "an assistant's message starts", newLog().start().turn().add(event{Type: agentkernel.EventMessageStart, Message: asks()})},
		{"update of nothing", "grammar", "got message_update after model_request", ask1().add(event{Type: agentkernel.EventMessageUpdate, Attempt: 1, Message: asks()})},
		{"discard of nothing", "grammar", "got message_discard after model_request", ask1().add(event{Type: agentkernel.EventMessageDiscard, Attempt: 1, Message: asks(), Err: errors.New("x")})},
		{"response without answer", "grammar", "got model_response after model_request", ask1().add(response)},
		{"unknown type", "grammar", "unknown event type", newLog().start().add(event{Type: "turn_end"})},
		{"message within a message", "1", "got turn_start between", newLog().start().turn().add(event{Type: agentkernel.EventMessageStart, Message: userSays("a")}).turn()},
		{"end of nothing", "1", "message_end without message_start", newLog().start().turn().add(event{Type: agentkernel.EventMessageEnd, Message: userSays("a")})},
		{"tool within a message", "grammar", "got tool_exec_start while", func() *log {
			l := ask1()
			l.stream(1, delta{0, text, "a", "", ""})
			return l.execStart(asks("x").ToolCalls()[0])
		}()},
		{"answer ended, run ends", "1", "the run ends before all calls", first(ask1().endText("x")).over(agentkernel.EndAborted, canceled())},
		{"message open, run fails", "1", "the run fails while", func() *log {
			l := ask1()
			l.stream(1, delta{0, text, "a", "", ""})
			return l.over(agentkernel.EndError, failure(agentkernel.KindHook))
		}()},
	}
}

func first[T, U any](v T, _ U) T { return v }

// endText streams and ends an answer of one text.
func (l *log) endText(s string) (*log, message) {
	return l, l.end(1, l.stream(1, delta{0, text, s, "", ""}), agentkernel.StopReasonStop)
}

// streamCases break what holds for a message that streams and its end.
func streamCases() []breachCase {
	sayX := func() *log { return ask1().say(1, "x").over(agentkernel.EndStop, nil) }
	edit := func(et eventType, change func(*event)) *log { return edited(sayX(), ofType(et), change) }
	return []breachCase{
		{"delta is not what was added", "3", "does not end with the delta", edit(agentkernel.EventMessageUpdate, func(ev *event) { ev.Delta = "y" })},
		{"partial is more than the deltas", "3", "grew by", edited(toolsLog(),
			func(ev *event) bool { return ev.Delta == " see." }, func(ev *event) { ev.Delta = "see." })},
		{"partial was rewritten", "3", "does not begin with what it was", edited(toolsLog(),
			func(ev *event) bool { return ev.Delta == " see." },
			func(ev *event) { ev.Message.(message).Content[0].Thinking = "Get me see." })},
		{"another block grew", "3", "grew in an update of block", edited(toolsLog(),
			func(ev *event) bool { return strings.HasPrefix(ev.Delta, "I look") },
			func(ev *event) { ev.Message.(message).Content[0].Thinking += "!" })},
		{"two blocks at once", "3", "blocks after", edited(toolsLog(),
			func(ev *event) bool { return strings.HasPrefix(ev.Delta, "I look") },
			func(ev *event) {
				m := ev.Message.(message)
				m.Content = append(m.Content, agentkernel.TextBlock(""))
				ev.Message = m
			})},
		{"update that adds nothing", "3", "adds nothing", func() *log {
			l := ask1()
			l.stream(1, delta{0, text, "a", "", ""}, delta{0, text, "", "", ""})
			return l
		}()},
		{"text goes on behind a call", "3", "after a call opened", func() *log {
			l := ask1()
			l.stream(1, delta{0, text, "a", "", ""}, delta{1, toolCall, "{}", "x", "find"}, delta{0, text, "b", "", ""})
			return l
		}()},
		{"half a rune", "3", "not valid UTF-8", func() *log {
			l := ask1()
			l.stream(1, delta{0, text, "ä"[:1], "", ""})
			return l
		}()},
		{"wrong kind", "3", "DeltaKind", edit(agentkernel.EventMessageUpdate, func(ev *event) { ev.DeltaKind = agentkernel.DeltaThinking })},
		{"wrong block", "3", "ContentIndex", edit(agentkernel.EventMessageUpdate, func(ev *event) { ev.ContentIndex = 1 })},
		{"call of a text", "3", "ToolID", edit(agentkernel.EventMessageUpdate, func(ev *event) { ev.Tool = "find" })},
		{"text differs at the end", "3", "the last partial has", rewritten(sayX(), func(m *message) { m.Content = []agentkernel.ContentBlock{agentkernel.TextBlock("xx")} })},
		{"block only at the end", "3", "was never streamed", rewritten(sayX(), func(m *message) { m.Content = append(slices.Clone(m.Content), agentkernel.TextBlock("y")) })},
		{"block is lost at the end", "3", "block 0 is missing", rewritten(sayX(), func(m *message) { m.Content = nil })},
		{"call is lost without abort", "3", "is missing", rewritten(maxTurnsLog(), func(m *message) { m.Content = nil })},
		{"text is lost by abort", "3", "block 0 is", rewritten(abortedLog(), func(m *message) { m.Content = m.Content[1:] })},
		{"first content twice", "3", "the message starts with 2 blocks", edited(toolsLog(),
			func(ev *event) bool { return ev.Type == agentkernel.EventMessageStart && ev.Attempt == 1 },
			func(ev *event) {
				m := ev.Message.(message)
				m.Content = append(m.Content, m.Content[0])
				ev.Message = m
			})},
		{"start without first content", "3", "differs from that of message_start", sayX().emptyStart()},
		{"start of what no update says", "3", "was never streamed", sayX().withoutUpdates()},
		{"uncompacted JSON", "messages", "no fixed point", rewritten(sayX(), func(m *message) { m.Content[0].Extra = json.RawMessage(`{ "a": 1}`) })},
		{"text is not UTF-8", "messages", "no fixed point", func() *log { l := newLog().start().turn(); return l.user("a\xff") }()},
		{"local time", "messages", "not in UTC", func() *log {
			m := userSays("a")
			m.Timestamp = m.Timestamp.In(time.FixedZone("x", 3600))
			return newLog().start().turn().whole(m)
		}()},
		{"monotonic time", "messages", "without monotonic", func() *log {
			m := userSays("a")
			m.Timestamp = time.Now()
			return newLog().start().turn().whole(m)
		}()},
		{"end carries another message", "1", "another message", newLog().start().turn().
			add(event{Type: agentkernel.EventMessageStart, Message: userSays("a")}).
			add(event{Type: agentkernel.EventMessageEnd, Message: userSays("b")})},
	}
}

// emptyStart takes the content from the assistant's MessageStart.
func (l *log) emptyStart() *log {
	return edited(l, func(ev *event) bool { return ev.Type == agentkernel.EventMessageStart && ev.Attempt > 0 }, func(ev *event) {
		m := ev.Message.(message)
		m.Content = nil
		ev.Message = m
	})
}

func (l *log) withoutUpdates() *log {
	l.events = renumbered(slices.DeleteFunc(l.events, ofTypeValue(agentkernel.EventMessageUpdate)))
	return l
}

func ofTypeValue(et eventType) func(event) bool { return func(ev event) bool { return ev.Type == et } }
