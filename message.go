package agentkernel

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel/internal/compact"
	"github.com/agentkernel-go/agentkernel/internal/nesting"
	"github.com/agentkernel-go/agentkernel/internal/textbuf"
)

// Role says who speaks in a message.
type Role string

// The roles that a model knows. A harness may use others for its own messages.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// AgentMessage is an application-level message: the kernel's [Message], or a type of the
// harness (a status line, a mark of its UI) that travels in the history and is dropped by
// [DefaultConvertToLLM] before a model sees it.
//
// Implementations must be immutable once handed over; their methods are called from any
// goroutine.
type AgentMessage interface {
	GetRole() Role
	GetTimestamp() time.Time
	TextContent() string
	ThinkingContent() string
	HasToolCalls() bool
}

// ContentType tells which fields of a [ContentBlock] are in use.
type ContentType string

// The content types.
const (
	ContentText     ContentType = "text"
	ContentThinking ContentType = "thinking"
	ContentToolCall ContentType = "tool_call"
	ContentImage    ContentType = "image"
)

// ContentBlock is one part of a message: a union tagged by Type.
type ContentBlock struct {
	// Type names the fields in use. Where it is empty in what a harness or a tool hands in, it
	// becomes that of the field which is set.
	Type     ContentType `json:"type"`
	Text     string      `json:"text,omitempty"`
	Thinking string      `json:"thinking,omitempty"`
	ToolCall *ToolCall   `json:"tool_call,omitempty"`
	Image    *Image      `json:"image,omitempty"`
	// ToolName is the tool that a block of a tool result speaks of, as the hits of a
	// search for tools do.
	ToolName string `json:"tool_name,omitempty"`
	// Signature and Extra are the provider's opaque data for this block. They go back to
	// the provider as they came: Signature byte for byte, Extra as the same JSON value.
	Signature string          `json:"signature,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

// TextBlock returns a text block.
func TextBlock(text string) ContentBlock { return ContentBlock{Type: ContentText, Text: text} }

// Image is a picture by its bytes or by its address; Data wins where both are set.
type Image struct {
	URL      string `json:"url,omitempty"`
	Data     []byte `json:"data,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
}

// ToolCall is a model's wish to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is one valid, compacted JSON object from MessageEnd on, and nil while the
	// message streams.
	Args json.RawMessage `json:"args,omitempty"`
	// RawArgs is the argument text so far while the message streams. In a finished message
	// it is set only where that text was no JSON object.
	RawArgs string `json:"raw_args,omitempty"`
	// ArgsError says why RawArgs is no JSON object, or that the call was cut off. Such a
	// call is answered with an error result and never executed.
	ArgsError string `json:"args_error,omitempty"`
}

// StopReason is why a model stopped writing.
type StopReason string

// The stop reasons.
const (
	StopReasonStop    StopReason = "stop"
	StopReasonLength  StopReason = "length"
	StopReasonToolUse StopReason = "tool_use"
	StopReasonRefusal StopReason = "refusal"
	StopReasonError   StopReason = "error"
	StopReasonAborted StopReason = "aborted"
)

