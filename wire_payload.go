package agentkernel

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/agentkernel-go/agentkernel/internal/nesting"
)

// wireResult is a ToolResult as JSON.
type wireResult struct{ ToolResult }

// plainResult has ToolResult's fields without its methods.
type plainResult ToolResult

func resultToWire(r *ToolResult) *wireResult {
	if r == nil {
		return nil
	}
	return &wireResult{*r}
}

func resultsToWire(results []ToolResult) []wireResult {
	if results == nil {
		return nil
	}
	out := make([]wireResult, len(results))
	for i, r := range results {
		out[i] = wireResult{r}
	}
	return out
}

func (w *wireResult) result() *ToolResult {
	if w == nil {
		return nil
	}
	return &w.ToolResult
}

func resultsOf(results []wireResult) []ToolResult {
	if results == nil {
		return nil
	}
	out := make([]ToolResult, len(results))
	for i, r := range results {
		out[i] = r.ToolResult
	}
	return out
}

// MarshalJSON leaves out Details that cannot be written.
func (w wireResult) MarshalJSON() ([]byte, error) {
	if w.Details != nil {
		details := w.Details
		raw, err := askHarness(func() ([]byte, error) { return marshalPlain(details) })
		w.Details = json.RawMessage(raw)
		if err != nil || nesting.TooDeep(string(raw)) { // the record could not be read back
			w.Details = nil
		}
	}
	return marshalPlain(plainResult(w.ToolResult))
}

