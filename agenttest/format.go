package agenttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// Format writes a log as one line for each event, for people and for [Golden]. It leaves
// out what differs from run to run (times, durations, delays, stacks, Seq) and writes call
// ids as #1, #2, … and the runs after the first as run2, run3, … in the order in which they
// appear.
func Format(events []agentkernel.Event) string {
	f := formatter{calls: make(map[string]int)}
	var out strings.Builder
	for i := range events {
		out.WriteString(f.line(&events[i]))
		out.WriteByte('\n')
	}
	return out.String()
}

type formatter struct {
	runs  []string
	calls map[string]int
}

func (f *formatter) line(ev *event) string {
	words := []string{string(ev.Type)}
	if prefix := f.run(ev.RunID); prefix != "" {
		words = []string{prefix, string(ev.Type)}
	}
	for _, word := range f.words(ev) {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

func (f *formatter) run(id string) string {
	i := slices.Index(f.runs, id)
	if i < 0 {
		i = len(f.runs)
		f.runs = append(f.runs, id)
	}
	if i == 0 {
		return ""
	}
	return fmt.Sprintf("run%d", i+1)
}

func (f *formatter) words(ev *event) []string {
	switch ev.Type {
	case agentkernel.EventTurnStart:
		return []string{strconv.Itoa(ev.Turn)}
	case agentkernel.EventModelRequest:
		return []string{attempt(ev), request(ev.Request)}
	case agentkernel.EventMessageStart, agentkernel.EventMessageEnd:
		return []string{attempt(ev), f.message(ev.Message)}
	case agentkernel.EventMessageUpdate:
		return []string{attempt(ev), f.update(ev)}
	case agentkernel.EventMessageDiscard:
		return []string{attempt(ev), f.message(ev.Message), problem(ev.Err)}
	case agentkernel.EventToolExecStart:
		return []string{f.call(ev.ToolID), ev.Tool, ev.ToolLabel, string(ev.Args)}
	case agentkernel.EventToolExecUpdate:
		return []string{f.call(ev.ToolID), ev.Tool, string(ev.UpdateKind), progress(ev.Progress), coalesced(ev)}
	case agentkernel.EventToolExecEnd:
		return []string{f.call(ev.ToolID), ev.Tool, string(ev.Args), f.result(ev.Result)}
	case agentkernel.EventModelResponse:
		return []string{f.message(ev.Message), fmt.Sprintf("results=%d", len(ev.ToolResults))}
	case agentkernel.EventRetry:
		return []string{retry(ev.RetryInfo), problem(ev.Err)}
	case agentkernel.EventContext:
		return []string{baseline(ev.Context)}
	case agentkernel.EventError:
		return []string{problem(ev.Err)}
	case agentkernel.EventAgentEnd:
		return []string{summary(ev.Summary), fmt.Sprintf("new=%d", len(ev.NewMessages)), problem(ev.Err)}
	}
	return nil
}

// call numbers the ids in the order in which they appear.
func (f *formatter) call(id string) string {
	if id == "" {
		return "#?"
	}
	if f.calls[id] == 0 {
		f.calls[id] = len(f.calls) + 1
	}
	return fmt.Sprintf("#%d", f.calls[id])
}

func (f *formatter) message(m agentkernel.AgentMessage) string {
	msg, ok := asMessage(m)
	if !ok {
		if m == nil {
			return "nil"
		}
		return fmt.Sprintf("%s %T %q", m.GetRole(), m, m.TextContent())
	}
	words := []string{string(msg.Role)}
	if msg.Role == agentkernel.RoleTool {
		words = append(words, f.call(msg.ToolCallID), msg.ToolName, string(msg.Cause))
	}
	if msg.StopReason != "" {
		words = append(words, string(msg.StopReason))
	}
	words = append(words, f.blocks(msg.Content))
	if msg.Usage != nil {
		words = append(words, "usage("+usageText(*msg.Usage)+")")
	}
	return strings.Join(words, " ")
}

func (f *formatter) blocks(blocks []agentkernel.ContentBlock) string {
	if len(blocks) == 0 {
		return "nothing"
	}
	words := make([]string, len(blocks))
	for i := range blocks {
		words[i] = f.block(&blocks[i])
	}
	return strings.Join(words, " ")
}

func (f *formatter) block(b *agentkernel.ContentBlock) string {
	switch {
	case b.ToolCall != nil && b.ToolCall.Args == nil:
		return fmt.Sprintf("call(%s %s %q)", f.call(b.ToolCall.ID), b.ToolCall.Name, b.ToolCall.RawArgs)
	case b.ToolCall != nil && b.ToolCall.ArgsError != "":
		return fmt.Sprintf("call(%s %s bad %q)", f.call(b.ToolCall.ID), b.ToolCall.Name, b.ToolCall.RawArgs)
	case b.ToolCall != nil:
		return fmt.Sprintf("call(%s %s %s)", f.call(b.ToolCall.ID), b.ToolCall.Name, b.ToolCall.Args)
	case b.Type == agentkernel.ContentThinking:
		return fmt.Sprintf("thinking(%q)", b.Thinking)
	case b.Image != nil:
		return fmt.Sprintf("image(%d bytes)", len(b.Image.Data))
	}
	return strconv.Quote(b.Text)
}

// update shows the delta and the length of the block that it made.
func (f *formatter) update(ev *event) string {
	kind := "text"
	switch ev.DeltaKind {
	case agentkernel.DeltaThinking:
		kind = "thinking"
	case agentkernel.DeltaToolCall:
		kind = strings.TrimRight("call "+f.call(ev.ToolID)+" "+ev.Tool, " ")
	}
	total := -1
	if msg, ok := asMessage(ev.Message); ok && ev.ContentIndex < len(msg.Content) {
		total = len(blockText(&msg.Content[ev.ContentIndex]))
	}
	line := fmt.Sprintf("[%d] %s +%q =%d", ev.ContentIndex, kind, ev.Delta, total)
	return strings.TrimRight(line+" "+coalesced(ev), " ")
}

func (f *formatter) result(r *agentkernel.ToolResult) string {
	if r == nil {
		return "nil"
	}
	words := []string{string(r.Cause)}
	if r.IsError {
		words = append(words, "is_error")
	}
	switch {
	case len(r.Content) > 0:
		words = append(words, f.blocks(r.Content))
	case len(r.JSON) > 0:
		words = append(words, "json("+string(r.JSON)+")")
	}
	if r.Terminate {
		words = append(words, "terminate")
	}
	return strings.Join(words, " ")
}

func attempt(ev *event) string {
	if ev.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf("attempt=%d", ev.Attempt)
}

func coalesced(ev *event) string {
	if ev.Coalesced == 0 {
		return ""
	}
	return fmt.Sprintf("coalesced=%d", ev.Coalesced)
}

func request(req *agentkernel.ModelRequest) string {
	if req == nil {
		return "nil"
	}
	return fmt.Sprintf("messages=%d tools=%d", len(req.Messages), len(req.Tools))
}

func progress(p *agentkernel.ProgressPayload) string {
	if p == nil {
		return ""
	}
	return strings.TrimRight(fmt.Sprintf("%s %q %s", p.Kind, p.Text, json.RawMessage(p.Data)), " ")
}

func retry(info *agentkernel.RetryInfo) string {
	if info == nil {
		return "nil"
	}
	return fmt.Sprintf("after attempt %d, %d allowed", info.Attempt, info.MaxRetries)
}

func baseline(info *agentkernel.ContextInfo) string {
	if info == nil {
		return "nil"
	}
	return fmt.Sprintf("%s messages=%d", info.Reason, len(info.Messages))
}

func problem(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("error(%s)", strings.ReplaceAll(err.Error(), "\n", `\n`))
}

func summary(s *agentkernel.RunSummary) string {
	if s == nil {
		return "nil"
	}
	line := fmt.Sprintf("%s turns=%d calls=%d errors=%d retries=%d", s.EndReason, s.TurnCount, s.ToolCalls, s.ToolErrors, s.Retries)
	if s.Abandoned != 0 {
		line += fmt.Sprintf(" abandoned=%d", s.Abandoned)
	}
	line += " usage(" + usageText(s.Usage) + ")"
	if s.DiscardedUsage != (agentkernel.Usage{}) {
		line += " discarded(" + usageText(s.DiscardedUsage) + ")"
	}
	if len(s.Suspended) > 0 {
		line += fmt.Sprintf(" suspended=%d", len(s.Suspended))
	}
	return line
}

// firstDifference shows the first line in which two texts differ, "" where there is none.
func firstDifference(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := lineAt(g, i), lineAt(w, i)
		if a != b {
			return fmt.Sprintf("line %d\n  got:  %s\n  want: %s", i+1, a, b)
		}
	}
	return "the ends of the files differ"
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no such line)"
}
