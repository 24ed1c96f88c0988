package main

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// person answers questions as they come: one answer for each.
type person struct {
	approver approver
	asked    []string
	answers  []answer
	gone     int
}

func newPerson(answers ...answer) *person {
	p := &person{answers: answers}
	p.approver.show = func(msg any) {
		switch msg := msg.(type) {
		case askMsg:
			p.asked = append(p.asked, msg.req.Call.Name)
			if len(p.answers) > 0 {
				msg.give(p.answers[0])
				p.answers = p.answers[1:]
			}
		case unaskMsg:
			p.gone++
		}
	}
	return p
}

func (p *person) gate(t *testing.T, tool string, readOnly bool) agentkernel.GateDecision {
	d, err := p.approver.gate(t.Context(), agentkernel.GateRequest{Call: agentkernel.ToolCall{Name: tool}, ReadOnly: readOnly})
	require.NoError(t, err)
	return d
}

func TestGate(t *testing.T) {
	p := newPerson(answerYes, answerNo, answerAlways, answerNo)
	assert.True(t, p.gate(t, "read", true).Allow, "what changes nothing needs no question")
	assert.True(t, p.gate(t, "write", false).Allow)
	assert.Equal(t, agentkernel.GateDecision{Reason: "The user said no."}, p.gate(t, "write", false))
	assert.True(t, p.gate(t, "write", false).Allow)
	assert.True(t, p.gate(t, "write", false).Allow, "always")
	assert.False(t, p.gate(t, "edit", false).Allow, "but for that tool only")
	p.approver.forget()
	p.answers = []answer{answerNo}
	assert.False(t, p.gate(t, "write", false).Allow)
	assert.Equal(t, []string{"write", "write", "write", "edit", "write"}, p.asked)
}

// TestGateCommand: a command is asked for each time, whatever was answered before.
func TestGateCommand(t *testing.T) {
	p := newPerson(answerAlways, answerNo)
	assert.True(t, p.gate(t, "run", false).Allow)
	assert.False(t, p.gate(t, "run", false).Allow)
}

// TestGateEnds: a question that nobody answers ends with the run, and is taken back.
func TestGateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPerson()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			d, err := p.approver.gate(ctx, agentkernel.GateRequest{Call: agentkernel.ToolCall{Name: "write"}})
			assert.False(t, d.Allow)
			done <- err
		}()
		synctest.Wait()
		cancel(errUser)
		assert.ErrorIs(t, <-done, errUser)
		assert.Equal(t, 1, p.gone)
	})
}
