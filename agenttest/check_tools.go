package agenttest

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// toolTurn is the calls of one turn: those of its answer, or those that the history left open.
type toolTurn struct {
	calls   []agentkernel.ToolCall
	old     *message // the message of the history that made the calls
	unknown bool     // that message is not known, so calls grows as they start
	aborted bool
	execs   map[string]*exec
	results []string // ids of the calls whose results became messages
	at      int      // the place in calls behind the last of them
}

// exec is one call between its ToolExecStart and its result message.
type exec struct {
	call     agentkernel.ToolCall
	tool     string
	label    string
	progress bool
	gated    bool
	ask      *agentkernel.ProgressPayload // what its gate asked that had no answer
	args     json.RawMessage              // on ToolExecEnd
	result   *agentkernel.ToolResult      // nil until ToolExecEnd
}

func newToolTurn(answer *message) *toolTurn {
	return &toolTurn{
		calls:   answer.ToolCalls(),
		aborted: answer.StopReason == agentkernel.StopReasonAborted,
		execs:   make(map[string]*exec),
	}
}

// openExecs is the ids of the calls that execute now.
func (r *run) openExecs() map[string]bool {
	open := make(map[string]bool)
	if r.tools != nil {
		for id, x := range r.tools.execs {
			if x.result == nil {
				open[id] = true
			}
		}
	}
	return open
}

// openCalls is the calls that the end of a history leaves without result. An answer that
// was aborted or failed, or that a user's message follows, leaves none.
func openCalls(history []agentkernel.AgentMessage) []agentkernel.ToolCall {
	answered := make(map[string]bool)
	for _, m := range slices.Backward(history) {
		msg, ok := asMessage(m)
		switch {
		case !ok:
		case msg.Role == agentkernel.RoleTool:
			answered[msg.ToolCallID] = true
		case msg.Role != agentkernel.RoleAssistant || unfinished(msg.StopReason):
			return nil
		default:
			return slices.DeleteFunc(msg.ToolCalls(), func(c agentkernel.ToolCall) bool { return answered[c.ID] })
		}
	}
	return nil
}

// lastAnswer is the last assistant message of a history, nil where there is none.
func lastAnswer(history []agentkernel.AgentMessage) *message {
	for _, m := range slices.Backward(history) {
		if msg, ok := asMessage(m); ok && msg.Role == agentkernel.RoleAssistant {
			return &msg
		}
	}
	return nil
}

func unfinished(stop agentkernel.StopReason) bool {
	return stop == agentkernel.StopReasonAborted || stop == agentkernel.StopReasonError
}

func hasCall(calls []agentkernel.ToolCall, id string) bool {
	return slices.ContainsFunc(calls, func(c agentkernel.ToolCall) bool { return c.ID == id })
}

func (r *run) execStart(ev *event) error {
	if r.phase == phaseTurn {
		if err := r.openOldCalls(ev); err != nil {
			return err
		}
	}
	if err := r.expect(ev, phaseTools); err != nil {
		return err
	}
	t := r.tools
	if t.execs[ev.ToolID] != nil {
		return breach(ev, "6", "call %q starts twice", ev.ToolID)
	}
	i := slices.IndexFunc(t.calls, func(c agentkernel.ToolCall) bool { return c.ID == ev.ToolID })
	switch {
	case i < 0 && !t.unknown:
		return breach(ev, "6", "call %q is none of this turn", ev.ToolID)
	case i < 0:
		t.calls = append(t.calls, agentkernel.ToolCall{ID: ev.ToolID, Name: ev.Tool, Args: ev.Args})
		i = len(t.calls) - 1
	}
	call := t.calls[i]
	switch {
	case ev.ToolID == "":
		return breach(ev, "fields", "ToolID is empty")
	case ev.Tool != call.Name:
		return breach(ev, "6", "got Tool %q, want %q", ev.Tool, call.Name)
	case !isObject(ev.Args) || string(ev.Args) != string(call.Args):
		return breach(ev, "10", "got Args %s, want what the model asked: %s", short(string(ev.Args)), short(string(call.Args)))
	}
	t.execs[ev.ToolID] = &exec{call: call, tool: ev.Tool, label: ev.ToolLabel}
	return nil
}

// openOldCalls begins a turn that answers calls of the history.
func (r *run) openOldCalls(ev *event) error {
	t := &toolTurn{old: lastAnswer(r.history), calls: openCalls(r.history), execs: make(map[string]*exec)}
	t.unknown = t.old == nil && !r.known
	if len(t.calls) == 0 && !t.unknown {
		return breach(ev, "6", "call %q starts, but no call is open", ev.ToolID)
	}
	r.phase, r.tools = phaseTools, t
	return nil
}

