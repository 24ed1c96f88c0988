package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// reader is an asynchronous consumer that keeps what it gets, behind a function that sees each
// event before.
type reader struct {
	sub *agentkernel.Subscription

	mu  sync.Mutex
	log []agentkernel.Event
}

// read subscribes a reader whose stream goes through the checker.
func read(t testing.TB, agent *agentkernel.Agent, opts agentkernel.AsyncOptions, each func(agentkernel.Event)) *reader {
	t.Helper()
	checker := &agenttest.Checker{AllowCoalesced: true}
	t.Cleanup(func() { require.NoError(t, checker.Err()) })
	return readMany(agent, opts, func(ev agentkernel.Event) {
		if each != nil {
			each(ev)
		}
		checker.Listen(ev)
	})
}

// readMany subscribes a reader that may follow other agents, whose runs come at the same time.
func readMany(agent *agentkernel.Agent, opts agentkernel.AsyncOptions, each func(agentkernel.Event)) *reader {
	r := new(reader)
	r.sub = agent.SubscribeAsync(func(ev agentkernel.Event) {
		if each != nil {
			each(ev)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log = append(r.log, ev)
	}, opts)
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
