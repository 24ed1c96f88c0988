package agentkernel_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

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

// cost is what something takes: one delta from the model's yield to the one listener that is
// there, or one turn.
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
	return costOfMessage(t, n, deltas(n, of), nobody)
}

// costOfMessage is the cost per delta of a message of n deltas of 4 bytes, through an agent that
// was prepared before.
func costOfMessage(t testing.TB, n int, model agentkernel.ChatModel, prepare func(*agentkernel.Agent)) cost {
	t.Helper()
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model, MaxTurns: 1, MaxEmptyRetries: -1})
	require.NoError(t, err)
	prepare(agent)
	var seen, length int
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			seen++
			length += len(ev.Delta)
		}
	})
	c := measured(func() { _, _ = agent.Run(context.Background(), "hi") }) // a call fails it: there is no such tool
	require.Equal(t, n, seen)
	require.Equal(t, 4*n, length)
	return c.per(n)
}

// measured is what fn costs.
func measured(fn func()) cost {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	fn()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return cost{float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc), took}
}

func (c cost) per(n int) cost {
	return cost{c.allocs / float64(n), c.bytes / float64(n), c.time / time.Duration(n)}
}

// TestCostOfADelta does not grow with the message: allocations and bytes per delta are the
// same for long messages as for short ones.
func TestCostOfADelta(t *testing.T) {
	for name, of := range costKinds {
		t.Run(name, func(t *testing.T) {
			base := costOf(t, 1_000, of)
			t.Logf("1000 deltas: %.2f allocations, %.0f bytes, %v per delta", base.allocs, base.bytes, base.time)
			require.LessOrEqual(t, base.allocs, 0.4) // those of the run, by 1,000
			for _, n := range []int{10_000, 100_000} {
				got := costOf(t, n, of)
				t.Logf("%d deltas: %.2f allocations, %.0f bytes, %v per delta", n, got.allocs, got.bytes, got.time)
				require.LessOrEqual(t, got.allocs, 0.1)
				require.LessOrEqual(t, got.bytes, 1.3*base.bytes)
			}
		})
	}
}

// TestCostOfBlocks grows with their number and no faster: each update lists them all once.
func TestCostOfBlocks(t *testing.T) {
	for _, n := range []int{1, 20, 200} {
		got := costOfMessage(t, 50*n, blocks(n), nobody)
		listed := 0.5 * float64(n+1) * float64(unsafe.Sizeof(agentkernel.ContentBlock{})) // on average
		t.Logf("%d blocks: %.2f allocations, %.0f bytes per delta, of which %.0f list the blocks", n, got.allocs, got.bytes, listed)
		require.LessOrEqual(t, got.bytes, 1.2*listed+300+30_000/float64(n))
		if n > 1 { // one block of 50 deltas is a run and little else
			require.LessOrEqual(t, got.allocs, 0.9)
		}
	}
}

// costOfTurns is the cost of a run of n turns with one call of a tool that does nothing.
func costOfTurns(t *testing.T, n int) cost {
	t.Helper()
	agent, _ := counting(t, agentkernel.Config{Model: callingModel(n, 1), Tools: []agentkernel.Tool{noop}, MaxTurns: -1}, 1)
	var record agentkernel.RunRecord
	var err error
	c := measured(func() { record, err = agent.Run(context.Background(), "hi") })
	require.NoError(t, err)
	require.Equal(t, n, record.Summary.ToolCalls)
	return c
}

// TestCostOfATurn does not grow with the run: the turns from the 100th to the 400th take as
// many allocations and bytes each as the first 100.
func TestCostOfATurn(t *testing.T) {
	costOfTurns(t, 10)
	first, all := costOfTurns(t, 100), costOfTurns(t, 400)
	later := cost{all.allocs - first.allocs, all.bytes - first.bytes, all.time - first.time}.per(300)
	first = first.per(100)
	t.Logf("the first 100: %.1f allocations, %.0f bytes, %v per turn", first.allocs, first.bytes, first.time)
	t.Logf("300 later ones: %.1f allocations, %.0f bytes, %v per turn", later.allocs, later.bytes, later.time)
	require.LessOrEqual(t, first.allocs, 60.0)
	require.LessOrEqual(t, later.allocs, 59.0)
	require.LessOrEqual(t, later.bytes, 1.3*first.bytes)
}

// TestCostOfAnAgent: one that is idle takes at most 4 KiB, and a run in flight 48 KiB, most of
// them for the events that wait, and three stacks.
func TestCostOfAnAgent(t *testing.T) {
	const n = 200
	agents := make([]*agentkernel.Agent, n)
	idle, _, goroutines := growthOf(func() {
		for i := range agents {
			agents[i], _ = counting(t, agentkernel.Config{Model: deltas(1, agentkernel.StreamEventTextDelta)}, 1)
		}
	})
	runtime.KeepAlive(agents)
	require.LessOrEqual(t, idle/n, 4096.0)
	require.LessOrEqual(t, goroutines, 0.0)

	flying := fly(t, n)
	t.Logf("idle: %.0f bytes; in flight: %.0f bytes, of stacks %.0f, goroutines %.2f", idle/n, flying.heap/n, flying.stacks/n, flying.goroutines/n)
	require.LessOrEqual(t, flying.heap/n, 48.0*1024)
	require.LessOrEqual(t, flying.goroutines, 3.0*n)
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
	require.NoError(t, agent.SetMessages(slices.Repeat(agent.Messages(), 50)...))
	require.Len(t, agent.State().Messages, 10_000)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = agent.State() }))
	_, err = agent.Run(t.Context(), "more")
	require.NoError(t, err)
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
	require.Len(t, state.Messages, 11_002)
}

// TestFault68QuadraticPartialParse: four times the argument deltas take less than six times
// the memory and the time, with the whole argument text in each partial. Time is what a busy
// machine leaves: of ten comparisons one has to hold, of which none does where it grows with the
// square, that is sixteen times.
func TestFault68QuadraticPartialParse(t *testing.T) {
	const n = 65_536
	grown := 0.0
	for range 10 {
		small, large := costOf(t, n, agentkernel.StreamEventToolCallDelta), costOf(t, 4*n, agentkernel.StreamEventToolCallDelta)
		require.Less(t, large.bytes*4, small.bytes*6)
		if grown = 4 * float64(large.time) / float64(small.time); grown < 6 {
			return
		}
	}
	require.Less(t, grown, 6.0)
}
