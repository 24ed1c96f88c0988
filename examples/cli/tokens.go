package main

import (
	"fmt"
	"io"

	"github.com/agentkernel-go/agentkernel"
)

// countTokens adds up the tokens of the agent's runs and writes the sum to w behind each. What
// the endpoint has not counted, or not yet, is estimated: on a terminal the title shows the
// number as it grows.
func countTokens(agent *agentkernel.Agent, w io.Writer, terminal bool) {
	m := &meter{w: w, terminal: terminal}
	agentkernel.On(agent, m.runStarted)
	agentkernel.On(agent, m.modelRequested)
	agentkernel.On(agent, m.messageUpdated)
	agentkernel.On(agent, m.messageEnded)
	agentkernel.On(agent, m.messageDiscarded)
	agentkernel.On(agent, m.runEnded)
}

// meter counts the tokens of one run.
type meter struct {
	w        io.Writer
	terminal bool
	// counted is what the endpoint reported, guessed an estimate of the rest.
	counted agentkernel.Usage
	guessed int
	// asked estimates the request of the attempt that is open; said is the bytes of its answer.
	asked, said int
}

// bytesPerToken is that of agentkernel.EstimateTokens.
const bytesPerToken = 4

func (m *meter) runStarted(agentkernel.RunStarted) {
	*m = meter{w: m.w, terminal: m.terminal}
	m.title("\x1b[22;2t") // the terminal keeps its title
}

func (m *meter) modelRequested(e agentkernel.ModelRequested) {
	var history []agentkernel.AgentMessage
	for _, message := range e.Request.Messages {
		history = append(history, message)
	}
	m.asked, m.said = agentkernel.EstimateTokens(history)+len(e.Request.System)/bytesPerToken, 0
	m.show()
}

func (m *meter) messageUpdated(e agentkernel.MessageUpdated) {
	m.said += len(e.Delta)
	m.show()
}

func (m *meter) messageEnded(e agentkernel.MessageEnded) {
	if e.Message.GetRole() == agentkernel.RoleAssistant {
		m.close(e.Message)
	}
}

// messageDiscarded: what an attempt said is void, and was paid for.
func (m *meter) messageDiscarded(e agentkernel.MessageDiscarded) { m.close(e.Message) }

// close replaces the estimate of the open attempt by what its endpoint counted.
func (m *meter) close(answer agentkernel.AgentMessage) {
	if own, ok := answer.(agentkernel.Message); ok && own.Usage != nil {
		m.counted = m.counted.Add(*own.Usage)
	} else {
		m.guessed += m.open()
	}
	m.asked, m.said = 0, 0
	m.show()
}

func (m *meter) open() int { return m.asked + (m.said+bytesPerToken-1)/bytesPerToken }

func (m *meter) runEnded(agentkernel.RunEnded) {
	m.title("\x1b[23;2t") // and gets it back
	fmt.Fprintf(m.w, "Tokens  %d in, %d out", m.counted.Input, m.counted.Output)
	if m.guessed > 0 {
		fmt.Fprintf(m.w, ", about %d not counted by the endpoint", m.guessed)
	}
	fmt.Fprintln(m.w)
}

func (m *meter) show() {
	m.title("\x1b]2;%d tokens\x1b\\", m.counted.Total+m.guessed+m.open())
}

// title writes what a terminal obeys.
func (m *meter) title(format string, args ...any) {
	if m.terminal {
		fmt.Fprintf(m.w, format, args...)
	}
}
