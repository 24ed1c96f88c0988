package agentkernel

import "time"

// EndReason is why a run ended.
type EndReason string

// The end reasons. Those of the first group come without an error.
const (
	EndStop       EndReason = "stop"       // the model answered without calls
	EndTerminated EndReason = "terminated" // a tool or the stop guard ended the run
	EndEmpty      EndReason = "empty"      // the model's answer holds neither text nor calls
	EndRefusal    EndReason = "refusal"    // the model refused
	EndLength     EndReason = "length"     // the output limit cut the answer
	EndSuspended  EndReason = "suspended"  // a gate waits for a person: see Suspend

	EndAborted   EndReason = "aborted"    // Abort, or the caller's cancel
	EndTimeout   EndReason = "timeout"    // a deadline
	EndMaxTurns  EndReason = "max_turns"  // Config.MaxTurns
	EndLimit     EndReason = "limit"      // another limit
	EndStopGuard EndReason = "stop_guard" // the stop guard escalated
	EndError     EndReason = "error"      // everything else
)

// RunSummary is a run in numbers.
type RunSummary struct {
	// TurnCount counts the turns that started.
	TurnCount int `json:"turn_count"`
	// ToolCalls counts the calls that came to an End, ToolErrors those with an error; one whose
	// gate waits is among both.
	ToolCalls  int `json:"tool_calls"`
	ToolErrors int `json:"tool_errors"`
	// Retries counts the attempts beyond the first of each model call.
	Retries int `json:"retries"`
	// Abandoned counts the goroutines of user code that did not come back in time.
	Abandoned int       `json:"abandoned"`
	EndReason EndReason `json:"end_reason"`
	// Usage is that of the messages that ended, DiscardedUsage that of failed attempts.
	Usage          Usage         `json:"usage"`
	DiscardedUsage Usage         `json:"discarded_usage"`
	Duration       time.Duration `json:"duration"`
	// Suspended are the calls that the run left open because they never began, in the order
	// of the calls: of a run that ended as suspended, or that would have if Commit had taken
	// the results of the others.
	Suspended []Suspension `json:"suspended,omitempty"`
}

// RunStatus is how a run came out, in one word.
type RunStatus string

// The statuses of a run.
const (
	StatusRunning   RunStatus = "running"
	StatusCompleted RunStatus = "completed"
	StatusSuspended RunStatus = "suspended" // it waits for an answer
	StatusAborted   RunStatus = "aborted"
	StatusFailed    RunStatus = "failed"
)

// RunRecord is the archive of a run, built from its events alone.
type RunRecord struct {
	ID       string `json:"id"`
	ParentID string `json:"parent_id,omitempty"`
	// Input are the messages that were said before the first model call.
	Input     []AgentMessage `json:"input"`
	Status    RunStatus      `json:"status"`
	EndReason EndReason      `json:"end_reason"`
	// Answer is the text of the last assistant message.
	Answer string `json:"answer"`
	// NewMessages are the messages that ended in the run.
	NewMessages []AgentMessage `json:"new_messages"`
	// Steps are the attempts of model calls, failed and stopped ones too, and the tool calls,
	// in the order of their ends.
	Steps   []RunStep  `json:"steps"`
	Summary RunSummary `json:"summary"`
	// Err is that of AgentEnd.
	Err   error     `json:"-"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`

	// asked is when the attempt that is open began; zero where none is.
	asked time.Time
}

// StepKind is what a step did.
type StepKind string

// The kinds of steps.
const (
	StepModel StepKind = "model"
	StepTool  StepKind = "tool"
)

// RunStep is one attempt of a model call, or one tool call.
type RunStep struct {
	Kind StepKind `json:"kind"`
	Turn int      `json:"turn"`
	// Name is the model that answered, or the tool.
	Name string `json:"name"`
	// ToolID and Cause are a tool call's.
	ToolID string    `json:"tool_id,omitempty"`
	Cause  ToolCause `json:"cause,omitempty"`
	// Attempt and Usage are a model call's.
	Attempt  int           `json:"attempt,omitempty"`
	Usage    *Usage        `json:"usage,omitempty"`
	IsError  bool          `json:"is_error,omitempty"`
	Duration time.Duration `json:"duration"`
}

// Collect reads a run's events to the end and returns its record and the error of AgentEnd.
// Events of child runs are read over.
func Collect(events <-chan Event) (RunRecord, error) {
	var r RunRecord
	for ev := range events {
		r.Add(ev)
	}
	return r, r.Err
}

// Add takes the run's next event into the record. The first one names the run; those of
// other runs are passed over. It is for one goroutine.
func (r *RunRecord) Add(ev Event) { r.add(&ev) }

func (r *RunRecord) add(ev *Event) {
	if r.ID == "" {
		r.ID, r.ParentID, r.Status, r.Start = ev.RunID, ev.ParentRunID, StatusRunning, ev.Time
	}
	if ev.RunID != r.ID {
		return
	}
	switch ev.Type {
	case EventModelRequest:
		r.asked = ev.Time
	case EventMessageEnd:
		r.addMessage(ev)
	case EventMessageDiscard, EventRetry:
		r.failAttempt(ev)
	case EventToolExecEnd:
		r.Steps = append(r.Steps, RunStep{
			Kind: StepTool, Turn: ev.Turn, Name: ev.Tool, ToolID: ev.ToolID,
			Cause: ev.Result.Cause, IsError: ev.IsError, Duration: ev.Duration,
		})
	case EventAgentEnd:
		r.failAttempt(ev)
		r.NewMessages, r.Summary, r.Err, r.End = ev.NewMessages, *ev.Summary, ev.Err, ev.Time
		r.EndReason, r.Status = ev.Summary.EndReason, statusOf(ev)
	}
}

func (r *RunRecord) addMessage(ev *Event) {
	own, ok := ownMessage(ev.Message)
	switch {
	case ok && own.Role == RoleAssistant:
		r.Answer = own.TextContent()
		r.addAttempt(RunStep{Attempt: ev.Attempt, Duration: ev.Duration}, ev)
	case len(r.Steps) == 0 && r.asked.IsZero():
		r.Input = append(r.Input, ev.Message)
	}
}

// failAttempt ends the attempt that is open, if one is, as failed.
func (r *RunRecord) failAttempt(ev *Event) {
	if !r.asked.IsZero() {
		r.addAttempt(RunStep{Attempt: ev.Attempt, IsError: true, Duration: ev.Time.Sub(r.asked)}, ev)
	}
}

func (r *RunRecord) addAttempt(step RunStep, ev *Event) {
	step.Kind, step.Turn = StepModel, ev.Turn
	if own, ok := ev.Message.(Message); ok {
		step.Name, step.Usage = own.Model, own.Usage
	}
	r.Steps = append(r.Steps, step)
	r.asked = time.Time{}
}

func statusOf(end *Event) RunStatus {
	switch {
	case end.Summary.EndReason == EndAborted:
		return StatusAborted
	case end.Err != nil:
		return StatusFailed
	case end.Summary.EndReason == EndSuspended:
		return StatusSuspended
	}
	return StatusCompleted
}
