package otel

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
)

// errand is what the arguments of a call ask of sub-agents: those of an [agentkernel.AgentTool].
type errand struct {
	read   bool // the rest is filled in
	chain  bool // its tasks begin one after the other
	tasks  []task
	active int    // runs of it that have not ended
	answer string // of the newest of them
}

// task is a task that has no run yet.
type task struct{ Agent, Prompt string }

// hole is where the answer before stands in the prompt of a chain.
const hole = "{previous}"

// match is a task that a child run may be of.
type match struct {
	call *call
	at   int
}

func (m match) agent() string { return m.call.tasks[m.at].Agent }

// callerOf finds the open call that made a child run, by the child's prompt, and the name of
// the sub-agent. Nil and "" where it could be several.
func (r *run) callerOf(prompt string) (*call, string) {
	found := r.matches(func(c *call, at int) bool { return c.begins(at, prompt) })
	if len(found) == 0 { // something was missed, or this call's runs were others' before
		found = r.matches(func(c *call, at int) bool { return c.resembles(at, prompt) })
	}
	if len(found) == 0 {
		if len(r.calls) == 1 {
			return r.calls[0], ""
		}
		return nil, ""
	}
	first, agent := found[0], found[0].agent()
	for _, m := range found[1:] {
		if m.agent() != agent {
			agent = ""
		}
	}
	for _, m := range found {
		if m.call != first.call {
			return nil, agent
		}
	}
	for _, m := range found {
		m.call.tasks[m.at].Agent = agent // which of them is left is not known either
	}
	first.call.use(first.at)
	return first.call, agent
}

func (r *run) matches(may func(c *call, at int) bool) []match {
	var found []match
	for _, c := range r.calls {
		c.understand(c.args)
		for at := range c.tasks {
			if may(c, at) {
				found = append(found, match{c, at})
			}
		}
	}
	return found
}

// understand reads the arguments, once.
func (e *errand) understand(args json.RawMessage) {
	if e.read {
		return
	}
	e.read = true
	var asked struct {
		Mode  string
		Tasks []task
	}
	if json.Unmarshal(args, &asked) == nil {
		e.chain, e.tasks = asked.Mode == "chain", asked.Tasks
	}
}

// begins tells whether a run of the task may begin now, with that prompt.
func (e *errand) begins(at int, prompt string) bool {
	if !e.chain {
		return e.tasks[at].Prompt == prompt
	}
	return at == 0 && e.active == 0 && strings.ReplaceAll(e.tasks[at].Prompt, hole, e.answer) == prompt
}

// resembles tells whether the prompt can be that of the task at any time.
func (e *errand) resembles(at int, prompt string) bool {
	return e.tasks[at].Prompt == prompt || e.chain && fills(e.tasks[at].Prompt, prompt)
}

// use takes out a task that has a run now, and those that a chain has passed.
func (e *errand) use(at int) {
	if e.chain {
		e.tasks = e.tasks[at+1:]
	} else {
		e.tasks = slices.Delete(e.tasks, at, at+1)
	}
}

// fills tells whether prompt can be what became of a template.
func fills(template, prompt string) bool {
	before, after, ok := strings.Cut(template, hole)
	if !ok {
		return false
	}
	after = after[strings.LastIndex(hole+after, hole):] // behind the last hole
	rest, ok := strings.CutPrefix(prompt, before)
	return ok && strings.HasSuffix(rest, after)
}

// rewritten takes in what is executed instead of what the model asked.
func (r *run) rewritten(ev *agentkernel.Event) {
	i := slices.IndexFunc(r.calls, func(c *call) bool { return c.id == ev.ToolID })
	if i < 0 || ev.Args == nil || r.calls[i].asked {
		return
	}
	if c := r.calls[i]; !bytes.Equal(c.args, ev.Args) {
		c.args, c.errand = ev.Args, errand{}
	}
}

// claim links a call that has ended to those of its runs that were not known to be its own:
// its result names them.
func (r *run) claim(c *call, result *agentkernel.ToolResult) {
	if len(r.strays) == 0 {
		return
	}
	var answers []struct {
		RunID string `json:"run_id"`
	}
	if json.Unmarshal(result.JSON, &answers) != nil {
		return
	}
	for _, a := range answers {
		if span, ok := r.strays[a.RunID]; ok {
			c.asked = true
			c.span.AddLink(trace.Link{SpanContext: span})
			delete(r.strays, a.RunID)
		}
	}
}
