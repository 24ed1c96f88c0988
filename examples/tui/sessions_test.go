package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// converse has an agent say something in a new session, and closes it.
func converse(t *testing.T, s store, now time.Time, prompts ...string) (name string, shown *screen) {
	open, err := s.create(now)
	require.NoError(t, err)
	var replies []agenttest.Reply
	for range prompts {
		replies = append(replies, agenttest.Thinking("Hm.").Calls("look"), agenttest.Text("So."))
	}
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(replies...),
		Tools: []agentkernel.Tool{tool("look", says("seen"))},
	})
	require.NoError(t, err)
	journal.Follow(agent, open.journal)
	shown = newScreen()
	agent.Subscribe(func(ev agentkernel.Event) { shown.take(ev) })
	for _, prompt := range prompts {
		_, err = agent.Run(t.Context(), prompt)
		require.NoError(t, err)
	}
	require.NoError(t, s.close(open))
	return open.name, shown
}

func TestSessions(t *testing.T) {
	s := store{filepath.Join(t.TempDir(), "sessions")}
	list, err := s.list()
	require.NoError(t, err)
	assert.Empty(t, list, "there is no folder yet")

	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first, _ := converse(t, s, now, "first\n question", "second")
	assert.Equal(t, "20260102-030405.000", first)
	other, _ := converse(t, s, now, "other")
	assert.Equal(t, "20260102-030405.001", other, "a name is not given twice")
	silent, err := s.create(now)
	require.NoError(t, err)
	require.NoError(t, s.close(silent))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "notes.txt"), []byte("x"), 0o644))
	require.NoError(t, os.Chtimes(s.path(other), now, now))

	list, err = s.list()
	require.NoError(t, err)
	require.Len(t, list, 2, "a session in which nothing was said is removed")
	assert.Equal(t, []string{first, "first question"}, []string{list[0].name, list[0].title})
	assert.Equal(t, []string{other, "other"}, []string{list[1].name, list[1].title})
}

// TestReplay: a stored session shows what it showed when it was live, also where its program
// died within a line.
func TestReplay(t *testing.T) {
	s := store{t.TempDir()}
	name, live := converse(t, s, time.Now(), "one", "two")
	f, err := os.OpenFile(s.path(name), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"v":1,"type":"agent_sta`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	open, err := s.open(name)
	require.NoError(t, err)
	stored := newScreen()
	var blocks []block
	stored.feed, blocks, err = replay(open.journal)
	require.NoError(t, err)
	for _, b := range blocks {
		stored.print(b)
	}
	assert.Equal(t, live.printed(), stored.printed())
	assert.Equal(t, live.feed.state.Messages, stored.feed.state.Messages)
	require.NoError(t, s.close(open))
}

// TestReplayCut: of a run whose program died, what was open is closed.
func TestReplayCut(t *testing.T) {
	s := store{t.TempDir()}
	name, _ := converse(t, s, time.Now(), "one")
	data, err := os.ReadFile(s.path(name))
	require.NoError(t, err)
	before, _, found := strings.Cut(string(data), `"tool_exec_end"`)
	require.True(t, found)
	require.NoError(t, os.WriteFile(s.path(name), []byte(before), 0o600))

	open, err := s.open(name)
	require.NoError(t, err)
	stored := newScreen()
	_, blocks, err := replay(open.journal)
	require.NoError(t, err)
	for _, b := range blocks {
		stored.print(b)
	}
	assert.Equal(t, "› one\n  Hm.\n✗ look · interrupted · 0 ms\n! the run broke off here", stored.printed())
	require.NoError(t, s.close(open))
}

func TestOpenSession(t *testing.T) {
	s := store{t.TempDir()}
	name, _ := converse(t, s, time.Now(), "one")
	for _, bad := range []string{"nope", "../" + name, "", "."} {
		_, err := s.open(bad)
		assert.Error(t, err, bad)
	}
	open, err := s.open(name)
	require.NoError(t, err)
	_, err = s.open(name)
	require.ErrorContains(t, err, "in use")
	require.NoError(t, s.close(open))

	require.NoError(t, os.WriteFile(s.path("broken"), []byte("no\nrecord\n"), 0o600))
	_, err = s.open("broken")
	require.Error(t, err)
	data, err := os.ReadFile(s.path("broken"))
	require.NoError(t, err)
	assert.Equal(t, "no\nrecord\n", string(data), "it is left as it is")
	list, err := s.list()
	require.NoError(t, err)
	assert.Len(t, list, 1)
}
