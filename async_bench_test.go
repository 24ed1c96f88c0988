package agentkernel_test

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// streamed runs an agent whose model streams n deltas as fast as it can, and tells how long
// the run took and what it allocated, per delta.
func streamed(t testing.TB, n int, subscribe func(*agentkernel.Agent)) cost {
	t.Helper()
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: deltas(n, agentkernel.StreamEventTextDelta)})
	require.NoError(t, err)
	subscribe(agent)
	return measured(func() {
		_, err = agent.Run(context.Background(), "hi")
		require.NoError(t, err)
	}).per(n)
}

func withRaceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func nobody(*agentkernel.Agent) {}

// sleeper subscribes a listener that sleeps 10 ms at every event.
func sleeper(agent *agentkernel.Agent) {
	var sub *agentkernel.Subscription
	sub = agent.SubscribeAsync(func(ev agentkernel.Event) {
		if time.Sleep(10 * time.Millisecond); ev.Type == agentkernel.EventAgentEnd {
			sub.Close()
		}
	}, agentkernel.AsyncOptions{})
}

// TestAsyncListenerCost: an asynchronous listener that sleeps 10 ms per event makes the run
// take at most 1.2 times as long as it does without, and allocates next to nothing per delta.
func TestAsyncListenerCost(t *testing.T) {
	const n, limit = 30_000, 1.2
	without, with := streamed(t, n, nobody), streamed(t, n, sleeper)
	require.InDelta(t, without.allocs, with.allocs, 0.1, "allocations per delta")
	require.Less(t, with.bytes, without.bytes+40, "bytes per delta, of which 4 are the delta's")
	if withRaceDetector() {
		return // it makes other things slow than those that are
	}
	// What others do on the machine only adds, so that the fastest of several are compared, which
	// run in turns. They are short, for one of a few milliseconds is often left alone; and a round
	// in which only one of the two was lucky is followed by another one that begins anew.
	for range 40 {
		if without, with = fastest(t, 10); float64(with.time) <= limit*float64(without.time) {
			t.Logf("%v per delta, %v without", with.time, without.time)
			return
		}
	}
	t.Errorf("%v per delta, %v without", with.time, without.time)
}

// fastest are the fastest of so many short runs without an asynchronous listener, and with one
// that sleeps.
func fastest(t testing.TB, of int) (without, with cost) {
	const n = 3_000
	without, with = streamed(t, n, nobody), streamed(t, n, sleeper)
	for range of - 1 {
		without.time = min(without.time, streamed(t, n, nobody).time)
		with.time = min(with.time, streamed(t, n, sleeper).time)
	}
	return without, with
}

// TestNoAsyncListenerCostsNothing: where no asynchronous subscriber is, a delta costs an agent
// with a listener what it costs a bare loop, in allocations and bytes; and so it does again
// where some were and are not any more.
func TestNoAsyncListenerCostsNothing(t *testing.T) {
	const n, of = 20_000, agentkernel.StreamEventTextDelta
	bare := measured(func() {
		seen := 0
		cfg := agentkernel.Config{Model: deltas(n, of), MaxTurns: 1, MaxEmptyRetries: -1}
		for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("hi")) {
			if ev.Type == agentkernel.EventMessageUpdate {
				seen++
			}
		}
		require.Equal(t, n, seen)
	}).per(n)
	plain := costOf(t, n, of)
	t.Logf("bare loop: %.3f allocations and %.1f bytes per delta; agent: %.3f and %.1f", bare.allocs, bare.bytes, plain.allocs, plain.bytes)
	requireSameCost(t, bare, plain)

	gate := make(chan struct{})
	defer close(gate)
	stuck := func(agentkernel.Event) { <-gate }
	other := chatty(t, 1)
	for name, leave := range map[string]func(*agentkernel.Agent){
		"closed before it heard anything": func(agent *agentkernel.Agent) {
			for range 100 {
				agent.SubscribeAsync(stuck, agentkernel.AsyncOptions{MaxRate: 60}).Close()
			}
		},
		"closed while events wait": func(agent *agentkernel.Agent) {
			sub := agent.SubscribeAsync(stuck, agentkernel.AsyncOptions{})
			_, _ = agent.Run(context.Background(), "before")
			require.NoError(t, agent.Reset())
			sub.Close()
		},
		"unfollowed": func(agent *agentkernel.Agent) {
			other.SubscribeAsync(stuck, agentkernel.AsyncOptions{}).Follow(agent)()
		},
	} {
		got := costOfMessage(t, n, deltas(n, of), leave)
		t.Logf("%s: %.3f allocations and %.1f bytes per delta", name, got.allocs, got.bytes)
		requireSameCost(t, plain, got)
	}
}

