package agentkernel

import (
	"encoding/json"
	"time"
)

// EventType is the type of an [Event] and its wire name.
type EventType string

// The event types. docs/events.md has their order as a tree for each scenario.
const (
	EventAgentStart     EventType = "agent_start"
	EventAgentEnd       EventType = "agent_end"
	EventTurnStart      EventType = "turn_start"
	EventModelRequest   EventType = "model_request"
	EventMessageStart   EventType = "message_start"
	EventMessageUpdate  EventType = "message_update"
	EventMessageEnd     EventType = "message_end"
	EventMessageDiscard EventType = "message_discard"
	EventToolExecStart  EventType = "tool_exec_start"
	EventToolExecUpdate EventType = "tool_exec_update"
	EventToolExecEnd    EventType = "tool_exec_end"
	EventModelResponse  EventType = "model_response"
	EventRetry          EventType = "retry"
	EventContext        EventType = "context"
	EventError          EventType = "error"
)

// DeltaKind tells what the Delta of a MessageUpdate was added to.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaText     DeltaKind = ""
	DeltaThinking DeltaKind = "thinking"
	DeltaToolCall DeltaKind = "tool_call" // argument text
)

// ToolExecUpdateKind tells what a ToolExecUpdate brings.
type ToolExecUpdateKind string

// The kinds of updates of a running call.
const (
	ToolExecUpdatePreview  ToolExecUpdateKind = "preview"
	ToolExecUpdateProgress ToolExecUpdateKind = "progress"
	ToolExecUpdateGate     ToolExecUpdateKind = "gate"
)

// Event is one signal of a run. It may be kept for ever and read from any goroutine; what
// it refers to is read-only. Each type fills only the fields that name it.
type Event struct {
	Type EventType
	// RunID names the run, ParentRunID the run whose tool started it ("" for none). On every event.
	RunID       string
	ParentRunID string
	// Seq counts 1, 2, 3 … within a run. On every event.
	Seq uint64
	// Time is when the event was made, in UTC. On every event.
	Time time.Time
	// Turn counts the turns from 1; 0 before the first. On every event.
	Turn int

	// Attempt counts the tries of one model call from 1. ModelRequest, MessageStart,
	// MessageUpdate, MessageEnd and MessageDiscard of an assistant, Retry.
	Attempt int
	// Message is the whole message: so far on MessageStart and MessageUpdate, in the end
	// on MessageEnd, what was given up on MessageDiscard; ModelResponse: the assistant's
	// answer. It holds a Message, or the harness's own type on MessageStart and
	// MessageEnd of a message that the harness put in.
	Message AgentMessage
	// Delta is what this step added to the block ContentIndex. MessageUpdate.
	Delta string
	// DeltaKind tells to what: text, thinking or argument text. MessageUpdate.
	DeltaKind DeltaKind
	// ContentIndex is the block that grew, counted from 0. MessageUpdate.
	ContentIndex int
	// Coalesced is how many further updates this one stands for. MessageUpdate and
	// ToolExecUpdate as delivered to an asynchronous subscriber.
	Coalesced int
	// ToolID and Tool are the call's id and its tool's name, as far as known.
	// MessageUpdate of a call, ToolExecStart, ToolExecUpdate, ToolExecEnd.
	ToolID string
	Tool   string
	// ToolLabel is the tool's name for people. ToolExecStart, ToolExecUpdate, ToolExecEnd.
	ToolLabel string
	// Args is what the model asked (ToolExecStart) or what was executed (ToolExecUpdate,
	// ToolExecEnd): one compacted JSON object.
	Args json.RawMessage
	// Result is what the call came to. ToolExecEnd.
	Result *ToolResult
	// Progress is what the tool reported. ToolExecUpdate.
	Progress *ProgressPayload
	// UpdateKind tells what a ToolExecUpdate brings.
	UpdateKind ToolExecUpdateKind
	// IsError tells that the call failed. ToolExecEnd.
	IsError bool
	// ToolResults are the results of the answer's calls, in their order. ModelResponse.
	ToolResults []ToolResult
	// Err is what went wrong: on Error, repeated on AgentEnd, which also carries the error of
	// an abort, that has no Error; on MessageDiscard and Retry the attempt's failure.
	Err error
	// NewMessages are the messages that ended in this run, in order. AgentEnd.
	NewMessages []AgentMessage
	// RetryInfo is about the next attempt. Retry.
	RetryInfo *RetryInfo
	// Request is what the model is asked. ModelRequest.
	Request *ModelRequest
	// Context is the new baseline of the history. Context.
	Context *ContextInfo
	// Summary is the run in numbers. AgentEnd.
	Summary *RunSummary
	// Duration is how long it took: MessageEnd of an assistant (request to last byte),
	// ToolExecEnd, ModelResponse (request to last result), AgentEnd.
	Duration time.Duration
	// Raw is the record as it was read from the wire, where this version does not know its
	// type. No event of a run fills it.
	Raw json.RawMessage
}

// RetryInfo tells of the attempt that follows.
type RetryInfo struct {
	// Attempt is the number of the attempt that failed, from 1; MaxRetries how many may
	// follow the first.
	Attempt    int
	MaxRetries int
	// Delay is the wait before the next attempt, which begins after this event.
	Delay time.Duration
	// Err is why the attempt failed.
	Err error
	// Model and NextModel name the model that failed and, where another one gets the call
	// (Config.Fallbacks), that one: by its String method, or else its type.
	Model     string
	NextModel string
}

// ContextReason tells why a baseline was replaced.
type ContextReason string

// The reasons that the kernel itself gives.
const (
	ContextSetMessages ContextReason = "set_messages"
	ContextReset       ContextReason = "reset"
	ContextProjected   ContextReason = "projected" // by ContextManager.Project
	ContextRecovered   ContextReason = "recovered" // by ContextManager.Recover
	ContextCompacted   ContextReason = "compacted" // by Agent.Compact, where it was told no other
)

// ContextInfo is a new baseline of the history: it replaces everything before.
type ContextInfo struct {
	Reason ContextReason
	// Messages is the new history.
	Messages []AgentMessage
	// TokensBefore and TokensAfter are estimates of the history's size; 0 where unknown.
	TokensBefore int
	TokensAfter  int
}
