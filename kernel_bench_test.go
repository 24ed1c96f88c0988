package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// BenchmarkFloor is what no stream of events can undercut: a channel of a struct of Event's
// size, buffered, between two goroutines, with one boxed message for each item.
func BenchmarkFloor(b *testing.B) {
	const items = 10_000
	content := make([]agentkernel.ContentBlock, 2)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		events := make(chan agentkernel.Event, 128)
		go func() { // ends with the items, which the loop below takes
			defer close(events)
			for i := range items {
				events <- agentkernel.Event{Message: agentkernel.Message{Role: agentkernel.RoleAssistant, Content: content[i%2:]}, Seq: uint64(i)}
			}
		}()
		for range events {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/delta")
}

// counting returns an agent with as many listeners, each of which counts the updates it sees.
func counting(tb testing.TB, cfg agentkernel.Config, listeners int) (*agentkernel.Agent, *int) {
	agent, err := agentkernel.NewAgent(cfg)
	require.NoError(tb, err)
	seen := new(int)
	for range listeners {
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventMessageUpdate {
				*seen += 1
			}
		})
	}
	return agent, seen
}

// blocks is a model that streams n blocks of 50 text deltas, thinking and text in turn.
func blocks(n int) agentkernel.ChatModel {
	kinds := []agentkernel.StreamEventType{agentkernel.StreamEventTextDelta, agentkernel.StreamEventThinkingDelta}
	return agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for i := range n * 50 {
				if !yield(agentkernel.StreamEvent{Type: kinds[i/50%2], Delta: "abcd"}, nil) {
					return
				}
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		}
	})
}

// BenchmarkBlocks streams messages of n blocks of 50 deltas.
func BenchmarkBlocks(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			agent, seen := counting(b, agentkernel.Config{Model: blocks(n)}, 1)
			b.ReportAllocs()
			for b.Loop() {
				for range 200 / n {
					_, _ = agent.Run(context.Background(), "hi")
				}
				require.NoError(b, agent.Reset())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(*seen), "ns/delta")
		})
	}
}

// noop is a tool that does nothing.
var noop = agentkernel.Tool{Name: "noop", Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
	return agentkernel.TextResult("ok"), nil
}}

// BenchmarkTurns is a run of n turns with one call each of a tool that does nothing, through
// an agent with one listener.
func BenchmarkTurns(b *testing.B) {
	for _, n := range []int{10, 100, 1_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			turns := 0
			for b.Loop() {
				agent, _ := counting(b, agentkernel.Config{Model: callingModel(n, 1), Tools: []agentkernel.Tool{noop}, MaxTurns: -1}, 1)
				record, err := agent.Run(context.Background(), "hi")
				require.NoError(b, err)
				turns += record.Summary.ToolCalls
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(turns), "ns/turn")
		})
	}
}

// BenchmarkStateBesideRun takes states while a run streams, with a history of n messages.
func BenchmarkStateBesideRun(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			agent, _ := counting(b, agentkernel.Config{Model: deltas(1<<40, agentkernel.StreamEventTextDelta)}, 1)
			history := make([]agentkernel.AgentMessage, n)
			for i := range history {
				history[i] = agentkernel.UserMessage("x")
			}
			require.NoError(b, agent.SetMessages(history...))
			run, err := agent.Prompt(b.Context(), "hi")
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if len(agent.State().Messages) > n+1 {
					b.Fatal("more messages than there can be")
				}
			}
			run.Abort(nil)
			<-run.Done()
		})
	}
}

// BenchmarkLatency is the time of one delta from the model's yield to the listener, and the
// same over a bare channel.
func BenchmarkLatency(b *testing.B) {
	b.Run("agent", func(b *testing.B) {
		took := make([]time.Duration, 0, 1<<20)
		heard := make(chan struct{})
		var sent time.Time
		model := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
			return func(yield func(agentkernel.StreamEvent, error) bool) {
				for b.Loop() {
					sent = time.Now()
					yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "abcd"}, nil)
					<-heard
				}
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
			}
		})
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
		require.NoError(b, err)
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventMessageUpdate {
				took = append(took, time.Since(sent))
				heard <- struct{}{}
			}
		})
		_, err = agent.Run(b.Context(), "hi")
		require.NoError(b, err)
		reportLatency(b, took)
	})
	b.Run("channel", func(b *testing.B) {
		took := make([]time.Duration, 0, 1<<20)
		heard, items := make(chan struct{}), make(chan time.Time, 128)
		go func() { // ends when items is closed, below
			for sent := range items {
				took = append(took, time.Since(sent))
				heard <- struct{}{}
			}
			close(heard)
		}()
		for b.Loop() {
			items <- time.Now()
			<-heard
		}
		close(items)
		<-heard
		reportLatency(b, took)
	})
}

func reportLatency(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkMemory is the heap that an idle agent keeps, and heap and stacks of a run in
// flight whose model waits.
func BenchmarkMemory(b *testing.B) {
	const n = 500
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			agents := make([]*agentkernel.Agent, n)
			heap, _, _ := growthOf(func() {
				for i := range agents {
					agents[i], _ = counting(b, agentkernel.Config{Model: deltas(1, agentkernel.StreamEventTextDelta)}, 1)
				}
			})
			b.ReportMetric(heap/n, "heap-B/agent")
			runtime.KeepAlive(agents)
		}
	})
	b.Run("in flight", func(b *testing.B) {
		for b.Loop() {
			f := fly(b, n)
			b.ReportMetric(f.heap/n, "heap-B/run")
			b.ReportMetric(f.stacks/n, "stack-B/run")
			b.ReportMetric(f.goroutines/n, "goroutines/run")
		}
	})
}

// flight is what runs take while their models wait.
type flight struct{ heap, stacks, goroutines float64 }

// fly starts n runs, and ends them when each has shown some deltas.
func fly(tb testing.TB, n int) (f flight) {
	waiting, release := make(chan struct{}, n), make(chan struct{})
	model := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for range 8 {
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "abcd"}, nil)
			}
			waiting <- struct{}{}
			<-release
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		}
	})
	runs := make([]*agentkernel.Run, n)
	f.heap, f.stacks, f.goroutines = growthOf(func() {
		for i := range runs {
			agent, _ := counting(tb, agentkernel.Config{Model: model}, 1)
			var err error
			runs[i], err = agent.Prompt(context.Background(), "hi")
			require.NoError(tb, err)
		}
		for range runs {
			<-waiting
		}
	})
	close(release)
	for _, run := range runs {
		<-run.Done()
	}
	return f
}

// growthOf is by how much heap, stacks and goroutines grew over fn.
func growthOf(fn func()) (heap, stacks, goroutines float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := runtime.NumGoroutine()
	fn()
	goroutines = float64(runtime.NumGoroutine() - n)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc), float64(after.StackInuse) - float64(before.StackInuse), goroutines
}
