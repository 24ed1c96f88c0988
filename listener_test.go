package agentkernel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// chatty is an agent whose model answers each of n prompts with a few updates.
func chatty(t testing.TB, n int) *watched {
	t.Helper()
	script := slices.Repeat(replies(agenttest.Text("hello world").Chunks(3)), n)
	return watch(t, agentkernel.Config{Model: agenttest.Script(script...), EventBuffer: 2})
}

func TestListenersRunInRegistrationOrder(t *testing.T) {
	agent := chatty(t, 1)
	var order []string
	for i := range 3 {
		agent.Subscribe(func(ev agentkernel.Event) { order = append(order, fmt.Sprint(ev.Seq, " ", i)) })
	}
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	var want []string
	for _, ev := range agent.events() {
		for i := range 3 {
			want = append(want, fmt.Sprint(ev.Seq, " ", i))
		}
	}
	require.Equal(t, want, order)
}

func TestNilListenerPanics(t *testing.T) {
	agent := chatty(t, 1)
	require.Panics(t, func() { agent.Subscribe(nil) })
}

// TestSlowListenerLosesNothing, and delays those behind it and the run.
func TestSlowListenerLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(string(bytes.Repeat([]byte("abcd"), 500))).Chunks(4))})
		agent.Subscribe(func(agentkernel.Event) { time.Sleep(20 * time.Millisecond) })
		var got int
		agent.Subscribe(func(agentkernel.Event) { got++ })
		began := time.Now()
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Len(t, ofType(agent.events(), agentkernel.EventMessageUpdate), 500)
		require.Len(t, agent.events(), got)
		require.Len(t, record.Answer, 2000)
		require.Equal(t, time.Duration(got)*20*time.Millisecond, time.Since(began))
	})
}

// TestSlowListenerAfterAbort: an agent's listeners get every event, however long it takes.
func TestSlowListenerAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("abcdefgh").Chunks(1).Stall()), EventBuffer: 2})
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventMessageUpdate {
				agent.Abort(nil)
			}
			time.Sleep(time.Minute) // more than StopTimeout and DrainTimeout
		})
		record, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
		require.Equal(t, 1, int(agent.events()[0].Seq))
		require.Len(t, agent.events(), int(final(agent.events()).Seq))
	})
}

// TestListenerThatFails keeps its failure to itself, and gets the next event all the same.
func TestListenerThatFails(t *testing.T) {
	for name, fail := range map[string]func(){
		"panics": func() { panic("boom") },
		"exits":  runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			type told struct {
				value any
				stack string
				ev    agentkernel.Event
			}
			var report []told
			agent, err := agentkernel.NewAgent(agentkernel.Config{
				Model: agenttest.Script(agenttest.Text("ok")),
				OnListenerPanic: func(value any, stack []byte, ev agentkernel.Event) {
					report = append(report, told{value, string(stack), ev})
				},
			})
			require.NoError(t, err)
			var seen, after []agentkernel.EventType
			agent.Subscribe(func(ev agentkernel.Event) {
				seen = append(seen, ev.Type)
				if ev.Type == agentkernel.EventMessageUpdate || ev.Type == agentkernel.EventAgentEnd {
					fail()
				}
			})
			agent.Subscribe(func(ev agentkernel.Event) { after = append(after, ev.Type) })
			record, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.Equal(t, "ok", record.Answer)
			require.Equal(t, agentkernel.EventAgentEnd, after[len(after)-1])
			require.Equal(t, after, seen)
			require.Len(t, report, 2)
			require.Equal(t, agentkernel.EventMessageUpdate, report[0].ev.Type)
			require.Contains(t, report[0].stack, "listener_test.go")
			if name == "panics" {
				require.Equal(t, "boom", report[0].value)
			} else {
				require.IsType(t, &agentkernel.PanicError{}, report[0].value)
			}
		})
	}
}

