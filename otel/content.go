package otel

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
)

// chatMessage and part are a message in the JSON of the conventions.
type chatMessage struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  *string         `json:"response,omitempty"`
	Modality  string          `json:"modality,omitempty"`
	MIMEType  string          `json:"mime_type,omitempty"`
	URI       string          `json:"uri,omitempty"`
}

// toolDefinition is a tool in the JSON of the conventions.
type toolDefinition struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// requestAttributes is what a model is asked.
func (o *Observer) requestAttributes(span trace.Span, req *agentkernel.ModelRequest) []attribute.KeyValue {
	if !span.IsRecording() {
		return nil
	}
	var attrs []attribute.KeyValue
	if req.Temperature != nil {
		attrs = append(attrs, semconv.GenAIRequestTemperature(*req.Temperature))
	}
	attrs = appendText(attrs, "agentkernel.request.thinking_level", string(req.ThinkingLevel))
	if !o.cfg.CaptureContent {
		return attrs
	}
	attrs = appendList(attrs, semconv.GenAIInputMessagesKey, o.cfg.MaxContentBytes, req.Messages, inputMessage)
	attrs = appendList(attrs, semconv.GenAIToolDefinitionsKey, o.cfg.MaxContentBytes, req.Tools,
		func(t agentkernel.ToolSpec) any {
			return toolDefinition{toolType, t.Name, t.Description, t.Schema}
		})
	system := req.SystemBlocks
	if len(system) == 0 && req.System != "" {
		system = []agentkernel.SystemBlock{{Text: req.System}}
	}
	return appendList(attrs, semconv.GenAISystemInstructionsKey, o.cfg.MaxContentBytes, system,
		func(b agentkernel.SystemBlock) any { return part{Type: "text", Content: b.Text} })
}

// outputAttributes is what it answered.
func (o *Observer) outputAttributes(m agentkernel.Message) []attribute.KeyValue {
	return appendList(nil, semconv.GenAIOutputMessagesKey, o.cfg.MaxContentBytes, []agentkernel.Message{m},
		func(m agentkernel.Message) any {
			return chatMessage{string(m.Role), partsOf(m), string(m.StopReason)}
		})
}

// textAttribute is the beginning of a text.
func (o *Observer) textAttribute(key attribute.Key, text string) attribute.KeyValue {
	return key.String(o.bounded(text))
}

// bounded is as much of a text as is recorded.
func (o *Observer) bounded(text string) string {
	if limit := o.cfg.MaxContentBytes; limit >= 0 && len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// appendList adds a JSON list of the last items that fit, and how many did not.
func appendList[T any](attrs []attribute.KeyValue, key attribute.Key, limit int, items []T, form func(T) any) []attribute.KeyValue {
	var kept [][]byte
	size, i := len("[]"), len(items)
	for ; i > 0; i-- {
		b, err := json.Marshal(form(items[i-1]))
		if err != nil || limit >= 0 && size+len(b)+1 > limit {
			break
		}
		size += len(b) + 1
		kept = append(kept, b)
	}
	if i > 0 {
		attrs = append(attrs, attribute.Int("agentkernel.left_out."+string(key), i))
	}
	if len(kept) == 0 {
		return attrs
	}
	for a, b := 0, len(kept)-1; a < b; a, b = a+1, b-1 {
		kept[a], kept[b] = kept[b], kept[a]
	}
	return append(attrs, key.String("["+string(bytes.Join(kept, []byte(",")))+"]"))
}

func inputMessage(m agentkernel.Message) any {
	if m.Role == agentkernel.RoleTool {
		return chatMessage{Role: string(m.Role), Parts: []part{{Type: "tool_call_response", ID: m.ToolCallID, Response: new(m.TextContent())}}}
	}
	return chatMessage{Role: string(m.Role), Parts: partsOf(m)}
}

// partsOf is what a message says. The bytes of a picture are left out.
func partsOf(m agentkernel.Message) []part {
	parts := []part{}
	for _, b := range m.Content {
		switch {
		case b.ToolCall != nil:
			parts = append(parts, part{Type: "tool_call", ID: b.ToolCall.ID, Name: b.ToolCall.Name, Arguments: b.ToolCall.Args})
		case b.Image != nil:
			parts = append(parts, part{Type: "image", Modality: "image", MIMEType: b.Image.MIMEType, URI: b.Image.URL})
		case b.Thinking != "":
			parts = append(parts, part{Type: "reasoning", Content: b.Thinking})
		case b.Text != "":
			parts = append(parts, part{Type: "text", Content: b.Text})
		}
	}
	return parts
}
