package agentkernel

import (
	"context"
	"encoding/json"
	"time"
)

// Tool is something that a model can ask to be done. A copy of a Tool is a wrapper that
// loses nothing: change Execute in the copy and keep the rest.
//
// Its functions are called on a goroutine of the call, behind the run's fence: one that does
// not come back within Config.StopTimeout after the run's context ended is left behind, and
// what it does later has no effect. A panic or runtime.Goexit in one is that call's error
// result. Several calls may run at once.
type Tool struct {
	// Name is what the model calls it: not empty, unique among the tools of a Config.
	Name string
	// Description tells the model what it does and when to use it.
	Description string
	// Schema is the JSON schema (draft 2020-12) of the arguments: anything that
	// encoding/json turns into a JSON object, such as json.RawMessage, *jsonschema.Schema or
	// a map. Nil means an object of any shape. Arguments that break it are answered with all
	// violations and never executed. It must not be changed once the tool is in use.
	Schema any
	// Execute does the work, with args a valid JSON object. An error or a result with
	// IsError is told to the model, both where there are both, and the run goes on.
	Execute func(ctx context.Context, args json.RawMessage) (ToolResult, error)

	// Label is the tool's name for people: Event.ToolLabel.
	Label string
	// Activity says for people what a call does ("reads main.go"). Where it is set and not
	// empty it is Event.ToolLabel instead of Label. It must be quick and change nothing.
	Activity func(args json.RawMessage) string
	// Validate checks what the schema cannot say. It must neither ask nor change anything.
	// Its error is told to the model, and the call is not executed.
	Validate func(ctx context.Context, args json.RawMessage) error
	// Preview shows what a call would do, before the gate is asked: as an Update of kind
	// "preview" and in GateRequest. It must not change anything. Its error means that the
	// call is not executed.
	Preview func(ctx context.Context, args json.RawMessage) (ProgressPayload, error)
	// ReadOnly tells whether a call changes nothing. Nil means that it may. Like Activity and
	// ConcurrencySafe it must be quick: the run waits for it.
	ReadOnly func(args json.RawMessage) bool
	// ConcurrencySafe tells whether a call may run beside others. Nil means: if ReadOnly.
	ConcurrencySafe func(args json.RawMessage) bool
	// Interrupt tells what steering does to a call that is running.
	Interrupt InterruptMode
	// Timeout bounds Execute. Zero means Config.ToolTimeout; negative means no bound.
	Timeout time.Duration
	// Idempotent tells that running a call twice is as good as once, so that a call whose
	// end nobody saw may be run again.
	Idempotent bool
	// Strict asks the provider to hold the model to the schema, where it can.
	Strict bool
	// Deferred keeps the tool's schema from the model until [SearchTool] has found it or the
	// history shows a call of it.
	Deferred bool
}

// Always is for Tool.ReadOnly and Tool.ConcurrencySafe where the arguments do not matter.
func Always(json.RawMessage) bool { return true }

// InterruptMode is what becomes of a running call when steering arrives.
type InterruptMode string

// The modes.
const (
	// InterruptBlock lets the call run on to its end.
	InterruptBlock InterruptMode = ""
	// InterruptCancel ends the call's context, with ErrSteered as its cause.
	InterruptCancel InterruptMode = "cancel"
)

// ToolCause tells what became of a call.
type ToolCause string

// The causes. In brackets: whether the tool was started.
const (
	ToolOK          ToolCause = "ok"          // it ran and succeeded (yes)
	ToolFailed      ToolCause = "failed"      // it ran and reported a failure (yes)
	ToolInvalid     ToolCause = "invalid"     // its arguments are no JSON object or break the schema (no)
	ToolUnknown     ToolCause = "unknown"     // no tool has that name (no)
	ToolDenied      ToolCause = "denied"      // the gate or a preview refused it (no)
	ToolSkipped     ToolCause = "skipped"     // steering made it pointless before it began (no)
	ToolInterrupted ToolCause = "interrupted" // it was stopped half-way or its end was never seen (yes)
	ToolNotStarted  ToolCause = "not_started" // the run stopped before it began, or its gate suspends (no)
	ToolTimeout     ToolCause = "timeout"     // it took longer than it may (yes)
	ToolPanic       ToolCause = "panic"       // one of its functions, or a hook of the call, panicked (perhaps)
	ToolDisabled    ToolCause = "disabled"    // it failed too often in this run (no)
	ToolCutOff      ToolCause = "cut_off"     // the output limit cut its arguments off (no)
	ToolLimit       ToolCause = "limit"       // a limit of the run forbids it (no)
)