// executing finds the call that an update or end belongs to.
func (r *run) executing(ev *event) (*exec, error) {
	if err := r.expect(ev, phaseTools); err != nil {
		return nil, err
	}
	x := r.tools.execs[ev.ToolID]
	switch {
	case x == nil:
		return nil, breach(ev, "1", "%s of call %q, which was not started", ev.Type, ev.ToolID)
	case x.result != nil:
		return nil, breach(ev, "1", "%s of call %q, which has ended", ev.Type, ev.ToolID)
	case ev.Tool != x.tool || ev.ToolLabel != x.label:
		return nil, breach(ev, "6", "got Tool %q and ToolLabel %q, want %q and %q as on tool_exec_start", ev.Tool, ev.ToolLabel, x.tool, x.label)
	case ev.Args != nil && !isObject(ev.Args):
		return nil, breach(ev, "10", "got Args %s, want one compacted JSON object", short(string(ev.Args)))
	}
	return x, nil
}

func (r *run) execUpdate(ev *event) error {
	x, err := r.executing(ev)
	if err != nil {
		return err
	}
	switch ev.UpdateKind {
	case agentkernel.ToolExecUpdateProgress:
		x.progress = true
		if ev.Progress == nil || ev.Args == nil {
			return breach(ev, "fields", "Progress or Args is nil on an update of kind %q", ev.UpdateKind)
		}
	case agentkernel.ToolExecUpdatePreview:
	case agentkernel.ToolExecUpdateGate:
		if x.gated {
			return breach(ev, "6", "the gate of call %q answers twice", ev.ToolID)
		}
		x.gated = true
		if ev.Progress != nil && ev.Progress.Kind == agentkernel.ProgressAsk {
			x.ask = ev.Progress
		}
	default:
		return breach(ev, "fields", "got UpdateKind %q, want one of the documented", ev.UpdateKind)
	}
	return nil
}

// started tells for each cause whether a call of that cause was executed.
var started = map[agentkernel.ToolCause]bool{
	agentkernel.ToolOK: true, agentkernel.ToolFailed: true, agentkernel.ToolInterrupted: true,
	agentkernel.ToolTimeout: true, agentkernel.ToolPanic: true,

	agentkernel.ToolInvalid: false, agentkernel.ToolUnknown: false, agentkernel.ToolDenied: false,
	agentkernel.ToolSkipped: false, agentkernel.ToolNotStarted: false, agentkernel.ToolDisabled: false,
	agentkernel.ToolCutOff: false, agentkernel.ToolLimit: false,
}

func (r *run) execEnd(ev *event) error {
	x, err := r.executing(ev)
	if err != nil {
		return err
	}
	res := ev.Result
	switch {
	case res == nil:
		return breach(ev, "fields", "Result is nil")
	case res.ToolCallID != ev.ToolID || res.ToolName != ev.Tool:
		return breach(ev, "6", "Result is of call %q of %q, want %q of %q", res.ToolCallID, res.ToolName, ev.ToolID, ev.Tool)
	case ev.IsError != res.IsError:
		return breach(ev, "6", "got IsError %t, want %t as in Result", ev.IsError, res.IsError)
	case ev.Duration < 0:
		return breach(ev, "10", "got Duration %v", ev.Duration)
	case res.Usage != nil && (res.Usage.Input < 0 || res.Usage.Output < 0 || res.Usage.Total < 0):
		return breach(ev, "6", "Result.Usage is negative")
	}
	if err := r.checkCause(ev, x); err != nil {
		return err
	}
	x.result, x.args = res, ev.Args
	r.counts.executed++
	if res.IsError {
		r.counts.failed++
	}
	return nil
}

// checkCause checks that the cause fits what is known of the call and of the run.
func (r *run) checkCause(ev *event, x *exec) error {
	cause := ev.Result.Cause
	ran, known := started[cause]
	switch {
	case !known:
		return breach(ev, "6", "got Cause %q, want one of the documented", cause)
	case (cause == agentkernel.ToolOK) == ev.IsError:
		return breach(ev, "6", "got Cause %q with IsError %t", cause, ev.IsError)
	case ran && x.call.ArgsError != "" && !r.checker.AllowRepair:
		return breach(ev, "calls", "call %q has no arguments (%s), but its Cause says that it ran: %q", ev.ToolID, x.call.ArgsError, cause)
	case ran && r.tools.aborted:
		return breach(ev, "abort", "Cause %q says that call %q of an aborted answer ran", cause, ev.ToolID)
	case ran && ev.Args == nil:
		return breach(ev, "10", "Args is nil, want what was executed")
	case ran && x.ask != nil:
		return breach(ev, "6", "the gate of call %q had no answer, but its Cause says that it ran: %q", ev.ToolID, cause)
	case x.progress && cause == agentkernel.ToolNotStarted:
		return breach(ev, "6", "call %q reported progress, but its Cause is %q", ev.ToolID, cause)
	}
	r.stopped = r.stopped || cause == agentkernel.ToolNotStarted
	return nil
}

