package agentkernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// queueOf is a queue that holds user messages.
func queueOf(t testing.TB, mode agentkernel.QueueMode, texts ...string) *agentkernel.Queue {
	t.Helper()
	q := &agentkernel.Queue{Mode: mode}
	for _, text := range texts {
		require.NoError(t, q.Push(agentkernel.UserMessage(text)))
	}
	return q
}

func texts(messages []agentkernel.AgentMessage) []string {
	out := []string{}
	for _, m := range messages {
		out = append(out, m.TextContent())
	}
	return out
}

// queueWorld is a run with everything that queues go through: steering that waits, steering
// that arrives while a tool runs, follow-ups, a retry in the middle of a stream.
type queueWorld struct {
	cfg agentkernel.Config
	all []string // what is pushed in all, unless an abort prevents the tool that pushes
}

func newQueueWorld(t testing.TB, mode agentkernel.QueueMode) *queueWorld {
	w := &queueWorld{all: []string{"f1", "f2", "s1", "s2", "s3", "s4"}}
	w.cfg = agentkernel.Config{
		Steering:  queueOf(t, mode, "s1", "s2"),
		FollowUps: queueOf(t, mode, "f1", "f2"),
		Retry:     agentkernel.RetryPolicy{BaseDelay: -1},
		Model: agenttest.Script(slices.Concat(replies(
			agenttest.Text("one").Calls("push", "wait"),
			agenttest.Text("tw").Fail(failure(agentkernel.KindServer, true)),
			agenttest.Text("two"),
		), slices.Repeat(replies(agenttest.Text("more")), 100))...),
	}
	push := tool("push", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.TextResult("pushed"), w.cfg.Steering.Push(agentkernel.UserMessage("s3"), agentkernel.UserMessage("s4"))
	})
	w.cfg.Tools = []agentkernel.Tool{push, echo("wait")}
	return w
}

// account proves that each message is in exactly one place, and in its order.
func (w *queueWorld) account(t testing.TB, ended []agentkernel.AgentMessage) {
	t.Helper()
	var got []string
	for _, m := range ended {
		if text := m.TextContent(); slices.Contains(w.all, text) {
			got = append(got, text)
		}
	}
	waiting := slices.Concat(texts(w.cfg.FollowUps.Items()), texts(w.cfg.Steering.Items()))
	all := slices.Concat(got, waiting)
	if !slices.Contains(all, "s3") { // its tool did not run
		all = append(all, "s3", "s4")
	}
	slices.Sort(all)
	require.Equal(t, w.all, all, "ended %v, waiting %v", got, waiting)
	for _, q := range []string{"s", "f"} {
		var mine []string
		for _, text := range got {
			if strings.HasPrefix(text, q) {
				mine = append(mine, text)
			}
		}
		require.True(t, slices.IsSorted(mine), "%v", mine)
	}
}

var queueModes = map[string]agentkernel.QueueMode{"all": agentkernel.QueueAll, "one at a time": agentkernel.QueueOneAtATime}

// TestQueueLosesNothingInALoop: the run is aborted at each of its events, and a second run
// takes what the first gave back.
func TestQueueLosesNothingInALoop(t *testing.T) {
	for name, mode := range queueModes {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				whole := false
				synctest.Test(t, func(t *testing.T) {
					w := newQueueWorld(t, mode)
					w.cfg.EventBuffer = 2
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var log []agentkernel.Event
					for ev := range agentkernel.AgentLoop(ctx, w.cfg, nil, agentkernel.UserMessage("hi")) {
						if log = append(log, ev); len(log) == at {
							cancel()
						}
					}
					require.NoError(t, agenttest.CheckRun(nil, log))
					w.account(t, final(log).NewMessages)
					whole = len(log) < at

					second := agenttest.Run(t, w.cfg, final(log).NewMessages, agentkernel.UserMessage("again"))
					require.NoError(t, final(second).Err)
					require.Empty(t, w.cfg.Steering.Items())
					require.Empty(t, w.cfg.FollowUps.Items())
					w.account(t, slices.Concat(final(log).NewMessages, final(second).NewMessages))
				})
				if whole || t.Failed() {
					return
				}
			}
		})
	}
}

