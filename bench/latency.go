package main

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// pace is a stream in which each delta waits until the one before was seen.
type pace struct {
	yielded time.Time
	seen    chan struct{}
	delays  []time.Duration
}

func newPace(n int) *pace {
	return &pace{seen: make(chan struct{}, 1), delays: make([]time.Duration, 0, n)}
}

// see is what the consumer does.
func (p *pace) see() {
	p.delays = append(p.delays, time.Since(p.yielded))
	p.seen <- struct{}{}
}

// agentDelays are the times from the model's yield of a delta to the listener, of n deltas.
func agentDelays(ctx context.Context, n int) ([]time.Duration, error) {
	p := newPace(n)
	model := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for range n {
				p.yielded = time.Now()
				if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: deltaText}, nil) {
					return
				}
				<-p.seen
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		}
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
	if err != nil {
		return nil, err
	}
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			p.see()
		}
	})
	_, err = agent.Run(ctx, "hi")
	return p.delays, err
}

// hopDelays are the same for a channel between two goroutines, without anything else.
func hopDelays(n int) []time.Duration {
	p := newPace(n)
	items := make(chan item, floorBuffer)
	go func() { // ends once the loop below has seen all
		for range n {
			p.yielded = time.Now()
			items <- item{delta: deltaText}
			<-p.seen
		}
		close(items)
	}()
	for range items {
		p.see()
	}
	return p.delays
}

// latencyDeltas are how many deltas a sample of delays has.
const latencyDeltas = 10_000

// delaysOf are the 50th and the 99th percentile.
func delaysOf(delays []time.Duration) (p50, p99 float64) {
	ns := make([]float64, len(delays))
	for i, d := range delays {
		ns[i] = float64(d.Nanoseconds())
	}
	slices.Sort(ns)
	return quantile(ns, 0.50), quantile(ns, 0.99)
}

// latencyFigures compares the two round by round.
func latencyFigures(b *bench, _ results) ([]figure, error) {
	var hop50, hop99, agent50, agent99, ratios []float64
	for range b.rounds {
		runtime.GC()
		p50, p99 := delaysOf(hopDelays(latencyDeltas))
		hop50, hop99 = append(hop50, p50), append(hop99, p99)
		runtime.GC()
		delays, err := agentDelays(b.ctx, latencyDeltas)
		if err != nil {
			return nil, err
		}
		q50, q99 := delaysOf(delays)
		agent50, agent99 = append(agent50, q50), append(agent99, q99)
		ratios = append(ratios, q50/p50)
	}
	return []figure{
		report("latency_hop_p50", median(hop50), nanos),
		report("latency_hop_p99", median(hop99), nanos),
		report("latency_p50", median(agent50), nanos),
		report("latency_p99", median(agent99), nanos),
		most("latency_p50_over_hop", median(ratios), 2, ratio),
	}, nil
}
