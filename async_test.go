package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// reader is an asynchronous consumer that keeps what it gets, as slowly as it is told.
type reader struct {
	sub  *agentkernel.Subscription
	each func(agentkernel.Event) // before an event is kept; nil for nothing

	mu  sync.Mutex
	log []agentkernel.Event
}

// read subscribes a reader whose stream goes through the checker.
func read(t testing.TB, agent *agentkernel.Agent, opts agentkernel.AsyncOptions, each func(agentkernel.Event)) *reader {
	t.Helper()
	r := &reader{each: each}
	checker := &agenttest.Checker{AllowCoalesced: true}
	r.sub = agent.SubscribeAsync(func(ev agentkernel.Event) {
		if each != nil {
			each(ev)
		}
		checker.Listen(ev)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log = append(r.log, ev)
	}, opts)
	t.Cleanup(func() { require.NoError(t, checker.Err()) })
	return r
}

func (r *reader) events() []agentkernel.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]agentkernel.Event(nil), r.log...)
}

// drain waits until the reader has everything.
func (r *reader) drain(t testing.TB) []agentkernel.Event {
	t.Helper()
	require.NoError(t, r.sub.Drain(t.Context()))
	return r.events()
}

// holdAt returns an each that stops at the first event of a type until it is released.
func holdAt(typ agentkernel.EventType) (each func(agentkernel.Event), release func()) {
	gate := make(chan struct{})
	once := false
	return func(ev agentkernel.Event) {
		if ev.Type == typ && !once {
			once = true
			<-gate
		}
	}, func() { close(gate) }
}

func isUpdate(ev agentkernel.Event) bool {
	return ev.Type == agentkernel.EventMessageUpdate || ev.Type == agentkernel.EventToolExecUpdate
}

// edges are the events that are not updates.
func edges(log []agentkernel.Event) []agentkernel.Event {
	var out []agentkernel.Event
	for _, ev := range log {
		if !isUpdate(ev) {
			out = append(out, ev)
		}
	}
	return out
}

// accounted is how many events of the stream the log stands for.
func accounted(log []agentkernel.Event) (n int) {
	for _, ev := range log {
		n += 1 + ev.Coalesced
	}
	return n
}

// updates shows the updates of a log, one a line.
func updates(log []agentkernel.Event) []string {
	var out []string
	for _, ev := range log {
		switch ev.Type {
		case agentkernel.EventMessageUpdate:
			out = append(out, fmt.Sprintf("%d [%d] %q +%d", ev.Seq, ev.ContentIndex, ev.Delta, ev.Coalesced))
		case agentkernel.EventToolExecUpdate:
			out = append(out, fmt.Sprintf("%s %s %q +%d", ev.ToolID, ev.Progress.Kind, ev.Progress.Text, ev.Coalesced))
		}
	}
	return out
}

// talker is a tool that reports texts of a kind, each a millisecond after the one before.
func talker(name string, kind agentkernel.ProgressKind, texts ...string) agentkernel.Tool {
	t := tool(name, func(ctx context.Context) (agentkernel.ToolResult, error) {
		for _, text := range texts {
			time.Sleep(time.Millisecond)
			agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: kind, Text: text})
		}
		time.Sleep(time.Millisecond)
		return agentkernel.TextResult("said"), nil
	})
	t.ConcurrencySafe = func(json.RawMessage) bool { return true }
	return t
}

// TestAsyncMergesUpdates that wait, and nothing else.
func TestAsyncMergesUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello world").Chunks(3).Delay(time.Millisecond))})
		each, release := holdAt(agentkernel.EventMessageUpdate)
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, each)
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		release()
		got := r.drain(t)
		all := agent.events()
		require.Equal(t, []string{`7 [0] "hel" +0`, `10 [0] "lo world" +2`}, updates(got))
		require.Equal(t, edges(all), edges(got))
		require.Equal(t, int(final(all).Seq), accounted(got))

		newest := ofType(all, agentkernel.EventMessageUpdate)[3]
		newest.Delta, newest.Coalesced = "lo world", 2
		require.Equal(t, newest, ofType(got, agentkernel.EventMessageUpdate)[1])
		require.Equal(t, record.Answer, newest.Message.TextContent())
	})
}

// TestAsyncPromptConsumer gets the stream as it is.
func TestAsyncPromptConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello world").Chunks(2).Delay(time.Millisecond))})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, nil)
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, agent.events(), r.drain(t))
	})
}

