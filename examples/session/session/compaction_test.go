package session_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

var long = strings.Repeat("word ", 200) // 250 tokens

// TestCompactionAtTheThreshold: where the history comes near the window, start and end are told,
// then the new baseline, which is what a resumed session begins with.
func TestCompactionAtTheThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		model := agenttest.Script(agenttest.Text(long), agenttest.Text("b"), agenttest.Text("c"))
		cfg := session.Config{ID: "s", Compactor: &agentkernel.Compactor{Window: 500, Model: agenttest.Script(agenttest.Text("they talked"))}}
		o := open(t, store, model, cfg)
		require.NoError(t, o.prompt(long))
		require.Empty(t, o.own(), "nothing is told where nothing is to do")
		require.NoError(t, o.prompt("more"))

		require.Equal(t, []string{"auto_compaction_start", "auto_compaction_end", "context"}, o.order(agentkernel.EventContext))
		own := o.own()
		require.Equal(t, session.CompactionThreshold, own[0].Compaction.Reason)
		require.Greater(t, own[0].Compaction.TokensBefore, 437)
		end := own[1].Compaction
		require.True(t, end.Applied)
		require.Nil(t, end.Error)
		require.Less(t, end.TokensAfter, end.TokensBefore)
		require.Less(t, len(model.Requests()[1].Messages), 3)
		require.Contains(t, model.Requests()[1].Messages[0].TextContent(), "they talked")

		live := o.State()
		require.Len(t, stored(t, store, "s"), 4, "the messages that the model does not see any more are kept")
		o.close()
		again := open(t, store, model, cfg)
		require.Equal(t, live.Messages, again.State().Messages)
		require.NoError(t, again.prompt("and?"))
		require.Equal(t, 6, len(stored(t, store, "s")))
		require.Len(t, again.State().Messages, len(live.Messages)+2)
	})
}

// TestCompactionAfterAnOverflow: a model that refuses the request gets a smaller one.
func TestCompactionAfterAnOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Text(long), agenttest.Fail(kernelError(agentkernel.KindContextOverflow, false)), agenttest.Text("b"))
		o := open(t, memoryStore(t), model, session.Config{Compactor: &agentkernel.Compactor{Window: 100_000}})
		require.NoError(t, o.prompt(long))
		require.NoError(t, o.prompt("more"))
		order := o.order(agentkernel.EventContext)
		require.Contains(t, order, "context")
		own := o.own(session.EventCompactionStart, session.EventCompactionEnd)
		require.Len(t, own, 2)
		require.Equal(t, session.CompactionOverflow, own[0].Compaction.Reason)
		require.True(t, own[1].Compaction.Applied)
		require.Len(t, o.own(session.EventRetryEnd), 1)
		require.True(t, o.own(session.EventRetryEnd)[0].Retry.Success)
	})
}

// TestCompactionThatFails: a compactor that comes to nothing, or breaks, has its end all the same.
func TestCompactionThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		summary agenttest.Reply
		abort   bool
		kind    error
		message string
	}{
		"nothing":  {summary: agenttest.Fail(kernelError(agentkernel.KindAuth, false))},
		"panic":    {summary: agenttest.Panic("oops"), kind: agentkernel.KindPanic, message: "did not return"},
		"no room":  {summary: agenttest.Text(long + long)},
		"canceled": {summary: agenttest.Stall(), abort: true, kind: agentkernel.KindCanceled, message: "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := open(t, memoryStore(t), agenttest.Script(agenttest.Text(long), agenttest.Text("b")),
					session.Config{Compactor: &agentkernel.Compactor{Window: 500, Model: agenttest.Script(tt.summary)}})
				require.NoError(t, o.prompt(long))
				run, err := o.Prompt(t.Context(), "more")
				require.NoError(t, err)
				synctest.Wait()
				if tt.abort {
					run.Abort(context.Canceled)
				}
				require.ErrorIs(t, ended(run), tt.kind)
				own := o.own()
				require.Len(t, own, 2)
				require.Equal(t, session.EventCompactionEnd, own[1].Type)
				require.False(t, own[1].Compaction.Applied)
				if tt.message != "" {
					require.Contains(t, own[1].Compaction.Error.Message, tt.message)
				}
				require.NotContains(t, o.order(agentkernel.EventContext), "context")
			})
		})
	}
}

// TestBaselineThatIsNotStored: a baseline that the store does not take ends the run; what the
// store has is the longer history.
func TestBaselineThatIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memoryStore(t)
		store := &faulty{inner, func(_ context.Context, c session.Change) error {
			if c.Baseline != nil {
				return syscall.ENOSPC
			}
			return nil
		}}
		cfg := session.Config{ID: "s", Compactor: &agentkernel.Compactor{Window: 500}}
		model := agenttest.Script(agenttest.Text(long), agenttest.Stall().Text("b"))
		o := open(t, store, model, cfg)
		require.NoError(t, o.prompt(long))
		run, err := o.Prompt(t.Context(), "more")
		require.NoError(t, err)
		synctest.Wait()
		model.Release()
		require.ErrorIs(t, ended(run), agentkernel.KindCommit)
		require.Equal(t, []string{"auto_compaction_start", "auto_compaction_end", "context", "session_error", "error", "session_error"},
			o.order(agentkernel.EventContext, agentkernel.EventError))
		o.close()
		again := open(t, inner, model, session.Config{ID: "s"})
		require.Equal(t, []string{"user: " + long, "assistant: " + long, "user: more"}, texts(again.State().Messages))
	})
}
