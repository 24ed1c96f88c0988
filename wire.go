package agentkernel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// WireVersion is the version of the wire form: the field "v" of every record. Fields and
// event types may be added under the same version; a reader passes over what it does not know.
const WireVersion = 1

// EventSnapshot is the type of a record that no run emits: all that a reader must know to go
// on from there. [Encoder.Snapshot] writes it; a [Decoder] returns an Event of this type,
// with the run id, seq, time and turn of the event before it, and [Decoder.State] is the
// state that it carries. [Reduce] passes it over.
const EventSnapshot EventType = "snapshot"

// eventWire is an Event as JSON, in both encodings. docs/event.schema.json describes it.
type eventWire struct {
	V           int       `json:"v"`
	Type        EventType `json:"type"`
	RunID       string    `json:"run_id"`
	ParentRunID string    `json:"parent_run_id,omitempty"`
	Seq         uint64    `json:"seq"`
	Time        time.Time `json:"time,omitzero"`
	Turn        int       `json:"turn"`

	Attempt      int                `json:"attempt,omitempty"`
	Message      *wireMessage       `json:"message,omitempty"`
	Delta        string             `json:"delta,omitempty"`
	DeltaKind    DeltaKind          `json:"delta_kind,omitempty"`
	ContentIndex int                `json:"content_index,omitempty"`
	Coalesced    int                `json:"coalesced,omitempty"`
	ToolID       string             `json:"tool_id,omitempty"`
	Tool         string             `json:"tool,omitempty"`
	ToolLabel    string             `json:"tool_label,omitempty"`
	Args         json.RawMessage    `json:"args,omitempty"`
	Result       *wireResult        `json:"result,omitempty"`
	Progress     *ProgressPayload   `json:"progress,omitempty"`
	UpdateKind   ToolExecUpdateKind `json:"update_kind,omitempty"`
	IsError      bool               `json:"is_error,omitempty"`
	ToolResults  []wireResult       `json:"tool_results,omitzero"`
	Err          *wireError         `json:"err,omitempty"`
	NewMessages  []wireMessage      `json:"new_messages,omitzero"`
	RetryInfo    *wireRetry         `json:"retry_info,omitempty"`
	Request      *wireRequest       `json:"request,omitempty"`
	Context      *wireContext       `json:"context,omitempty"`
	Summary      *RunSummary        `json:"summary,omitempty"`
	Duration     millis             `json:"duration_ms,omitzero"`

	// References of the delta-only encoding.
	ToolResultIDs    []string `json:"tool_result_ids,omitempty"`
	NewMessagesCount int      `json:"new_messages_count,omitempty"`

	// Of a snapshot.
	State *AgentState   `json:"state,omitempty"`
	Runs  []runSnapshot `json:"runs,omitempty"`
	// EndedRuns are the last ones, oldest first.
	EndedRuns []endedRun `json:"ended_runs,omitempty"`
}

// MarshalJSON writes the whole form: every event stands alone. A message_update carries the
// whole message so far, so that the bytes of a run grow with the square of its text; see
// [Encoder] for the form that does not.
//
// Names are snake_case; durations are decimal numbers of milliseconds, exact to the
// nanosecond, in fields that end in _ms; errors are flattened to kind, op, message,
// retryable, retry_after_ms and status. Request is written with its system prompt, tools and
// parameters; its messages are counted. What encoding/json cannot write of Details,
// Metadata and a harness's message is left out. A harness's message that panics is an error,
// but for AgentEnd, which tells what it can of it: see [RegisterMessage]. An event of type
// [EventSnapshot] is an error: it does not have the state.
func (ev Event) MarshalJSON() ([]byte, error) {
	if ev.Type == EventSnapshot {
		return nil, errSnapshot(&ev)
	}
	if ev.Raw != nil {
		return ev.Raw, nil
	}
	w := wireOf(&ev)
	return w.bytes()
}

func errSnapshot(ev *Event) error {
	return fmt.Errorf("agentkernel: a snapshot, seq %d of run %q, is no event that can be written: see Encoder.Snapshot", ev.Seq, ev.RunID)
}

// UnmarshalJSON reads an event of either encoding; of a delta-only one the fields stay empty
// that only a [Decoder] can fill in. An event of a type that this version does not know keeps
// its bytes in Raw. A record of another version, or without what its type must carry, is an
// error of type [*WireError].
//
// Errors become an [*Error] of the same kind, Details a json.RawMessage, Request.Messages as
// many zero messages as were counted (at most 4,096), and a harness's message the type that
// [RegisterMessage] knows, else a [ForeignMessage].
//
// What the wire does not carry: the Go types within Metadata. Its numbers become float64, as
// encoding/json reads them, so that integers beyond 2^53 lose digits.
func (ev *Event) UnmarshalJSON(data []byte) error {
	w, err := parseWire(data)
	if err != nil {
		return err
	}
	if w.Type == EventSnapshot {
		return &WireError{Problem: WireGarbage, RunID: w.RunID, Seq: w.Seq, Err: fmt.Errorf("a snapshot is no event of its own")}
	}
	*ev = w.event(data)
	return nil
}

