package session_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// TestSwitch: another session comes with its history, its settings, its goal and its memory,
// and leaves what the one before had alone.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		a := agenttest.Script(agenttest.Text("1a").Usage(agentkernel.Usage{Total: 9}), agenttest.Text("2a"), agenttest.Text("1b"))
		cfg := session.Config{ID: "one", Models: map[string]agentkernel.ChatModel{"a": a, "b": agenttest.Script(agenttest.Text("2b"))}, Model: "a"}
		o := open(t, store, nil, cfg)
		require.NoError(t, o.prompt("My name is Ada."))
		require.NoError(t, o.SetGoal(t.Context(), "ship it"))
		live := o.State().Messages

		require.NoError(t, o.Switch(t.Context(), "two"))
		require.Equal(t, "two", o.ID())
		require.Empty(t, o.State().Messages)
		require.Empty(t, o.State().TotalUsage)
		require.Empty(t, o.Name())
		require.Empty(t, o.Goal().Text)
		require.Empty(t, o.Memory())
		require.NoError(t, o.SetModel(t.Context(), "b"))
		require.NoError(t, o.SetThinking(t.Context(), agentkernel.ThinkingHigh))
		require.NoError(t, o.prompt("hi"))
		require.Equal(t, []string{"user: hi", "assistant: 2b"}, stored(t, store, "two"))

		require.NoError(t, o.Switch(t.Context(), "one"))
		require.Equal(t, live, o.State().Messages)
		require.Equal(t, "My name is Ada.", o.Name())
		require.Equal(t, "ship it", o.Goal().Text)
		require.Len(t, o.Memory(), 1)
		require.Equal(t, []any{"a", agentkernel.ThinkingLevel("")}, []any{o.Model(), o.Thinking()})
		require.NoError(t, o.prompt("and?"))
		require.Equal(t, []string{"user: My name is Ada.", "assistant: 1a", "user: and?", "assistant: 2a"}, stored(t, store, "one"))
		require.Equal(t, []string{"user: hi", "assistant: 2b"}, stored(t, store, "two"))

		require.NoError(t, o.Switch(t.Context(), "one"), "it is open already")
		require.Equal(t, []string{"goal_updated", "session_switched", "model_changed", "thinking_changed", "context",
			"session_switched", "model_changed", "thinking_changed", "context"}, o.order(agentkernel.EventContext))
		require.Equal(t, &session.Changed{From: "one", To: "two"}, o.own(session.EventSwitched)[0].Changed)
		require.Equal(t, "two", o.own(session.EventSwitched)[0].SessionID)

		require.NoError(t, o.Switch(t.Context(), ""), "a new one")
		require.Len(t, o.ID(), 26)
	})
}

// TestSwitchThatFails: the session stays the one it was, and can go on.
func TestSwitchThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		other := open(t, store, agenttest.Script(), session.Config{ID: "other"})
		o := open(t, store, agenttest.Script(agenttest.Stall().Text("a"), agenttest.Text("b"), agenttest.Text("c")), session.Config{ID: "one"})
		require.ErrorIs(t, o.Switch(t.Context(), "other"), session.ErrInUse)
		require.Error(t, o.Switch(t.Context(), "a/b"))
		run, err := o.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, o.Switch(ctx, "two"), context.DeadlineExceeded, "a run is active")
		inSubscriber := errors.New("not called")
		o.Subscribe(func(ev session.SessionEvent) {
			if ev.AgentEvent != nil && ev.AgentEvent.Type == agentkernel.EventAgentEnd {
				inSubscriber = o.Switch(context.Background(), "two")
			}
		})
		require.NoError(t, o.FollowUp(agentkernel.UserMessage("later")))
		run.Abort(errors.New("enough"))
		require.ErrorIs(t, ended(run), agentkernel.KindCanceled)
		require.ErrorIs(t, inSubscriber, agentkernel.ErrInListener)
		require.ErrorIs(t, o.Switch(t.Context(), "two"), session.ErrQueued)
		require.Equal(t, "one", o.ID())
		require.Empty(t, o.own())
		require.NoError(t, o.goOn())
		require.Equal(t, []string{"user: hi", "assistant: b", "user: later", "assistant: c"}, stored(t, store, "one"))

		other.close()
		require.NoError(t, o.Switch(t.Context(), "other"))
		o.close()
		require.ErrorIs(t, o.Switch(t.Context(), "one"), session.ErrClosed)
	})
}

// TestInUse: a session is open once, in whatever process; another one of the same store may be
// open beside it, and it is free when it was closed.
func TestInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for name, path := range map[string]string{"file": path, "memory": session.InMemory} {
		t.Run(name, func(t *testing.T) {
			one := openStore(t, path)
			two := one
			if path != session.InMemory {
				two = openStore(t, path)
			}
			cfg := session.Config{ID: "s", Store: two, Models: map[string]agentkernel.ChatModel{"m": agenttest.Script()}, Model: "m"}
			o := open(t, one, agenttest.Script(), session.Config{ID: "s"})
			_, err := session.Open(t.Context(), cfg)
			require.ErrorIs(t, err, session.ErrInUse)
			open(t, two, agenttest.Script(), session.Config{ID: "other"})
			o.close()
			free, err := session.Open(t.Context(), cfg)
			require.NoError(t, err)
			require.NoError(t, free.Close(t.Context()))
		})
	}
}

// TestClose: closing waits for the run, and can be given up.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Stall().Text("a"))
		o := open(t, memoryStore(t), model, session.Config{})
		run, err := o.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, o.Close(ctx), context.DeadlineExceeded)
		model.Release()
		o.close()
		select {
		case <-run.Done():
		default:
			t.Error("the run is not over")
		}
	})
}