// requireSameCost compares what does not depend on the machine: a few allocations in all, and
// a byte per delta, may come from elsewhere in the process.
func requireSameCost(t *testing.T, want, got cost) {
	t.Helper()
	require.InDelta(t, want.allocs, got.allocs, 0.02, "allocations per delta")
	require.InDelta(t, want.bytes, got.bytes, 0.02*want.bytes+1, "bytes per delta")
}

// TestAsyncMergingIsLinear: what waits costs the same per delta however much it is.
func TestAsyncMergingIsLinear(t *testing.T) {
	blocked := func(n int) cost {
		gate := make(chan struct{})
		var sub *agentkernel.Subscription
		c := streamed(t, n, func(agent *agentkernel.Agent) {
			sub = agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{})
		})
		close(gate)
		require.NoError(t, sub.Drain(t.Context()))
		return c
	}
	base := blocked(1_000)
	for _, n := range []int{10_000, 100_000} {
		got := blocked(n)
		t.Logf("%d deltas: %.0f bytes per delta, %.0f for 1000", n, got.bytes, base.bytes)
		require.LessOrEqual(t, got.bytes, 1.3*base.bytes)
	}
}

// BenchmarkListeners is the cost per delta with so many synchronous listeners.
func BenchmarkListeners(b *testing.B) {
	for _, n := range []int{0, 1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchmarkDeltas(b, func(agent *agentkernel.Agent) {
				for range n {
					agent.Subscribe(func(agentkernel.Event) {})
				}
			})
		})
	}
}

// BenchmarkAsyncListeners is the cost per delta, until the run has ended, with asynchronous
// listeners.
func BenchmarkAsyncListeners(b *testing.B) {
	async := func(n int, fn func(agentkernel.Event)) func(*agentkernel.Agent) {
		return func(agent *agentkernel.Agent) {
			for range n {
				sub := agent.SubscribeAsync(fn, agentkernel.AsyncOptions{})
				b.Cleanup(sub.Close)
			}
		}
	}
	prompt := func(agentkernel.Event) {}
	asleep := func(agentkernel.Event) { time.Sleep(10 * time.Millisecond) }
	b.Run("none", func(b *testing.B) { benchmarkDeltas(b, nobody) })
	b.Run("one sleeps 10ms", func(b *testing.B) { benchmarkDeltas(b, async(1, asleep)) })
	b.Run("one prompt", func(b *testing.B) { benchmarkDeltas(b, async(1, prompt)) })
	b.Run("ten prompt", func(b *testing.B) { benchmarkDeltas(b, async(10, prompt)) })
	b.Run("hundred sleep 10ms", func(b *testing.B) { benchmarkDeltas(b, async(100, asleep)) })
}

func benchmarkDeltas(b *testing.B, subscribe func(*agentkernel.Agent)) {
	const n = 20_000
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: deltas(n, agentkernel.StreamEventTextDelta)})
	require.NoError(b, err)
	subscribe(agent)
	b.ReportAllocs()
	runs := 0
	for b.Loop() {
		_, err := agent.Run(context.Background(), "hi")
		require.NoError(b, err)
		require.NoError(b, agent.Reset())
		runs++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*runs), "ns/delta")
}

// BenchmarkDelay is the time from the model's yield of a delta to a listener's call, of which
// the metrics are the median and the 99th percentile.
func BenchmarkDelay(b *testing.B) {
	b.Run("synchronous", func(b *testing.B) {
		benchmarkDelay(b, func(agent *agentkernel.Agent, fn func(agentkernel.Event)) { agent.Subscribe(fn) })
	})
	b.Run("asynchronous", func(b *testing.B) {
		benchmarkDelay(b, func(agent *agentkernel.Agent, fn func(agentkernel.Event)) {
			agent.SubscribeAsync(fn, agentkernel.AsyncOptions{})
		})
	})
}

func benchmarkDelay(b *testing.B, subscribe func(*agentkernel.Agent, func(agentkernel.Event))) {
	heard := make(chan struct{})
	var yielded time.Time
	var delays []time.Duration
	model := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for b.Loop() {
				time.Sleep(20 * time.Microsecond) // so that everybody waits
				yielded = time.Now()
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "abcd"}, nil)
				<-heard
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		}
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
	require.NoError(b, err)
	subscribe(agent, func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			delays = append(delays, time.Since(yielded))
			heard <- struct{}{}
		}
	})
	_, err = agent.Run(context.Background(), "hi")
	require.NoError(b, err)
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(delays[len(delays)*99/100].Nanoseconds()), "p99-ns")
}
