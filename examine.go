package agentkernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentkernel-go/agentkernel/internal/schema"
)

// refuse returns the answer to a call that is not to be started, nil where it is.
func (b *batch) refuse(c *callRun) *ToolResult {
	r := b.r
	switch {
	case r.stopped() && b.mayHaveBegun(c):
		return new(interrupted(ToolResult{}, nil))
	case r.stopped():
		return new(notStarted())
	case b.skip, c.resumed != nil && c.answer == nil && len(r.prompts) > 0: // the person said something else
		return new(skipped())
	}
	if !c.examined {
		c.examined = true
		c.refusal = b.examine(c)
	}
	if c.refusal == nil && r.cfg.MaxToolErrors > 0 && r.breaker.failures[c.call.Name] >= r.cfg.MaxToolErrors {
		return new(unstarted(ToolDisabled, fmt.Sprintf("The tool %q is disabled for the rest of this run: it failed "+
			"%d times in a row. The call was not run. Do without it.", c.call.Name, r.cfg.MaxToolErrors)))
	}
	if err := r.overBudget(); err != nil && c.refusal == nil {
		return new(unstarted(ToolLimit, "The run has used up its budget. The call was not run."))
	}
	return c.refusal
}

// mayHaveBegun tells whether whoever wrote the history may have begun the call. Nobody runs
// one that has no arguments, and nobody ran one that is suspended.
func (b *batch) mayHaveBegun(c *callRun) bool {
	return b.r.answer.old && c.resumed == nil && !b.r.cfg.RunOpenCalls && c.call.ArgsError == ""
}

// examine checks the call, once.
func (b *batch) examine(c *callRun) *ToolResult {
	r := b.r
	index := b.next
	again := r.breaker.repeated(c.call, c.call.Args)
	switch {
	case b.mayHaveBegun(c) && (c.tool == nil || !c.tool.Idempotent):
		return new(interrupted(ToolResult{}, nil))
	case b.cutOff(c):
		return new(unstarted(ToolCutOff, "The message was cut off by the output limit within this call. "+
			"It was not run. Make the call again, in smaller parts if it is long."))
	case c.tool == nil:
		return new(unstarted(ToolUnknown, fmt.Sprintf("There is no tool %q. %s", c.call.Name, r.settings.tools.known())))
	case r.cfg.MaxToolCallsPerTurn > 0 && index >= r.cfg.MaxToolCallsPerTurn:
		return new(unstarted(ToolLimit, fmt.Sprintf("Only %d calls are allowed in one answer. This one was not run.",
			r.cfg.MaxToolCallsPerTurn)))
	case r.cfg.MaxRepeatedCalls > 0 && again >= r.cfg.MaxRepeatedCalls:
		return new(unstarted(ToolLimit, fmt.Sprintf("This is the same call with the same arguments for the %s time "+
			"in a row. It was not run. Do something else.", ordinal(again))))
	}
	return b.consult(c)
}

// quickArgs is the size of arguments up to which checking them takes no time to speak of.
const quickArgs = 16 << 10

// opinion is what a tool says of a call before it begins.
type opinion struct {
	problem string
	safe    bool
	label   string
}

// consult checks the arguments and asks the tool's own functions about the call: behind the
// fence where that may take its time.
func (b *batch) consult(c *callRun) *ToolResult {
	t := c.tool
	quick := t.ConcurrencySafe == nil && t.ReadOnly == nil && t.Activity == nil && len(c.call.Args) <= quickArgs
	var said opinion
	var err error
	if quick {
		said = t.opinion(c.call)
	} else {
		said, err = enclose(b.r.fence, func() (opinion, error) { return t.opinion(c.call), nil })
	}
	if crash, ok := errors.AsType[*PanicError](err); ok {
		return new(panicked(fmt.Sprintf("The tool %q", t.Name), crash))
	}
	if err != nil {
		return new(notStarted())
	}
	c.problem, c.safe = said.problem, said.safe
	if said.problem != "" {
		if b.r.cfg.RepairToolCall == nil {
			return new(unusable(said.problem))
		}
		return nil // repaired by its pipeline, alone
	}
	c.label = said.label
	return nil
}

// opinion says what the tool makes of a call.
func (t *compiledTool) opinion(call ToolCall) opinion {
	if problem := t.problem(call); problem != "" {
		return opinion{problem: problem}
	}
	return opinion{safe: t.concurrencySafe(call.Args), label: t.label(call.Args)}
}

// cutOff tells whether the output limit cut the call off.
func (b *batch) cutOff(c *callRun) bool {
	return c.call.ArgsError != "" && b.r.answer.message.StopReason == StopReasonLength && c == b.calls[len(b.calls)-1]
}

// problem says what is wrong with a call's arguments, "" where nothing is.
func (t *compiledTool) problem(call ToolCall) string {
	if call.ArgsError != "" {
		return fmt.Sprintf("%s. The arguments were: %s", call.ArgsError, excerpt(call.RawArgs))
	}
	return violations(t.schema.Check(call.Args))
}

// violations puts what breaks a schema into words, "" where nothing does.
func violations(found []schema.Violation) string {
	if len(found) == 0 {
		return ""
	}
	lines := make([]string, len(found))
	for i, v := range found {
		lines[i] = "- " + v.String()
	}
	return "the arguments do not fit the schema:\n" + strings.Join(lines, "\n")
}

// unusable is the answer to a call with that problem.
func unusable(problem string) ToolResult {
	return unstarted(ToolInvalid, "The call was not run: "+problem)
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// usable returns args compacted where the tool can take them, and otherwise what is wrong.
func (t *compiledTool) usable(args json.RawMessage) (json.RawMessage, string) {
	object, err := parseObject(string(args))
	if err != nil {
		return nil, err.Error()
	}
	return object, violations(t.schema.Check(object))
}