// TestAsyncBlocksOfAMessage merge each for itself; one that grows goes to the back.
func TestAsyncBlocksOfAMessage(t *testing.T) {
	delta := func(key, id, args string) agentkernel.StreamEvent {
		return agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, Key: key, ID: id, Name: "echo", Delta: args}
	}
	reply := agenttest.Thinking("so").Events(
		delta("a", "1", `{"a`), delta("b", "2", `{"b`), delta("a", "1", `":1}`), delta("b", "2", `":2`), delta("b", "2", `}`))
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(reply, agenttest.Text("ok")), Tools: []agentkernel.Tool{echo("echo")}})
	each, release := holdAt(agentkernel.EventMessageStart)
	r := read(t, agent.Agent, agentkernel.AsyncOptions{}, each)
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	release()
	got := r.drain(t)
	require.Equal(t, []string{`7 [0] "so" +0`, `10 [1] "{\"a\":1}" +1`, `12 [2] "{\"b\":2}" +2`}, updates(got)[:3])
	require.Equal(t, edges(agent.events()), edges(got))
}

// TestAsyncFailedAttempt: what it showed does not merge with what the next one shows.
func TestAsyncFailedAttempt(t *testing.T) {
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("abcd").Chunks(2).Fail(failure(agentkernel.KindServer, true)), agenttest.Text("efgh").Chunks(2)),
		Retry: agentkernel.RetryPolicy{BaseDelay: -1},
	})
	each, release := holdAt(agentkernel.EventAgentStart)
	r := read(t, agent.Agent, agentkernel.AsyncOptions{}, each)
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	release()
	got := r.drain(t)
	require.Equal(t, []string{`8 [0] "abcd" +1`, `14 [0] "efgh" +1`}, updates(got))
	require.Equal(t, edges(agent.events()), edges(got))
}

// TestAsyncProgress merges per call and kind: deltas add up, of the others the newest holds.
func TestAsyncProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "adds", "{}").Call("2", "states", "{}"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{
				talker("adds", agentkernel.ProgressToolDelta, "a", "b", "c"),
				talker("states", agentkernel.ProgressSummary, "1 of 3", "2 of 3", "3 of 3"),
			},
		})
		each, release := holdAt(agentkernel.EventToolExecStart)
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, each)
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		release()
		got := r.drain(t)
		require.ElementsMatch(t, []string{`1 tool_delta "abc" +2`, `2 summary "3 of 3" +2`},
			updates(ofType(got, agentkernel.EventToolExecUpdate)))
		require.Equal(t, edges(agent.events()), edges(got))
		var texts []string
		for _, ev := range ofType(agent.events(), agentkernel.EventToolExecUpdate) {
			texts = append(texts, ev.Progress.Text)
		}
		require.ElementsMatch(t, []string{"a", "b", "c", "1 of 3", "2 of 3", "3 of 3"}, texts, "what others got stays as it was")
	})
}

// TestAsyncPreviewAndGate are edges: what they say stands alone.
func TestAsyncPreviewAndGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		careful := talker("careful", agentkernel.ProgressPreview, "x", "y")
		careful.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
			return agentkernel.ProgressPayload{Text: "would do"}, nil
		}
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("careful"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{careful},
			Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				return agentkernel.GateDecision{Allow: true, Reason: "fine"}, nil
			},
		})
		each, release := holdAt(agentkernel.EventAgentStart)
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, each)
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		release()
		var kinds []agentkernel.ToolExecUpdateKind
		for _, ev := range ofType(r.drain(t), agentkernel.EventToolExecUpdate) {
			kinds = append(kinds, ev.UpdateKind)
		}
		require.Equal(t, []agentkernel.ToolExecUpdateKind{"preview", "gate", "progress"}, kinds)
	})
}

// TestAsyncDoesNotSlowTheRun: it takes as long as the model does.
func TestAsyncDoesNotSlowTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("x", 1000)).Chunks(1).Delay(time.Millisecond))})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, func(agentkernel.Event) { time.Sleep(10 * time.Millisecond) })
		began := time.Now()
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, 1001*time.Millisecond, time.Since(began))
		got := r.drain(t)
		require.InDelta(t, 100, len(updates(got)), 5)
		require.Equal(t, int(final(agent.events()).Seq), accounted(got))
		require.Less(t, time.Since(began), 1200*time.Millisecond)
	})
}

