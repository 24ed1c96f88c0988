package agenttest

import (
	"regexp"
	"testing"
)

// unseen are the mutations that leave a log valid, or that nothing else in a log
// contradicts: the limits of what a checker can prove. Each has its reason.
//
// A pattern is matched against "log: how path", as in "tools: removed message_end".
var unseen = []struct{ pattern, reason string }{
	{`^(tools|aborted): removed message_update$`, "a call that an abort removes may never have shown, a block may open with its first text, and an id may be filled in at the end"},
	{`^aborted early: removed model_request$`, "the run may be stopped before it asks"},
	{`^context: removed context$`, "a baseline may be replaced or not"},
	{`^tools: (removed|doubled|swapped with the next) tool_exec_update$`, "a call may report as often as it likes, in any order of kinds"},
	{`: swapped with the next tool_exec_(start|end)$`, "calls interleave as they please"},
	{`^suspended: swapped with the next tool_exec_update$`, "calls interleave as they please"},

	{`: \w+ model_request\.Request\.`, "what the model is shown is a projection that hooks make"},
	{`: \w+ context\.Context\.(Messages|Tokens)`, "the new baseline is nowhere else on the stream"},
	{`: (changed|negative) context\.Context\.Reason$`, "reasons are an open list"},
	{`: \w+ retry\.RetryInfo\.MaxRetries$`, "the policy is nowhere else on the stream"},
	{`: changed retry\.RetryInfo\.(Model|NextModel)$`, "models are named as they please"},
	{`: (changed|zeroed) retry\.RetryInfo\.Delay$`, "clocks are not compared with plans"},
	{`: (changed|zeroed) (message_end|tool_exec_end|model_response)\.Duration$`, "clocks are not compared with durations"},
	{`: (changed|negative) agent_start\.Time$`, "nothing is before the first event"},
	{`: changed agent_end\.Summary\.Abandoned$`, "a goroutine that was left behind says nothing"},

	{`: \w+ message_update\.Message\.(Usage|Content\[\]\.(Signature|Extra))`, "usage and opaque data may come at any time"},
	{`: \w+ message_discard\.Message\.(StopReason|RawStopReason)$`, "a discarded message may say that it failed"},
	{`^commit: \w+ model_response\.ToolResults\(slice\)$`, "where Commit refused a result, ToolResults may hold it or not"},
	{`^suspended: \w+ tool_exec_end\.Result\.(Content|JSON|Details|Stack|Usage|Terminate)`, "the result of a call that is left open goes nowhere"},
	{`^suspended: changed agent_end\.Summary\.Suspended\[\]\.Label$`, "the name of a call without exec events is nowhere else on the stream"},
	{`: (changed|negative) tool_exec_(update|end)\.Args$`, "a gate or a middleware may rewrite arguments"},
	{`: zeroed tool_exec_(update|end)\.Args$`, "where nothing was executed there may be no arguments"},
	{`: \w+ tool_exec_update\.Progress`, "what a tool reports is its own"},
	{`^empty: \w+ message_start\.Message\.(Usage|Model)`, "an empty answer has no update that it must agree with"},
}

func TestCheckNoticesEveryMutation(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(unseen))
	used := make([]bool, len(unseen))
	for i, u := range unseen {
		patterns[i] = regexp.MustCompile(u.pattern)
	}
	excused := func(what string) bool {
		for i, p := range patterns {
			if p.MatchString(what) {
				used[i] = true
				return true
			}
		}
		return false
	}
	tried := 0
	for name, l := range validLogs() {
		for _, m := range append(structural(l.events), altered(l.events)...) {
			tried++
			what := name + ": " + m.how + " " + m.path
			if l.check(m.events) == nil && !excused(what) {
				t.Errorf("%s (event %d): not noticed", what, m.at+1)
			}
		}
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("the excuse %q (%s) was never needed", unseen[i].pattern, unseen[i].reason)
		}
	}
	t.Logf("%d mutations", tried)
}
