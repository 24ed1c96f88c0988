package main

import (
	"regexp"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// script is the model that plays a role where there is no endpoint. Each has its own pace, as
// endpoints have.
func script(r role) agentkernel.ChatModel {
	switch r.name {
	case "planner":
		return demo.Script(17*time.Millisecond, plan)
	case "sceptic":
		return demo.Script(23*time.Millisecond, doubt)
	case "writer":
		return demo.Script(29*time.Millisecond, write)
	}
	return demo.Script(13*time.Millisecond, orchestrate)
}

// call is the arguments of the team's tool.
type call struct {
	Mode  string `json:"mode"`
	Tasks []task `json:"tasks"`
}

type task struct {
	Agent  string `json:"agent"`
	Prompt string `json:"prompt"`
}

// orchestrate hands the prompt on to everybody, and tells what they say.
func orchestrate(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	last := req.Messages[len(req.Messages)-1]
	switch {
	case last.Role == agentkernel.RoleTool && last.IsError:
		return demo.End(req, demo.Text("Not everybody could answer.\n"+last.TextContent()))
	case last.Role == agentkernel.RoleTool:
		return demo.End(req, demo.Text("This is what we think.\n"+last.TextContent()))
	}
	ask := call{Mode: "parallel"}
	for _, r := range members {
		ask.Tasks = append(ask.Tasks, task{r.name, last.TextContent()})
	}
	return demo.End(req, demo.Text("Let me ask the team."), demo.Call("call_1", teamTool, ask))
}

var date = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// plan has the days between the first two dates counted.
func plan(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	last := req.Messages[len(req.Messages)-1]
	dates := date.FindAllString(last.TextContent(), 2)
	switch {
	case last.Role == agentkernel.RoleTool && last.IsError:
		return demo.End(req, demo.Text("I cannot plan that: "+last.TextContent()))
	case last.Role == agentkernel.RoleTool:
		return demo.End(req, demo.Text("There are "+last.TextContent()+" from the first date to the second.\nKeep the last fifth of them free."))
	case len(dates) < 2:
		return demo.End(req, demo.Text("I plan from one date like 2026-11-02 to another, and do not see two."))
	}
	return demo.End(req, demo.Call("call_1", demo.Tool().Name, map[string]string{"from": dates[0], "to": dates[1]}))
}

func doubt(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	return demo.End(req, demo.Text("Whatever it is, it will break, and somebody has to be awake then.\nAsk who that is before you ask when."))
}

func write(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	return demo.End(req, demo.Text("It is here: smaller, faster, and tested while you slept.\nThank you for waiting."))
}
