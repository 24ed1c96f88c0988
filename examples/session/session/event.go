package session

import (
	"errors"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// EventType is the type of a [SessionEvent] and its wire name.
type EventType string

// The event types: the kernel's stream, and what only a session knows of.
const (
	EventAgent           EventType = "agent_event"
	EventCompactionStart EventType = "auto_compaction_start"
	EventCompactionEnd   EventType = "auto_compaction_end"
	EventRetryStart      EventType = "auto_retry_start"
	EventRetryEnd        EventType = "auto_retry_end"
	EventModelChanged    EventType = "model_changed"
	EventThinkingChanged EventType = "thinking_changed"
	EventSwitched        EventType = "session_switched"
	EventGoalUpdated     EventType = "goal_updated"
	EventError           EventType = "session_error"
)

// SessionEvent is one event of a session: an event of the kernel as it is, or one of the
// session's own. Each type fills only the fields that name it. It may be kept for ever and
// read from any goroutine; what it refers to is read-only. Its JSON holds the kernel's event
// in the kernel's wire form.
type SessionEvent struct {
	Type EventType `json:"type"`
	// SessionID is the session that was open when the event was made.
	SessionID string `json:"session_id"`
	// Seq counts 1, 2, 3 … the events of one [Session], whichever sessions it switches to.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`

	// AgentEvent is the kernel's event, unchanged. EventAgent.
	AgentEvent *agentkernel.Event `json:"agent_event,omitempty"`
	// Place is where an ended message stands in the store, from 1. EventAgent of a MessageEnd
	// of the session's own runs.
	Place int `json:"place,omitempty"`
	// Compaction is about making the history smaller. EventCompactionStart, EventCompactionEnd.
	Compaction *Compaction `json:"compaction,omitempty"`
	// Retry is about a further attempt of a model call. EventRetryStart, EventRetryEnd.
	Retry *Retry `json:"retry,omitempty"`
	// Changed is what was before and what is now: a model's name, a thinking level, a session's
	// id. EventModelChanged, EventThinkingChanged, EventSwitched.
	Changed *Changed `json:"changed,omitempty"`
	// Goal is what the goal is now. EventGoalUpdated.
	Goal *Goal `json:"goal,omitempty"`
	// Error is what went wrong. EventError.
	Error *Failure `json:"error,omitempty"`
}

// Changed is a value before and after.
type Changed struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Failure is an error as it is shown and stored.
type Failure struct {
	// Op names what failed: "commit", "hook deploy", "memory", …
	Op string `json:"op,omitempty"`
	// Kind is the kernel's class of the error, empty where it has none.
	Kind    agentkernel.Kind `json:"kind,omitempty"`
	Message string           `json:"message"`
	// Err is the error itself. It does not survive JSON.
	Err error `json:"-"`
}

// failure returns err as a Failure, nil for nil.
func failure(op string, err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Op: op, Message: err.Error(), Err: err}
	if e, ok := errors.AsType[*agentkernel.Error](err); ok {
		f.Kind = e.Kind
	}
	return f
}