// TestQueueLosesNothingInAnAgent: the same, with an abort by a listener, and every item in
// exactly one of queue and state at every event.
func TestQueueLosesNothingInAnAgent(t *testing.T) {
	for name, mode := range queueModes {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				whole := false
				synctest.Test(t, func(t *testing.T) {
					w := newQueueWorld(t, mode)
					agent := watch(t, w.cfg)
					n := 0
					agent.Subscribe(func(agentkernel.Event) {
						if n++; n == at {
							agent.Abort(nil)
						}
						w.account(t, agent.Messages())
					})
					record, _ := agent.Run(t.Context(), "hi")
					w.account(t, record.NewMessages)
					whole = n < at
					n = at + 1
					_, err := agent.Run(t.Context(), "again")
					require.NoError(t, err)
					require.Empty(t, w.cfg.Steering.Items())
					require.Empty(t, w.cfg.FollowUps.Items())
					w.account(t, agent.Messages())
				})
				if whole || t.Failed() {
					return
				}
			}
		})
	}
}

// TestQueueLosesNothingInHooks: the same, where the abort falls within user code.
func TestQueueLosesNothingInHooks(t *testing.T) {
	for name, mode := range queueModes {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", commit fails ", fails), func(t *testing.T) {
				for at := 1; ; at++ {
					n := 0
					w := newQueueWorld(t, mode)
					ctx, cancel := context.WithCancel(t.Context())
					cfg := w.cfg
					cfg.Commit = func(context.Context, agentkernel.AgentMessage) error {
						if n++; n == at {
							if fails {
								return fmt.Errorf("disk full")
							}
							cancel()
						}
						return nil
					}
					events := drain(t, nil, agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")))
					cancel()
					w.account(t, final(events).NewMessages)
					second := agenttest.Run(t, w.cfg, final(events).NewMessages, agentkernel.UserMessage("again"))
					w.account(t, slices.Concat(final(events).NewMessages, final(second).NewMessages))
					if n < at || t.Failed() {
						return
					}
				}
			})
		}
	}
}

func TestQueueModes(t *testing.T) {
	for name, c := range map[string]struct {
		mode agentkernel.QueueMode
		want []string
	}{
		"all": {agentkernel.QueueAll, []string{"user: hi", "user: s1", "user: s2", "assistant: 1", "user: f1", "user: f2", "assistant: 2"}},
		"one at a time": {agentkernel.QueueOneAtATime, []string{
			"user: hi", "user: s1", "assistant: 1", "user: s2", "assistant: 2", "user: f1", "assistant: 3", "user: f2", "assistant: 4",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{
				Model:    agenttest.Script(agenttest.Text("1"), agenttest.Text("2"), agenttest.Text("3"), agenttest.Text("4")),
				Steering: queueOf(t, c.mode, "s1", "s2"), FollowUps: queueOf(t, c.mode, "f1", "f2"),
			})
			require.Equal(t, c.want, said(final(log).NewMessages))
			require.Equal(t, agentkernel.EndStop, endReason(log))
		})
	}
}

// TestSharedQueue: two runs never take the same item.
func TestSharedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &agentkernel.Queue{Mode: agentkernel.QueueOneAtATime}
		var want []string
		for i := range 40 {
			text := fmt.Sprintf("m%02d", i)
			want = append(want, text)
			require.NoError(t, q.Push(agentkernel.UserMessage(text)))
		}
		got := make([][]string, 4)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				cfg := agentkernel.Config{FollowUps: q, Model: agenttest.Script(slices.Repeat(replies(agenttest.Text("ok").Delay(1)), 50)...)}
				log := play(t, cfg)
				for _, m := range final(log).NewMessages {
					if m.GetRole() == agentkernel.RoleUser && m.TextContent() != "hi" {
						got[i] = append(got[i], m.TextContent())
					}
				}
			})
		}
		wg.Wait()
		all := slices.Concat(got...)
		slices.Sort(all)
		require.Equal(t, want, all)
		require.Empty(t, q.Items())
		for _, mine := range got {
			require.NotEmpty(t, mine)
		}
	})
}

