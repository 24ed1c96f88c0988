package main

import (
	"encoding/json"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// child is a run of a sub-agent, shown within the card of the call that asked for it.
type child struct {
	// card is nil until the run is known to belong to it.
	card   *card
	prompt string
	steps  []step
	// says is the last of what the sub-agent says.
	says string
	end  agentkernel.EndReason // empty while it runs
}

// step is a call of a sub-agent.
type step struct {
	id, title string
	cause     agentkernel.ToolCause // empty while it runs
}

// foldChild takes the next event of a sub-agent's run.
func (f *feed) foldChild(ev agentkernel.Event) {
	if f.children == nil {
		f.children = make(map[string]*child)
	}
	c := f.children[ev.RunID]
	if c == nil {
		c = new(child)
		f.children[ev.RunID] = c
	}
	switch e := ev.Payload().(type) {
	case agentkernel.MessageEnded:
		if e.Message.GetRole() == agentkernel.RoleUser && c.card == nil {
			f.attach(c, ev.ParentRunID, e.Message.TextContent())
		}
		if e.Message.GetRole() == agentkernel.RoleAssistant {
			c.says = tail(e.Message.TextContent(), maxTail)
		}
	case agentkernel.MessageUpdated:
		c.says = tail(e.Message.TextContent(), maxTail)
	case agentkernel.ToolStarted:
		c.steps = append(c.steps, step{id: e.ToolID, title: newCard(e).title})
	case agentkernel.ToolEnded:
		if i := slices.IndexFunc(c.steps, func(s step) bool { return s.id == e.ToolID }); i >= 0 {
			c.steps[i].cause = e.Result.Cause
		}
	case agentkernel.RunEnded:
		c.end = e.Summary.EndReason
	}
}

// attach finds the card of a child run. Its events name the run that asked, not the call, and
// several calls may run at once: the one counts that gave this very task. A later task of a
// chain is not what the call says, since the answer before is filled in: it goes where a chain
// is on its way.
func (f *feed) attach(c *child, parent, prompt string) {
	c.prompt = prompt
	if asker := f.children[parent]; asker != nil { // a sub-agent of a sub-agent
		c.card = asker.card
	}
	var chain *card
	for _, live := range f.cards {
		open := slices.DeleteFunc(tasksOf(live.args), func(task string) bool {
			return slices.ContainsFunc(live.children, func(other *child) bool { return other.prompt == task })
		})
		if c.card == nil && slices.Contains(open, prompt) {
			c.card = live
		}
		if len(open) > 0 || chain == nil && len(live.children) > 0 {
			chain = live
		}
	}
	if c.card == nil {
		c.card = chain
	}
	if c.card != nil {
		c.card.children = append(c.card.children, c)
	}
}

// tasksOf are the prompts of a call of an agent tool; none of other calls.
func tasksOf(args json.RawMessage) (prompts []string) {
	var in struct{ Tasks []struct{ Prompt string } }
	if json.Unmarshal(args, &in) != nil {
		return nil
	}
	for _, task := range in.Tasks {
		prompts = append(prompts, task.Prompt)
	}
	return prompts
}
