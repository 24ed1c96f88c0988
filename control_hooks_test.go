package agentkernel_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// hooks are all hooks that control a run, each in a run that asks it: misbehave is called
// where the hook is, and what it returns is what the hook fails with.
var hooks = map[string]struct {
	install func(cfg *agentkernel.Config, misbehave func(context.Context) error)
	script  []agenttest.Reply
	// err is the kind of a run whose hook returns an error.
	err, panic agentkernel.Kind
	grace      time.Duration // in which it must come back, in StopTimeouts
}{
	"ConvertToLLM": {func(cfg *agentkernel.Config, misbehave func(context.Context) error) {
		cfg.ConvertToLLM = func(ctx context.Context, h []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
			return agentkernel.DefaultConvertToLLM(h), misbehave(ctx)
		}
	}, replies(agenttest.Text("ok")), agentkernel.KindHook, agentkernel.KindPanic, 1},
	"Prepare": {func(cfg *agentkernel.Config, misbehave func(context.Context) error) {
		cfg.Prepare = func(ctx context.Context, _ agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{}, misbehave(ctx)
		}
	}, replies(agenttest.Text("ok")), agentkernel.KindHook, agentkernel.KindPanic, 1},
	"ContextManager.Project": {func(cfg *agentkernel.Config, misbehave func(context.Context) error) {
		cfg.ContextManager = &manager{project: func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{}, misbehave(ctx)
		}}
	}, replies(agenttest.Text("ok")), agentkernel.KindHook, agentkernel.KindPanic, 1},
	"ContextManager.Recover": {func(cfg *agentkernel.Config, misbehave func(context.Context) error) {
		cfg.ContextManager = &manager{recover: func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{}, misbehave(ctx)
		}}
	}, replies(overflow), agentkernel.KindContextOverflow, agentkernel.KindContextOverflow, 1},
	"StopGuard": {func(cfg *agentkernel.Config, misbehave func(context.Context) error) {
		cfg.StopGuard = func(ctx context.Context, _ agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{}, misbehave(ctx)
		}
	}, replies(agenttest.Text("ok")), agentkernel.KindHook, agentkernel.KindPanic, 1},
	"Commit": {func(cfg *agentkernel.Config, misbehave func(context.Context) error) {
		cfg.Commit = func(ctx context.Context, m agentkernel.AgentMessage) error {
			if m.GetRole() == agentkernel.RoleAssistant {
				return misbehave(ctx)
			}
			return nil
		}
	}, replies(agenttest.Text("ok")), agentkernel.KindCommit, agentkernel.KindCommit, 2},
}

// TestHooksThatMisbehave: an error, a panic, runtime.Goexit, nothing at all, and never coming
// back, in the loop and in the agent. The stream keeps its contract, and the agent goes on.
func TestHooksThatMisbehave(t *testing.T) {
	no := errors.New("no")
	for name, h := range hooks {
		for how, c := range map[string]struct {
			misbehave func(context.Context) error
			kind      agentkernel.Kind
		}{
			"returns an error": {func(context.Context) error { return no }, h.err},
			"panics":           {func(context.Context) error { panic(no) }, h.panic},
			"panics with nil":  {func(context.Context) error { panic(nil) }, h.panic}, //nolint:govet // on purpose
			"exits":            {func(context.Context) error { runtime.Goexit(); return nil }, h.panic},
			"returns nothing":  {func(context.Context) error { return nil }, ""},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				bad := true
				cfg := agentkernel.Config{Model: agenttest.Script(append(h.script, agenttest.Text("ok"), agenttest.Text("ok"))...)}
				h.install(&cfg, func(ctx context.Context) error {
					if !bad {
						return nil
					}
					return c.misbehave(ctx)
				})
				agent := watch(t, cfg)
				_, err := agent.Run(t.Context(), "hi")
				switch {
				case c.kind == "" && name == "ContextManager.Recover":
					require.ErrorIs(t, err, agentkernel.KindContextOverflow)
				case c.kind == "":
					require.NoError(t, err)
				default:
					require.ErrorIs(t, err, c.kind)
				}
				require.False(t, agent.State().IsRunning)
				require.Equal(t, err, agent.State().Err)
				bad = false
				_, err = agent.Run(t.Context(), "again")
				require.NoError(t, err)
			})
		}
		t.Run(name+" never comes back", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				cfg := agentkernel.Config{Model: agenttest.Script(h.script...), StopTimeout: time.Second}
				h.install(&cfg, func(context.Context) error {
					<-release
					panic("late")
				})
				agent := watch(t, cfg)
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				time.Sleep(24 * time.Hour) // nothing bounds a hook but an abort
				require.True(t, agent.State().IsRunning)
				began := time.Now()
				agent.Abort(no)
				record, err := run.Wait(t.Context())
				require.Equal(t, h.grace*time.Second, time.Since(began))
				if name == "Commit" {
					require.ErrorIs(t, err, agentkernel.KindCommit)
				} else {
					require.ErrorIs(t, err, no)
				}
				require.Equal(t, 1, record.Summary.Abandoned)
				n := len(agent.events())
				close(release)
				synctest.Wait()
				require.Len(t, agent.events(), n)
			})
		})
	}
}