// TestQueueRemove takes out what no run has leased, and calls match without a lock.
func TestQueueRemove(t *testing.T) {
	q := queueOf(t, agentkernel.QueueAll, "a", "b", "c")
	is := func(text string) func(agentkernel.AgentMessage) bool {
		return func(m agentkernel.AgentMessage) bool { return m.TextContent() == text && len(q.Items()) > 0 }
	}
	require.Equal(t, []string{"b"}, texts(q.Remove(is("b"))))
	require.Empty(t, q.Remove(is("b")))
	require.Panics(t, func() { q.Remove(func(agentkernel.AgentMessage) bool { panic("match") }) })
	require.Equal(t, []string{"a", "c"}, texts(q.Items()))

	var while [][]string
	log := play(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("ok")), Steering: q,
		Commit: func(_ context.Context, m agentkernel.AgentMessage) error {
			if m.TextContent() == "a" {
				while = append(while, texts(q.Clear()), texts(q.Items()))
			}
			return nil
		},
	})
	require.Equal(t, [][]string{{}, {"a", "c"}}, while)
	require.Equal(t, []string{"user: hi", "user: a", "user: c", "assistant: ok"}, said(final(log).NewMessages))

	require.NoError(t, q.Push(agentkernel.UserMessage("d"), agentkernel.UserMessage("e")))
	require.Equal(t, []string{"d", "e"}, texts(q.Clear()))
	require.Empty(t, q.Items())
}

// TestQueuePushTakesAllOrNone.
func TestQueuePushTakesAllOrNone(t *testing.T) {
	var q agentkernel.Queue
	for name, bad := range map[string]agentkernel.AgentMessage{
		"nil":          nil,
		"nil *Message": (*agentkernel.Message)(nil),
		"assistant":    agentkernel.Message{Role: agentkernel.RoleAssistant},
		"no role":      agentkernel.Message{},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, q.Push(agentkernel.UserMessage("good"), bad), agentkernel.KindInvalidRequest)
			require.Empty(t, q.Items())
		})
	}
	require.NoError(t, q.Push())
}

// TestQueuedMessagesMakeAnyHistoryContinuable, in the loop and in the agent.
func TestQueuedMessagesMakeAnyHistoryContinuable(t *testing.T) {
	answer := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonStop, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("a")}}
	for name, history := range map[string][]agentkernel.AgentMessage{
		"empty":             nil,
		"a mark":            list(mark("m")),
		"a finished answer": list(agentkernel.UserMessage("hi"), answer),
	} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", follow-up ", follow), func(t *testing.T) {
				cfg := func() agentkernel.Config {
					c := agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))}
					if q := queueOf(t, "", "go"); follow {
						c.FollowUps = q
					} else {
						c.Steering = q
					}
					return c
				}
				log := agenttest.Run(t, cfg(), history)
				require.Equal(t, []string{"user: go", "assistant: ok"}, said(final(log).NewMessages))

				agent := watch(t, cfg())
				require.NoError(t, agent.SetMessages(history...))
				run, err := agent.Continue(t.Context())
				require.NoError(t, err)
				record, err := run.Wait(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"user: go", "assistant: ok"}, said(record.NewMessages))

				_, err = agent.Continue(t.Context())
				require.ErrorIs(t, err, agentkernel.ErrBadContinuation)
			})
		}
	}
}