// TestAsyncOvertakenUpdate gets its turn, although whenever the consumer is ready another
// call's update stands before it.
func TestAsyncOvertakenUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := strings.Split(strings.Repeat("x", 1000), "")
		second := talker("second", agentkernel.ProgressToolDelta, texts...)
		report := second.Execute
		second.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			time.Sleep(time.Millisecond / 2)
			return report(ctx, args)
		}
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "first", "{}").Call("2", "second", "{}"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{talker("first", agentkernel.ProgressToolDelta, texts...), second},
		})
		busy := 10*time.Millisecond + time.Millisecond/4
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventToolExecUpdate {
				time.Sleep(busy)
				busy = 10 * time.Millisecond
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		count := make(map[string]int)
		for _, ev := range ofType(r.drain(t), agentkernel.EventToolExecUpdate) {
			count[ev.ToolID]++
		}
		require.GreaterOrEqual(t, min(count["1"], count["2"]), 10, "%v", count)
	})
}

// TestAsyncMaxPending: the run waits for a consumer behind whom so many edges wait, but with
// an edge, not with an update, and until one was taken.
func TestAsyncMaxPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello world").Chunks(3)), EventBuffer: 2})
		step := make(chan struct{})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxPending: 5}, func(agentkernel.Event) { <-step })
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, agentkernel.EventMessageEnd, final(agent.events()).Type, "it waits for room behind five edges and an update")
		for want := len(edges(agent.events())); want < 9; want++ {
			require.Len(t, edges(agent.events()), want)
			step <- struct{}{}
			synctest.Wait()
		}
		close(step)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		got := r.drain(t)
		require.Equal(t, edges(agent.events()), edges(got))
		require.Equal(t, int(final(got).Seq), accounted(got))
	})
}

// TestAsyncPendingProgress: more than one update of a call counts as edges do, so that a tool
// that never repeats a kind cannot fill the memory.
func TestAsyncPendingProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := tool("odd", func(ctx context.Context) (agentkernel.ToolResult, error) {
			for i := range 1000 {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressCustom, Tool: fmt.Sprint(i)})
			}
			return agentkernel.TextResult("said"), nil
		})
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("odd"), agenttest.Text("ok")), Tools: []agentkernel.Tool{odd}, EventBuffer: 2})
		each, release := holdAt(agentkernel.EventToolExecStart)
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxPending: 100}, each)
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, ofType(agent.events(), agentkernel.EventToolExecUpdate), 102)
		release()
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		require.Len(t, ofType(r.drain(t), agentkernel.EventToolExecUpdate), 1000)
	})
}

// TestAsyncListenerThatBlocksForEver: the run ends normally, Drain names it, Close frees.
func TestAsyncListenerThatBlocksForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 2)
		gate := make(chan struct{})
		sub := agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{Name: "the stuck one"})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("patience is over"))
		defer cancel()
		err = sub.Drain(ctx)
		require.EqualError(t, err, "agentkernel: subscriber the stuck one has not taken 10 events: patience is over")
		sub.Close()
		require.ErrorIs(t, sub.Drain(t.Context()), agentkernel.ErrSubscriptionClosed)
		_, err = agent.Run(t.Context(), "again")
		require.NoError(t, err)
		close(gate)
	})
}

func TestAsyncSubscriberIsNamedByItsFunction(t *testing.T) {
	agent := chatty(t, 1)
	gate := make(chan struct{})
	defer close(gate)
	sub := agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, sub.Drain(ctx), "TestAsyncSubscriberIsNamedByItsFunction")
	require.ErrorIs(t, sub.Drain(ctx), context.Canceled)
}

// TestAsyncMaxRate: the first update at once, no more than the rate, the last before its edge,
// and no edge late.
func TestAsyncMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := agenttest.Text(strings.Repeat("x", 1000)).Chunks(1).Delay(time.Millisecond)
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(reply, reply)})
		type arrival struct {
			typ agentkernel.EventType
			at  time.Duration
		}
		var want, got []arrival
		began := time.Now()
		agent.Subscribe(func(ev agentkernel.Event) {
			if !isUpdate(ev) {
				want = append(want, arrival{ev.Type, time.Since(began)})
			}
		})
		var at []time.Duration
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: 50}, func(ev agentkernel.Event) {
			if isUpdate(ev) {
				at = append(at, time.Since(began))
			} else {
				got = append(got, arrival{ev.Type, time.Since(began)})
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, int(final(agent.events()).Seq), accounted(r.drain(t)))
		require.Equal(t, want, got)
		require.Len(t, at, 51)
		require.Equal(t, time.Millisecond, at[0])
		for i := range 50 {
			require.Equal(t, time.Duration(1+20*i)*time.Millisecond, at[i])
		}
		require.Equal(t, 1001*time.Millisecond, at[50], "the rest, at the time of the end")
	})
}

