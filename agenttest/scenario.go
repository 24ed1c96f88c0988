package agenttest

import (
	"github.com/agentkernel-go/agentkernel"
)

// Scenario is one answer that the backend of an adapter is to give, described as what a
// reader of the finished message sees. A backend writes it in its own wire format, in
// increments as small as that format allows.
type Scenario struct {
	// Name is the name of the subtest.
	Name string

	// Thinking, Text and Calls are the answer's content, in this order. The calls have ID,
	// Name and Args; the tests compare Args as JSON.
	Thinking string
	Text     string
	Calls    []agentkernel.ToolCall
	// Usage is what the backend counts; nil where it counts nothing. The tests compare
	// Input, Output and Total.
	Usage *agentkernel.Usage
	// Stop is why the model stops.
	Stop agentkernel.StopReason

	// Truncated: the connection ends, properly by the transport's rules, behind the content
	// and before anything that tells that the answer is whole.
	Truncated bool
	// Stalls: behind the content the backend is silent and keeps the connection open until
	// the client is gone.
	Stalls bool
	// Status is the HTTP status of a refusal in place of a stream, 0 for none. An adapter
	// without HTTP reports what corresponds, or its author's newModel skips the subtest.
	Status int
}

// Reply is the scenario as a reply of a scripted model, for tests of tests.
func (s Scenario) Reply() Reply {
	if s.Status != 0 {
		return Fail(&agentkernel.Error{
			Kind: statusKinds[s.Status][0], Op: "agenttest", Status: s.Status, Retryable: retryable(s.Status),
		})
	}
	var r Reply
	if s.Thinking != "" {
		r = r.Thinking(s.Thinking)
	}
	if s.Text != "" {
		r = r.Text(s.Text)
	}
	for _, c := range s.Calls {
		r = r.Call(c.ID, c.Name, string(c.Args))
	}
	r = r.Chunks(3)
	switch {
	case s.Truncated:
		return r.EndsWithoutDone()
	case s.Stalls:
		return r.Stall()
	}
	if s.Usage != nil {
		r = r.Usage(*s.Usage)
	}
	return r.Stop(s.Stop)
}

// scenarios are what [TestModel] asks of every adapter.
var scenarios = []Scenario{
	{Name: "text", Text: "The answer is 42: ä, 漢字, 🎉.", Usage: &agentkernel.Usage{Input: 11, Output: 7, Total: 18}, Stop: agentkernel.StopReasonStop},
	{Name: "text without usage", Text: "ok", Stop: agentkernel.StopReasonStop},
	{Name: "white space", Text: "\n  two\n\n\tlines  \n", Stop: agentkernel.StopReasonStop},
	{Name: "thinking", Thinking: "Let me see.\nYes.", Text: "Yes.", Stop: agentkernel.StopReasonStop},
	{Name: "one call", Calls: []agentkernel.ToolCall{call("call_a", `{"city":"Köln","days":[1,2.5,null],"deep":{"x":"\"y\""}}`)}, Stop: agentkernel.StopReasonToolUse},
	{Name: "call without arguments", Calls: []agentkernel.ToolCall{call("call_a", `{}`)}, Stop: agentkernel.StopReasonToolUse},
	{Name: "text and two calls", Text: "I look.", Calls: []agentkernel.ToolCall{call("call_a", `{"n":1}`), call("call_b", `{"n":2}`)}, Usage: &agentkernel.Usage{Input: 3, Output: 4, Total: 7}, Stop: agentkernel.StopReasonToolUse},
	{Name: "length", Text: "and then", Stop: agentkernel.StopReasonLength},
	{Name: "truncated text", Text: "half an ans", Truncated: true},
	{Name: "truncated call", Calls: []agentkernel.ToolCall{call("call_a", `{"n":1}`)}, Truncated: true},
	{Name: "truncated at once", Truncated: true},
	{Name: "status 400", Status: 400},
	{Name: "status 401", Status: 401},
	{Name: "status 429", Status: 429},
	{Name: "status 500", Status: 500},
	{Name: "status 503", Status: 503},
}

// stalled is the scenario of the tests that leave a stream in its middle.
var stalled = Scenario{Name: "stalled", Text: "one two three", Stalls: true}

// scenarioTool is the tool that the scenarios call.
const scenarioTool = "look_up"

func call(id, args string) agentkernel.ToolCall {
	return agentkernel.ToolCall{ID: id, Name: scenarioTool, Args: []byte(args)}
}

// statusKinds are the kinds that a status without a telling body may be reported as.
var statusKinds = map[int][]agentkernel.Kind{
	400: {agentkernel.KindInvalidRequest},
	401: {agentkernel.KindAuth},
	429: {agentkernel.KindRateLimit},
	500: {agentkernel.KindServer},
	503: {agentkernel.KindServer, agentkernel.KindOverloaded},
}

func retryable(status int) bool { return status == 429 || status >= 500 }
