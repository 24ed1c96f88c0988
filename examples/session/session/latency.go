package session

import (
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// ModelCall is one attempt of a model call. RunID, Turn and Attempt name it.
type ModelCall struct {
	RunID string `json:"run_id"`
	// ParentRunID is the run whose call made this one, "" for a run of the session itself.
	ParentRunID string `json:"parent_run_id,omitempty"`

	Turn    int `json:"turn"`
	Attempt int `json:"attempt"`
	// Model is the one that answered, as it names itself; of an attempt without an answer, as
	// the kernel names it in its Retry, and else the name of the session's model.
	Model string    `json:"model"`
	Asked time.Time `json:"asked"`
	// Latency is measured on the times of the events, which no slow subscriber moves.
	Latency Latency `json:"latency"`
	// StopReason is that of the answer, empty where there is none.
	StopReason agentkernel.StopReason `json:"stop_reason,omitempty"`
	Usage      *agentkernel.Usage     `json:"usage,omitempty"`
	// Error is why the attempt failed or was stopped.
	Error *Failure `json:"error,omitempty"`
}

// Latency is how long a model took.
type Latency struct {
	// FirstToken is the time from the request to the MessageStart, which comes with the first
	// content; 0 where none came.
	FirstToken time.Duration `json:"first_token_ns"`
	// Stream is the time from the MessageStart to the end of the message.
	Stream time.Duration `json:"stream_ns"`
	// Total is the time from the request to the end of the attempt.
	Total time.Duration `json:"total_ns"`
}

// callLog follows the attempts of a session's runs and of the runs within them. It belongs to
// the goroutine that delivers.
type callLog struct {
	open map[string]*openCall // by run id; a run asks one model at a time
	done []ModelCall          // those that are not stored yet
}

type openCall struct {
	ModelCall
	started time.Time // of MessageStart
	err     error     // of MessageDiscard, before it is known what follows
}

// take notes what ev tells of a model call. model is the name of the session's.
func (l *callLog) take(ev *agentkernel.Event, model string) {
	if ev.Type == agentkernel.EventModelRequest {
		if l.open == nil {
			l.open = make(map[string]*openCall)
		}
		l.open[ev.RunID] = &openCall{ModelCall: ModelCall{
			RunID: ev.RunID, ParentRunID: ev.ParentRunID, Turn: ev.Turn, Attempt: ev.Attempt, Model: model, Asked: ev.Time}}
		return
	}
	call := l.open[ev.RunID]
	if call == nil || ev.Message != nil && ev.Message.GetRole() != agentkernel.RoleAssistant {
		return
	}
	switch ev.Type {
	case agentkernel.EventMessageStart:
		call.started = ev.Time
		call.Latency.FirstToken = ev.Time.Sub(call.Asked)
	case agentkernel.EventMessageEnd:
		call.answered(ev)
		l.close(call, ev)
	case agentkernel.EventMessageDiscard:
		call.answered(ev)
		call.StopReason = ""
		call.err = ev.Err
	case agentkernel.EventRetry:
		call.err = ev.Err
		if call.Usage == nil {
			call.Model = ev.RetryInfo.Model
		}
		l.close(call, ev)
	case agentkernel.EventError, agentkernel.EventAgentEnd:
		call.err = ev.Err
		l.close(call, ev)
	}
}

// answered takes over what the message says.
func (c *openCall) answered(ev *agentkernel.Event) {
	m, ok := ev.Message.(agentkernel.Message)
	if !ok {
		return
	}
	if m.Model != "" {
		c.Model = m.Model
	}
	c.Usage, c.StopReason = m.Usage, m.StopReason
	c.Latency.Stream = ev.Time.Sub(c.started)
}

func (l *callLog) close(call *openCall, ev *agentkernel.Event) {
	call.Latency.Total = ev.Time.Sub(call.Asked)
	call.Error = failure("model", call.err)
	delete(l.open, ev.RunID)
	l.done = append(l.done, call.ModelCall)
}
