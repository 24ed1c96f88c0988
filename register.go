package agentkernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel/internal/nesting"
)

// registry is the message types of harnesses that the wire form knows.
var registry struct {
	mu     sync.RWMutex
	byName map[string]reflect.Type
	byType map[reflect.Type]string
}

// RegisterMessage makes messages of type T survive the wire: they are written as T's JSON
// under name, and read back as T. It is for a harness's own types and is called before the
// first message is written or read, as a rule in an init function; a program that reads needs
// the same registration as the one that wrote. Without it a reader gets a [ForeignMessage].
//
// T's methods and its way to JSON and back may fail. A value that MarshalJSON refuses is left
// out; where a method panics or ends its goroutine, the event cannot be written: that is an
// error, and only a snapshot and the end of a run tell what they can of the message. A value that
// cannot be read, or whose methods panic once it was, becomes a ForeignMessage.
//
// T may be a struct or a pointer to one, as it is in the history. An empty name, one that is
// taken by another type, a second name for T, and the kernel's Message panic.
func RegisterMessage[T AgentMessage](name string) {
	t := reflect.TypeFor[T]()
	registry.mu.Lock()
	defer registry.mu.Unlock()
	taken, named := registry.byName[name], registry.byType[t]
	switch {
	case name == "" || t.Kind() == reflect.Interface || isKernelMessage(t):
		panic(fmt.Sprintf("agentkernel: RegisterMessage of %v as %q", t, name))
	case taken == t:
		return
	case taken != nil || named != "":
		panic(fmt.Sprintf("agentkernel: RegisterMessage of %v as %q: %v is registered as %q", t, name, taken, named))
	}
	if registry.byName == nil {
		registry.byName, registry.byType = make(map[string]reflect.Type), make(map[reflect.Type]string)
	}
	registry.byName[name], registry.byType[t] = t, name
}

func isKernelMessage(t reflect.Type) bool {
	return t == reflect.TypeFor[Message]() || t == reflect.TypeFor[*Message]() ||
		t == reflect.TypeFor[ForeignMessage]() || t == reflect.TypeFor[*ForeignMessage]()
}

// ForeignMessage is a harness's message that was read from the wire and whose type is not
// registered here, or cannot read what was written. It answers as the original did, and is
// written again as it came.
type ForeignMessage struct {
	// Name is the name under which the writer had registered the type, "" for none.
	Name      string
	Role      Role
	Timestamp time.Time
	Text      string
	Thinking  string
	Calls     bool
	// Value is the message as its own type wrote it, nil where that was not registered.
	Value json.RawMessage
}

// GetRole implements [AgentMessage].
func (m ForeignMessage) GetRole() Role { return m.Role }

// GetTimestamp implements [AgentMessage].
func (m ForeignMessage) GetTimestamp() time.Time { return m.Timestamp }

// TextContent implements [AgentMessage].
func (m ForeignMessage) TextContent() string { return m.Text }

// ThinkingContent implements [AgentMessage].
func (m ForeignMessage) ThinkingContent() string { return m.Thinking }

// HasToolCalls implements [AgentMessage].
func (m ForeignMessage) HasToolCalls() bool { return m.Calls }

// wireForeign is a harness's message as JSON: what AgentMessage tells of it, and itself.
type wireForeign struct {
	Custom    *string         `json:"custom"` // its name; what tells it from a Message
	Role      Role            `json:"role"`
	Timestamp time.Time       `json:"timestamp,omitzero"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Calls     bool            `json:"has_tool_calls,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
}

// foreignToWire asks m, which is the harness's own, and fails where that crashes.
func foreignToWire(m AgentMessage) (wireForeign, error) {
	if f, ok := m.(ForeignMessage); ok {
		return wireForeign{Custom: &f.Name, Role: f.Role, Timestamp: f.Timestamp, Text: f.Text,
			Thinking: f.Thinking, Calls: f.Calls, Value: f.Value}, nil
	}
	name := registeredName(m)
	return askHarness(func() (wireForeign, error) {
		w := toldBy(m)
		if w.Custom = &name; name != "" {
			if raw, err := marshalPlain(m); err == nil && !nesting.TooDeep(string(raw)) {
				w.Value = raw
			}
		}
		return w, nil
	})
}

func registeredName(m AgentMessage) string {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	return registry.byType[reflect.TypeOf(m)]
}

// toldBy is what AgentMessage tells of m.
func toldBy(m AgentMessage) wireForeign {
	return wireForeign{Role: m.GetRole(), Timestamp: canonicalTime(m.GetTimestamp()), Text: m.TextContent(),
		Thinking: m.ThinkingContent(), Calls: m.HasToolCalls()}
}

