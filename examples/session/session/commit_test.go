package session_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// talk is a run with a call; conversation is what it says.
func talk() (*agenttest.Model, session.Config) {
	return agenttest.Script(agenttest.Calls("a"), agenttest.Text("done"), agenttest.Text("again"), agenttest.Text("more")),
		session.Config{ID: "s", Agent: agentkernel.Config{Tools: []agentkernel.Tool{echo("a")}}}
}

var conversation = []string{"user: hi", "assistant: a({})", "tool: a", "assistant: done"}

// TestStoredBeforeItEnds: when a message is shown as ended, the store has it.
func TestStoredBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := fileStore(t)
		model, cfg := talk()
		o := open(t, store, model, cfg)
		n := 0
		o.Subscribe(func(ev session.SessionEvent) {
			if ev.Place > 0 {
				n++
				require.Equal(t, n, ev.Place)
				require.GreaterOrEqual(t, len(stored(t, store, "s")), n)
				require.Equal(t, text(ev.AgentEvent.Message), stored(t, store, "s")[n-1])
			}
		})
		require.NoError(t, o.prompt("hi"))
		require.Equal(t, 4, n)
		require.Equal(t, conversation, stored(t, store, "s"))
	})
}

// TestFullDisk: wherever the disk is full, the run ends with kind commit and a session_error,
// what did not end is not stored, and the next run goes on from there.
func TestFullDisk(t *testing.T) {
	for place := uint64(1); place <= 4; place++ {
		synctest.Test(t, func(t *testing.T) {
			full := true
			inner := memoryStore(t)
			store := &faulty{inner, func(_ context.Context, c session.Change) error {
				if full && c.Message != nil && c.Message.Seq == place {
					return syscall.ENOSPC
				}
				return nil
			}}
			model, cfg := talk()
			o := open(t, store, model, cfg)
			err := o.prompt("hi")
			require.ErrorIs(t, err, agentkernel.KindCommit)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.Equal(t, conversation[:place-1], nilIfEmpty(stored(t, inner, "s")))
			require.Equal(t, conversation[:place-1], nilIfEmpty(texts(o.State().Messages)))
			require.Equal(t, []string{"error", "session_error", "agent_end"},
				last(o.order(agentkernel.EventError, agentkernel.EventAgentEnd), 3))
			failed := o.own(session.EventError)
			require.Len(t, failed, 1)
			require.Equal(t, agentkernel.KindCommit, failed[0].Error.Kind)
			require.ErrorIs(t, failed[0].Error.Err, syscall.ENOSPC)

			full = false
			require.NoError(t, o.prompt("now?"))
			saved := stored(t, inner, "s")
			require.Equal(t, texts(o.State().Messages), saved)
			require.Equal(t, conversation[:place-1], saved[:place-1])
			require.Contains(t, saved, "user: now?")
			require.Empty(t, agentkernel.ValidateHistory(o.State().Messages))
		})
	}
}

func nilIfEmpty(list []string) []string { return append([]string{}, list...) }

func last(list []string, n int) []string { return list[max(len(list)-n, 0):] }

// TestStoreThatFailsBesideMessages: a record that cannot be written is a session_error too and
// ends the run at its next message; it is written when the store can.
func TestStoreThatFailsBesideMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 1
		inner := memoryStore(t)
		store := &faulty{inner, func(_ context.Context, c session.Change) error {
			if len(c.Calls) > 0 && failures > 0 {
				failures--
				return syscall.ENOSPC
			}
			return nil
		}}
		model, cfg := talk()
		// The call waits for the failure to be noticed, so that the test knows where the run ends.
		gate := make(chan struct{})
		cfg.Agent.Tools = []agentkernel.Tool{agentkernel.MustTool("a", "", func(context.Context, struct{}) (string, error) {
			<-gate
			return "a", nil
		})}
		o := open(t, store, model, cfg)
		o.Subscribe(func(ev session.SessionEvent) {
			if ev.Type == session.EventError {
				close(gate)
			}
		})
		require.ErrorIs(t, o.prompt("hi"), agentkernel.KindCommit)
		require.Equal(t, conversation[:2], stored(t, inner, "s"))
		failed := o.own(session.EventError)
		require.Len(t, failed, 2, "the record, then the run")
		require.ErrorIs(t, failed[0].Error.Err, syscall.ENOSPC)
		require.Equal(t, agentkernel.KindCommit, failed[1].Error.Kind)
		calls, err := o.Calls(t.Context())
		require.NoError(t, err)
		require.Len(t, calls, 1, "it was written at the end of the run")
		require.NoError(t, o.goOn())
	})
}

