package main

import (
	"regexp"
	"strings"
	"unicode"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
)

// The styles. Colors are those of the terminal's own palette.
var (
	dim    = lipgloss.NewStyle().Faint(true)
	plain  = lipgloss.NewStyle()
	bold   = lipgloss.NewStyle().Bold(true)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	cyan   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
)

// How many lines of a text a card shows.
const (
	maxDiffLines   = 40
	maxResultLines = 8
	maxOutputLines = 5
)

// painter turns what the feed has into lines of a terminal of its width.
type painter struct {
	width int
	light bool
	// markdown is made anew where the width or the background changes.
	markdown *glamour.TermRenderer
}

func (p *painter) resize(width int) {
	if width != p.width {
		p.width, p.markdown = max(width, 20), nil
	}
}

func (p *painter) background(light bool) {
	if light != p.light {
		p.light, p.markdown = light, nil
	}
}

// block paints what is finished. It ends with a blank line, so that blocks stand apart.
func (p *painter) block(b block) []string {
	var lines []string
	switch b.kind {
	case blockUser:
		lines = p.prefixed(bold.Foreground(lipgloss.Cyan).Render("› "), bold, b.text)
	case blockThinking:
		lines = p.prefixed("  ", dim, b.text)
	case blockAnswer:
		lines = p.prose(b.text)
	case blockCard:
		lines = p.card(b.card, maxDiffLines)
	case blockNote:
		lines = p.prefixed(yellow.Render("! "), yellow, b.text)
	case blockError:
		lines = p.prefixed(red.Render("! "), red, b.text)
	case blockEnd:
		lines = p.prefixed("", dim, "── "+b.text)
	}
	return append(lines, "")
}

// prose renders markdown.
func (p *painter) prose(text string) []string {
	if p.markdown == nil {
		style := styles.DarkStyleConfig
		if p.light {
			style = styles.LightStyleConfig
		}
		style.Document.Margin = new(uint(0))
		style.Code.Prefix, style.Code.Suffix = "", ""
		p.markdown, _ = glamour.NewTermRenderer(glamour.WithStyles(style), glamour.WithWordWrap(p.width-2))
	}
	out, err := p.markdown.Render(clean(text))
	if err != nil {
		return p.prefixed("", lipgloss.NewStyle(), text)
	}
	lines := strings.Split(padding.ReplaceAllString(out, "\x1b[m"), "\n")
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// padding is the spaces, and their styles, with which the renderer fills lines.
var padding = regexp.MustCompile(`(?m)(?:\x1b\[[0-9;]*m| )+$`)

func blank(line string) bool { return strings.TrimSpace(plainText(line)) == "" }

// prefixed wraps text to the width, each line in style, with prefix before the first and as
// much space before the others.
func (p *painter) prefixed(prefix string, style lipgloss.Style, text string) []string {
	indent := lipgloss.Width(prefix)
	var out []string
	for line := range strings.SplitSeq(p.wrapped(text, indent), "\n") {
		before := prefix
		if len(out) > 0 {
			before = strings.Repeat(" ", indent)
		}
		out = append(out, before+style.Render(line))
	}
	return out
}

// wrapped is text that fits beside an indent.
func (p *painter) wrapped(text string, indent int) string {
	return lipgloss.Wrap(strings.TrimLeft(strings.TrimRight(clean(text), "\n "), "\n"), max(p.width-indent, 10), "")
}

// clean takes out of text what a terminal would obey: neither a model's words, nor a file's,
// nor a command's are to be trusted.
func clean(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\t", "    ")
	return strings.Map(func(r rune) rune {
		if r == '\n' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
			return r
		}
		return -1
	}, text)
}
