package agentkernel

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// AgentState is an agent at one moment: a fold of its event stream and nothing else. It may
// be kept for ever and read from any goroutine; its slices are shared and read-only.
type AgentState struct {
	// Messages is the history: the baseline and the messages that ended since.
	Messages []AgentMessage
	// StreamMessage is the message that is open, as far as it came; nil where none is.
	StreamMessage AgentMessage
	// PendingToolCalls are the ids of the calls that are executing, in the order of their start.
	PendingToolCalls []string
	// TotalUsage is that of all ended messages, DiscardedUsage that of failed attempts.
	// Replacing the history changes neither; a reset clears both.
	TotalUsage     Usage
	DiscardedUsage Usage
	// ContextTokens is the size of the conversation by the last answer's usage: nil where
	// no answer told it since the history was last replaced.
	ContextTokens *int
	// IsRunning holds from AgentStart to AgentEnd as delivered.
	IsRunning bool
	// RunID is the current run, or the last one.
	RunID string
	// Err is why the last run failed, nil while one is running.
	Err error
	// Suspended are the calls that the last run left open because they never began: see
	// RunSummary.Suspended. The next run's AgentStart clears it, since they may have begun then.
	Suspended []Suspension

	log *logRef
}

// Reduce returns the state after ev. It is pure and takes constant time (a Context event, the
// time to copy its history): the history is an
// append-only log that states share. Events of other runs than the state's own, which a
// stream may carry between the start and the end of a call, change nothing.
func Reduce(s AgentState, ev Event) AgentState {
	s.reduce(&ev)
	return s
}

func (s *AgentState) reduce(ev *Event) {
	if ev.RunID != s.RunID && (s.IsRunning || ev.Type != EventAgentStart) {
		return
	}
	switch ev.Type {
	case EventAgentStart:
		s.RunID, s.IsRunning, s.Err = ev.RunID, true, nil
		s.StreamMessage, s.PendingToolCalls, s.Suspended = nil, nil, nil
	case EventMessageStart, EventMessageUpdate:
		s.StreamMessage = ev.Message
	case EventMessageEnd:
		s.StreamMessage = nil
		s.addMessage(ev.Message)
	case EventMessageDiscard:
		s.StreamMessage = nil
		s.DiscardedUsage = s.DiscardedUsage.Add(usageOf(ev.Message))
	case EventToolExecStart:
		s.PendingToolCalls = append(slices.Clip(s.PendingToolCalls), ev.ToolID)
	case EventToolExecEnd:
		s.PendingToolCalls = without(s.PendingToolCalls, ev.ToolID)
	case EventContext:
		s.replace(*ev.Context)
	case EventError:
		s.Err = ev.Err
	case EventAgentEnd:
		s.IsRunning, s.Err = false, ev.Err
		s.StreamMessage, s.PendingToolCalls = nil, nil
		if ev.Summary != nil {
			s.Suspended = ev.Summary.Suspended
		}
	}
}

// addMessage appends a message that ended. The history has a copy of its own.
func (s *AgentState) addMessage(m AgentMessage) {
	usage := usageOf(m)
	s.TotalUsage = s.TotalUsage.Add(usage)
	own, _ := ownMessage(m)
	if tokens := usage.context(); own.Role == RoleAssistant && tokens > 0 {
		s.ContextTokens = new(tokens)
	}
	s.Messages, s.log = appended(s.Messages, s.log, cloneMessage(m))
}

// context is how much of a model's window a conversation of that usage fills.
func (u Usage) context() int {
	return max(u.Total, u.Input+u.Output)
}

// replaced is the place in Messages before which usage is of another history.
func (s *AgentState) replaced() int {
	if s.ContextTokens == nil {
		return len(s.Messages)
	}
	return 0
}

func (s *AgentState) replace(c ContextInfo) {
	s.Messages, s.log = slices.Clone(c.Messages), nil
	s.ContextTokens = nil
	s.Suspended = stillOpen(s.Suspended, s.Messages)
	if c.Reason == ContextReset {
		s.TotalUsage, s.DiscardedUsage, s.Err = Usage{}, Usage{}, nil
	}
}

func without(ids []string, id string) []string {
	i := slices.Index(ids, id)
	if i < 0 {
		return ids
	}
	if len(ids) == 1 {
		return nil
	}
	return slices.Delete(slices.Clone(ids), i, i+1)
}

// messageLog is an array of messages of which states show prefixes. A place in it is
// written once, by whoever claims it first.
type messageLog struct {
	places []AgentMessage
	used   atomic.Int64
}

// logRef is a messageLog as a state refers to it: without anything to see, so that two
// states that show the same are equal to reflect.DeepEqual, whoever else uses their logs.
type logRef struct{}

func (l *messageLog) ref() *logRef { return (*logRef)(unsafe.Pointer(l)) }

func (l *logRef) log() *messageLog { return (*messageLog)(unsafe.Pointer(l)) }

// appended returns view with m behind it: in the next free place of its log where view is all
// of it, else in a larger copy.
func appended(view []AgentMessage, ref *logRef, m AgentMessage) ([]AgentMessage, *logRef) {
	n, log := len(view), ref.log()
	if log == nil || n >= len(log.places) || n > 0 && &view[0] != &log.places[0] ||
		!log.used.CompareAndSwap(int64(n), int64(n+1)) {
		log = &messageLog{places: make([]AgentMessage, max(8, 2*n))}
		copy(log.places, view)
		log.used.Store(int64(n + 1))
	}
	log.places[n] = m
	return log.places[: n+1 : n+1], log.ref()
}