// TestStoreThatHangs: a commit that the kernel has given up does not bring its message back,
// whenever it comes to its end.
func TestStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memoryStore(t)
		hang := make(chan struct{})
		once := true
		store := &faulty{inner, func(_ context.Context, c session.Change) error {
			if once && c.Message != nil && c.Message.Seq == 2 {
				once = false
				<-hang // deaf: it writes whatever becomes of the run
			}
			return nil
		}}
		model, cfg := talk()
		late := make(chan struct{})
		o := open(t, lateStore{store, late}, model, cfg)
		run, err := o.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		run.Abort(errors.New("enough"))
		require.ErrorIs(t, ended(run), agentkernel.KindCommit)
		close(hang)
		<-late
		require.Equal(t, conversation[:1], texts(o.State().Messages))
		require.NoError(t, o.goOn())
		require.Equal(t, []string{"user: hi", "assistant: done"}, texts(o.State().Messages))
		require.Equal(t, []string{"user: hi", "assistant: done"}, stored(t, inner, "s"))
	})
}

// TestStoreThatDoesNotAnswer: a store that hangs ends the run after Config.Timeout, although
// nobody aborts it.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memoryStore(t)
		hang := make(chan struct{})
		store := &faulty{inner, func(ctx context.Context, c session.Change) error {
			if c.Message != nil && c.Message.Seq == 3 {
				<-hang
				return context.Cause(ctx)
			}
			return nil
		}}
		model, cfg := talk()
		cfg.Timeout = time.Minute
		o := open(t, store, model, cfg)
		began := time.Now()
		err := o.prompt("hi")
		require.ErrorIs(t, err, agentkernel.KindCommit)
		require.ErrorContains(t, err, "within 1m0s")
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, conversation[:2], stored(t, inner, "s"))
		close(hang)
	})
}

// lateStore writes without heeding the context, and tells of the write that came late.
type lateStore struct {
	session.Store
	late chan struct{}
}

func (s lateStore) Write(ctx context.Context, id string, c session.Change) error {
	err := s.Store.Write(context.WithoutCancel(ctx), id, c)
	if ctx.Err() != nil {
		close(s.late)
	}
	return err
}

// TestStoreThatPanics: a panic of the store is a failure of the store.
func TestStoreThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{memoryStore(t), func(_ context.Context, c session.Change) error {
			if c.Message != nil && c.Message.Seq == 4 || c.Run != nil {
				panic("corrupt")
			}
			return nil
		}}
		model, cfg := talk()
		o := open(t, store, model, cfg)
		require.ErrorIs(t, o.prompt("hi"), agentkernel.KindCommit)
		require.Equal(t, conversation[:3], texts(o.State().Messages))
		require.Len(t, o.own(session.EventError), 2)
	})
}

// TestName: a session is called by the first line of its first prompt, and keeps that name.
func TestName(t *testing.T) {
	for prompt, want := range map[string]string{
		"Fix the  build\nplease": "Fix the build",
		"\n \n what\tnow?":       "what now?",
		strings.Repeat("é", 61):  strings.Repeat("é", 59) + "…",
		strings.Repeat("é", 60):  strings.Repeat("é", 60),
		" ":                      "second",
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memoryStore(t)
			o := open(t, store, agenttest.Script(agenttest.Text("a"), agenttest.Text("b")), session.Config{ID: "s"})
			require.NoError(t, o.prompt(prompt))
			require.NoError(t, o.prompt("second"))
			require.Equal(t, want, o.Name())
			infos, err := store.List(t.Context())
			require.NoError(t, err)
			require.Len(t, infos, 1)
			require.Equal(t, want, infos[0].Name)
			require.Equal(t, 4, infos[0].Messages)
		})
	}
}

// TestTwoRuns: a second run is refused until the end of the first is stored, and a listener of
// that end may start one.
func TestTwoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &faulty{memoryStore(t), func(_ context.Context, c session.Change) error {
			if c.Run != nil {
				time.Sleep(time.Second)
			}
			return nil
		}}
		o := open(t, slow, agenttest.Script(agenttest.Text("a"), agenttest.Text("b")), session.Config{})
		run, err := o.Prompt(t.Context(), "1")
		require.NoError(t, err)
		time.Sleep(time.Second / 2) // the kernel's run is over, its end is being stored
		_, err = o.Prompt(t.Context(), "2")
		require.ErrorIs(t, err, agentkernel.ErrAlreadyRunning)
		require.NoError(t, ended(run))
		require.NoError(t, o.prompt("2"))
		_, err = o.Continue(t.Context())
		require.ErrorIs(t, err, agentkernel.ErrBadContinuation)
		_, err = o.Continue(t.Context())
		require.ErrorIs(t, err, agentkernel.ErrBadContinuation, "a run that did not begin holds nothing")
	})
}