// Message is the kernel's own message. It is a value: copying one copies the header, and
// the slices in it are shared and read-only for everyone; [Message.Clone] gives a private copy.
type Message struct {
	Role      Role           `json:"role"`
	Content   []ContentBlock `json:"content"`
	Timestamp time.Time      `json:"timestamp,omitzero"`

	// Usage is what the provider counted; nil where it counted nothing. A tool message
	// carries the usage of the run that its tool made.
	Usage *Usage `json:"usage,omitempty"`

	// An assistant message carries why it ended, as the kernel and as the provider name
	// it, and the model that wrote it.
	StopReason    StopReason `json:"stop_reason,omitempty"`
	RawStopReason string     `json:"raw_stop_reason,omitempty"`
	Model         string     `json:"model,omitempty"`

	// A tool message carries the call that it answers and what became of it.
	ToolCallID string    `json:"tool_call_id,omitempty"`
	ToolName   string    `json:"tool_name,omitempty"`
	IsError    bool      `json:"is_error,omitempty"`
	Cause      ToolCause `json:"cause,omitempty"`

	// Metadata is the harness's. The kernel carries it and reads nothing from it.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// UserMessage returns a user message of one text block, made now.
func UserMessage(text string) Message {
	return Message{Role: RoleUser, Content: []ContentBlock{TextBlock(validText(text))}, Timestamp: now()}
}

// GetRole implements [AgentMessage].
func (m Message) GetRole() Role { return m.Role }

// GetTimestamp implements [AgentMessage].
func (m Message) GetTimestamp() time.Time { return m.Timestamp }

// TextContent returns the message's text: that of its text blocks, one after the other. Of
// a message with one text block it is that block's string, not a copy.
func (m Message) TextContent() string {
	return joined(m.Content, ContentText, func(b *ContentBlock) string { return b.Text })
}

// ThinkingContent returns the text of the thinking blocks, one after the other.
func (m Message) ThinkingContent() string {
	return joined(m.Content, ContentThinking, func(b *ContentBlock) string { return b.Thinking })
}

// HasToolCalls tells whether the message holds at least one tool call.
func (m Message) HasToolCalls() bool {
	return slices.ContainsFunc(m.Content, func(b ContentBlock) bool { return b.ToolCall != nil })
}

// ToolCalls returns the message's calls in their order.
func (m Message) ToolCalls() []ToolCall {
	var calls []ToolCall
	for i := range m.Content {
		call := m.Content[i].ToolCall
		if call == nil {
			continue
		}
		if calls == nil { // behind the first call hardly anything else comes
			calls = make([]ToolCall, 0, len(m.Content)-i)
		}
		calls = append(calls, *call)
	}
	return calls
}

// Clone returns a copy that shares no memory with m, except what Metadata's values refer to.
func (m Message) Clone() Message {
	m.Content = cloneBlocks(m.Content)
	m.Usage = m.Usage.clone()
	m.Metadata = maps.Clone(m.Metadata)
	return m
}

// view returns a copy that shares with m no more than the bytes in it.
func (m Message) view() Message {
	m.Content = ownBlocks(m.Content)
	m.Usage = m.Usage.clone()
	return m
}

// boxedView is a view as an AgentMessage. Of a message with one block, of text or a call, it
// takes one allocation.
func (m *Message) boxedView() AgentMessage {
	switch {
	case m.isText():
		own := &single{*m, [1]ContentBlock(m.Content)}
		own.message.Content, own.message.Usage = own.block[:], m.Usage.clone()
		return inPlace(&own.message)
	case len(m.Content) == 1 && m.Content[0].Image == nil:
		own := &singleCall{*m, [1]ContentBlock(m.Content), [1]ToolCall{*m.Content[0].ToolCall}}
		own.block[0].ToolCall = &own.call[0]
		own.message.Content, own.message.Usage = own.block[:], m.Usage.clone()
		return inPlace(&own.message)
	}
	return m.view()
}

// boxedClone is a clone as an AgentMessage.
func (m *Message) boxedClone() AgentMessage {
	boxed := m.boxedView()
	own := boxed.(Message)
	cloneBytes(own.Content) // which boxed refers to as well
	if own.Metadata != nil {
		own.Metadata = maps.Clone(own.Metadata)
		return own
	}
	return boxed
}

// isText tells whether m holds one block, of text or thinking.
func (m *Message) isText() bool {
	return len(m.Content) == 1 && m.Content[0].ToolCall == nil && m.Content[0].Image == nil
}

func cloneBlocks(blocks []ContentBlock) []ContentBlock {
	blocks = ownBlocks(blocks)
	cloneBytes(blocks)
	return blocks
}

// cloneBytes gives blocks bytes of their own.
func cloneBytes(blocks []ContentBlock) {
	for i := range blocks {
		b := &blocks[i]
		b.Extra = bytes.Clone(b.Extra)
		if b.ToolCall != nil {
			b.ToolCall.Args = bytes.Clone(b.ToolCall.Args)
		}
		if b.Image != nil {
			b.Image.Data = bytes.Clone(b.Image.Data)
		}
	}
}

// ownBlocks returns a copy of blocks that shares no more than the bytes in them.
func ownBlocks(blocks []ContentBlock) []ContentBlock {
	if len(blocks) == 1 && blocks[0].ToolCall != nil && blocks[0].Image == nil {
		own := struct { // one allocation for what most calls are
			blocks [1]ContentBlock
			call   ToolCall
		}{[1]ContentBlock(blocks), *blocks[0].ToolCall}
		return withCall(&own.blocks, &own.call)
	}
	blocks = slices.Clone(blocks)
	for i := range blocks {
		b := &blocks[i]
		if b.ToolCall != nil {
			b.ToolCall = new(*b.ToolCall)
		}
		if b.Image != nil {
			b.Image = new(*b.Image)
		}
	}
	return blocks
}

func withCall(blocks *[1]ContentBlock, call *ToolCall) []ContentBlock {
	blocks[0].ToolCall = call
	return blocks[:]
}

func joined(blocks []ContentBlock, kind ContentType, text func(*ContentBlock) string) string {
	var one string
	var many strings.Builder
	n := 0
	for i := range blocks {
		if b := &blocks[i]; b.Type == kind {
			if n++; n == 2 {
				many.WriteString(one)
			}
			if one = text(b); n > 1 {
				many.WriteString(one)
			}
		}
	}
	if n > 1 {
		return many.String()
	}
	return one
}

// Usage counts the tokens of a model call as its provider reported them. Input contains
// the cached part and Output the reasoning part where the provider counts so; the numbers
// are carried, not corrected.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"`
	Total      int `json:"total"`
	// Cost is in the currency that the provider or the harness counts in, US dollars by
	// custom. Nil means unknown, which is not nothing.
	Cost *float64 `json:"cost,omitempty"`
}

