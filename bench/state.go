package main

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

const stateCalls = 500_000 // of State in one run

// streaming is a model that streams until its context ends. It waits where hold is set.
type streaming struct {
	begun chan struct{}
	hold  bool
}

// Stream implements [agentkernel.ChatModel].
func (m *streaming) Stream(ctx context.Context, _ agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		for i := 0; ctx.Err() == nil; i++ {
			if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: deltaText}, nil) {
				return
			}
			if i == 100 {
				m.begun <- struct{}{}
				if m.hold {
					<-ctx.Done()
				}
			}
		}
		yield(agentkernel.StreamEvent{}, ctx.Err())
	}
}

var errEnough = errors.New("enough was measured")

// stateful is an agent with a history, whose run streams or waits while State is called.
type stateful struct {
	agent    *agentkernel.Agent
	model    *streaming
	messages int
}

func newStateful(messages int, hold bool) (*stateful, error) {
	m := &streaming{begun: make(chan struct{}), hold: hold}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: m})
	if err != nil {
		return nil, err
	}
	return &stateful{agent, m, messages}, agent.SetMessages(history(messages)...)
}

// during calls fn while a run streams that began with the agent's history.
func (s *stateful) during(ctx context.Context, fn func()) error {
	run, err := s.agent.Prompt(ctx, "hi")
	if err != nil {
		return err
	}
	<-s.model.begun
	fn()
	run.Abort(errEnough)
	if _, err := run.Wait(ctx); !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// read calls State so many times and makes sure that it shows the history.
func (s *stateful) read(calls int) error {
	for range calls {
		if state := s.agent.State(); len(state.Messages) < s.messages || !state.IsRunning {
			return errors.New("a state does not show the run and its history")
		}
	}
	return nil
}

// cost is what a call of State takes.
func (s *stateful) cost(ctx context.Context, calls int) (c sample, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	ended := s.during(ctx, func() {
		runtime.ReadMemStats(&before)
		began := time.Now()
		err = s.read(calls)
		c.ns = float64(time.Since(began).Nanoseconds()) / float64(calls)
		runtime.ReadMemStats(&after)
	})
	c.allocs = float64(after.Mallocs-before.Mallocs) / float64(calls)
	return c, errors.Join(err, ended)
}

func stateFigures(b *bench, _ results) ([]figure, error) {
	histories := map[string]int{"empty": 0, "long": longHistory}
	res := make(results)
	for _, hold := range []bool{false, true} { // allocations are counted while the stream waits
		agents := make(map[string]*stateful)
		for name, n := range histories {
			s, err := newStateful(n, hold)
			if err != nil {
				return nil, err
			}
			agents[name] = s
		}
		for range b.rounds {
			for _, name := range []string{"empty", "long"} {
				c, err := agents[name].cost(b.ctx, stateCalls)
				if err != nil {
					return nil, err
				}
				if hold {
					name += "_held"
				}
				res[name] = append(res[name], c)
			}
		}
	}
	return []figure{
		report("state", res.of("empty", nanoseconds), nanos),
		report("state_10000_messages", res.of("long", nanoseconds), nanos),
		most("state_10000_over_empty", res.ratio("long", "empty"), 1.2, ratio),
		most("state_allocations", res.of("long_held", allocations), 1, allocs),
	}, nil
}
