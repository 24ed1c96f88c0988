package session

import "github.com/agentkernel-go/agentkernel"

// Retry is a further attempt of a model call, from the Retry of the kernel that announces it
// to its outcome. Each start has one end.
type Retry struct {
	// Attempt is the attempt that failed, MaxRetries how many may follow the first.
	Attempt    int `json:"attempt"`
	MaxRetries int `json:"max_retries"`
	// DelayMS is the wait before the next attempt, in milliseconds.
	DelayMS int64 `json:"delay_ms"`
	// Model is the model that failed, NextModel the one that gets the call now, if another does.
	Model     string `json:"model,omitempty"`
	NextModel string `json:"next_model,omitempty"`
	// Success tells whether the further attempt brought an answer. EventRetryEnd.
	Success bool `json:"success,omitempty"`
	// Error is why the attempt before failed (EventRetryStart), why this one did
	// (EventRetryEnd without Success).
	Error *Failure `json:"error,omitempty"`
}

// startRetry tells of the attempt that ev announces.
func (s *Session) startRetry(ev agentkernel.Event) {
	s.retrying = &Retry{
		Attempt: ev.RetryInfo.Attempt, MaxRetries: ev.RetryInfo.MaxRetries, DelayMS: ev.RetryInfo.Delay.Milliseconds(),
		Model: ev.RetryInfo.Model, NextModel: ev.RetryInfo.NextModel, Error: failure("model", ev.Err),
	}
	s.emit(SessionEvent{Type: EventRetryStart, Retry: s.retrying})
}

// endRetry tells what became of the attempt that was announced last, if one is open.
func (s *Session) endRetry(err error) {
	if s.retrying == nil {
		return
	}
	end := *s.retrying
	s.retrying = nil
	end.Success, end.Error = err == nil, failure("model", err)
	s.emit(SessionEvent{Type: EventRetryEnd, Retry: &end})
}
