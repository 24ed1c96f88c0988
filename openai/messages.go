package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"

	// noOutput is the content of a tool result without text: some servers refuse none.
	noOutput = "(no output)"
	// bridgeText is said between a tool result and a user message where
	// Compat.AssistantAfterTool asks for it.
	bridgeText = "(tool results received)"
)

// sentMessage is one message of the request before it is written.
type sentMessage struct {
	role      string
	parts     []sentPart
	callID    string // of a tool message
	calls     []sentCall
	reasoning []sentField
}

// sentPart is one piece of a message's content: a text, an image or thinking.
type sentPart struct {
	text      string
	image     *agentkernel.Image
	thinking  bool   // text is thinking
	signature string // of the thinking
	extra     json.RawMessage
	cache     bool // keep what was read up to here
}

// sentCall is a tool call with the opaque data that goes back with it.
type sentCall struct {
	id, name, arguments string
	extra               json.RawMessage
}

// sentField is a named JSON value.
type sentField struct {
	name  string
	value any
}

// conversation turns the kernel's messages into the request's, one after the other. What it
// makes of a message depends on that message and those before it alone.
type conversation struct {
	compat   *Compat
	messages []sentMessage
	images   []sentPart // of the tool results so far, to be shown after the last of them
}

// convert returns the messages of a request as an endpoint of this Compat takes them.
func (c *Compat) convert(req agentkernel.ModelRequest) []sentMessage {
	conv := conversation{compat: c}
	system := c.systemParts(&req)
	conv.append(sentMessage{role: c.systemRole(), parts: system})
	marks := c.marks(&req, system)
	for i := range req.Messages {
		conv.add(&req.Messages[i])
		if slices.Contains(marks, i) {
			conv.mark()
		}
	}
	conv.showImages()
	return conv.messages
}

func (c *Compat) systemRole() string {
	if c.SystemRole == "" {
		return "system"
	}
	return c.SystemRole
}

func (c *conversation) add(m *agentkernel.Message) {
	if m.Role != agentkernel.RoleTool {
		c.showImages()
	}
	switch m.Role {
	case agentkernel.RoleSystem:
		c.append(sentMessage{role: c.compat.systemRole(), parts: c.userParts(m.Content)})
	case agentkernel.RoleUser:
		c.append(sentMessage{role: roleUser, parts: c.userParts(m.Content)})
	case agentkernel.RoleAssistant:
		c.append(c.assistant(m))
	case agentkernel.RoleTool:
		c.append(c.toolResult(m))
	}
}

// append adds m in an order that the endpoint takes. A message with neither content nor
// calls is left out.
func (c *conversation) append(m sentMessage) {
	if len(m.parts) == 0 && len(m.calls) == 0 && m.role != roleTool {
		return
	}
	if n := len(c.messages); n > 0 && m.role == roleUser {
		last := &c.messages[n-1]
		if last.role == roleUser && c.compat.JoinUsers {
			last.parts = append(last.parts, m.parts...)
			return
		}
		if last.role == roleTool && c.compat.AssistantAfterTool {
			bridge := sentMessage{role: roleAssistant, parts: []sentPart{{text: bridgeText}}}
			c.messages = append(c.messages, bridge)
		}
	}
	c.messages = append(c.messages, m)
}

func (c *conversation) userParts(blocks []agentkernel.ContentBlock) []sentPart {
	var parts []sentPart
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Type == agentkernel.ContentText && b.Text != "":
			parts = append(parts, sentPart{text: b.Text, extra: c.extra(b)})
		case !hasImage(b):
		case c.compat.Images == ImagesNone:
			parts = append(parts, notShown(b.Image))
		default:
			parts = append(parts, sentPart{image: b.Image, extra: c.extra(b)})
		}
	}
	return parts
}

func (c *conversation) assistant(m *agentkernel.Message) sentMessage {
	out := sentMessage{role: roleAssistant}
	for i := range m.Content {
		switch b := &m.Content[i]; {
		case b.Type == agentkernel.ContentText && b.Text != "":
			out.parts = append(out.parts, sentPart{text: b.Text, extra: c.extra(b)})
		case b.Type == agentkernel.ContentToolCall && b.ToolCall != nil:
			out.calls = append(out.calls, sentCall{
				id:        c.compat.CallIDs.fit(b.ToolCall.ID),
				name:      b.ToolCall.Name,
				arguments: arguments(b.ToolCall),
				extra:     c.extra(b),
			})
		}
	}
	if len(out.parts) == 0 && len(out.calls) == 0 {
		return sentMessage{role: roleAssistant} // thinking alone is no message
	}
	thinking, fields := c.compat.replay(m.Content)
	out.parts = append(thinking, out.parts...)
	out.reasoning = fields
	return out
}

// extra returns what goes back with a block.
func (c *conversation) extra(b *agentkernel.ContentBlock) json.RawMessage {
	if c.compat.NoExtras {
		return nil
	}
	return b.Extra
}

// arguments returns the call's arguments as the text of a JSON object.
func arguments(call *agentkernel.ToolCall) string {
	if call.ArgsError != "" || objectOf(call.Args) == nil {
		return "{}"
	}
	return string(call.Args)
}

// toolResult returns the result of a call. Images that may not stand in it are described
// there and kept for showImages.
func (c *conversation) toolResult(m *agentkernel.Message) sentMessage {
	out := sentMessage{role: roleTool, callID: c.compat.CallIDs.fit(m.ToolCallID)}
	shown := 0
	for i := range m.Content {
		switch b := &m.Content[i]; {
		case b.Type == agentkernel.ContentText && b.Text != "":
			out.parts = append(out.parts, sentPart{text: b.Text, extra: c.extra(b)})
		case !hasImage(b):
		case c.compat.Images == ImagesInTools:
			out.parts = append(out.parts, sentPart{image: b.Image, extra: c.extra(b)})
		case c.compat.Images == ImagesNone:
			out.parts = append(out.parts, notShown(b.Image))
		default:
			shown++
			note := fmt.Sprintf("[image %d, %s: shown in the next user message]", shown, describe(b.Image))
			title := fmt.Sprintf("Image %d of the result of tool call %s (%s):", shown, out.callID, m.ToolName)
			out.parts = append(out.parts, sentPart{text: note})
			c.images = append(c.images, sentPart{text: title}, sentPart{image: b.Image, extra: c.extra(b)})
		}
	}
	if len(out.parts) == 0 {
		out.parts = []sentPart{{text: noOutput}}
	}
	return out
}

// showImages adds the user message with the images of the tool results before it.
func (c *conversation) showImages() {
	if len(c.images) > 0 {
		c.append(sentMessage{role: roleUser, parts: c.images})
		c.images = nil
	}
}
