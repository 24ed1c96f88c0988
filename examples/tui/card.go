package main

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// card is one call, from its start to its end. It is kept apart from the others that run
// beside it, and printed once, when it has ended.
type card struct {
	id    string
	title string // what the call does, for people
	args  json.RawMessage
	// diff is what the call would change.
	diff string
	// denied is why a person, or the gate, said no.
	denied string
	// output is the last of what the tool said so far, status its newest report.
	output, status string
	children       []*child

	// What became of it. The cause is empty while it runs.
	cause    agentkernel.ToolCause
	result   string
	duration time.Duration
}

// maxTail bounds what is kept of a text of which only the end is shown.
const maxTail = 4 << 10

func newCard(e agentkernel.ToolStarted) *card {
	c := &card{id: e.ToolID, title: e.ToolLabel, args: e.Args}
	if c.title == "" {
		c.title = e.Tool + " " + string(e.Args)
	}
	return c
}

// progress takes an update of the call: a preview, the gate's answer, a report of the tool.
func (c *card) progress(e agentkernel.ToolProgressed) {
	p := e.Progress
	switch {
	case e.UpdateKind == agentkernel.ToolExecUpdatePreview:
		c.diff = p.Text
	case e.UpdateKind == agentkernel.ToolExecUpdateGate:
		var decision struct{ Allow bool }
		if json.Unmarshal(p.Data, &decision) == nil && !decision.Allow {
			c.denied = p.Text
		}
	case p.Kind == agentkernel.ProgressToolDelta || p.Kind == agentkernel.ProgressThinking:
		c.output = tail(c.output+p.Text, maxTail)
	default:
		c.status = p.Text
	}
}

func (c *card) end(e agentkernel.ToolEnded) {
	c.cause, c.duration = e.Result.Cause, e.Duration
	c.result = e.Result.TextContent()
}

func (c *card) failed() bool { return c.cause != "" && c.cause != agentkernel.ToolOK }

// tail is the end of text, of at most n bytes and from the beginning of a rune on.
func tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[len(text)-n:], "")
}