// TestSteeringWithTheHarnessesOwnMessage: it travels in the history, and the model is asked
// again though it does not see it.
func TestSteeringWithTheHarnessesOwnMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Text("one").Delay(time.Second), agenttest.Text("two"))
		agent := watch(t, agentkernel.Config{Model: model})
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventMessageUpdate && ev.Turn == 1 {
				require.NoError(t, agent.Steer(mark("status")))
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, []string{"user: hi", "assistant: one", "mark: status", "assistant: two"}, said(agent.Messages()))
		require.Len(t, model.Requests()[1].Messages, 2)
	})
}

// TestQueuesOfALimit: what a limit left over stays in the queue, and is taken by the next run.
func TestQueuesOfALimit(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("1"), agenttest.Text("2")), MaxTurns: 1})
	require.NoError(t, agent.FollowUp(agentkernel.UserMessage("more")))
	record, err := agent.Run(t.Context(), "hi")
	require.ErrorIs(t, err, agentkernel.KindMaxTurns)
	require.Equal(t, []string{"user: hi", "assistant: 1"}, said(record.NewMessages))
	run, err := agent.Continue(t.Context())
	require.NoError(t, err)
	record, err = run.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"user: more", "assistant: 2"}, said(record.NewMessages))
}

// TestQueuesOfATerminatedRun: a tool that ends the run leaves what waits to the next one.
func TestQueuesOfATerminatedRun(t *testing.T) {
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("finish"), agenttest.Text("ok"), agenttest.Text("done")),
		Tools: []agentkernel.Tool{tool("finish", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{Terminate: true}, nil
		})},
	})
	require.NoError(t, agent.FollowUp(agentkernel.UserMessage("more")))
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, agentkernel.EndTerminated, record.EndReason)
	run, err := agent.Continue(t.Context())
	require.NoError(t, err)
	record, err = run.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"assistant: ok", "user: more", "assistant: done"}, said(record.NewMessages))
}

// TestQueueWithoutAConsumer: where nobody reads on after the cancel, what AgentEnd says was
// ended has left the queue, and nothing else has.
func TestQueueWithoutAConsumer(t *testing.T) {
	for read := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newQueueWorld(t, agentkernel.QueueOneAtATime)
			w.cfg.EventBuffer = 2
			ctx, cancel := context.WithCancel(t.Context())
			events := agentkernel.AgentLoop(ctx, w.cfg, nil, agentkernel.UserMessage("hi"))
			for range read {
				<-events
			}
			synctest.Wait()
			cancel()
			time.Sleep(time.Minute)
			var last agentkernel.Event
			for last = range events {
			}
			w.account(t, last.NewMessages)
		})
	}
}

// TestQueuesOfAnAgent: what Steer and FollowUp pushed can be listed and taken back, and is said
// otherwise, whether the queues are the agent's own or those of its Config.
func TestQueuesOfAnAgent(t *testing.T) {
	shared := new(agentkernel.Queue)
	for name, cfg := range map[string]agentkernel.Config{"own": {}, "given": {Steering: shared, FollowUps: new(agentkernel.Queue)}} {
		t.Run(name, func(t *testing.T) {
			cfg.Model = agenttest.Script(agenttest.Text("one"), agenttest.Text("two"))
			agent := watch(t, cfg)
			steering, followUps := agent.Queues()
			if cfg.Steering != nil {
				require.Same(t, shared, steering)
			}
			require.Empty(t, steering.Items())
			require.NoError(t, agent.Steer(agentkernel.UserMessage("a"), agentkernel.UserMessage("b")))
			require.NoError(t, agent.FollowUp(agentkernel.UserMessage("c")))
			require.Equal(t, []string{"user: a", "user: b"}, said(steering.Items()))
			require.Equal(t, []string{"user: c"}, said(followUps.Items()))
			require.Equal(t, []string{"user: a", "user: b"}, said(steering.Clear()))
			record, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.Equal(t, []string{"user: hi", "assistant: one", "user: c", "assistant: two"}, said(record.NewMessages))
			require.Empty(t, followUps.Items())
			again, _ := agent.Queues()
			require.Same(t, steering, again)
		})
	}
}
