package jetstream

import (
	"encoding/json"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
	"github.com/nats-io/nats.go"
)

// Request is a prompt to a session.
type Request struct {
	// ID makes a request that was submitted twice one, for as long as the session is kept.
	// Empty means a new one. It has at most 128 bytes.
	ID string
	// Messages are what is said: the kernel's of role user, or the harness's own (see
	// [agentkernel.RegisterMessage]). None means that the session goes on from its history.
	Messages []agentkernel.AgentMessage
}

// said is the body of a request, and of a control that brings messages: each as the event
// message_end.
type said struct {
	Messages []json.RawMessage `json:"messages,omitempty"`
}

// sayData writes messages, which must be such as a run takes.
func sayData(messages []agentkernel.AgentMessage) ([]byte, error) {
	var q agentkernel.Queue // which checks them, and gives them their time
	if err := q.Push(messages...); err != nil {
		return nil, err
	}
	var s said
	for i, m := range q.Items() {
		data, err := messageData("prompt", uint64(i+1), m)
		if err != nil {
			return nil, fmt.Errorf("jetstream: message %d: %w", i, err)
		}
		s.Messages = append(s.Messages, data)
	}
	return json.Marshal(s)
}

func readSaid(data []byte) ([]agentkernel.AgentMessage, error) {
	var s said
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	messages := make([]agentkernel.AgentMessage, len(s.Messages))
	for i, raw := range s.Messages {
		var ev agentkernel.Event
		if err := json.Unmarshal(raw, &ev); err != nil {
			return nil, err
		}
		if ev.Message == nil {
			return nil, fmt.Errorf("message %d is none", i)
		}
		messages[i] = ev.Message
	}
	return messages, nil
}

// message is a record to be published.
func message(subject string, data []byte, headers ...string) *nats.Msg {
	msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	for i := 0; i < len(headers); i += 2 {
		msg.Header.Set(headers[i], headers[i+1])
	}
	return msg
}
