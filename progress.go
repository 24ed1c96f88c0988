package agentkernel

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/agentkernel-go/agentkernel/internal/textbuf"
)

// ProgressKind is what a running tool reports.
type ProgressKind string

// The kinds of progress. Text of the delta kinds adds up; of the others the newest holds.
const (
	ProgressToolStart ProgressKind = "tool_start"
	ProgressToolEnd   ProgressKind = "tool_end"
	ProgressToolDelta ProgressKind = "tool_delta" // adds up
	ProgressThinking  ProgressKind = "thinking"   // adds up
	ProgressSummary   ProgressKind = "summary"
	ProgressToolError ProgressKind = "tool_error"
	ProgressTurn      ProgressKind = "turn_counter"
	ProgressRetry     ProgressKind = "retry"
	ProgressCustom    ProgressKind = "custom"
	// ProgressPreview and ProgressGate stand on updates of those kinds: what a preview
	// showed, and what the gate answered.
	ProgressPreview ProgressKind = "preview"
	ProgressGate    ProgressKind = "gate"
	// ProgressAsk stands on an update of kind "gate" too: what a gate asks that has no answer
	// now, and so suspends the run.
	ProgressAsk ProgressKind = "ask"
)

// AddsUp tells whether the texts of two reports of the kind, one after the other, come to one
// text. Of the other kinds the newest report holds.
func (k ProgressKind) AddsUp() bool { return k == ProgressToolDelta || k == ProgressThinking }

// ProgressPayload is one report of a running call.
type ProgressPayload struct {
	// Kind is "summary" where it is empty, and "preview" for what a Preview shows.
	Kind ProgressKind `json:"kind"`
	// Tool is what the report is about where the call itself runs further tools or agents.
	Tool string `json:"tool,omitempty"`
	// Text is for people: what was added by the delta kinds, the whole of the others.
	Text string `json:"text,omitempty"`
	// Data is the report as a value. Of delta kinds that were joined it is the newest.
	Data json.RawMessage `json:"data,omitempty"`
	// Count and Of are a position: a turn or an attempt, and of how many (0: unknown).
	Count int `json:"count,omitempty"`
	Of    int `json:"of,omitempty"`
}

func (p *ProgressPayload) clone() *ProgressPayload {
	if p == nil {
		return nil
	}
	own := *p
	own.Data = bytes.Clone(p.Data)
	return &own
}

// ReportProgress shows p on the stream of the run, as an Update between the Start and the End of the
// call that ctx belongs to. It is for the tool and its middleware: elsewhere, before the call is
// executed and once it has ended, it does nothing.
//
// It may be called from any goroutine and does not wait for the consumer. While that is
// slow, reports of the same kind and tool are merged: text of delta kinds is joined, of the
// others the newest wins. Only where 64 KiB of text or 64 kinds are waiting does it wait
// until some of them are taken, or the call ends.
func ReportProgress(ctx context.Context, p ProgressPayload) {
	if env, ok := ctx.Value(callKey{}).(*callEnv); ok {
		if p.Kind == "" {
			p.Kind = ProgressSummary
		}
		p.Text = validText(p.Text)
		p.Data = compactJSON(p.Data)
		env.box.put(ctx, p)
	}
}

const (
	// mailboxText and mailboxKinds bound what waits in a mailbox.
	mailboxText  = 64 << 10
	mailboxKinds = 64
)

// mailbox keeps what a call reported until the run's goroutine takes it.
type mailbox struct {
	notify func() // tells the run's goroutine that there is something

	mu      sync.Mutex
	waiting []callUpdate
	text    int           // bytes of delta text in waiting
	room    chan struct{} // closed when waiting is taken or the box closed; nil where nobody waits
	opened  bool          // the call is executed, so that it may report
	closed  bool
	args    json.RawMessage // what is, or would be, executed
	late    bool            // the execution took longer than it may
}

// callUpdate is the payload of a ToolExecUpdate.
type callUpdate struct {
	kind    ToolExecUpdateKind
	payload ProgressPayload
	args    json.RawMessage
	text    *textbuf.Buffer // of delta kinds, what payload.Text will be
}

// put leaves a report, merging it where it can.
func (m *mailbox) put(ctx context.Context, p ProgressPayload) {
	m.mu.Lock()
	for !m.closed && m.full(p) {
		if m.room == nil {
			m.room = make(chan struct{})
		}
		room := m.room
		m.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
		m.mu.Lock()
	}
	defer m.mu.Unlock()
	if m.closed || !m.opened {
		return
	}
	m.merge(p)
	m.notify()
}

func (m *mailbox) full(p ProgressPayload) bool {
	return len(m.waiting) >= mailboxKinds && m.same(p) < 0 || p.Kind.AddsUp() && m.text >= mailboxText
}

// same finds the waiting report that p can be merged with.
func (m *mailbox) same(p ProgressPayload) int {
	return slices.IndexFunc(m.waiting, func(u callUpdate) bool {
		return u.kind == ToolExecUpdateProgress && u.payload.Kind == p.Kind && u.payload.Tool == p.Tool
	})
}

func (m *mailbox) merge(p ProgressPayload) {
	u := callUpdate{kind: ToolExecUpdateProgress, payload: p, args: m.args}
	if p.Kind.AddsUp() {
		m.text += len(p.Text)
		u.text = new(textbuf.Buffer)
	}
	if i := m.same(p); i >= 0 {
		u.text = m.waiting[i].text
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
	if u.text != nil {
		u.text.Append(p.Text)
	}
	m.waiting = append(m.waiting, u)
}

// post leaves an update that is never merged.
func (m *mailbox) post(u callUpdate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		u.args = m.args
		m.waiting = append(m.waiting, u)
		m.notify()
	}
}

// take empties the box.
func (m *mailbox) take() []callUpdate {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.empty()
}

// close empties the box for the last time, and tells what was executed.
func (m *mailbox) close() ([]callUpdate, json.RawMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return m.empty(), m.args
}

func (m *mailbox) open() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened = true
}

func (m *mailbox) setArgs(args json.RawMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.args = args
}

func (m *mailbox) setLate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.late = true
}

func (m *mailbox) isLate() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.late
}

func (m *mailbox) empty() []callUpdate {
	taken := m.waiting
	m.waiting, m.text = nil, 0
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
	for i := range taken {
		if u := &taken[i]; u.text != nil {
			u.payload.Text = u.text.String()
		}
	}
	return taken
}
