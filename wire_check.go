package agentkernel

import (
	"encoding/json"

	"github.com/agentkernel-go/agentkernel/internal/nesting"
	"github.com/agentkernel-go/agentkernel/internal/textbuf"
)

// unreadable names what ev lacks that a reader of its record asks for, beside what
// [eventWire.missing] names. The kernel's own events lack nothing.
func (ev *Event) unreadable() string {
	switch {
	case ev.Type == "":
		return "a type"
	case ev.Raw != nil:
		return ev.unreadableRaw()
	case ev.Args != nil && deep(ev.Args), ev.Progress != nil && deep(ev.Progress.Data):
		return lessDeep
	}
	if why := unreadableMessage(ev.Message); why != "" {
		return why
	}
	if ev.Context != nil {
		if why := unreadableMessages(ev.Context.Messages); why != "" {
			return why
		}
	}
	if ev.Result != nil {
		if why := ev.Result.unreadable(); why != "" {
			return why
		}
	}
	for i := range ev.ToolResults {
		if why := ev.ToolResults[i].unreadable(); why != "" {
			return why
		}
	}
	return unreadableMessages(ev.NewMessages)
}

const lessDeep = "values that are nested less deep"

// unreadableRaw: a record of a newer version is passed on as it is only where it is one, and
// the one that ev says.
func (ev *Event) unreadableRaw() string {
	w, err := parseWire(ev.Raw)
	if err != nil || ofWire(w.Type) || w.Type != ev.Type || w.RunID != ev.RunID || w.Seq != ev.Seq {
		return "a record of its own in Raw"
	}
	return ""
}

func (t *ToolResult) unreadable() string {
	if deep(t.JSON) {
		return lessDeep
	}
	return unreadableBlocks(t.Content)
}

func unreadableMessages(messages []AgentMessage) string {
	for _, m := range messages {
		if m == nil {
			return "one of its messages"
		}
		if why := unreadableMessage(m); why != "" {
			return why
		}
	}
	return ""
}

func unreadableMessage(m AgentMessage) string {
	if f, ok := m.(ForeignMessage); ok && deep(f.Value) {
		return lessDeep
	}
	own, ok := ownMessage(m)
	switch {
	case !ok:
		return ""
	case own.Role == "":
		return "the role of a message"
	}
	return unreadableBlocks(own.Content)
}

func unreadableBlocks(blocks []ContentBlock) string {
	for i := range blocks {
		b := &blocks[i]
		if call := b.ToolCall; call != nil && call.Args != nil {
			switch {
			case !isObject(call.Args):
				return "args of a call that are an object"
			case deep(call.Args):
				return lessDeep
			}
		}
		if deep(b.Extra) {
			return lessDeep
		}
	}
	return ""
}

func deep(raw json.RawMessage) bool { return nesting.TooDeep(textbuf.String(raw)) }
