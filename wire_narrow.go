package agentkernel

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// The wire form of a payload is that of its event: see [Event.MarshalJSON] and
// [Event.UnmarshalJSON]. Reading the event of another type is an error.

// eventOf is the event that p narrows. A payload's fields have the names of the event's.
func eventOf(t EventType, p Payload) Event {
	ev := Event{Type: t}
	m := p.Meta()
	ev.RunID, ev.ParentRunID, ev.Seq, ev.Time, ev.Turn = m.RunID, m.ParentRunID, m.Seq, m.Time, m.Turn
	from, to := reflect.ValueOf(p), reflect.ValueOf(&ev).Elem()
	for i := range from.NumField() {
		if field := from.Type().Field(i); !field.Anonymous {
			to.FieldByName(field.Name).Set(from.Field(i))
		}
	}
	return ev
}

// readPayload reads an event that must narrow to a T.
func readPayload[T Payload](data []byte, into *T) error {
	var ev Event
	if err := json.Unmarshal(data, &ev); err != nil {
		return err
	}
	p, ok := ev.Payload().(T)
	if !ok {
		return fmt.Errorf("agentkernel: an event %q is no %T", ev.Type, *into)
	}
	*into = p
	return nil
}

// MarshalJSON writes the event's whole form.
func (p RunStarted) MarshalJSON() ([]byte, error) { return eventOf(EventAgentStart, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *RunStarted) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p RunEnded) MarshalJSON() ([]byte, error) { return eventOf(EventAgentEnd, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *RunEnded) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p RunFailed) MarshalJSON() ([]byte, error) { return eventOf(EventError, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *RunFailed) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p TurnStarted) MarshalJSON() ([]byte, error) { return eventOf(EventTurnStart, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *TurnStarted) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p ContextReplaced) MarshalJSON() ([]byte, error) { return eventOf(EventContext, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *ContextReplaced) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p ModelRequested) MarshalJSON() ([]byte, error) {
	return eventOf(EventModelRequest, p).MarshalJSON()
}

// UnmarshalJSON reads the event of either encoding.
func (p *ModelRequested) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p ModelResponded) MarshalJSON() ([]byte, error) {
	return eventOf(EventModelResponse, p).MarshalJSON()
}

// UnmarshalJSON reads the event of either encoding.
func (p *ModelResponded) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p Retrying) MarshalJSON() ([]byte, error) { return eventOf(EventRetry, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *Retrying) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p MessageStarted) MarshalJSON() ([]byte, error) {
	return eventOf(EventMessageStart, p).MarshalJSON()
}

// UnmarshalJSON reads the event of either encoding.
func (p *MessageStarted) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p MessageUpdated) MarshalJSON() ([]byte, error) {
	return eventOf(EventMessageUpdate, p).MarshalJSON()
}

// UnmarshalJSON reads the event of either encoding.
func (p *MessageUpdated) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p MessageEnded) MarshalJSON() ([]byte, error) { return eventOf(EventMessageEnd, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *MessageEnded) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p MessageDiscarded) MarshalJSON() ([]byte, error) {
	return eventOf(EventMessageDiscard, p).MarshalJSON()
}

// UnmarshalJSON reads the event of either encoding.
func (p *MessageDiscarded) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p ToolStarted) MarshalJSON() ([]byte, error) {
	return eventOf(EventToolExecStart, p).MarshalJSON()
}

// UnmarshalJSON reads the event of either encoding.
func (p *ToolStarted) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p ToolProgressed) MarshalJSON() ([]byte, error) {
	return eventOf(EventToolExecUpdate, p).MarshalJSON()
}

// UnmarshalJSON reads the event of either encoding.
func (p *ToolProgressed) UnmarshalJSON(data []byte) error { return readPayload(data, p) }

// MarshalJSON writes the event's whole form.
func (p ToolEnded) MarshalJSON() ([]byte, error) { return eventOf(EventToolExecEnd, p).MarshalJSON() }

// UnmarshalJSON reads the event of either encoding.
func (p *ToolEnded) UnmarshalJSON(data []byte) error { return readPayload(data, p) }
