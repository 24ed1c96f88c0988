package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// committed is a run of every kind of message: prompt, call, results, steering, answer.
func committed(t testing.TB, commit func(context.Context, agentkernel.AgentMessage) error) agentkernel.Config {
	return agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("look").Calls("t", "t"), agenttest.Text("ok"), agenttest.Text("done"), agenttest.Text("spare")),
		Tools: []agentkernel.Tool{echo("t")}, FollowUps: queueOf(t, "", "more"), Commit: commit,
	}
}

// TestCommitComesFirst: each message once, in the order of the history, before anybody sees
// it whole and before any of its calls starts.
func TestCommitComesFirst(t *testing.T) {
	var order []string
	var got []agentkernel.AgentMessage
	cfg := committed(t, func(ctx context.Context, m agentkernel.AgentMessage) error {
		require.NoError(t, ctx.Err())
		order = append(order, "commit "+string(m.GetRole()))
		got = append(got, m)
		return nil
	})
	cfg.EventBuffer = 2
	cfg.Tools = []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
		require.Equal(t, "commit assistant", order[len(order)-1])
		return agentkernel.ToolResult{}, nil
	})}
	cfg.MaxParallelTools = 1
	log := play(t, cfg)
	require.Equal(t, final(log).NewMessages, got)
	require.Equal(t, []string{"commit user", "commit assistant", "commit tool", "commit tool", "commit assistant", "commit user", "commit assistant"}, order)
}

// TestCommitBeforeTheEvents: a message whose Commit is under way has no MessageStart yet, an
// assistant's no MessageEnd.
func TestCommitBeforeTheEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agent *watched
		agent = watch(t, committed(t, func(_ context.Context, m agentkernel.AgentMessage) error {
			time.Sleep(time.Second)
			synctest.Wait()
			last := final(agent.events())
			if m.GetRole() == agentkernel.RoleAssistant {
				require.Equal(t, agentkernel.EventMessageUpdate, last.Type)
				require.NotNil(t, agent.State().StreamMessage)
			} else {
				require.Contains(t, []agentkernel.EventType{agentkernel.EventTurnStart, agentkernel.EventMessageEnd, agentkernel.EventToolExecEnd}, last.Type)
				require.Nil(t, agent.State().StreamMessage)
			}
			require.NotContains(t, agent.Messages(), m)
			return nil
		}))
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	})
}

// TestCommitThatFails at each message: what is not committed is not ended, no call whose
// message is not committed starts, and the next run answers what is open.
func TestCommitThatFails(t *testing.T) {
	full := errors.New("disk full")
	for name, fail := range map[string]func() error{
		"an error": func() error { return full },
		"a panic":  func() error { panic(full) },
	} {
		for at := 1; at <= 7; at++ {
			t.Run(fmt.Sprint(name, " at message ", at), func(t *testing.T) {
				n, ran := 0, 0
				cfg := committed(t, func(context.Context, agentkernel.AgentMessage) error {
					if n++; n == at {
						return fail()
					}
					return nil
				})
				cfg.Tools = []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
					ran++
					return agentkernel.TextResult("{}"), nil
				})}
				agent := watch(t, cfg)
				record, err := agent.Run(t.Context(), "hi")
				require.ErrorIs(t, err, agentkernel.KindCommit)
				require.ErrorIs(t, err, full)
				require.Equal(t, agentkernel.EndError, record.EndReason)
				require.Len(t, record.NewMessages, at-1)
				require.Len(t, agent.Messages(), at-1)
				require.Equal(t, n, at, "nothing more is committed")
				if at <= 2 {
					require.Zero(t, ran)
				}
				discards := ofType(agent.events(), agentkernel.EventMessageDiscard)
				require.Len(t, discards, map[bool]int{true: 1}[slices.Contains([]int{2, 5, 7}, at)])
				for _, ev := range discards {
					require.ErrorIs(t, ev.Err, agentkernel.KindCommit)
				}
				before := ran

				switch at {
				case 1: // the prompt is the caller's
					_, err = agent.Run(t.Context(), "hi")
				default:
					var run *agentkernel.Run
					if run, err = agent.Continue(t.Context()); err == nil {
						_, err = run.Wait(t.Context())
					}
				}
				if at > 5 { // the script has an end
					return
				}
				require.NoError(t, err)
				require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
				if at == 3 || at == 4 {
					require.Equal(t, 2, before)
					require.Equal(t, 2, ran, "calls are not executed again")
					require.Contains(t, causes(agent.events()), "t interrupted")
				}
			})
		}
	}
}

// TestCommitOutlivesAnAbort: its context is not cancelled by an abort, and what was under way
// is recorded.
func TestCommitOutlivesAnAbort(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var stored []agentkernel.AgentMessage
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("half").Calls("wait", "wait")), Tools: []agentkernel.Tool{waiter("wait")}, AbortMarker: "stopped",
			Commit: func(ctx context.Context, m agentkernel.AgentMessage) error {
				require.Equal(t, 7, ctx.Value(key{}))
				time.Sleep(2 * time.Second)
				require.NoError(t, ctx.Err())
				stored = append(stored, m)
				return nil
			},
		})
		time.AfterFunc(5*time.Second, func() { agent.Abort(nil) })
		run, err := agent.Prompt(context.WithValue(t.Context(), key{}, 7), "hi")
		require.NoError(t, err)
		record, err := run.Wait(t.Context())
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, []agentkernel.Role{"user", "assistant", "tool", "tool", "user"}, roles(record.NewMessages))
		require.True(t, reflect.DeepEqual(record.NewMessages, stored))
	})
}

func roles(messages []agentkernel.AgentMessage) []agentkernel.Role {
	var out []agentkernel.Role
	for _, m := range messages {
		out = append(out, m.GetRole())
	}
	return out
}

// TestCommitThatBlocks for ever ends the run with kind commit, StopTimeout after the stop
// deadline, when its context ends too.
func TestCommitThatBlocks(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for _, at := range []int{1, 2, 3} {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var n atomic.Int64
				var agent *watched
				cfg := committed(t, func(ctx context.Context, m agentkernel.AgentMessage) error {
					if n.Add(1) == int64(at) {
						if deaf {
							<-release
						} else {
							<-ctx.Done()
						}
						return ctx.Err()
					}
					return nil
				})
				cfg.StopTimeout = 3 * time.Second
				agent = watch(t, cfg)
				began := time.Now()
				time.AfterFunc(time.Hour, func() { agent.Abort(nil) })
				record, err := agent.Run(t.Context(), "hi")
				require.Equal(t, time.Hour+6*time.Second, time.Since(began))
				require.ErrorIs(t, err, agentkernel.KindCommit)
				require.False(t, strings.Contains(err.Error(), "fence"))
				require.Len(t, record.NewMessages, at-1)
				require.EqualValues(t, at, n.Load())
				close(release)
				synctest.Wait()
			})
		}
	}
}

// TestCommitWithASlowConsumer: what is committed long after the stop, because the consumer
// takes its time, has StopTimeout from its own start.
func TestCommitWithASlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("abcdef").Chunks(1).Calls("wait", "wait")), EventBuffer: 2, AbortMarker: "stopped",
			Tools:  []agentkernel.Tool{waiter("wait")},
			Commit: func(context.Context, agentkernel.AgentMessage) error { time.Sleep(time.Second); return nil },
		})
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventToolExecStart {
				agent.Abort(nil)
			}
			time.Sleep(time.Minute)
		})
		record, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, []agentkernel.Role{"user", "assistant", "tool", "tool", "user"}, roles(record.NewMessages))
		require.Zero(t, record.Summary.Abandoned)
	})
}
