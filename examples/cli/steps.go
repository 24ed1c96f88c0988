package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// showSteps writes the agent's runs to w: each attempt of a model call and each tool call is a
// step, numbered in the order of their ends as in RunRecord.Steps. What the model says is
// written while it says it.
func showSteps(agent *agentkernel.Agent, w io.Writer) {
	s := &screen{w: w}
	agentkernel.On(agent, s.runStarted)
	agentkernel.On(agent, s.modelRequested)
	agentkernel.On(agent, s.messageUpdated)
	agentkernel.On(agent, s.messageEnded)
	agentkernel.On(agent, s.messageDiscarded)
	agentkernel.On(agent, s.retrying)
	agentkernel.On(agent, s.toolEnded)
	agentkernel.On(agent, s.runEnded)
}

// screen is what the lines written so far come to.
type screen struct {
	w     io.Writer
	steps int
	// asked: a model call is open.
	asked bool
	// says is what the open message's text was announced as; open: its line has no end yet.
	says string
	open bool
}

func (s *screen) runStarted(e agentkernel.RunStarted) {
	*s = screen{w: s.w}
	s.line("Run     %s", e.RunID)
}

func (s *screen) modelRequested(agentkernel.ModelRequested) { s.asked = true }

// messageUpdated goes on with the text. The arguments of a call are shown with its result.
func (s *screen) messageUpdated(e agentkernel.MessageUpdated) {
	says := "answers"
	switch e.DeltaKind {
	case agentkernel.DeltaToolCall:
		return
	case agentkernel.DeltaThinking:
		says = "thinks"
	}
	if s.says != says {
		s.line("Step %d · model → %s", s.steps+1, says)
		s.says = says
	}
	text := demo.Printable(e.Delta)
	fmt.Fprint(s.w, text)
	if text != "" {
		s.open = !strings.HasSuffix(text, "\n")
	}
}

func (s *screen) messageEnded(e agentkernel.MessageEnded) {
	switch e.Message.GetRole() {
	case agentkernel.RoleUser:
		if s.steps > 0 {
			s.line("")
		}
		s.line("Input   %s\n", demo.Printable(e.Message.TextContent()))
	case agentkernel.RoleAssistant:
		if does := deed(e.Message, s.says); does != "" {
			s.line("Step %d · model → %s", s.steps+1, does)
		}
		s.endAttempt()
	}
}

// deed is what an answer does beside what was shown of it.
func deed(answer agentkernel.AgentMessage, shown string) string {
	m, ok := answer.(agentkernel.Message)
	if !ok {
		return ""
	}
	var names []string
	for _, call := range m.ToolCalls() {
		names = append(names, demo.Printable(call.Name))
	}
	switch {
	case m.StopReason == agentkernel.StopReasonAborted:
		return "is interrupted"
	case len(names) > 0:
		return "calls " + strings.Join(names, ", ")
	case m.StopReason == agentkernel.StopReasonLength:
		return "reaches the end of its length"
	case m.StopReason == agentkernel.StopReasonRefusal:
		return "refuses"
	case shown != "answers":
		return "answers nothing"
	}
	return ""
}

// messageDiscarded takes back what was shown of an attempt.
func (s *screen) messageDiscarded(e agentkernel.MessageDiscarded) {
	shown := s.says != ""
	s.failAttempt(e.Err)
	if shown {
		s.line("  (what it said is void)")
	}
}

func (s *screen) retrying(e agentkernel.Retrying) {
	s.failAttempt(e.Err) // of which nothing was shown
	s.line("  (the next attempt follows in %v)", e.RetryInfo.Delay.Round(time.Millisecond))
}

// failAttempt shows the step that an open attempt failed in.
func (s *screen) failAttempt(err error) {
	if s.asked {
		s.line("Step %d · model → fails: %s", s.steps+1, demo.OneLine(err))
		s.endAttempt()
	}
}

func (s *screen) endAttempt() {
	s.endLine()
	s.steps++
	s.asked, s.says = false, ""
}

func (s *screen) toolEnded(e agentkernel.ToolEnded) {
	s.steps++
	sign := "="
	if e.IsError {
		sign = "fails:"
	}
	s.line("Step %d · tool → %s(%s) %s %s", s.steps, demo.Printable(e.Tool), demo.Printable(string(e.Args)),
		sign, oneLine(demo.ResultText(e.Result)))
}

func (s *screen) runEnded(e agentkernel.RunEnded) {
	s.failAttempt(e.Err)
	s.line("\nTotals  %s, %s, %s, %d ms", demo.Count(e.Summary.TurnCount, "turn"),
		demo.Count(len(e.NewMessages), "message"), demo.Count(s.steps, "step"), e.Duration.Milliseconds())
	status := string(e.Summary.EndReason)
	if failure, ok := errors.AsType[*agentkernel.Error](e.Err); ok {
		status += " (" + string(failure.Kind) + ")"
	}
	s.line("Status  %s", status)
}

// line writes a line of its own.
func (s *screen) line(format string, args ...any) {
	s.endLine()
	fmt.Fprintf(s.w, format+"\n", args...)
}

func (s *screen) endLine() {
	if s.open {
		fmt.Fprintln(s.w)
	}
	s.open = false
}

// oneLine is a text without line breaks.
func oneLine(text string) string { return demo.Printable(strings.Join(strings.Fields(text), " ")) }