// parseWire reads and checks one record.
func parseWire(data []byte) (*eventWire, error) {
	var head struct {
		V     int       `json:"v"`
		Type  EventType `json:"type"`
		RunID string    `json:"run_id"`
		Seq   uint64    `json:"seq"`
	}
	problem := func(p WireProblem, err error) error {
		return &WireError{Problem: p, RunID: head.RunID, Seq: head.Seq, Err: err}
	}
	if !json.Valid(data) {
		return nil, problem(WireGarbage, fmt.Errorf("no JSON: %.40q", data))
	}
	w := new(eventWire)
	err := json.Unmarshal(data, w)
	head.V, head.Type, head.RunID, head.Seq = w.V, w.Type, w.RunID, w.Seq
	if err != nil { // a field that did not fit may have hidden those behind it
		_ = json.Unmarshal(data, &head)
	}
	switch {
	case head.V == 0:
		return nil, problem(WireGarbage, fmt.Errorf("no record of the wire form: %.40q", data))
	case head.V != WireVersion:
		return nil, problem(WireVersionMismatch, fmt.Errorf("got version %d, want %d", head.V, WireVersion))
	case head.Type == "":
		return nil, problem(WireGarbage, fmt.Errorf("the record has no type"))
	case !ofWire(head.Type):
		return parseUnknown(data, head.Type)
	case err != nil:
		return nil, problem(WireGarbage, err)
	}
	if missing := w.missing(); missing != "" {
		return nil, problem(WireGarbage, fmt.Errorf("%s without %s", w.Type, missing))
	}
	return w, nil
}

// ofWire tells whether this version knows records of that type: a snapshot, and the event types
// that have a payload, which is all.
func ofWire(t EventType) bool { return t == EventSnapshot || payloadKinds[t] != nil }

