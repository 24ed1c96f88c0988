package agentkernel

import (
	"context"
	"encoding/json"
	"iter"
)

// ChatModel is a model that answers a request with a stream.
//
// Stream is called with one request at a time per run, and by several runs at once where
// they share the model. The sequence yields increments and ends with one StreamEventDone;
// an error ends it too. It must stop when ctx ends, must not yield again once yield
// returned false, and yields on the goroutine that ranges over it. A sequence that ends
// with neither is a truncated stream. The kernel assembles the message; an adapter keeps none.
//
// An error should be an *Error with its Kind and Retryable set; network errors and an
// unexpected EOF are recognised, and any other is of kind "provider" and not tried again.
// Done needs no StopReason: an empty one means "stop", or "tool_use" where there are calls,
// and complete calls count whatever it says. After Done or an error the sequence should
// return: what it does then has no effect, and where it does not return it is left behind
// after Config.StopTimeout.
// A model that is a fmt.Stringer is called by that name in [RetryInfo].
type ChatModel interface {
	Stream(ctx context.Context, req ModelRequest) iter.Seq2[StreamEvent, error]
}

// ChatModelFunc makes a function a [ChatModel].
type ChatModelFunc func(ctx context.Context, req ModelRequest) iter.Seq2[StreamEvent, error]

// Stream calls f.
func (f ChatModelFunc) Stream(ctx context.Context, req ModelRequest) iter.Seq2[StreamEvent, error] {
	return f(ctx, req)
}

// ModelRequest is what a model is asked. Its slices are shared with the run and read-only.
type ModelRequest struct {
	// System is the system prompt, empty for none. SystemBlocks is the same in blocks, where
	// it was given in blocks.
	System       string        `json:"system,omitempty"`
	SystemBlocks []SystemBlock `json:"system_blocks,omitempty"`
	// Messages is the conversation, converted for the model.
	Messages []Message `json:"messages"`
	// Tools are the tools that the model may call, in the order of the Config.
	Tools []ToolSpec `json:"tools,omitempty"`

	// ThinkingLevel, Temperature and CacheKey are those of the Config or of Prepare; zero
	// leaves the choice to the adapter.
	ThinkingLevel ThinkingLevel `json:"thinking_level,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	CacheKey      string        `json:"cache_key,omitempty"`
	// CacheBreakpoints are the places in Messages behind which the provider should keep
	// what it has read.
	CacheBreakpoints []int `json:"cache_breakpoints,omitempty"`
}

// SystemBlock is a part of a system prompt.
type SystemBlock struct {
	Text string `json:"text"`
	// Cache asks the provider to keep what it has read up to the end of this block.
	Cache bool `json:"cache,omitempty"`
}

// ThinkingLevel is how much a model should think before it answers. The empty level leaves
// the choice to the adapter.
type ThinkingLevel string

// The thinking levels. An adapter takes the nearest that its endpoint knows.
const (
	ThinkingOff     ThinkingLevel = "off"
	ThinkingMinimal ThinkingLevel = "minimal"
	ThinkingLow     ThinkingLevel = "low"
	ThinkingMedium  ThinkingLevel = "medium"
	ThinkingHigh    ThinkingLevel = "high"
)

// StreamEventType tells which fields of a [StreamEvent] are in use.
type StreamEventType string

// The types of stream events.
const (
	// StreamEventTextDelta adds Delta to the answer's text.
	StreamEventTextDelta StreamEventType = "text_delta"
	// StreamEventThinkingDelta adds Delta to the thinking; Signature and Extra, where set,
	// replace what the block has.
	StreamEventThinkingDelta StreamEventType = "thinking_delta"
	// StreamEventToolCallDelta adds to a tool call whatever came of Key, ID, Name and Delta
	// (argument text).
	StreamEventToolCallDelta StreamEventType = "tool_call_delta"
	// StreamEventUsage sets Usage. The last one that counts anything holds.
	StreamEventUsage StreamEventType = "usage"
	// StreamEventDone ends the message, with StopReason and RawStopReason.
	StreamEventDone StreamEventType = "done"
)

// StreamEvent is one increment of a model's answer. Model may stand on any of them: the
// name of the model that answers.
type StreamEvent struct {
	Type StreamEventType
	// Key tells the calls of one message apart where ID does not: any text that is the
	// same for all increments of a call, such as its index.
	Key   string
	ID    string
	Name  string
	Delta string
	// Signature and Extra are opaque data for the block that the event adds to; see
	// [ContentBlock]. An event may carry them without a Delta.
	Signature     string
	Extra         json.RawMessage
	Usage         *Usage
	Model         string
	StopReason    StopReason
	RawStopReason string
}