// Add returns the sum of u and v. A cost that is unknown, or no finite number, adds nothing, and
// one beyond what a float64 holds is the largest. The result shares no memory with either.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
		Reasoning:  u.Reasoning + v.Reasoning,
		Total:      u.Total + v.Total,
	}
	cost, known := 0.0, false
	for _, c := range []*float64{u.Cost, v.Cost} {
		if c != nil && !math.IsNaN(*c) && !math.IsInf(*c, 0) {
			cost, known = max(-math.MaxFloat64, min(cost+*c, math.MaxFloat64)), true
		}
	}
	if known {
		sum.Cost = new(cost)
	}
	return sum
}

func (u *Usage) clone() *Usage {
	if u == nil {
		return nil
	}
	return new(Usage{}.Add(*u))
}

// isZero tells whether u counts nothing, as the empty record at the end of some streams.
func (u *Usage) isZero() bool { return u == nil || *u == Usage{} }

// normalize returns m as a fixed point of encoding/json: valid UTF-8, compacted JSON, UTC
// times. Raw JSON that is none becomes a JSON string, absent arguments an empty object. The
// result shares no slice with m.
func normalize(m Message) Message {
	m = m.view()
	m.Metadata = maps.Clone(m.Metadata)
	m.Timestamp = canonicalTime(m.Timestamp)
	makeValid(&m.Role)
	makeValid(&m.StopReason)
	makeValid(&m.Cause)
	makeValid(&m.RawStopReason, &m.Model, &m.ToolCallID, &m.ToolName)
	for i := range m.Content {
		normalizeBlock(&m.Content[i])
	}
	return m
}

func normalizeBlock(b *ContentBlock) {
	makeValid(&b.Type)
	if b.Type == "" {
		b.Type = b.impliedType()
	}
	makeValid(&b.Text, &b.Thinking, &b.ToolName, &b.Signature)
	b.Extra = compactJSON(b.Extra)
	if b.Image != nil {
		b.Image.Data = bytes.Clone(b.Image.Data)
		makeValid(&b.Image.URL, &b.Image.MIMEType)
	}
	if call := b.ToolCall; call != nil {
		makeValid(&call.ID, &call.Name, &call.RawArgs, &call.ArgsError)
		call.Args = compactJSON(call.Args)
		if call.Args == nil {
			call.Args = json.RawMessage(`{}`)
		}
	}
}

// impliedType is the type of a block that names none: that of the field which is set.
func (b *ContentBlock) impliedType() ContentType {
	switch {
	case b.ToolCall != nil:
		return ContentToolCall
	case b.Image != nil:
		return ContentImage
	case b.Thinking != "" && b.Text == "":
		return ContentThinking
	}
	return ContentText
}

func makeValid[S ~string](fields ...*S) {
	for _, f := range fields {
		*f = S(validText(string(*f)))
	}
}

func now() time.Time { return canonicalTime(time.Now()) }

// canonicalTime is t as encoding/json writes it and reads it back; the zero time where it
// cannot (RFC 3339 has years of four digits).
func canonicalTime(t time.Time) time.Time {
	t = t.UTC().Round(0)
	if second := t.Unix(); t.IsZero() || second < firstSecond || second > lastSecond {
		return time.Time{}
	}
	return t
}

// firstSecond and lastSecond are those of the years 0 to 9999, of which a comparison costs
// less than working out a time's year.
var (
	firstSecond = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastSecond  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
)

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// compactJSON returns raw as encoding/json writes it, in memory of its own.
func compactJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	out, ok := compact.JSON(raw)
	if !ok {
		out, _ = json.Marshal(validText(string(raw)))
		return out
	}
	if nesting.TooDeep(textbuf.String(out)) { // it could not be read back within a message
		out, _ = json.Marshal(validText(string(out)))
		return out
	}
	return escaped(out)
}

// escaped returns compact JSON as encoding/json writes it: the same memory where that is all right.
func escaped(out []byte) json.RawMessage {
	if n := escapedLen(out); n > len(out) {
		buf := bytes.NewBuffer(make([]byte, 0, n))
		json.HTMLEscape(buf, out)
		out = buf.Bytes()
	}
	if !utf8.Valid(out) {
		out = bytes.ToValidUTF8(out, []byte("\uFFFD"))
	}
	return out
}

// escapedLen is the length of JSON in which what HTML does not like is escaped.
func escapedLen(raw []byte) int {
	n := len(raw)
	for _, c := range []string{"<", ">", "&"} {
		n += bytes.Count(raw, []byte(c)) * (len(`\u003c`) - len(c))
	}
	for _, separator := range []string{"\u2028", "\u2029"} {
		n += bytes.Count(raw, []byte(separator)) * (len(`\u2028`) - len(separator))
	}
	return n
}
