package openai

import (
	"slices"
	"strings"
)

// message writes m.
func (w *jsonWriter) message(m *sentMessage, c *Compat) {
	w.open('{')
	w.member("role", m.role)
	if m.role == roleTool {
		w.member("tool_call_id", m.callID)
	}
	w.content(m, c)
	for _, f := range m.reasoning {
		w.member(f.name, f.value)
	}
	if len(m.calls) > 0 {
		w.key("tool_calls")
		w.open('[')
		for i := range m.calls {
			w.call(&m.calls[i])
		}
		w.close(']')
	}
	w.close('}')
}

// content writes the content key, which every message has: a text where that says it all,
// parts otherwise. Several texts are one: an assistant's as they were streamed, others each
// on a line of its own.
func (w *jsonWriter) content(m *sentMessage, c *Compat) {
	w.key("content")
	switch {
	case len(m.parts) == 0 && c.NullContent:
		w.value(nil)
	case slices.ContainsFunc(m.parts, sentPart.isRich):
		w.open('[')
		for i := range m.parts {
			w.part(&m.parts[i])
		}
		w.close(']')
	default:
		texts := make([]string, len(m.parts))
		for i := range m.parts {
			texts[i] = m.parts[i].text
		}
		between := "\n"
		if m.role == roleAssistant {
			between = ""
		}
		w.value(strings.Join(texts, between))
	}
}

// isRich tells whether p is more than text.
func (p sentPart) isRich() bool {
	return p.image != nil || p.thinking || p.cache || objectOf(p.extra) != nil
}

func (w *jsonWriter) part(p *sentPart) {
	w.open('{')
	switch {
	case p.image != nil:
		w.member("type", "image_url")
		w.member("image_url", struct {
			URL string `json:"url"`
		}{imageURL(p.image)})
		w.partExtra(p, "image_url")
	case p.thinking:
		w.member("type", "thinking")
		w.key("thinking")
		w.open('[')
		w.part(&sentPart{text: p.text})
		w.close(']')
		if p.signature != "" {
			w.member("signature", p.signature)
		}
	default:
		w.member("type", "text")
		w.member("text", p.text)
		w.partExtra(p, "text")
	}
	w.close('}')
}

// partExtra writes what a part has besides its type and its content.
func (w *jsonWriter) partExtra(p *sentPart, content string) {
	taken := []string{"type", content}
	if p.cache {
		taken = append(taken, fieldCacheControl)
		w.member(fieldCacheControl, map[string]string{"type": "ephemeral"})
	}
	w.merge(p.extra, taken...)
}

func (w *jsonWriter) call(c *sentCall) {
	w.open('{')
	w.member("id", c.id)
	w.member("type", "function")
	w.key("function")
	w.open('{')
	w.member("name", c.name)
	w.member("arguments", c.arguments)
	w.close('}')
	w.merge(c.extra, "id", "type", "function", "index")
	w.close('}')
}