// TestListenerPanicIsLogged once, where nobody else is told.
func TestListenerPanicIsLogged(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	defer slog.SetDefault(old)
	agent := chatty(t, 1)
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventAgentStart {
			panic(errors.New(`boom at "https://h.example/v1?api_key=sk-secret"`))
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NotContains(t, out.String(), "sk-secret")
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\n")))
	require.Contains(t, out.String(), `"level":"ERROR"`)
	require.Contains(t, out.String(), `"value":"boom at`)
	require.Contains(t, out.String(), `"event":"agent_start"`)
}

// TestFailingOnListenerPanic: whoever is told of a panic may fail too.
func TestFailingOnListenerPanic(t *testing.T) {
	for name, fail := range map[string]func(){"panics": func() { panic("again") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			agent := watch(t, agentkernel.Config{
				Model:           agenttest.Script(agenttest.Text("ok")),
				OnListenerPanic: func(any, []byte, agentkernel.Event) { fail() },
			})
			var last agentkernel.EventType
			agent.Subscribe(func(agentkernel.Event) { panic("boom") })
			agent.Subscribe(func(ev agentkernel.Event) { last = ev.Type })
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.Equal(t, agentkernel.EventAgentEnd, last)
		})
	}
}

// TestEveryMethodInsideAListener: none deadlocks, and those that wait say so.
func TestEveryMethodInsideAListener(t *testing.T) {
	agent := chatty(t, 1)
	calls := 0
	var run *agentkernel.Run
	started := make(chan struct{})
	agent.Subscribe(func(ev agentkernel.Event) {
		<-started
		if ev.Type == agentkernel.EventAgentEnd {
			return
		}
		calls++
		ctx := context.Background()
		require.True(t, agent.State().IsRunning)
		require.Equal(t, ev.RunID, agent.State().RunID)
		_ = agent.Messages()
		agent.Subscribe(func(agentkernel.Event) {})()
		_, err := agent.Prompt(ctx, "x")
		require.Equal(t, agentkernel.ErrAlreadyRunning, err)
		_, err = agent.PromptMessages(ctx, agentkernel.UserMessage("x"))
		require.Equal(t, agentkernel.ErrAlreadyRunning, err)
		_, err = agent.Continue(ctx)
		require.Equal(t, agentkernel.ErrAlreadyRunning, err)
		_, err = agent.Run(ctx, "x")
		require.Equal(t, agentkernel.ErrInListener, err)
		_, err = run.Wait(ctx)
		require.Equal(t, agentkernel.ErrInListener, err)
		for _, err := range agent.Stream(ctx, agentkernel.UserMessage("x")) {
			require.Equal(t, agentkernel.ErrInListener, err)
		}
		require.Equal(t, agentkernel.ErrAlreadyRunning, agent.SetMessages())
		require.Equal(t, agentkernel.ErrAlreadyRunning, agent.Reset())
		require.NoError(t, agent.SetSystemPrompt("x"))
		require.NoError(t, agent.SetTools(echo("x")))
		require.Equal(t, agentkernel.ErrNoModel, agent.SetModel(nil))
	})
	var err error
	run, err = agent.Prompt(t.Context(), "hi")
	require.NoError(t, err)
	close(started)
	_, err = run.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, agent.events(), calls+1)
}

// TestWaitOutsideWhileListenersRun: ErrInListener is for the delivering goroutine only.
func TestWaitOutsideWhileListenersRun(t *testing.T) {
	agent := chatty(t, 1)
	var other error
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventTurnStart {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, other = agent.Run(context.Background(), "x")
			}()
			<-done
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, agentkernel.ErrAlreadyRunning, other)
}

// TestAnotherAgentsRunInAListener may be waited for.
func TestAnotherAgentsRunInAListener(t *testing.T) {
	agent, helper := chatty(t, 1), chatty(t, 1)
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventAgentEnd {
			record, err := helper.Run(context.Background(), "x")
			require.NoError(t, err)
			require.Equal(t, "hello world", record.Answer)
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NotEmpty(t, helper.events())
}

func TestSubscribingInsideACallback(t *testing.T) {
	agent := chatty(t, 1)
	var first uint64
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Seq == 3 {
			agent.Subscribe(func(ev agentkernel.Event) {
				if first == 0 {
					first = ev.Seq
				}
			})
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.EqualValues(t, 4, first)
}

func TestUnsubscribingInsideACallback(t *testing.T) {
	agent := chatty(t, 2)
	var self, earlier, later []uint64
	var unself, unearlier, unlater func()
	unearlier = agent.Subscribe(func(ev agentkernel.Event) { earlier = append(earlier, ev.Seq) })
	unself = agent.Subscribe(func(ev agentkernel.Event) {
		self = append(self, ev.Seq)
		if ev.Seq == 3 {
			unearlier()
			unself()
			unself() // more than once
			unlater()
		}
	})
	unlater = agent.Subscribe(func(ev agentkernel.Event) { later = append(later, ev.Seq) })
	for range 2 {
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	}
	require.Equal(t, []uint64{1, 2, 3}, self)
	require.Equal(t, []uint64{1, 2, 3}, earlier)
	require.Equal(t, []uint64{1, 2}, later, "not even the event that is being delivered")
}

// TestUnsubscribingFromElsewhere: no call begins once unsubscribe has returned.
func TestUnsubscribingFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 1)
		agent.Subscribe(func(agentkernel.Event) { time.Sleep(time.Second) })
		n := 0
		un := agent.Subscribe(func(agentkernel.Event) { n++ })
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		time.Sleep(3*time.Second + 500*time.Millisecond) // within the first listener's fourth call
		un()
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
}

