package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/agentkernel-go/agentkernel"
)

// ANSI styles.
const (
	plain = ""
	dim   = "\x1b[2m"
	blue  = "\x1b[34m"
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// printer shows the events of a run on a terminal, as they come.
type printer struct {
	w     io.Writer
	color bool
	// shown is what the line that is being written belongs to.
	shown agentkernel.DeltaKind
	open  bool // the line has no end yet
}

// Show returns a function that shows the events of a run on w, as they come and without colors.
func Show(w io.Writer) func(agentkernel.Event) {
	p := &printer{w: w}
	return p.show
}

// show shows one event.
func (p *printer) show(ev agentkernel.Event) {
	switch ev.Type {
	case agentkernel.EventMessageUpdate:
		p.delta(ev)
	case agentkernel.EventMessageEnd, agentkernel.EventAgentEnd:
		p.endLine()
	case agentkernel.EventMessageDiscard:
		p.line(red, "(what this attempt said is void)")
	case agentkernel.EventRetry:
		p.line(red, fmt.Sprintf("attempt %d failed, the next one follows in %v: %s",
			ev.Attempt, ev.RetryInfo.Delay.Round(time.Millisecond), OneLine(ev.Err)))
	case agentkernel.EventToolExecStart:
		p.line(blue, fmt.Sprintf("> %s %s", ev.Tool, ev.Args))
	case agentkernel.EventToolExecEnd:
		p.result(ev)
	}
	if ev.Type == agentkernel.EventAgentEnd {
		p.closing(ev)
	}
}

// delta writes what a message grew by. The arguments of a call are shown when it starts.
func (p *printer) delta(ev agentkernel.Event) {
	if ev.DeltaKind == agentkernel.DeltaToolCall {
		return
	}
	if ev.DeltaKind != p.shown {
		p.endLine()
		p.shown = ev.DeltaKind
	}
	style := plain
	if ev.DeltaKind == agentkernel.DeltaThinking {
		style = dim
	}
	p.write(style, ev.Delta)
	p.open = p.open || ev.Delta != ""
}

func (p *printer) result(ev agentkernel.Event) {
	style := blue
	if ev.IsError {
		style = red
	}
	p.line(style, "< "+ResultText(ev.Result))
}

// ResultText is what the model reads of a result, a line for each block.
func ResultText(result *agentkernel.ToolResult) string {
	var blocks []string
	for _, b := range result.Content {
		blocks = append(blocks, b.Text)
	}
	if len(blocks) == 0 {
		return string(result.JSON)
	}
	return strings.Join(blocks, "\n")
}

// closing writes what the run came to.
func (p *printer) closing(ev agentkernel.Event) {
	p.line(plain, "")
	p.line(dim, Summary(ev.Summary))
}

// Summary is a run in numbers, on one line.
func Summary(s *agentkernel.RunSummary) string {
	return fmt.Sprintf("%s: %s, %s, %s, %.1f s", s.EndReason, Count(s.TurnCount, "turn"),
		Count(s.ToolCalls, "tool call"), Count(s.Usage.Total, "token"), s.Duration.Seconds())
}

// line writes text on a line of its own.
func (p *printer) line(style, text string) {
	p.endLine()
	p.write(style, text)
	fmt.Fprintln(p.w)
}

func (p *printer) endLine() {
	if p.open {
		fmt.Fprintln(p.w)
	}
	p.open = false
}

// write writes text in a style.
func (p *printer) write(style, text string) {
	text = Printable(text)
	if p.color && style != plain && text != "" {
		text = style + text + reset
	}
	fmt.Fprint(p.w, text)
}

// Printable is text without what a terminal would obey: a model's words are not to be trusted.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// Count is a number of things in words.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// OneLine is the text of err without line breaks and control characters.
func OneLine(err error) string { return Printable(strings.Join(strings.Fields(err.Error()), " ")) }
