package agentkernel_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

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