// resultStart checks the order of the messages that hold the results.
func (r *run) resultStart(ev *event) error {
	msg, ok := asMessage(ev.Message)
	if !ok || msg.Role != agentkernel.RoleTool {
		return breach(ev, "6", "got a message of role %q among the results of the calls", ev.Message.GetRole())
	}
	for id := range r.openExecs() {
		return breach(ev, "6", "a result becomes a message while call %q executes", id)
	}
	t := r.tools
	x := t.execs[msg.ToolCallID]
	switch {
	case slices.Contains(t.results, msg.ToolCallID):
		return breach(ev, "6", "second result of call %q", msg.ToolCallID)
	case x == nil:
		return breach(ev, "6", "result of call %q, which has no tool_exec_end", msg.ToolCallID)
	}
	for ; !t.unknown && t.calls[t.at].ID != msg.ToolCallID; t.at++ {
		if id := t.calls[t.at].ID; t.at+1 == len(t.calls) || !t.leaves(id) {
			return breach(ev, "6", "result of call %q, want that of %q, in the order of the calls", msg.ToolCallID, id)
		}
	}
	if !t.unknown && len(t.execs) != len(t.calls) {
		r.leftOpen = true
	}
	r.phase = phaseResults
	return nil
}

// resultEnd checks a result message against the ToolExecEnd of its call.
func (r *run) resultEnd(ev *event) error {
	msg, _ := asMessage(ev.Message)
	t := r.tools
	res := t.execs[msg.ToolCallID].result
	switch {
	case msg.ToolName != res.ToolName:
		return breach(ev, "6", "got ToolName %q, want %q", msg.ToolName, res.ToolName)
	case msg.IsError != res.IsError || msg.Cause != res.Cause:
		return breach(ev, "6", "got IsError %t and Cause %q, want %t and %q as on tool_exec_end", msg.IsError, msg.Cause, res.IsError, res.Cause)
	case !reflect.DeepEqual(msg.Usage, res.Usage):
		return breach(ev, "6", "the message's Usage differs from the result's")
	case len(res.Content) > 0 && !reflect.DeepEqual(msg.Content, res.Content):
		return breach(ev, "6", "the message's content differs from the result's")
	case msg.StopReason != "" || msg.RawStopReason != "" || msg.Model != "" || msg.HasToolCalls():
		return breach(ev, "6", "a tool message has the fields of an assistant's")
	}
	t.results = append(t.results, msg.ToolCallID)
	t.at = 1 + slices.IndexFunc(t.calls, func(c agentkernel.ToolCall) bool { return c.ID == msg.ToolCallID })
	return nil
}

// modelResponse closes the turn.
func (r *run) modelResponse(ev *event) error {
	if err := r.move(ev, phaseResponse, phaseTools, phaseResults); err != nil {
		return err
	}
	for id := range r.openExecs() {
		return breach(ev, "1", "model_response while call %q executes", id)
	}
	msg, ok := ev.Message.(message)
	switch {
	case !ok || msg.Role != agentkernel.RoleAssistant:
		return breach(ev, "9", "Message is no assistant's Message")
	case ev.Duration < 0:
		return breach(ev, "10", "got Duration %v", ev.Duration)
	}
	t := r.tools
	asked := cmp.Or(r.response, t.old)
	if asked == nil {
		if err := t.checkOldAnswer(ev, &msg); err != nil {
			return err
		}
	} else if !reflect.DeepEqual(msg, *asked) {
		return breach(ev, "9", "Message differs from the one that made the calls")
	}
	if len(t.results) < len(t.calls) {
		r.leftOpen = true
	}
	r.left = t
	return t.checkResults(ev)
}

// checkOldAnswer checks the order of the results against the message that made the calls,
// which stands in a history that is not known.
func (t *toolTurn) checkOldAnswer(ev *event, msg *message) error {
	calls := slices.DeleteFunc(msg.ToolCalls(), func(c agentkernel.ToolCall) bool { return !hasCall(t.calls, c.ID) })
	if len(calls) != len(t.calls) {
		return breach(ev, "9", "the calls of this turn are not those of Message")
	}
	t.calls = calls
	n := 0
	for _, c := range calls {
		if !slices.Contains(t.results, c.ID) {
			continue
		}
		if t.results[n] != c.ID {
			return breach(ev, "6", "result of call %q before that of %q, want the order of the calls", t.results[n], c.ID)
		}
		n++
	}
	return nil
}

// checkResults checks that ToolResults are those of the calls, in their order. Where the
// run stopped among them, ToolResults may be of all that ended or of all that became messages.
func (t *toolTurn) checkResults(ev *event) error {
	var ended []agentkernel.ToolResult
	for _, c := range t.calls {
		if x := t.execs[c.ID]; x != nil && x.result != nil {
			ended = append(ended, *x.result)
		}
	}
	got := ev.ToolResults
	if len(got) == len(t.results) {
		ended = ended[:0]
		for _, id := range t.results {
			ended = append(ended, *t.execs[id].result)
		}
	}
	if len(got) != len(ended) && len(got) != len(t.results) {
		return breach(ev, "9", "got %d ToolResults, want %d", len(got), len(ended))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], ended[i]) {
			return breach(ev, "9", "ToolResults[%d] is of call %q, want what tool_exec_end said of call %q", i, got[i].ToolCallID, ended[i].ToolCallID)
		}
	}
	return nil
}