// UnmarshalJSON keeps Details as they are written.
func (w *wireResult) UnmarshalJSON(data []byte) error {
	var r struct {
		plainResult
		Details json.RawMessage `json:"details"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	w.ToolResult = ToolResult(r.plainResult)
	if len(r.Details) > 0 && string(r.Details) != "null" {
		w.ToolResult.Details = r.Details
	}
	return nil
}

// wireRetry is a RetryInfo as JSON.
type wireRetry struct {
	Attempt    int        `json:"attempt"`
	MaxRetries int        `json:"max_retries"`
	Delay      millis     `json:"delay_ms"`
	Err        *wireError `json:"err,omitempty"`
	Model      string     `json:"model,omitempty"`
	NextModel  string     `json:"next_model,omitempty"`
}

func retryToWire(r *RetryInfo) *wireRetry {
	if r == nil {
		return nil
	}
	return &wireRetry{Attempt: r.Attempt, MaxRetries: r.MaxRetries, Delay: millis(r.Delay),
		Err: errorToWire(r.Err), Model: r.Model, NextModel: r.NextModel}
}

func (w *wireRetry) info() *RetryInfo {
	if w == nil {
		return nil
	}
	return &RetryInfo{Attempt: w.Attempt, MaxRetries: w.MaxRetries, Delay: time.Duration(w.Delay),
		Err: w.Err.err(), Model: w.Model, NextModel: w.NextModel}
}

// wireRequest is what of a ModelRequest goes on the wire: all but the messages, which are
// counted. System, SystemBlocks and ToolSpecs are of the whole form only.
type wireRequest struct {
	System           string        `json:"system,omitempty"`
	SystemBlocks     []SystemBlock `json:"system_blocks,omitempty"`
	Messages         int           `json:"messages"`
	Tools            []string      `json:"tools,omitempty"`
	ToolSpecs        []wireTool    `json:"tool_specs,omitempty"`
	ThinkingLevel    ThinkingLevel `json:"thinking_level,omitempty"`
	Temperature      *float64      `json:"temperature,omitempty"`
	CacheKey         string        `json:"cache_key,omitempty"`
	CacheBreakpoints []int         `json:"cache_breakpoints,omitempty"`
}

// wireTool is a ToolSpec as JSON.
type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
}

// MarshalJSON leaves out a schema with which the record could not be written, or not be read.
func (w wireTool) MarshalJSON() ([]byte, error) {
	type plainTool wireTool
	if !json.Valid(w.Schema) || nesting.TooDeep(string(w.Schema)) {
		w.Schema = nil
	}
	return marshalPlain(plainTool(w))
}

func requestToWire(r *ModelRequest) *wireRequest {
	if r == nil {
		return nil
	}
	w := &wireRequest{System: r.System, SystemBlocks: r.SystemBlocks, Messages: len(r.Messages),
		ThinkingLevel: r.ThinkingLevel, Temperature: r.Temperature, CacheKey: r.CacheKey, CacheBreakpoints: r.CacheBreakpoints}
	for _, tool := range r.Tools {
		w.Tools = append(w.Tools, tool.Name)
		w.ToolSpecs = append(w.ToolSpecs, wireTool(tool))
	}
	return w
}

// short is w in the delta-only form. It changes w.
func (w *wireRequest) short() {
	if w == nil {
		return
	}
	w.System, w.SystemBlocks, w.ToolSpecs = "", nil, nil
}

// maxCounted bounds the zero messages that stand for a number on the wire. They are shared.
const maxCounted = 1 << 12

var counted [maxCounted]Message

func (w *wireRequest) request() *ModelRequest {
	if w == nil {
		return nil
	}
	r := &ModelRequest{System: w.System, SystemBlocks: w.SystemBlocks,
		ThinkingLevel: w.ThinkingLevel, Temperature: w.Temperature,
		CacheKey: w.CacheKey, CacheBreakpoints: w.CacheBreakpoints}
	if n := min(w.Messages, maxCounted); n > 0 {
		r.Messages = counted[:n:n]
	}
	for _, tool := range w.ToolSpecs {
		r.Tools = append(r.Tools, ToolSpec(tool))
	}
	if r.Tools == nil {
		for _, name := range w.Tools {
			r.Tools = append(r.Tools, ToolSpec{Name: name})
		}
	}
	return r
}

// wireContext is a ContextInfo as JSON.
type wireContext struct {
	Reason       ContextReason `json:"reason"`
	Messages     []wireMessage `json:"messages"`
	TokensBefore int           `json:"tokens_before,omitempty"`
	TokensAfter  int           `json:"tokens_after,omitempty"`
}

func contextToWire(c *ContextInfo) *wireContext {
	if c == nil {
		return nil
	}
	return &wireContext{Reason: c.Reason, Messages: messagesToWire(c.Messages), TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter}
}

func (w *wireContext) info() *ContextInfo {
	if w == nil {
		return nil
	}
	return &ContextInfo{Reason: w.Reason, Messages: messagesOf(w.Messages), TokensBefore: w.TokensBefore, TokensAfter: w.TokensAfter}
}

// plainSummary has RunSummary's fields without its methods, and its duration in its place.
type (
	plainSummary RunSummary
	wireSummary  struct {
		plainSummary
		Nanoseconds *int64 `json:"duration,omitempty"` // hides the embedded field
		Duration    millis `json:"duration_ms"`
	}
)

// MarshalJSON writes the summary as it is on the wire.
func (s RunSummary) MarshalJSON() ([]byte, error) {
	return marshalPlain(wireSummary{plainSummary: plainSummary(s), Duration: millis(s.Duration)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *RunSummary) UnmarshalJSON(data []byte) error {
	var w wireSummary
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = RunSummary(w.plainSummary)
	s.Duration = time.Duration(w.Duration)
	return nil
}

type (
	plainStep RunStep
	wireStep  struct {
		plainStep
		Nanoseconds *int64 `json:"duration,omitempty"` // hides the embedded field
		Duration    millis `json:"duration_ms"`
	}
)

// MarshalJSON writes the step with its duration in milliseconds, as on the wire.
func (s RunStep) MarshalJSON() ([]byte, error) {
	return marshalPlain(wireStep{plainStep: plainStep(s), Duration: millis(s.Duration)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *RunStep) UnmarshalJSON(data []byte) error {
	var w wireStep
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = RunStep(w.plainStep)
	s.Duration = time.Duration(w.Duration)
	return nil
}

// plainRecord has RunRecord's fields without its methods; wireRecord replaces those that
// encoding/json cannot read or that have another form on the wire.
type (
	plainRecord RunRecord
	wireRecord  struct {
		plainRecord
		Input       []wireMessage `json:"input"`
		NewMessages []wireMessage `json:"new_messages"`
		Err         *wireError    `json:"err,omitempty"`
	}
)

// MarshalJSON writes the record, its messages and its error as they are on the wire.
func (r RunRecord) MarshalJSON() ([]byte, error) {
	return marshalPlain(wireRecord{plainRecord: plainRecord(r), Input: messagesToWire(r.Input),
		NewMessages: messagesToWire(r.NewMessages), Err: errorToWire(r.Err)})
}

// UnmarshalJSON reads what MarshalJSON writes. The error becomes an [*Error] of the same kind.
func (r *RunRecord) UnmarshalJSON(data []byte) error {
	var w wireRecord
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*r = RunRecord(w.plainRecord)
	r.Input, r.NewMessages, r.Err = messagesOf(w.Input), messagesOf(w.NewMessages), w.Err.err()
	r.Start, r.End = canonicalTime(r.Start), canonicalTime(r.End)
	return nil
}

// wireState is an AgentState as JSON.
type wireState struct {
	Messages         []wireMessage `json:"messages"`
	StreamMessage    *wireMessage  `json:"stream_message,omitempty"`
	PendingToolCalls []string      `json:"pending_tool_calls,omitempty"`
	TotalUsage       Usage         `json:"total_usage"`
	DiscardedUsage   Usage         `json:"discarded_usage"`
	ContextTokens    *int          `json:"context_tokens,omitempty"`
	IsRunning        bool          `json:"is_running"`
	RunID            string        `json:"run_id,omitempty"`
	Err              *wireError    `json:"err,omitempty"`
	Suspended        []Suspension  `json:"suspended,omitempty"`
}

// MarshalJSON writes the state, its messages and its error as they are on the wire.
func (s AgentState) MarshalJSON() ([]byte, error) {
	return marshalPlain(wireState{
		Messages: messagesToWire(s.Messages), StreamMessage: messageToWire(s.StreamMessage),
		PendingToolCalls: s.PendingToolCalls, TotalUsage: s.TotalUsage, DiscardedUsage: s.DiscardedUsage,
		ContextTokens: s.ContextTokens, IsRunning: s.IsRunning, RunID: s.RunID, Err: errorToWire(s.Err),
		Suspended: s.Suspended,
	})
}

// UnmarshalJSON reads what MarshalJSON writes. The error becomes an [*Error] of the same kind.
func (s *AgentState) UnmarshalJSON(data []byte) error {
	var w wireState
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if slices.Contains(w.PendingToolCalls, "") {
		return errors.New("a pending call without id")
	}
	*s = AgentState{
		Messages: messagesOf(w.Messages), StreamMessage: w.StreamMessage.message(),
		PendingToolCalls: w.PendingToolCalls, TotalUsage: w.TotalUsage, DiscardedUsage: w.DiscardedUsage,
		ContextTokens: w.ContextTokens, IsRunning: w.IsRunning, RunID: w.RunID, Err: w.Err.err(),
		Suspended: w.Suspended,
	}
	return nil
}