// parseUnknown reads the head of a record of a newer version, which may use other names as
// it likes.
func parseUnknown(data []byte, of EventType) (*eventWire, error) {
	var head struct {
		RunID       string    `json:"run_id"`
		ParentRunID string    `json:"parent_run_id"`
		Seq         uint64    `json:"seq"`
		Time        time.Time `json:"time"`
		Turn        int       `json:"turn"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, &WireError{Problem: WireGarbage, RunID: head.RunID, Seq: head.Seq, Err: err}
	}
	w := &eventWire{V: WireVersion, Type: of, RunID: head.RunID, ParentRunID: head.ParentRunID,
		Seq: head.Seq, Time: head.Time, Turn: head.Turn}
	if missing := w.missing(); missing != "" {
		return nil, &WireError{Problem: WireGarbage, RunID: head.RunID, Seq: head.Seq, Err: fmt.Errorf("%s without %s", of, missing)}
	}
	return w, nil
}

// missing names what a record must carry and does not, as docs/event.schema.json says.
func (w *eventWire) missing() string {
	switch {
	case w.Type == EventSnapshot: // may stand before the first event
	case w.RunID == "":
		return "run_id"
	case w.Seq == 0:
		return "seq"
	}
	switch {
	case w.Turn < 0:
		return "a turn from 0 on"
	case w.ContentIndex < 0:
		return "a content_index from 0 on"
	case w.Args != nil && !isObject(w.Args):
		return "args that are an object"
	}
	return w.missingOfType()
}

// isObject tells whether valid JSON is an object.
func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

func (w *eventWire) missingOfType() string {
	need := func(name string, has bool) string {
		if has {
			return ""
		}
		return name
	}
	switch w.Type {
	case EventMessageStart, EventMessageEnd, EventMessageDiscard:
		return need("message", w.Message != nil)
	case EventToolExecStart:
		return cmp.Or(need("tool_id", w.ToolID != ""), need("args", w.Args != nil))
	case EventToolExecUpdate:
		return cmp.Or(need("tool_id", w.ToolID != ""), need("progress", w.Progress != nil), need("update_kind", w.UpdateKind != ""))
	case EventToolExecEnd:
		return cmp.Or(need("tool_id", w.ToolID != ""), need("result", w.Result != nil))
	case EventRetry:
		return need("retry_info", w.RetryInfo != nil)
	case EventModelRequest:
		return need("request", w.Request != nil)
	case EventContext:
		return need("context", w.Context != nil)
	case EventError:
		return need("err", w.Err != nil)
	case EventAgentEnd:
		return need("summary", w.Summary != nil)
	case EventSnapshot:
		return need("state", w.State != nil)
	}
	return ""
}

// wireOf is ev in its whole form. It shares what ev refers to.
func wireOf(ev *Event) *eventWire {
	return &eventWire{
		V: WireVersion, Type: ev.Type, RunID: ev.RunID, ParentRunID: ev.ParentRunID, Seq: ev.Seq, Time: ev.Time, Turn: ev.Turn,
		Attempt: ev.Attempt, Message: messageToWire(ev.Message), Delta: ev.Delta, DeltaKind: ev.DeltaKind,
		ContentIndex: ev.ContentIndex, Coalesced: ev.Coalesced, ToolID: ev.ToolID, Tool: ev.Tool, ToolLabel: ev.ToolLabel,
		Args: ev.Args, Result: resultToWire(ev.Result), Progress: ev.Progress, UpdateKind: ev.UpdateKind, IsError: ev.IsError,
		ToolResults: resultsToWire(ev.ToolResults), Err: errorToWire(ev.Err), NewMessages: messagesToWire(ev.NewMessages),
		RetryInfo: retryToWire(ev.RetryInfo), Request: requestToWire(ev.Request), Context: contextToWire(ev.Context),
		Summary: ev.Summary, Duration: millis(ev.Duration),
	}
}

// event is the record as an Event, whose bytes were data.
func (w *eventWire) event(data []byte) Event {
	ev := Event{
		Type: w.Type, RunID: w.RunID, ParentRunID: w.ParentRunID, Seq: w.Seq, Time: canonicalTime(w.Time), Turn: w.Turn,
		Attempt: w.Attempt, Message: w.Message.message(), Delta: w.Delta, DeltaKind: w.DeltaKind,
		ContentIndex: w.ContentIndex, Coalesced: w.Coalesced, ToolID: w.ToolID, Tool: w.Tool, ToolLabel: w.ToolLabel,
		Args: w.Args, Result: w.Result.result(), Progress: w.Progress, UpdateKind: w.UpdateKind, IsError: w.IsError,
		ToolResults: resultsOf(w.ToolResults), Err: w.Err.err(), NewMessages: messagesOf(w.NewMessages),
		RetryInfo: w.RetryInfo.info(), Request: w.Request.request(), Context: w.Context.info(),
		Summary: w.Summary, Duration: time.Duration(w.Duration),
	}
	if !ofWire(w.Type) {
		ev.Raw = oneLine(data)
	}
	return ev
}

// oneLine is a record as it came, but on one line.
func oneLine(data []byte) json.RawMessage {
	if !bytes.ContainsAny(data, "\r\n") {
		return bytes.Clone(data)
	}
	var out bytes.Buffer
	_ = json.Compact(&out, data) // it was valid
	return out.Bytes()
}

// bytes writes the record. Characters that only HTML minds stay as they are. A snapshot and the
// end of a run, which a reader cannot do without, are written without what of a message crashes.
func (w *eventWire) bytes() ([]byte, error) {
	data, err := marshalPlain(w)
	if err != nil && (w.Type == EventSnapshot || w.Type == EventAgentEnd) {
		w.makeWritable()
		data, err = marshalPlain(w)
	}
	if err != nil {
		return nil, fmt.Errorf("agentkernel: %s, seq %d: %w", w.Type, w.Seq, err)
	}
	return data, nil
}

// canBeTold tells whether a snapshot can be written behind the event w, which cannot.
func (w *eventWire) canBeTold() bool {
	w.makeWritable()
	_, err := marshalPlain(&eventWire{Message: w.Message, Result: w.Result, ToolResults: w.ToolResults,
		NewMessages: w.NewMessages, Context: w.Context, Err: w.Err})
	return err == nil
}

// makeWritable replaces messages of the harness that crash when they are written. It changes
// no more than w.
func (w *eventWire) makeWritable() {
	replace := func(messages []wireMessage) {
		for i, m := range messages {
			messages[i].AgentMessage = writable(m.AgentMessage)
		}
	}
	replace(w.NewMessages)
	if w.Context != nil {
		replace(w.Context.Messages)
	}
	if w.Message != nil {
		w.Message = messageToWire(writable(w.Message.AgentMessage))
	}
	for _, r := range w.Runs {
		replace(r.Ended)
	}
	if w.State == nil {
		return
	}
	state := *w.State
	state.Messages = make([]AgentMessage, len(state.Messages))
	for i, m := range w.State.Messages {
		state.Messages[i] = writable(m)
	}
	state.StreamMessage = writable(state.StreamMessage)
	w.State = &state
}

func marshalPlain(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
