package agentkernel

import (
	"encoding/json"
	"time"
)

// EventMeta is what every event says.
type EventMeta struct {
	// RunID names the run, ParentRunID the run whose tool started it ("" for none).
	RunID       string
	ParentRunID string
	// Seq counts 1, 2, 3 … within a run.
	Seq uint64
	// Time is when the event was made, in UTC.
	Time time.Time
	// Turn counts the turns from 1; 0 before the first.
	Turn int
}

// Meta returns m: every [Payload] has this method.
func (m EventMeta) Meta() EventMeta { return m }

func (EventMeta) payload() {}

// Payload is an event narrowed to what its type fills: one of the structs of [PayloadType],
// and no other, for a type switch. It may be kept as its [Event] may, and refers to the same
// read-only values. What a field means stands at the field of that name in Event.
type Payload interface {
	// Meta is what every event says.
	Meta() EventMeta
	payload()
}

// PayloadType is the payloads that there are, one for each [EventType].
type PayloadType interface {
	Payload
	RunStarted | RunEnded | RunFailed | TurnStarted | ContextReplaced |
		ModelRequested | ModelResponded | Retrying |
		MessageStarted | MessageUpdated | MessageEnded | MessageDiscarded |
		ToolStarted | ToolProgressed | ToolEnded
}

// RunStarted is an AgentStart.
type RunStarted struct{ EventMeta }

// RunEnded is an AgentEnd: the run's last event.
type RunEnded struct {
	EventMeta
	NewMessages []AgentMessage
	Summary     *RunSummary
	Err         error
	Duration    time.Duration
}

// RunFailed is an Error: fatal, and followed at once by [RunEnded], which repeats Err.
type RunFailed struct {
	EventMeta
	Err error
}

// TurnStarted is a TurnStart.
type TurnStarted struct{ EventMeta }

// ContextReplaced is a Context: a new baseline of the history.
type ContextReplaced struct {
	EventMeta
	Context *ContextInfo
}

// ModelRequested is a ModelRequest: one attempt to get an answer.
type ModelRequested struct {
	EventMeta
	Attempt int
	Request *ModelRequest
}

// ModelResponded is a ModelResponse: an answer together with the results of its calls.
type ModelResponded struct {
	EventMeta
	Message     AgentMessage
	ToolResults []ToolResult
	Duration    time.Duration
}

// Retrying is a Retry: an attempt failed, another one follows.
type Retrying struct {
	EventMeta
	Attempt   int
	Err       error
	RetryInfo *RetryInfo
}

// MessageStarted is a MessageStart.
type MessageStarted struct {
	EventMeta
	Attempt int
	Message AgentMessage
}

// MessageUpdated is a MessageUpdate: the message so far, and what was added to it.
type MessageUpdated struct {
	EventMeta
	Attempt      int
	Message      AgentMessage
	Delta        string
	DeltaKind    DeltaKind
	ContentIndex int
	Coalesced    int
	ToolID       string
	Tool         string
}

// MessageEnded is a MessageEnd: the message is in the history now.
type MessageEnded struct {
	EventMeta
	Attempt  int
	Message  AgentMessage
	Duration time.Duration
}

// MessageDiscarded is a MessageDiscard: the message never happened.
type MessageDiscarded struct {
	EventMeta
	Attempt int
	Message AgentMessage
	Err     error
}

// ToolStarted is a ToolExecStart.
type ToolStarted struct {
	EventMeta
	ToolID    string
	Tool      string
	ToolLabel string
	Args      json.RawMessage
}

// ToolProgressed is a ToolExecUpdate.
type ToolProgressed struct {
	EventMeta
	ToolID     string
	Tool       string
	ToolLabel  string
	Args       json.RawMessage
	Progress   *ProgressPayload
	UpdateKind ToolExecUpdateKind
	Coalesced  int
}

// ToolEnded is a ToolExecEnd.
type ToolEnded struct {
	EventMeta
	ToolID    string
	Tool      string
	ToolLabel string
	Args      json.RawMessage
	Result    *ToolResult
	IsError   bool
	Duration  time.Duration
}

// Payload returns the event as the payload of its type, or nil where the type is unknown.
func (ev Event) Payload() Payload {
	if kind := payloadKinds[ev.Type]; kind != nil {
		return kind.of(ev)
	}
	return nil
}

// On registers fn for the events of one type, named by the payload that fn takes, and
// returns its removal:
//
//	agentkernel.On(agent, func(e agentkernel.ToolEnded) { … })
//
// It is a listener of the agent: order, goroutine, ownership, panics and removal are those
// of [Agent.Subscribe]. A nil fn panics.
func On[T PayloadType](agent *Agent, fn func(T)) (unsubscribe func()) {
	if fn == nil {
		panic("agentkernel: On with a nil listener")
	}
	for typ, kind := range payloadKinds {
		if narrow, ok := kind.(payloadKind[T]); ok {
			return agent.subscribe(&listener{byRef: func(ev *Event) {
				if ev.Type == typ {
					fn(narrow(*ev))
				}
			}})
		}
	}
	panic("agentkernel: a payload without event type") // a test lists them
}