// writable is m, or, where m is the harness's own and crashes, what stands for it.
func writable(m AgentMessage) AgentMessage {
	if _, ok := ownMessage(m); ok || m == nil {
		return m
	}
	if _, err := foreignToWire(m); err == nil {
		return m
	}
	w, _ := askHarness(func() (wireForeign, error) { return toldBy(m), nil })
	return ForeignMessage{Name: registeredName(m), Role: w.Role, Timestamp: canonicalTime(w.Timestamp), Text: w.Text,
		Thinking: w.Thinking, Calls: w.Calls}
}

// roleOf is m's role, "" where that cannot be told.
func roleOf(m AgentMessage) Role {
	if own, ok := ownMessage(m); ok {
		return own.Role
	}
	role, _ := askHarness(func() (Role, error) { return m.GetRole(), nil })
	return role
}

// askHarness calls code of the harness that the wire form needs: methods of its messages,
// values and errors. A panic, or runtime.Goexit, is a [*PanicError].
func askHarness[T any](fn func() (T, error)) (T, error) {
	back := make(chan returned[T], 1)
	// Ends with fn, which this waits for.
	go guarded(fn, func(got returned[T]) { back <- got })
	got := <-back
	return got.value, got.err
}

// message is the registered type's value, or what can be told without it.
func (w *wireForeign) message() AgentMessage {
	foreign := ForeignMessage{Name: *w.Custom, Role: w.Role, Timestamp: canonicalTime(w.Timestamp), Text: w.Text,
		Thinking: w.Thinking, Calls: w.Calls, Value: w.Value}
	registry.mu.RLock()
	t := registry.byName[*w.Custom]
	registry.mu.RUnlock()
	if t == nil || w.Value == nil {
		return foreign
	}
	m, err := askHarness(func() (AgentMessage, error) {
		p := reflect.New(t)
		if err := json.Unmarshal(w.Value, p.Interface()); err != nil {
			return nil, err
		}
		if v := p.Elem(); v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, errors.New("no value")
		}
		m := p.Elem().Interface().(AgentMessage)
		toldBy(m) // whoever reads the message asks it
		return m, nil
	})
	if err != nil {
		return foreign
	}
	return m
}

// wireMessage is an AgentMessage as JSON: a Message as it is, another one as a wireForeign.
type wireMessage struct{ AgentMessage }

func messageToWire(m AgentMessage) *wireMessage {
	if m == nil {
		return nil
	}
	return &wireMessage{m}
}

func messagesToWire(messages []AgentMessage) []wireMessage {
	if messages == nil {
		return nil
	}
	out := make([]wireMessage, len(messages))
	for i, m := range messages {
		out[i] = wireMessage{m}
	}
	return out
}

func (w *wireMessage) message() AgentMessage {
	if w == nil {
		return nil
	}
	return w.AgentMessage
}

func messagesOf(messages []wireMessage) []AgentMessage {
	if messages == nil {
		return nil
	}
	out := make([]AgentMessage, len(messages))
	for i, m := range messages {
		out[i] = m.AgentMessage
	}
	return out
}

// MarshalJSON leaves out Metadata that cannot be written, or not be read again.
func (w wireMessage) MarshalJSON() ([]byte, error) {
	own, ok := ownMessage(w.AgentMessage)
	if !ok {
		foreign, err := foreignToWire(w.AgentMessage)
		if err != nil {
			return nil, err
		}
		return marshalPlain(foreign)
	}
	if own.Metadata != nil {
		data, err := askHarness(func() ([]byte, error) { return marshalPlain(own) })
		if err == nil && !nesting.TooDeep(string(data)) {
			return data, nil
		}
		own.Metadata = nil
	}
	return marshalPlain(own)
}

// UnmarshalJSON tells a Message from a harness's by the field "custom".
func (w *wireMessage) UnmarshalJSON(data []byte) error {
	var foreign struct {
		wireForeign
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &foreign); err != nil {
		return err
	}
	if foreign.Custom != nil {
		w.AgentMessage = foreign.message()
		return nil
	}
	var own Message
	if err := json.Unmarshal(data, &own); err != nil {
		return err
	}
	if own.Role == "" || foreign.Content == nil {
		return errors.New("a message without role or content")
	}
	for i := range own.Content {
		if call := own.Content[i].ToolCall; call != nil && call.Args != nil && !isObject(call.Args) {
			return errors.New("a call whose args are no object")
		}
	}
	own.Timestamp = canonicalTime(own.Timestamp)
	w.AgentMessage = own
	return nil
}