// TestAsyncMaxRateAfterAStart: the first update of a message or call comes at once, however soon.
func TestAsyncMaxRateAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "talk", "{}"), agenttest.Text("end").Chunks(1).Delay(time.Millisecond)),
			Tools: []agentkernel.Tool{talker("talk", agentkernel.ProgressToolDelta, "a", "b", "c")},
		})
		var at []string
		began := time.Now()
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: 0.001}, func(ev agentkernel.Event) {
			if isUpdate(ev) {
				at = append(at, fmt.Sprintf("%v %s+%d", time.Since(began), ev.Type, ev.Coalesced))
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		r.drain(t)
		require.Equal(t, []string{
			"0s message_update+0",
			"1ms tool_exec_update+0", "4ms tool_exec_update+1",
			"5ms message_update+0", "8ms message_update+1",
		}, at)
	})
}

// TestAsyncMaxRateMeetsAnEdge: an edge may come in the moment in which an update is due.
func TestAsyncMaxRateMeetsAnEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 200
		reply := agenttest.Text("ab").Chunks(1).Delay(time.Millisecond)
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(slices.Repeat(replies(reply), runs)...)})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: 500}, nil)
		for range runs {
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
		}
		require.Len(t, r.drain(t), len(agent.events()))
	})
}

// TestAsyncListenerThatFails keeps its failure to itself, and gets the next event all the same.
func TestAsyncListenerThatFails(t *testing.T) {
	for name, fail := range map[string]func(){"panics": func() { panic("boom") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			told := make(chan agentkernel.Event, 100)
			agent, err := agentkernel.NewAgent(agentkernel.Config{
				Model: agenttest.Script(agenttest.Text("ok")),
				OnListenerPanic: func(value any, stack []byte, ev agentkernel.Event) {
					told <- ev
					if name == "panics" && value != "boom" {
						t.Errorf("told of %v", value)
					}
					fail() // whoever is told may fail too
				},
			})
			require.NoError(t, err)
			r := read(t, agent, agentkernel.AsyncOptions{}, nil)
			other := read(t, agent, agentkernel.AsyncOptions{}, nil)
			failing := agent.SubscribeAsync(func(agentkernel.Event) { fail() }, agentkernel.AsyncOptions{})
			_, err = agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.NoError(t, failing.Drain(t.Context()))
			require.Equal(t, len(r.drain(t)), len(told))
			require.Equal(t, final(other.drain(t)).Seq, final(r.events()).Seq)
		})
	}
}

func TestAsyncNilListenerPanics(t *testing.T) {
	agent := chatty(t, 1)
	require.Panics(t, func() { agent.SubscribeAsync(nil, agentkernel.AsyncOptions{}) })
}

// TestAsyncIdleCostsNoGoroutine: subscriptions that nobody closes leave none behind.
func TestAsyncIdleCostsNoGoroutine(t *testing.T) {
	old := goleak.IgnoreCurrent()
	agent, other := chatty(t, 2), chatty(t, 1)
	var readers []*reader
	for _, opts := range []agentkernel.AsyncOptions{{}, {MaxRate: 1}, {MaxPending: 1}} {
		readers = append(readers, read(t, agent.Agent, opts, nil))
	}
	goleak.VerifyNone(t, old)
	for range 2 {
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		for _, r := range readers {
			r.drain(t)
		}
		goleak.VerifyNone(t, old)
	}
	// One that stops following in the middle of a run.
	var sub *agentkernel.Subscription
	var unfollow func()
	sub = agent.SubscribeAsync(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventTurnStart {
			unfollow()
		}
	}, agentkernel.AsyncOptions{})
	unfollow = sub.Follow(other.Agent)
	_, err := other.Run(t.Context(), "hi")
	require.NoError(t, err)
	goleak.VerifyNone(t, old)
}

// TestDrain waits for what waits when it is called, and for no more.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("x", 100)).Chunks(1).Delay(time.Second))})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: 0.1}, func(agentkernel.Event) { time.Sleep(time.Millisecond) })
		require.NoError(t, r.sub.Drain(t.Context()), "nothing waits")
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		for range 5 {
			time.Sleep(2500 * time.Millisecond)
			synctest.Wait()
			said, began := len(agent.events()), time.Now()
			got := r.drain(t)
			require.Equal(t, said, accounted(got), "it does not wait for MaxRate")
			require.LessOrEqual(t, time.Since(began), 10*time.Millisecond)
		}
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, int(final(agent.events()).Seq), accounted(r.drain(t)))
	})
}

