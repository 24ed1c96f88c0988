package openai

import (
	"encoding/json"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// The fields of a message in which endpoints send thinking.
const (
	fieldReasoningContent = "reasoning_content"
	fieldReasoning        = "reasoning"
	fieldReasoningDetails = "reasoning_details"
	fieldContent          = "content"
)

// thinkingExtra is the Extra of a thinking block: the field that the thinking came in, and
// the provider's details of it, which go back as they are.
type thinkingExtra struct {
	Field   string            `json:"field,omitempty"`
	Details []json.RawMessage `json:"reasoning_details,omitempty"`
}

// thoughts is the thinking of one message, gathered from its blocks.
type thoughts struct {
	text    string
	field   string
	parts   []sentPart
	details []json.RawMessage
}

// replay returns the thinking of blocks in the form that the endpoint takes it back: as
// parts of the content or as fields of the message.
func (c *Compat) replay(blocks []agentkernel.ContentBlock) ([]sentPart, []sentField) {
	t := gather(blocks)
	switch c.Replay {
	case ReplayNone:
		return nil, nil
	case ReplayParts:
		return t.parts, nil
	case ReplayAsReceived:
		if t.field == fieldContent {
			return t.parts, nil
		}
		return nil, t.asReceived()
	case ReplayDetails:
		if len(t.details) > 0 {
			return nil, t.inDetails()
		}
		return nil, t.in(fieldReasoning, c.ReplayAlways)
	default:
		return nil, t.in(string(c.Replay), c.ReplayAlways)
	}
}

func (t *thoughts) asReceived() []sentField {
	if len(t.details) > 0 {
		return t.inDetails()
	}
	switch t.field {
	case fieldReasoningContent, fieldReasoning, fieldReasoningText, fieldThinking:
		return t.in(t.field, false)
	case fieldReasoningDetails:
		return t.in(fieldReasoning, false)
	}
	return nil
}

func (t *thoughts) inDetails() []sentField { return []sentField{{fieldReasoningDetails, t.details}} }

// in returns the thinking as text in a field; where there is none, the empty field if always
// says so.
func (t *thoughts) in(field string, always bool) []sentField {
	if t.text == "" && !always {
		return nil
	}
	return []sentField{{field, t.text}}
}

func gather(blocks []agentkernel.ContentBlock) thoughts {
	var t thoughts
	var text strings.Builder
	for i := range blocks {
		b := &blocks[i]
		if b.Type != agentkernel.ContentThinking {
			continue
		}
		var extra thinkingExtra
		if len(b.Extra) > 0 && json.Unmarshal(b.Extra, &extra) != nil {
			extra = thinkingExtra{}
		}
		if t.field == "" {
			t.field = extra.Field
		}
		if b.Thinking != "" {
			text.WriteString(b.Thinking)
			t.parts = append(t.parts, sentPart{thinking: true, text: b.Thinking, signature: b.Signature})
		}
		t.details = append(t.details, detailsOf(b, extra)...)
	}
	t.text = text.String()
	return t
}

// detailsOf returns the details of a block. A signature that came without becomes one.
func detailsOf(b *agentkernel.ContentBlock, extra thinkingExtra) []json.RawMessage {
	if len(extra.Details) > 0 || b.Signature == "" {
		return extra.Details
	}
	detail, err := json.Marshal(struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Signature string `json:"signature"`
	}{"reasoning.text", b.Thinking, b.Signature})
	if err != nil {
		return nil
	}
	return []json.RawMessage{detail}
}
