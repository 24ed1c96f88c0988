package session_test

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

func statuses(o *opened) (list []session.GoalStatus) {
	for _, ev := range o.own(session.EventGoalUpdated) {
		list = append(list, ev.Goal.Status)
	}
	return list
}

// TestGoalIsUsageLimited: a quota that is used up, or a budget, marks the goal before the run's
// end is shown; the next answer of a model makes it active again. Other failures do not mark it.
func TestGoalIsUsageLimited(t *testing.T) {
	usage := agentkernel.Usage{Input: 9, Output: 1, Total: 10}
	for name, tt := range map[string]struct {
		reply   agenttest.Reply
		limited bool
	}{
		"quota":      {agenttest.Fail(kernelError(agentkernel.KindQuota, false)), true},
		"budget":     {agenttest.Calls("a").Usage(usage), true},
		"line limit": {agenttest.Fail(kernelError(agentkernel.KindLimit, false)), false},
		"auth":       {agenttest.Fail(kernelError(agentkernel.KindAuth, false)), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memoryStore(t)
				cfg := session.Config{ID: "s", Agent: agentkernel.Config{Budget: agentkernel.Budget{Tokens: 10}, Tools: []agentkernel.Tool{echo("a")}}}
				model := agenttest.Script(tt.reply, agenttest.Text("ok"))
				o := open(t, store, model, cfg)
				require.NoError(t, o.SetGoal(t.Context(), "ship it"))
				require.Error(t, o.prompt("hi"))
				if !tt.limited {
					require.Equal(t, []session.GoalStatus{session.GoalActive}, statuses(o))
					return
				}
				require.Equal(t, []string{"error", "goal_updated", "agent_end"}, last(o.order(agentkernel.EventError, agentkernel.EventAgentEnd), 3))
				goal := o.Goal()
				require.Equal(t, session.GoalUsageLimited, goal.Status)
				require.NotEmpty(t, goal.Reason)
				o.close()

				again := open(t, store, model, cfg)
				require.Equal(t, goal, again.Goal(), "it is kept")
				require.NoError(t, again.goOn())
				require.Equal(t, []session.GoalStatus{session.GoalActive}, statuses(again))
				require.Equal(t, "ship it", again.Goal().Text)
			})
		})
	}
}

// TestQuotaOfAFallback: a quota error that another model makes up for marks nothing.
func TestQuotaOfAFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, memoryStore(t), agenttest.Script(agenttest.Fail(kernelError(agentkernel.KindQuota, false))),
			session.Config{Agent: agentkernel.Config{Fallbacks: []agentkernel.ChatModel{agenttest.Script(agenttest.Text("ok"))}}})
		require.NoError(t, o.SetGoal(t.Context(), "ship it"))
		require.NoError(t, o.prompt("hi"))
		require.Equal(t, []session.GoalStatus{session.GoalActive}, statuses(o))
		require.NotEmpty(t, o.own(session.EventRetryStart)[0].Retry.NextModel)
	})
}

// TestGoal: a goal is set, done, and taken away; only what changes is told.
func TestGoal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		o := open(t, store, agenttest.Script(), session.Config{ID: "s"})
		require.NoError(t, o.FinishGoal(t.Context()), "there is none")
		require.NoError(t, o.SetGoal(t.Context(), "ship it"))
		require.NoError(t, o.FinishGoal(t.Context()))
		require.NoError(t, o.FinishGoal(t.Context()))
		infos, err := store.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, session.GoalDone, infos[0].Goal.Status)
		require.NoError(t, o.SetGoal(t.Context(), ""))
		require.Equal(t, []session.GoalStatus{session.GoalActive, session.GoalDone, ""}, statuses(o))
		saved, err := store.Load(t.Context(), "s")
		require.NoError(t, err)
		require.Nil(t, saved.Goal)
	})
}

// TestGoalThatIsNotStored: where the mark cannot be stored a session_error tells.
func TestGoalThatIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{memoryStore(t), func(_ context.Context, c session.Change) error {
			if c.Goal != nil && c.Goal.Status == session.GoalUsageLimited {
				return syscall.ENOSPC
			}
			return nil
		}}
		o := open(t, store, agenttest.Script(agenttest.Fail(kernelError(agentkernel.KindQuota, false)), agenttest.Text("ok")), session.Config{})
		require.NoError(t, o.SetGoal(t.Context(), "ship it"))
		require.ErrorIs(t, o.prompt("hi"), agentkernel.KindQuota)
		require.Equal(t, session.GoalActive, o.Goal().Status)
		require.ErrorIs(t, o.own(session.EventError)[0].Error.Err, syscall.ENOSPC)
		require.NoError(t, o.goOn())
	})
}