// payloadKinds has for each event type what makes its payload.
var payloadKinds = map[EventType]interface{ of(Event) Payload }{
	EventAgentStart:     payloadKind[RunStarted](Event.runStarted),
	EventAgentEnd:       payloadKind[RunEnded](Event.runEnded),
	EventError:          payloadKind[RunFailed](Event.runFailed),
	EventTurnStart:      payloadKind[TurnStarted](Event.turnStarted),
	EventContext:        payloadKind[ContextReplaced](Event.contextReplaced),
	EventModelRequest:   payloadKind[ModelRequested](Event.modelRequested),
	EventModelResponse:  payloadKind[ModelResponded](Event.modelResponded),
	EventRetry:          payloadKind[Retrying](Event.retrying),
	EventMessageStart:   payloadKind[MessageStarted](Event.messageStarted),
	EventMessageUpdate:  payloadKind[MessageUpdated](Event.messageUpdated),
	EventMessageEnd:     payloadKind[MessageEnded](Event.messageEnded),
	EventMessageDiscard: payloadKind[MessageDiscarded](Event.messageDiscarded),
	EventToolExecStart:  payloadKind[ToolStarted](Event.toolStarted),
	EventToolExecUpdate: payloadKind[ToolProgressed](Event.toolProgressed),
	EventToolExecEnd:    payloadKind[ToolEnded](Event.toolEnded),
}

// payloadKind makes the payload of an event of one type.
type payloadKind[T Payload] func(Event) T

func (narrow payloadKind[T]) of(ev Event) Payload { return narrow(ev) }

func (ev Event) meta() EventMeta {
	return EventMeta{RunID: ev.RunID, ParentRunID: ev.ParentRunID, Seq: ev.Seq, Time: ev.Time, Turn: ev.Turn}
}

func (ev Event) runStarted() RunStarted { return RunStarted{ev.meta()} }

func (ev Event) runEnded() RunEnded {
	return RunEnded{ev.meta(), ev.NewMessages, ev.Summary, ev.Err, ev.Duration}
}

func (ev Event) runFailed() RunFailed { return RunFailed{ev.meta(), ev.Err} }

func (ev Event) turnStarted() TurnStarted { return TurnStarted{ev.meta()} }

func (ev Event) contextReplaced() ContextReplaced { return ContextReplaced{ev.meta(), ev.Context} }

func (ev Event) modelRequested() ModelRequested {
	return ModelRequested{ev.meta(), ev.Attempt, ev.Request}
}

func (ev Event) modelResponded() ModelResponded {
	return ModelResponded{ev.meta(), ev.Message, ev.ToolResults, ev.Duration}
}

func (ev Event) retrying() Retrying { return Retrying{ev.meta(), ev.Attempt, ev.Err, ev.RetryInfo} }

func (ev Event) messageStarted() MessageStarted {
	return MessageStarted{ev.meta(), ev.Attempt, ev.Message}
}

func (ev Event) messageUpdated() MessageUpdated {
	return MessageUpdated{
		EventMeta: ev.meta(), Attempt: ev.Attempt, Message: ev.Message,
		Delta: ev.Delta, DeltaKind: ev.DeltaKind, ContentIndex: ev.ContentIndex, Coalesced: ev.Coalesced,
		ToolID: ev.ToolID, Tool: ev.Tool,
	}
}

func (ev Event) messageEnded() MessageEnded {
	return MessageEnded{ev.meta(), ev.Attempt, ev.Message, ev.Duration}
}

func (ev Event) messageDiscarded() MessageDiscarded {
	return MessageDiscarded{ev.meta(), ev.Attempt, ev.Message, ev.Err}
}

func (ev Event) toolStarted() ToolStarted {
	return ToolStarted{ev.meta(), ev.ToolID, ev.Tool, ev.ToolLabel, ev.Args}
}

func (ev Event) toolProgressed() ToolProgressed {
	return ToolProgressed{
		EventMeta: ev.meta(), ToolID: ev.ToolID, Tool: ev.Tool, ToolLabel: ev.ToolLabel, Args: ev.Args,
		Progress: ev.Progress, UpdateKind: ev.UpdateKind, Coalesced: ev.Coalesced,
	}
}

func (ev Event) toolEnded() ToolEnded {
	return ToolEnded{
		EventMeta: ev.meta(), ToolID: ev.ToolID, Tool: ev.Tool, ToolLabel: ev.ToolLabel, Args: ev.Args,
		Result: ev.Result, IsError: ev.IsError, Duration: ev.Duration,
	}
}
