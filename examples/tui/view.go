package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/agentkernel-go/agentkernel"
	"github.com/charmbracelet/x/ansi"
)

// room is how high the live area may be. What is printed at once has the rest: where both are
// not on the terminal together, the upper part of the live area would scroll away and stay.
func (m *model) room() int { return m.height - m.printRoom() }

func (m *model) printRoom() int { return max(m.height/3, 1) }

// View draws the live area: what streams, what runs, a question, the input, the status. Where
// it would be too high the end of it shows.
func (m *model) View() tea.View {
	var below []string
	if m.question() == nil {
		below = append(below, m.queued()...)
	} else {
		below = append(below, m.dialog()...)
	}
	below = append(below, m.input.View(), m.statusLine())
	above := m.live()
	if room := max(m.room()-len(below), 0); len(above) > room {
		above = above[len(above)-room:]
	}
	view := tea.NewView(strings.Join(append(above, below...), "\n"))
	view.WindowTitle = "agentkernel"
	return view
}

// live paints the message that is open, the calls that run, and the wait for a first word.
func (m *model) live() (out []string) {
	if message, ok := m.feed.state.StreamMessage.(agentkernel.Message); ok && message.Role == agentkernel.RoleAssistant {
		out = append(out, m.streaming(message)...)
	}
	asked := ""
	if a := m.question(); a != nil {
		asked = a.req.Call.ID
	}
	for _, c := range m.feed.cards {
		if c.id == asked { // the dialog shows it
			continue
		}
		out = append(out, m.paint.card(c, maxOutputLines)...)
	}
	if m.feed.waiting {
		out = append(out, m.spin.View()+dim.Render(" waiting for the model"))
	}
	return out
}

// streaming paints a message so far. Markdown is rendered once it is whole: half of a table or
// a list is none.
func (m *model) streaming(message agentkernel.Message) (out []string) {
	room := m.paint.width * max(m.height, 1) // more cannot be seen
	for _, b := range message.Content {
		switch b.Type {
		case agentkernel.ContentThinking:
			out = append(out, m.paint.prefixed("  ", dim, tail(b.Thinking, room))...)
		case agentkernel.ContentText:
			out = append(out, m.paint.prefixed("", plain, tail(b.Text, room))...)
		case agentkernel.ContentToolCall:
			line := fmt.Sprintf("  writes a call of %s (%d bytes)", clean(b.ToolCall.Name), len(b.ToolCall.RawArgs))
			out = append(out, dim.Render(fit(line, m.paint.width)))
		}
	}
	return out
}

// queued paints what the user said and the run has not taken yet.
func (m *model) queued() (out []string) {
	for _, waiting := range m.chat.steering.Items() {
		out = append(out, m.paint.prefixed(dim.Render("⤷ "), dim, waiting.TextContent())...)
	}
	return out
}

// question paints all that a gated call would do.
func (p *painter) question(a *ask) []string {
	out := p.prefixed(yellow.Render("? "), bold, "May it "+cmp.Or(a.req.Label, a.req.Call.Name+" "+string(a.req.Call.Args))+"?")
	if a.req.Preview != nil {
		out = append(out, p.diff(a.req.Preview.Text, math.MaxInt)...)
	}
	return out
}

// dialogRoom is how many lines of a question the dialog shows.
func (m *model) dialogRoom() int { return max(m.room()-5, 1) }

// dialog paints the question that a gated call waits for, as far as there is room: see printQuestion.
func (m *model) dialog() []string {
	a := m.question()
	out := m.paint.question(a)
	if room := m.dialogRoom(); len(out) > room {
		out = append(out[:room], dim.Render("  … all of it is printed above"))
	}
	keys := "y: yes · n: no"
	if a.mayAlways() {
		keys += " · a: always " + a.req.Call.Name
	}
	if more := len(m.asks) - 1; more > 0 {
		keys += fmt.Sprintf(" · %d more waiting", more)
	}
	if m.input.Value() != "" {
		keys = "empty the line below to answer (ctrl+u), or send it"
	}
	return append(out, "  "+yellow.Render(keys))
}

// statusLine paints tokens, cost, session, and what keys do now.
func (m *model) statusLine() string {
	usage := m.feed.state.TotalUsage
	parts := []string{fmt.Sprintf("%d in", usage.Input), fmt.Sprintf("%d out", usage.Output)}
	if usage.Cost != nil {
		parts = append(parts, fmt.Sprintf("$%.4f", *usage.Cost))
	}
	if n := m.feed.state.ContextTokens; n != nil {
		parts = append(parts, fmt.Sprintf("context %d", *n))
	}
	switch {
	case m.leaving:
		parts = append(parts, "ctrl+c again quits")
	case m.feed.state.IsRunning:
		parts = append(parts, "enter steers, esc aborts")
	default:
		parts = append(parts, "/help")
	}
	parts = append(parts, "session "+m.chat.session.name)
	return dim.Render(fit(strings.Join(parts, " · "), m.paint.width))
}

// fit cuts text that is wider than the width, saying so.
func fit(text string, width int) string { return ansi.Truncate(text, width, "…") }

// plainText is text without styles.
func plainText(text string) string { return ansi.Strip(text) }
