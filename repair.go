package agentkernel

import (
	"encoding/json"
	"fmt"
	"slices"
)

// HistoryProblem is something in a history that a provider would refuse.
type HistoryProblem struct {
	// Index is the message's place in the history.
	Index   int
	Problem string
}

// ValidateHistory reports what [RepairHistory] would mend; nothing for a history that the
// kernel wrote and whose calls are answered. There is one exception: the results of a turn in
// whose middle a run was suspended stand in the order in which they came.
func ValidateHistory(history []AgentMessage) []HistoryProblem {
	m := mend(history, false)
	return m.problems
}

// RepairHistory returns a history that a provider accepts, for one that others wrote: each
// call has a non-empty id of its own, arguments that are an object, and exactly one result,
// directly behind its message and in the order of the calls. Results without a call are
// dropped, and so are messages that are nil or have no role, and the calls of messages that
// were aborted or failed; calls without a result get one of cause "interrupted". Messages of
// the harness stay, in their order.
//
// It changes nothing in place; a sound history is returned as it is, and mending twice is
// mending once. The same function mends what a run is given before a model sees it.
func RepairHistory(history []AgentMessage) []AgentMessage { return mend(history, false).result() }

// mending is a history on its way to being sound.
type mending struct {
	history  []AgentMessage
	problems []HistoryProblem
	out      []AgentMessage
	results  map[string][]int // places of the results of each call id that are not used yet
	ids      map[string]bool
}

// mend mends history; with keepOpen it leaves the calls open that a run would answer.
func mend(history []AgentMessage, keepOpen bool) *mending {
	m := &mending{
		history: history, results: make(map[string][]int), ids: make(map[string]bool),
		out: make([]AgentMessage, 0, len(history)),
	}
	for i, message := range history {
		if own, ok := ownMessage(message); ok && own.Role == RoleTool {
			m.results[own.ToolCallID] = append(m.results[own.ToolCallID], i)
		}
	}
	open := -1
	if keepOpen {
		open = openIndex(history)
	}
	used := make(map[int]bool)
	for i, message := range history {
		own, ok := ownMessage(message)
		switch {
		case message == nil || ok && own.Role == "": // a nil *Message has none
			m.note(i, "the message is nil or has no role")
		case !ok:
			m.out = append(m.out, message)
		case own.Role == RoleTool:
			if !used[i] {
				m.note(i, fmt.Sprintf("a result for %q stands where no call waits for it", own.ToolCallID))
			}
		case own.Role == RoleAssistant:
			m.assistant(i, own, used, i == open)
		default:
			m.out = append(m.out, message)
		}
	}
	return m
}

func (m *mending) note(i int, problem string) {
	m.problems = append(m.problems, HistoryProblem{i, problem})
}

func (m *mending) result() []AgentMessage {
	if len(m.problems) == 0 {
		return m.history
	}
	return m.out
}

// assistant takes an assistant message over, with the results of its calls.
func (m *mending) assistant(i int, own Message, used map[int]bool, open bool) {
	if !own.HasToolCalls() {
		m.out = append(m.out, own)
		return
	}
	if !whole(own.StopReason) {
		m.note(i, "an unfinished message has calls")
		own.Content = slices.DeleteFunc(cloneBlocks(own.Content), func(b ContentBlock) bool { return b.ToolCall != nil })
		m.out = append(m.out, own)
		return
	}
	before := len(m.problems)
	mended := own.Clone()
	var results []AgentMessage
	next := i + 1
	for j := range mended.Content {
		call := mended.Content[j].ToolCall
		if call == nil {
			continue
		}
		asked := call.ID
		m.call(i, j, call)
		at := m.find(asked, i)
		if at < 0 && call.ID != asked { // it was answered under the name that it gets here
			at = m.find(call.ID, i)
		}
		switch {
		case at >= 0:
			used[at] = true
			result, _ := ownMessage(m.history[at])
			if next = m.skipForeign(next); at != next {
				m.note(at, fmt.Sprintf("the result for %q does not stand behind its call", asked))
			}
			next = max(next, at) + 1
			result.ToolCallID = call.ID
			results = append(results, result)
		case !open:
			m.note(i, fmt.Sprintf("the call %q has no result", asked))
			result := recorded(*call, interrupted(ToolResult{}, nil), -1)
			results = append(results, result.message())
		}
	}
	if len(m.problems) > before {
		own = mended
	}
	m.out = append(append(m.out, own), results...)
}

// skipForeign returns the next place from i on that does not hold a message of the harness.
func (m *mending) skipForeign(i int) int {
	for i < len(m.history) {
		if _, ok := ownMessage(m.history[i]); ok {
			break
		}
		i++
	}
	return i
}

// call gives a call an id of its own and arguments that are an object.
func (m *mending) call(i, j int, call *ToolCall) {
	if id := call.ID; id == "" || m.ids[id] {
		m.note(i, fmt.Sprintf("the call id %q is empty or taken", id))
		for n := 2; call.ID == "" || m.ids[call.ID]; n++ {
			call.ID = fmt.Sprintf("%s_%d_%d_%d", "call", i, j, n)
		}
	}
	m.ids[call.ID] = true
	if len(call.Args) == 0 || call.Args[0] != '{' || !json.Valid(call.Args) {
		m.note(i, fmt.Sprintf("the arguments of the call %q are no object", call.ID))
		raw := string(call.Args)
		if raw == "" {
			raw = call.RawArgs
		}
		call.RawArgs = raw
		finishArgs(call, nil, false)
	}
}

// find returns the place of the first unused result for id behind i, and before the next
// message that asks with the same id; -1 where there is none.
func (m *mending) find(id string, i int) int {
	places := m.results[id]
	for len(places) > 0 && places[0] < i {
		places = places[1:]
	}
	if len(places) == 0 || m.askedAgain(id, i, places[0]) {
		return -1
	}
	m.results[id] = places[1:]
	return places[0]
}

// askedAgain tells whether a message between two places asks with that id.
func (m *mending) askedAgain(id string, from, to int) bool {
	for _, message := range m.history[from+1 : to] {
		own, ok := ownMessage(message)
		if ok && slices.ContainsFunc(own.Content, func(b ContentBlock) bool {
			return b.ToolCall != nil && b.ToolCall.ID == id
		}) {
			return true
		}
	}
	return false
}

// openIndex is the place of the message whose calls the end of history leaves open, -1 for none.
func openIndex(history []AgentMessage) int {
	if openCalls(history) == nil {
		return -1
	}
	for i, message := range slices.Backward(history) {
		if own, ok := ownMessage(message); ok && own.Role == RoleAssistant {
			return i
		}
	}
	return -1
}