// ToolResult is what a call came to.
type ToolResult struct {
	// ToolCallID and ToolName are filled in by the kernel.
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
	// Content is what the model reads. Where it is empty the model reads JSON as text.
	Content []ContentBlock `json:"content,omitempty"`
	// JSON is the result as a value.
	JSON json.RawMessage `json:"json,omitempty"`
	// Details are for front ends; no model sees them. Of a result that was cut they are a
	// *[FullResult].
	Details any `json:"details,omitempty"`
	// IsError marks a failure that the model is told of.
	IsError bool `json:"is_error,omitempty"`
	// Cause is filled in by the kernel. Only ToolInvalid, beside IsError, is taken from the
	// tool: it could not use the arguments and did nothing.
	Cause ToolCause `json:"cause,omitempty"`
	// Stack is the stack of a panic. No model sees it.
	Stack string `json:"stack,omitempty"`
	// Usage is what a run that the tool made used up.
	Usage *Usage `json:"usage,omitempty"`
	// Terminate asks to end the run normally once the calls of this turn are answered.
	Terminate bool `json:"terminate,omitempty"`
}

// TextResult is a result of one text block.
func TextResult(text string) ToolResult {
	return ToolResult{Content: []ContentBlock{TextBlock(text)}}
}

// ErrorResult is a failed result of one text block.
func ErrorResult(text string) ToolResult {
	r := TextResult(text)
	r.IsError = true
	return r
}

// TextContent returns what a model reads of the result: its text blocks, one after the
// other, or JSON as text where there is no content.
func (t ToolResult) TextContent() string { return Message{Content: t.shown()}.TextContent() }

// ToolSpec is a tool as a model is told of it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Strict      bool            `json:"strict,omitempty"`
}

// ToolHandler executes a call. The call's Args are what is executed; its RawArgs are empty.
type ToolHandler func(ctx context.Context, call ToolCall) (ToolResult, error)

// Middleware wraps the execution of calls. It may change the call before it passes it on,
// change the result on its way out, which both the event and the model then see, or answer
// without calling next. It runs on the call's goroutine, after the gate.
type Middleware func(next ToolHandler) ToolHandler

// GateRequest is what a gate decides about.
type GateRequest struct {
	// Call is the call with the arguments that would be executed.
	Call ToolCall
	// Label and ReadOnly are what the tool says of the call; Label is its Activity where it has one.
	Label    string
	ReadOnly bool
	// Preview is what the tool's Preview showed, nil where it has none.
	Preview *ProgressPayload
	// RunID is the run's, Turn its turn.
	RunID string
	Turn  int
}

// GateDecision is a gate's answer. The zero value denies. It holds for the one call, with
// the very arguments of the request, or with Args where they are set.
type GateDecision struct {
	Allow bool
	// Reason is shown on the stream, and to the model where the call is denied.
	Reason string
	// Args replace the arguments. They are validated again. The call keeps its place in the
	// schedule: ConcurrencySafe is not asked again.
	Args json.RawMessage
}

// RepairRequest is a call whose arguments are no JSON object or break the schema.
type RepairRequest struct {
	// Call is the call; RawArgs is the text that the model wrote.
	Call ToolCall
	// Problem says what is wrong, in the words that the model would be told.
	Problem string
	// Schema is the tool's.
	Schema json.RawMessage
}

// FullResult is a result from before it was cut: see Config.MaxToolResultBytes.
type FullResult struct {
	Content []ContentBlock  `json:"content,omitempty"`
	JSON    json.RawMessage `json:"json,omitempty"`
	Details any             `json:"details,omitempty"`
}
