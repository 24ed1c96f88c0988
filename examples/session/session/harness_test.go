package session_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// opened is a session in a test, and all that it told.
type opened struct {
	*session.Session
	t     *testing.T
	check *agenttest.Checker

	mu     sync.Mutex
	events []session.SessionEvent
}

// memoryStore is a store that goes with the test.
func memoryStore(t *testing.T) *session.SQLite {
	t.Helper()
	return openStore(t, session.InMemory)
}

// fileStore is a store in a file that goes with the test.
func fileStore(t *testing.T) *session.SQLite {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "a b%41.db")) // a name that needs care
}

func openStore(t *testing.T, path string) *session.SQLite {
	t.Helper()
	store, err := session.OpenSQLite(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// open opens a session with model as its only one, where cfg names none.
func open(t *testing.T, store session.Store, model agentkernel.ChatModel, cfg session.Config) *opened {
	t.Helper()
	cfg.Store = store
	if cfg.Models == nil {
		cfg.Models, cfg.Model = map[string]agentkernel.ChatModel{"m": model}, "m"
	}
	s, err := session.Open(t.Context(), cfg)
	require.NoError(t, err)
	o := &opened{Session: s, t: t, check: agenttest.NewChecker()}
	o.check.StartFrom(s.State().Messages)
	s.Subscribe(o.hear)
	t.Cleanup(func() {
		o.close()
		require.NoError(t, o.check.Finish())
		o.checkOrder()
	})
	return o
}

func (o *opened) hear(ev session.SessionEvent) {
	if ev.AgentEvent != nil {
		o.check.Listen(*ev.AgentEvent)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, ev)
}

// close gives the session up. It may be called twice.
func (o *opened) close() {
	o.t.Helper()
	require.NoError(o.t, o.Close(context.Background()))
}

// checkOrder proves that nothing is missing and nothing out of order.
func (o *opened) checkOrder() {
	o.t.Helper()
	for i, ev := range o.all() {
		require.EqualValues(o.t, i+1, ev.Seq)
	}
}

func (o *opened) all() []session.SessionEvent {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events[:len(o.events):len(o.events)]
}

// own returns the session's own events of these types, all of its own where none is named.
func (o *opened) own(types ...session.EventType) (found []session.SessionEvent) {
	for _, ev := range o.all() {
		if ev.Type != session.EventAgent && (len(types) == 0 || slices.Contains(types, ev.Type)) {
			found = append(found, ev)
		}
	}
	return found
}

// order is the types of all events, the kernel's by their own names, without those of others.
func (o *opened) order(kernel ...agentkernel.EventType) (names []string) {
	for _, ev := range o.all() {
		switch {
		case ev.Type != session.EventAgent:
			names = append(names, string(ev.Type))
		case slices.Contains(kernel, ev.AgentEvent.Type):
			names = append(names, string(ev.AgentEvent.Type))
		}
	}
	return names
}

// prompt makes a run and returns its error.
func (o *opened) prompt(text string) error {
	o.t.Helper()
	run, err := o.Prompt(o.t.Context(), text)
	require.NoError(o.t, err)
	return ended(run)
}

// goOn continues, and returns the run's error.
func (o *opened) goOn() error {
	o.t.Helper()
	run, err := o.Continue(o.t.Context())
	require.NoError(o.t, err)
	return ended(run)
}

func ended(run *agentkernel.Run) error {
	_, err := run.Wait(context.Background())
	return err
}

// stored is what the store has of the messages of a session.
func stored(t *testing.T, store session.Store, id string) (messages []string) {
	t.Helper()
	saved, err := store.Load(context.Background(), id)
	require.NoError(t, err)
	place := uint64(0)
	for _, ev := range saved.Log {
		if ev.Type == agentkernel.EventMessageEnd {
			place++
			require.Equal(t, place, ev.Seq, "the places are 1, 2, 3 …")
			messages = append(messages, text(ev.Message))
		}
	}
	require.Len(t, messages, saved.Messages)
	return messages
}

// texts is messages as role and text.
func texts(messages []agentkernel.AgentMessage) (out []string) {
	for _, m := range messages {
		out = append(out, text(m))
	}
	return out
}

func text(m agentkernel.AgentMessage) string {
	var s strings.Builder
	s.WriteString(string(m.GetRole()) + ": " + m.TextContent())
	if own, ok := m.(agentkernel.Message); ok {
		for _, call := range own.ToolCalls() {
			s.WriteString(call.Name + "(" + string(call.Args) + ")")
		}
	}
	return s.String()
}

// faulty is a store whose writes fail as fail says.
type faulty struct {
	session.Store
	fail func(ctx context.Context, c session.Change) error
}

func (f *faulty) Write(ctx context.Context, id string, c session.Change) error {
	if err := f.fail(ctx, c); err != nil {
		return err
	}
	return f.Store.Write(ctx, id, c)
}

// echo is a tool that says its name.
func echo(name string) agentkernel.Tool {
	return agentkernel.MustTool(name, "Says its name.", func(context.Context, struct{}) (string, error) { return name, nil })
}
