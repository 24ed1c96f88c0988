package main

import (
	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// role is what one agent is for.
type role struct {
	name string
	// good tells the orchestrator what it is good for, task tells the agent itself.
	good, task string
	tools      []agentkernel.Tool
}

var lead = role{
	name: "orchestrator",
	task: "You lead a team. Ask all of its agents at once, in one parallel call, and then answer in a few lines from what they say.",
}

var members = []role{
	{
		name:  "planner",
		good:  "dates and durations",
		task:  "You plan. Let the tool count days. Answer in two lines at most.",
		tools: []agentkernel.Tool{demo.Tool()},
	},
	{
		name: "sceptic",
		good: "what may go wrong",
		task: "You doubt. Name the two largest risks, a line for each.",
	},
	{
		name: "writer",
		good: "how to say it to customers",
		task: "You write. Draft the announcement in two lines.",
	},
}

const teamTool = "team"

// team is the roles, and who plays them.
type team struct {
	play    func(role) agentkernel.ChatModel
	retries int
}

// newTeam is a team whose roles are all played by model, or by scripts where that is nil.
func newTeam(model agentkernel.ChatModel, retries int) team {
	t := team{play: script, retries: retries}
	if model != nil {
		t.play = func(role) agentkernel.ChatModel { return model }
	}
	return t
}

// orchestrator is the run that asks the others. Their events come on its stream.
func (t team) orchestrator() (agentkernel.Config, error) {
	tool := agentkernel.AgentToolConfig{
		Name:        teamTool,
		Description: "Asks the agents of the team.",
		Forward:     agentkernel.ForwardEvents,
	}
	for _, r := range members {
		tool.Agents = append(tool.Agents, agentkernel.SubAgent{Name: r.name, Description: r.good, Config: t.config(r)})
	}
	ask, err := agentkernel.AgentTool(tool)
	cfg := t.config(lead)
	cfg.Tools = []agentkernel.Tool{ask}
	return cfg, err
}

func (t team) config(r role) agentkernel.Config {
	retries := t.retries
	if retries == 0 {
		retries = -1 // none; zero means the kernel's default
	}
	return agentkernel.Config{
		Model:        t.play(r),
		SystemPrompt: r.task,
		Tools:        r.tools,
		Retry:        agentkernel.RetryPolicy{MaxRetries: retries},
	}
}

// nameOf tells whose system prompt that is, "" where nobody's.
func (team) nameOf(system string) string {
	for _, r := range append([]role{lead}, members...) {
		if r.task == system {
			return r.name
		}
	}
	return ""
}
