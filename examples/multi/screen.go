package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// screen shows the events of a run and of the runs below it, as they come: whole lines, each
// with the name of its run and in its color.
type screen struct {
	w     io.Writer
	color bool
	// nameOf tells whose system prompt that is.
	nameOf func(system string) string

	runs map[string]*node // by their ids
	root *node
	// colored counts the runs that have a color.
	colored int
}

// node is a run in the tree of runs.
type node struct {
	id, name, style string
	// line is text that waits for the end of its line.
	line string
	// summary is nil until the run has ended.
	summary  *agentkernel.RunSummary
	err      error
	children []*node
}

// styles are what the runs are told apart by.
var styles = []string{"\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m", "\x1b[34m", "\x1b[31m"}

const reset = "\x1b[0m"

// show shows the next event.
func (s *screen) show(ev agentkernel.Event) {
	if ev.Type == agentkernel.EventAgentStart {
		s.add(ev.RunID, ev.ParentRunID)
	}
	run := s.runs[ev.RunID]
	switch e := ev.Payload().(type) {
	case agentkernel.ModelRequested:
		if name := s.nameOf(e.Request.System); name != "" {
			run.name = name
		}
	case agentkernel.MessageUpdated:
		if e.DeltaKind == agentkernel.DeltaText {
			s.text(run, e.Delta)
		}
	case agentkernel.MessageEnded:
		s.endLine(run)
		if run == s.root && e.Message.GetRole() == agentkernel.RoleUser {
			s.line(&node{name: "you"}, oneLine(e.Message.TextContent()))
		}
	case agentkernel.MessageDiscarded:
		s.endLine(run)
		s.line(run, "(what it said is void)")
	case agentkernel.Retrying:
		s.line(run, fmt.Sprintf("! tried again in %v: %s", e.RetryInfo.Delay.Round(time.Millisecond), demo.OneLine(e.Err)))
	case agentkernel.ToolStarted:
		s.line(run, oneLine("> "+e.Tool+" "+string(e.Args)))
	case agentkernel.ToolEnded:
		sign := "< "
		if e.IsError {
			sign = "! "
		}
		s.line(run, sign+oneLine(demo.ResultText(e.Result)))
	case agentkernel.RunEnded:
		s.ended(run, e)
	}
}

// add gives a run its place in the tree.
func (s *screen) add(id, parent string) {
	run := &node{id: id, name: "run " + id[:min(8, len(id))]}
	if above := s.runs[parent]; above != nil {
		above.children = append(above.children, run)
	} else {
		s.root, s.runs, s.colored = run, make(map[string]*node), 0
	}
	s.runs[id] = run
}

// ended shows the end of a run, and behind the last one the tree.
func (s *screen) ended(run *node, e agentkernel.RunEnded) {
	run.summary, run.err = e.Summary, e.Err
	text := "ends: " + string(e.Summary.EndReason)
	if e.Err != nil {
		text += ": " + demo.OneLine(e.Err)
	}
	s.line(run, text)
	if run == s.root {
		fmt.Fprintln(s.w)
		s.tree(run, "", "")
	}
}

// text goes on with what a run says, and shows the lines that are whole.
func (s *screen) text(run *node, delta string) {
	run.line += delta
	for {
		end, next := lineEnd(run.line)
		if end < 0 {
			return
		}
		s.line(run, run.line[:end])
		run.line = run.line[next:]
	}
}

func (s *screen) endLine(run *node) {
	if run.line != "" {
		s.line(run, run.line)
	}
	run.line = ""
}

// width bounds a line, in bytes.
const width = 100

// lineEnd tells where the first line of text ends and where the next one begins; -1 where the
// text may still go on in that line.
func lineEnd(text string) (end, next int) {
	if i := strings.IndexByte(text, '\n'); i >= 0 && i <= width {
		return i, i + 1
	}
	if len(text) <= width {
		return -1, -1
	}
	if i := strings.LastIndexByte(text[:width+1], ' '); i > 0 {
		return i, i + 1
	}
	i := runeStart(text, width)
	return i, i
}

// line shows a line of a run. Who speaks first gets the first color.
func (s *screen) line(run *node, text string) {
	if run.style == "" && run.id != "" {
		run.style = styles[s.colored%len(styles)]
		s.colored++
	}
	s.write(run, fmt.Sprintf("%-12s │ %s", run.name, demo.Printable(text)))
}

func (s *screen) write(run *node, line string) {
	if s.color && run.style != "" {
		line = run.style + line + reset
	}
	fmt.Fprintln(s.w, line)
}

// oneLine is a text without line breaks, cut to the width of a line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= width {
		return text
	}
	return text[:runeStart(text, width)] + "…"
}

// runeStart is the last place up to i at which a rune begins.
func runeStart(text string, i int) int {
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}
