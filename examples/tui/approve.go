package main

import (
	"context"
	"sync"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/tui/workspace"
)

// approver asks a person about each call that may change something. Its gate waits for the
// answer; what runs beside the call goes on meanwhile.
type approver struct {
	// show is told of questions: an askMsg, and an unaskMsg where the run stopped, or was
	// steered, before there was an answer.
	show func(msg any)

	mu     sync.Mutex
	always map[string]bool // tools that need no question any more
}

type (
	askMsg   struct{ *ask }
	unaskMsg struct{ *ask }
)

// ask is a question that waits for one answer.
type ask struct {
	req agentkernel.GateRequest
	got chan answer // has room for one
	// shown is the screen's: whether it has been.
	shown bool
}

type answer int

const (
	answerNo answer = iota
	answerYes
	answerAlways // yes, and do not ask for this tool again
)

// mayAlways tells whether answerAlways is on offer. A command is asked for each time, since
// nothing confines it.
func (a *ask) mayAlways() bool { return a.req.Call.Name != workspace.RunName }

// give answers. It is called once.
func (a *ask) give(got answer) { a.got <- got }

// gate is the agent's Config.Gate.
func (a *approver) gate(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
	if req.ReadOnly || a.knows(req.Call.Name) {
		return agentkernel.GateDecision{Allow: true}, nil
	}
	question := &ask{req: req, got: make(chan answer, 1)}
	a.show(askMsg{question})
	select {
	case got := <-question.got:
		if got == answerAlways && question.mayAlways() {
			a.learn(req.Call.Name)
		}
		if got == answerNo {
			return agentkernel.GateDecision{Reason: "The user said no."}, nil
		}
		return agentkernel.GateDecision{Allow: true}, nil
	case <-ctx.Done():
		a.show(unaskMsg{question})
		return agentkernel.GateDecision{}, context.Cause(ctx)
	}
}

func (a *approver) knows(tool string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.always[tool]
}

func (a *approver) learn(tool string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.always == nil {
		a.always = make(map[string]bool)
	}
	a.always[tool] = true
}

// forget makes everything a question again.
func (a *approver) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.always = nil
}
