package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/agentkernel-go/agentkernel"
)

// bar stands before what belongs to a card.
const bar = "  │ "

// card paints a call as it is now: while it runs, what it says; when it has ended, what it
// came to. Of a diff it shows so many lines.
func (p *painter) card(c *card, diffLines int) []string {
	lines := p.prefixed(mark(c.cause)+" ", bold, c.title)
	end := ""
	switch {
	case c.failed():
		end = dim.Render(" · ") + red.Render(string(c.cause)) + dim.Render(took(c.duration))
	case c.cause != "":
		end = dim.Render(took(c.duration))
	case c.status != "":
		end = dim.Render(" · " + p.oneLine(c.status, 10))
	}
	if last := len(lines) - 1; lipgloss.Width(lines[last]+end) <= p.width {
		lines[last] += end
	} else {
		lines = append(lines, " "+end)
	}
	lines = append(lines, p.diff(c.diff, diffLines)...)
	for _, child := range c.children {
		lines = append(lines, p.child(child, c.cause == "")...)
	}
	switch {
	case c.cause == "":
		lines = append(lines, p.barred(lastLines(c.output, maxOutputLines), dim)...)
	case c.denied != "":
		lines = append(lines, p.barred(c.denied, red)...)
	case c.failed():
		lines = append(lines, p.barred(firstLines(c.result, maxResultLines), red)...)
	case c.diff == "": // else it is the diff that tells
		lines = append(lines, p.barred(firstLines(c.result, maxResultLines), dim)...)
	}
	return lines
}

func mark(cause agentkernel.ToolCause) string {
	switch cause {
	case "":
		return yellow.Render("◌")
	case agentkernel.ToolOK:
		return green.Render("●")
	}
	return red.Render("✗")
}

func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf(" · %d ms", d.Milliseconds())
	}
	return fmt.Sprintf(" · %.1f s", d.Seconds())
}

// child paints a sub-agent's run. While it runs, what it says is shown; then the card's result
// says it.
func (p *painter) child(c *child, live bool) []string {
	lines := p.barred("asked: "+c.prompt, cyan)
	for _, s := range c.steps {
		lines = append(lines, dim.Render(bar)+"  "+mark(s.cause)+" "+p.oneLine(s.title, 8))
	}
	if live && c.end == "" {
		lines = append(lines, p.barred(lastLines(c.says, 2), dim)...)
	}
	return lines
}

// diff paints the lines of a unified diff, without the names of the files.
func (p *painter) diff(text string, most int) []string {
	if text == "" {
		return nil
	}
	var out []string
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > 2 && strings.HasPrefix(lines[0], "--- ") && strings.HasPrefix(lines[1], "+++ ") {
		lines = lines[2:]
	}
	for i, line := range lines {
		if i == most {
			return append(out, dim.Render(fmt.Sprintf("%s… %d more lines", bar, len(lines)-most)))
		}
		style := lipgloss.NewStyle()
		switch {
		case strings.HasPrefix(line, "+"):
			style = green
		case strings.HasPrefix(line, "-"):
			style = red
		case strings.HasPrefix(line, "@@"):
			style = cyan
		}
		out = append(out, dim.Render(bar)+style.Render(p.oneLine(line, 6)))
	}
	return out
}

func (p *painter) barred(text string, style lipgloss.Style) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(p.wrapped(text, 6), "\n") {
		out = append(out, dim.Render(bar)+style.Render(line))
	}
	return out
}

// oneLine is the first line of text, cut where it does not fit beside an indent.
func (p *painter) oneLine(text string, indent int) string {
	text, _, _ = strings.Cut(clean(text), "\n")
	return fit(text, max(p.width-indent, 10))
}

// firstLines is at most n lines of text, and how many are missing.
func firstLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= n {
		return text
	}
	return strings.Join(lines[:n], "\n") + fmt.Sprintf("\n… %d more lines", len(lines)-n)
}

// lastLines is at most the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