// TestDrainWhileUpdatesMerge: they do not merge into what is waited for.
func TestDrainWhileUpdatesMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("x", 1000)).Chunks(1).Delay(time.Millisecond))})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, func(agentkernel.Event) { time.Sleep(25 * time.Millisecond) })
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		for range 10 {
			time.Sleep(50*time.Millisecond + time.Millisecond/2)
			said := len(agent.events())
			require.GreaterOrEqual(t, accounted(r.drain(t)), said)
		}
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, len(agent.events()), accounted(r.drain(t)))
	})
}

// TestDrainOfNothing succeeds at once, and one that gives up leaves nothing behind.
func TestDrainOfNothing(t *testing.T) {
	agent := chatty(t, 2)
	var gate atomic.Pointer[chan struct{}]
	r := read(t, agent.Agent, agentkernel.AsyncOptions{}, func(agentkernel.Event) {
		if wait := gate.Load(); wait != nil {
			<-*wait
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	r.drain(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.sub.Drain(over))

	stuck := make(chan struct{})
	defer close(stuck)
	gate.Store(&stuck)
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	before := heap()
	for range 20_000 {
		require.Error(t, r.sub.Drain(over))
	}
	require.Less(t, heap(), before+1<<20)
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestDrainInside fn would wait for itself; in a listener of the agent it need not.
func TestDrainInside(t *testing.T) {
	agent := chatty(t, 1)
	inside := make(chan error, 100)
	var sub *agentkernel.Subscription
	sub = agent.SubscribeAsync(func(agentkernel.Event) { inside <- sub.Drain(context.Background()) }, agentkernel.AsyncOptions{})
	agent.Subscribe(func(ev agentkernel.Event) { require.NoError(t, sub.Drain(context.Background())) })
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NoError(t, sub.Drain(t.Context()))
	require.Len(t, inside, len(agent.events()))
	for range len(inside) {
		require.Equal(t, agentkernel.ErrInListener, <-inside)
	}
}

// TestDrainAndClose: who drains is told that it was closed.
func TestDrainAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 1)
		gate := make(chan struct{})
		defer close(gate)
		sub := agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		drained := make(chan error)
		go func() { drained <- sub.Drain(context.Background()) }()
		synctest.Wait()
		sub.Close()
		sub.Close() // more than once
		require.ErrorIs(t, <-drained, agentkernel.ErrSubscriptionClosed)
	})
}

// TestClose ends it at once: no new call begins, and a run that waits for room goes on.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 1)
		each, release := holdAt(agentkernel.EventAgentStart)
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxPending: 2}, each)
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, agent.State().IsRunning)
		r.sub.Close()
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		release()
		synctest.Wait()
		require.Len(t, r.events(), 1)
	})
}

// TestCloseFrees what waited, and fn.
func TestCloseFrees(t *testing.T) {
	const size = 16 << 20
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("x", size)).Chunks(1 << 20))})
	require.NoError(t, err)
	gate := make(chan struct{})
	defer close(gate)
	stuck := agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{})
	freed := make(chan struct{})
	func() {
		held := new([64]int)
		runtime.AddCleanup(held, func(done chan struct{}) { close(done) }, freed)
		agent.SubscribeAsync(func(agentkernel.Event) { held[0]++ }, agentkernel.AsyncOptions{}).Close()
	}()
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NoError(t, agent.Reset())
	waiting := heap()
	stuck.Close()
	require.Less(t, heap(), waiting-size/2)
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the agent still holds a function that was closed")
}

// TestCloseInside fn: that call is the last.
func TestCloseInside(t *testing.T) {
	agent := chatty(t, 2)
	var sub *agentkernel.Subscription
	var calls int
	done := make(chan struct{})
	sub = agent.SubscribeAsync(func(ev agentkernel.Event) {
		if calls++; ev.Seq == 3 {
			sub.Close()
			close(done)
		}
	}, agentkernel.AsyncOptions{})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	<-done
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, 3, calls)
}

// TestAsyncStartsTheNextRun: fn may call what the agent has, and wait for its run.
func TestAsyncStartsTheNextRun(t *testing.T) {
	agent := chatty(t, 2)
	done := make(chan error, 1)
	runs := 0
	agent.SubscribeAsync(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventAgentEnd {
			if runs++; runs == 1 {
				_, err := agent.Run(context.Background(), "again")
				done <- err
			}
		}
	}, agentkernel.AsyncOptions{})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Len(t, ofType(agent.events(), agentkernel.EventAgentEnd), 2)
}
