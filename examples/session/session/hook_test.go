package session_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// TestHooks: at the end of a run, when it is stored and before its end is shown, each hook is
// called in order; one that fails in whatever way is told of and keeps no other from it.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		var mu sync.Mutex // one that is left behind is not waited for
		var called []string
		release := make(chan struct{})
		hook := func(name string, run func(ctx context.Context) error) session.Hook {
			return session.Hook{Name: name, Run: func(ctx context.Context, end session.RunEnd) error {
				mu.Lock()
				called = append(called, name)
				mu.Unlock()
				require.Equal(t, "s", end.SessionID)
				require.Equal(t, agentkernel.EndStop, end.Summary.EndReason)
				require.Equal(t, 2, end.Last)
				return run(ctx)
			}}
		}
		o := open(t, store, agenttest.Script(agenttest.Text("a")), session.Config{ID: "s", Timeout: time.Minute, Hooks: []session.Hook{
			hook("good", func(context.Context) error {
				require.Len(t, stored(t, store, "s"), 2)
				return nil
			}),
			hook("bad", func(context.Context) error { return errors.New("no") }),
			hook("wild", func(context.Context) error { panic("oops") }),
			hook("gone", func(context.Context) error { runtime.Goexit(); return nil }),
			hook("slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }),
			hook("deaf", func(context.Context) error { <-release; return nil }),
			hook("last", func(context.Context) error { return nil }),
		}})
		began := time.Now()
		require.NoError(t, o.prompt("hi"))
		require.Equal(t, 2*time.Minute, time.Since(began))
		require.Equal(t, []string{"good", "bad", "wild", "gone", "slow", "deaf", "last"}, called)
		var ops []string
		for _, ev := range o.own() {
			require.Equal(t, session.EventError, ev.Type)
			ops = append(ops, ev.Error.Op)
		}
		require.Equal(t, []string{"hook bad", "hook wild", "hook gone", "hook slow", "hook deaf"}, ops)
		require.Contains(t, o.own()[1].Error.Message, "oops")
		require.Equal(t, "agent_end", last(o.order(agentkernel.EventAgentEnd), 1)[0])
		close(release)
	})
}

// TestSkills: a skill is handed out once in a run, and the next run begins without any.
func TestSkills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		use := func(id, name string) agenttest.Reply { return agenttest.Call(id, "use_skill", `{"name":"`+name+`"}`) }
		model := agenttest.Script(use("1", "tea"), use("2", "tea"), use("3", "coffee"), agenttest.Text("ok"), use("4", "tea"), agenttest.Text("ok"))
		o := open(t, memoryStore(t), model, session.Config{Skills: []session.Skill{{Name: "tea", Description: "how to make tea", Instructions: "Boil water."}}})
		var active [][]string
		o.Subscribe(func(ev session.SessionEvent) {
			if ev.AgentEvent != nil && (ev.AgentEvent.Type == agentkernel.EventModelResponse || ev.AgentEvent.Type == agentkernel.EventAgentEnd) {
				active = append(active, o.Skills())
			}
		})
		require.NoError(t, o.prompt("hi"))
		require.NoError(t, o.prompt("hi"))
		require.Contains(t, model.Requests()[0].Tools[0].Description, "- tea: how to make tea")
		messages := texts(o.State().Messages)
		require.Equal(t, "tool: Boil water.", messages[2])
		require.Contains(t, messages[4], "already")
		require.Contains(t, messages[6], `"coffee"`, "the schema names the skills")
		require.Equal(t, "tool: Boil water.", messages[10])
		tea := []string{"tea"}
		require.Equal(t, [][]string{tea, tea, tea, tea, nil, tea, tea, nil}, active)
	})
}
