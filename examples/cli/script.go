package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// expression finds what looks like arithmetic.
var expression = regexp.MustCompile(`-?[\d(.][\d\s.+\-*/^%()]*`)

// reply is the script of the model that needs no endpoint: it calls the calculator for each
// expression in the prompt, and says what came out.
func reply(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == agentkernel.RoleTool {
		return demo.End(req, demo.Text(report(req.Messages)))
	}
	var calls [][]agentkernel.StreamEvent
	for i, found := range expression.FindAllString(last.TextContent(), -1) {
		calls = append(calls, demo.Call(fmt.Sprintf("call_%d_%d", len(req.Messages), i+1), toolName,
			question{strings.TrimRight(found, ". \n")}))
	}
	if len(calls) == 0 {
		return demo.End(req, demo.Text("I am a script that has expressions like 6 * 7 worked out. Ask me for that, or set OPENAI_API_KEY."))
	}
	return demo.End(req, calls...)
}

// report tells the results behind the last answer.
func report(messages []agentkernel.Message) string {
	asked := make(map[string]string) // by call
	var told []string
	for _, m := range messages {
		switch m.Role {
		case agentkernel.RoleAssistant:
			told = nil
			for _, call := range m.ToolCalls() {
				var q question
				_ = json.Unmarshal(call.Args, &q) // the script's own
				asked[call.ID] = q.Expression
			}
		case agentkernel.RoleTool:
			verb := "is"
			if m.IsError {
				verb = "cannot be worked out:"
			}
			told = append(told, fmt.Sprintf("%s %s %s.", asked[m.ToolCallID], verb, m.TextContent()))
		}
	}
	return strings.Join(told, " ")
}
