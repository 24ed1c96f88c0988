package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/agentkernel-go/agentkernel"
	broker "github.com/nats-io/nats.go/jetstream"
)

// Headers of what is on the subjects.
const (
	headerKind    = "Ak-Kind"    // of a record of a session, and of a control
	headerRequest = "Ak-Request" // the request that it belongs to
	headerPrompt  = "Ak-Prompt"  // a message that the request brought
	headerControl = "Ak-Control" // the place of the control that brought a message
)

// The kinds of the records of a session.
const (
	kindClaim   = "claim"   // a worker begins, or goes on with, a request
	kindMessage = "message" // as the event message_end, in the whole wire form
	kindEnd     = "end"     // an Outcome: the request is answered
	kindRelease = "release" // the worker puts the request back in good order
	// kindSuspended are calls that a run which ended left open because they never began, before
	// somebody is asked about them; kindBegun: a run since then could begin them.
	kindSuspended = "suspended"
	kindBegun     = "begun"
)

// claim is the body of a record that fences off every worker before.
type claim struct {
	Worker  string `json:"worker"`
	Attempt int    `json:"attempt"`
}

// Outcome is how a request was answered.
type Outcome struct {
	// Request is its id.
	Request string `json:"request"`
	// RunID is that of its last run, empty where there was nothing left to run.
	RunID string `json:"run_id,omitempty"`
	// Reason is how that run ended.
	Reason agentkernel.EndReason `json:"reason"`
	// Kind and Error say why it failed; empty where it did not.
	Kind  agentkernel.Kind `json:"kind,omitempty"`
	Error string           `json:"error,omitempty"`
	// Attempts is how many workers had it.
	Attempts int `json:"attempts"`
	// Summary is that of the last run, which knows nothing of those that died before it.
	Summary *agentkernel.RunSummary `json:"summary,omitempty"`
}

// Err is why the request failed, nil where it did not. errors.Is finds its kind.
func (o *Outcome) Err() error {
	if o.Error == "" {
		return nil
	}
	return &agentkernel.Error{Kind: o.Kind, Op: "request", Err: errors.New(o.Error)}
}

// truth is what the records of a session add up to.
type truth struct {
	last     uint64 // the place of the last record
	messages []agentkernel.AgentMessage
	bytes    int // of the messages' records
	settled  int // messages from before the claim that is open, or all
	requests map[string]*progress
	taken    map[uint64]bool // controls whose message was said
	// suspended are the calls that the last run left open because they never began, until a run
	// since then could begin them.
	suspended []agentkernel.Suspension
}

// progress is how far a request came.
type progress struct {
	claims  int
	crashes int // claims without a release
	prompts int // of its messages that were said
	outcome *Outcome
}

// load reads a session's records that stand before the place end; 0 is all.
func (b *bus) load(ctx context.Context, session string, end uint64) (*truth, error) {
	t := &truth{requests: make(map[string]*progress), taken: make(map[uint64]bool)}
	for msg, err := range b.records(ctx, streamSessions, b.cfg.subject(streamSessions, session), 1) {
		switch {
		case err != nil:
			return nil, err
		case end > 0 && msg.Sequence >= end:
			return t, nil
		}
		if err := t.add(msg); err != nil {
			return nil, fmt.Errorf("jetstream: record %d of session %q: %w", msg.Sequence, session, err)
		}
	}
	return t, nil
}

func (t *truth) add(msg *broker.RawStreamMsg) error {
	t.last = msg.Sequence
	r := t.request(msg.Header.Get(headerRequest))
	switch kind := msg.Header.Get(headerKind); kind {
	case kindClaim:
		r.claims++
		r.crashes++
		t.settled = len(t.messages)
	case kindMessage:
		var ev agentkernel.Event
		if err := json.Unmarshal(msg.Data, &ev); err != nil {
			return err
		}
		if ev.Message == nil {
			return errors.New("it holds no message")
		}
		t.messages = append(t.messages, ev.Message)
		t.bytes += len(msg.Data)
		if msg.Header.Get(headerPrompt) != "" {
			r.prompts++
		}
		if at, err := strconv.ParseUint(msg.Header.Get(headerControl), 10, 64); err == nil {
			t.taken[at] = true
		}
	case kindRelease:
		r.crashes--
	case kindSuspended:
		t.suspended = nil
		return json.Unmarshal(msg.Data, &t.suspended)
	case kindBegun:
		t.suspended = nil
	case kindEnd:
		t.settled = len(t.messages)
		r.outcome = new(Outcome)
		if err := json.Unmarshal(msg.Data, r.outcome); err != nil {
			return err
		}
		if r.outcome.Summary != nil {
			t.suspended = r.outcome.Summary.Suspended
		}
	default:
		return fmt.Errorf("kind %q is unknown", kind)
	}
	return nil
}

// request is the progress of a request, made where there is none.
func (t *truth) request(id string) *progress {
	r := t.requests[id]
	if r == nil {
		r = new(progress)
		t.requests[id] = r
	}
	return r
}

// answered tells whether each call of the last answer has its result.
func answered(history []agentkernel.AgentMessage) bool {
	results := make(map[string]bool)
	for _, m := range slices.Backward(history) {
		own, ok := m.(agentkernel.Message)
		switch {
		case ok && own.Role == agentkernel.RoleTool:
			results[own.ToolCallID] = true
		case ok && own.Role == agentkernel.RoleAssistant:
			return !slices.ContainsFunc(own.ToolCalls(), func(c agentkernel.ToolCall) bool { return !results[c.ID] })
		}
	}
	return true
}

// state is that of an agent which said the messages and is idle.
func (t *truth) state() agentkernel.AgentState {
	var s agentkernel.AgentState
	const id = "restored"
	s = agentkernel.Reduce(s, agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: id})
	for _, m := range t.messages {
		s = agentkernel.Reduce(s, agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: id, Message: m})
	}
	s = agentkernel.Reduce(s, agentkernel.Event{Type: agentkernel.EventAgentEnd, RunID: id,
		Summary: &agentkernel.RunSummary{Suspended: t.suspended}})
	s.RunID = ""
	return s
}

// messageData is a message as a record: the event message_end, numbered within the request.
func messageData(request string, seq uint64, m agentkernel.AgentMessage) ([]byte, error) {
	return json.Marshal(agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: request, Seq: seq, Message: m})
}
