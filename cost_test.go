package agentkernel_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// deltas is a model that streams one message of n deltas of 4 bytes.
func deltas(n int, of agentkernel.StreamEventType) agentkernel.ChatModel {
	ev := agentkernel.StreamEvent{Type: of, Delta: "abcd"}
	if of == agentkernel.StreamEventToolCallDelta {
		ev.Key = "0"
	}
	return agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for range n {
				if !yield(ev, nil) {
					return
				}
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		}
	})
}

// cost is what one message of n deltas takes per delta, from the model's yield to the one
// listener that is there.
type cost struct {
	allocs, bytes float64
	time          time.Duration
}

var costKinds = map[string]agentkernel.StreamEventType{
	"text":      agentkernel.StreamEventTextDelta,
	"thinking":  agentkernel.StreamEventThinkingDelta,
	"tool_call": agentkernel.StreamEventToolCallDelta,
}

func costOf(t testing.TB, n int, of agentkernel.StreamEventType) cost {
	t.Helper()
	return costWith(t, n, of, func(*agentkernel.Agent) {})
}

// costWith is costOf an agent that was prepared before.
func costWith(t testing.TB, n int, of agentkernel.StreamEventType, prepare func(*agentkernel.Agent)) cost {
	t.Helper()
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: deltas(n, of), MaxTurns: 1, MaxEmptyRetries: -1})
	require.NoError(t, err)
	prepare(agent)
	var seen, length int
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			seen++
			length += len(ev.Delta)
		}
	})
	c := measure(n, func() {
		_, _ = agent.Run(context.Background(), "hi") // a call fails it: there is no such tool
	})
	require.Equal(t, n, seen)
	require.Equal(t, 4*n, length)
	return c
}

// measure is what run takes, for each of n.
func measure(n int, run func()) cost {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	run()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return cost{
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
		time:   took / time.Duration(n),
	}
}

// TestCostOfADelta does not grow with the message: allocations and bytes per delta are the
// same for long messages as for short ones.
func TestCostOfADelta(t *testing.T) {
	for name, of := range costKinds {
		t.Run(name, func(t *testing.T) {
			base := costOf(t, 1_000, of)
			t.Logf("1000 deltas: %.2f allocations, %.0f bytes, %v per delta", base.allocs, base.bytes, base.time)
			require.LessOrEqual(t, base.allocs, 3.0)
			for _, n := range []int{10_000, 100_000} {
				got := costOf(t, n, of)
				t.Logf("%d deltas: %.2f allocations, %.0f bytes, %v per delta", n, got.allocs, got.bytes, got.time)
				require.LessOrEqual(t, got.allocs, 3.0)
				require.LessOrEqual(t, got.bytes, 1.3*base.bytes)
			}
		})
	}
}

// TestCostOfAState: a snapshot costs nothing, and a message that ends only itself, however
// long the history is.
func TestCostOfAState(t *testing.T) {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: deltas(1, agentkernel.StreamEventTextDelta)})
	require.NoError(t, err)
	for i := range 100 {
		_, err := agent.Run(t.Context(), fmt.Sprint(i))
		require.NoError(t, err)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = agent.State() }))
	state := agent.State()
	m := agentkernel.UserMessage("x")
	events := make([]agentkernel.Event, 1000)
	for i := range events {
		events[i] = agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: state.RunID, Message: m}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, ev := range events {
		state = agentkernel.Reduce(state, ev)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, float64(after.TotalAlloc-before.TotalAlloc)/float64(len(events)), 1500.0, "bytes per message, with a copy of it")
	require.Len(t, state.Messages, 1200)
}

// TestFault68QuadraticPartialParse: four times the argument deltas take less than six times
// the memory and the time, with the whole argument text in each partial.
func TestFault68QuadraticPartialParse(t *testing.T) {
	const n = 65_536
	small, large := leastCost(t, n), leastCost(t, 4*n)
	require.Less(t, large.bytes*4, small.bytes*6)
	require.Less(t, large.time*4, small.time*6)
}

// leastCost is the cost per delta of arguments in the fastest of three runs.
func leastCost(t *testing.T, n int) cost {
	least := costOf(t, n, agentkernel.StreamEventToolCallDelta)
	for range 2 {
		if c := costOf(t, n, agentkernel.StreamEventToolCallDelta); c.time < least.time {
			least = c
		}
	}
	return least
}