// TestNextRunFromAgentEnd: listeners see runs one after the other.
func TestNextRunFromAgentEnd(t *testing.T) {
	agent := chatty(t, 3)
	runs := make(chan *agentkernel.Run, 3)
	more := 2
	var before, behind []string
	note := func(to *[]string) func(agentkernel.Event) {
		return func(ev agentkernel.Event) { *to = append(*to, ev.RunID+" "+string(ev.Type)) }
	}
	agent.Subscribe(note(&before))
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type != agentkernel.EventAgentEnd || more == 0 {
			return
		}
		more--
		require.False(t, agent.State().IsRunning)
		run, err := agent.Prompt(context.Background(), "again")
		require.NoError(t, err)
		_, err = agent.Prompt(context.Background(), "and again")
		require.Equal(t, agentkernel.ErrAlreadyRunning, err)
		runs <- run
	})
	agent.Subscribe(note(&behind))
	first, err := agent.Prompt(t.Context(), "hi")
	require.NoError(t, err)
	_, err = first.Wait(t.Context())
	require.NoError(t, err)
	want := []string{first.ID()}
	for range 2 {
		run := <-runs
		want = append(want, run.ID())
		_, err := run.Wait(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, before, behind)
	ids := slices.Compact(slices.Collect(func(yield func(string) bool) {
		for _, ev := range agent.events() {
			if !yield(ev.RunID) {
				return
			}
		}
	}))
	require.Equal(t, want, ids)
	require.Len(t, agent.Messages(), 6)
}

// TestListenerThatWritesIntoItsEvent harms only itself.
func TestListenerThatWritesIntoItsEvent(t *testing.T) {
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("hello").Call("1", "echo", `{"a":1}`).Chunks(2), agenttest.Text("ok")),
		Tools: []agentkernel.Tool{echo("echo")},
	})
	vandal, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("hello").Call("1", "echo", `{"a":1}`).Chunks(2), agenttest.Text("ok")),
		Tools: []agentkernel.Tool{echo("echo")},
	})
	require.NoError(t, err)
	vandal.Subscribe(func(ev agentkernel.Event) {
		if m, ok := ev.Message.(agentkernel.Message); ok {
			_ = append(m.Content, agentkernel.TextBlock("X"))
			for i := range m.Content {
				if m.Content[i].ToolCall != nil {
					m.Content[i].ToolCall.ID = "X"
					clear(m.Content[i].ToolCall.Args)
				}
				m.Content[i].Text = "X"
			}
		}
		clear(ev.Args)
		if ev.Result != nil {
			ev.Result.Content[0].Text = "X"
		}
	})
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	_, err = vandal.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, said(agent.Messages()), said(vandal.Messages()))
	require.Equal(t, "1", vandal.Messages()[1].(agentkernel.Message).ToolCalls()[0].ID)
	require.JSONEq(t, `{"a":1}`, string(vandal.Messages()[1].(agentkernel.Message).ToolCalls()[0].Args))
}

// TestWaitReturnsAfterTheLastListener has returned from AgentEnd.
func TestWaitReturnsAfterTheLastListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 1)
		ended := false
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventAgentEnd {
				time.Sleep(time.Minute)
				ended = true
			}
		})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		_, err = waitIn(t, run, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		select {
		case <-run.Done():
			t.Fatal("done before the last listener")
		default:
		}
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		require.True(t, ended)
	})
}

// TestAbortSeenByLaterListeners: a sentinel that aborts does so before the others react.
func TestAbortSeenByLaterListeners(t *testing.T) {
	cause := errors.New("budget")
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("abc").Chunks(1).Stall())})
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			agent.Abort(cause)
		}
	})
	record, err := agent.Run(t.Context(), "hi")
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, agentkernel.StatusAborted, record.Status)
}
