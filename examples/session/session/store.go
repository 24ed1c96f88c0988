package session

import (
	"context"
	"errors"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// ErrInUse: the session is open elsewhere, in another process or by another [Session].
var ErrInUse = errors.New("session: the session is open elsewhere")

// Store keeps sessions. [SQLite] is one. Its methods may be called from any goroutine.
type Store interface {
	// Lock makes the caller the only one who has the session open, until unlock. It does not
	// wait: another holder is [ErrInUse]. The lock goes with the process that holds it.
	Lock(ctx context.Context, id string) (unlock func() error, err error)
	// Load returns the session, an empty one where there is none of that id.
	Load(ctx context.Context, id string) (Saved, error)
	// Write makes the change last, all of it or nothing: when it returns nil, the change is on
	// the disk. The same change written twice is written once. Changes take effect in the
	// order in which their writing began, and one whose ctx ended before that has none.
	Write(ctx context.Context, id string, change Change) error
	// Calls returns the model calls of a session in the order of their ends.
	Calls(ctx context.Context, id string) ([]ModelCall, error)
	// List returns the sessions, the last used first.
	List(ctx context.Context) ([]Info, error)
}

// Info is what a list of sessions shows of one.
type Info struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Messages counts the ended messages.
	Messages int       `json:"messages"`
	Goal     *Goal     `json:"goal,omitempty"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
}

// Saved is a session as it is stored.
type Saved struct {
	Info
	// Model and Thinking are the settings that were made in the session, empty for none.
	Model    string
	Thinking agentkernel.ThinkingLevel
	// Log is what the history is a fold of: a MessageEnd for each ended message, its Seq being
	// its place, and a Context for each replacement, with the Seq of the message before it.
	Log []agentkernel.Event
	// Discarded is the usage of the attempts that failed in runs of the session itself.
	Discarded agentkernel.Usage
	Memory    []Memory
	// MemoryAt is the place up to which messages were looked through for memories.
	MemoryAt int
}

// Change is what is written at once. A field that is nil or empty changes nothing.
type Change struct {
	// Message is the MessageEnd of a message, its Seq being its place. It replaces one that
	// stands there, which then never ended.
	Message *agentkernel.Event
	// Baseline is a Context, in the place that [Saved.Log] has it.
	Baseline *agentkernel.Event
	Calls    []ModelCall
	Run      *RunEnd
	Name     string
	Model    *string
	Thinking *agentkernel.ThinkingLevel
	Goal     *Goal // one without text is none
	Memory   []Memory
	MemoryAt int
}

// RunEnd is a run that ended.
type RunEnd struct {
	SessionID string
	RunID     string
	// Last is the place of the last ended message of the session. What stands behind it was
	// written but never ended, and goes.
	Last    int
	Summary agentkernel.RunSummary
	Error   *Failure
	Time    time.Time
}
