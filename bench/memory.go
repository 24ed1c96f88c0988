package main

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"unsafe"

	"github.com/agentkernel-go/agentkernel"
)

const (
	manyAgents  = 1_000
	longHistory = 10_000
	// eventBuffer is the kernel's default for Config.EventBuffer, named here so that the part
	// which the buffer takes can be told.
	eventBuffer = 64
)

// footprint is what the process holds at one moment, after a collection.
type footprint struct{ heap, stacks, goroutines float64 }

func footprintNow() footprint {
	var m runtime.MemStats
	for range 3 { // pools are emptied by the second, and finalizers have run by the third
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return footprint{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine())}
}

// per is the growth since before, for each of n.
func (f footprint) per(before footprint, n int) footprint {
	each := func(now, then float64) float64 { return (now - then) / float64(n) }
	return footprint{each(f.heap, before.heap), each(f.stacks, before.stacks), each(f.goroutines, before.goroutines)}
}

// memoryFigures holds many agents at once, idle and in flight, and one with a long history.
func memoryFigures(b *bench, _ results) ([]figure, error) {
	model := &held{show: 4, shown: make(chan struct{}, manyAgents), release: make(chan struct{})}
	agents := make([]*agentkernel.Agent, manyAgents)
	runs := make([]*agentkernel.Run, manyAgents)
	before := footprintNow()
	for i := range agents {
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
		if err != nil {
			return nil, err
		}
		agent.Subscribe(func(agentkernel.Event) {})
		agents[i] = agent
	}
	idle := footprintNow()
	for i, agent := range agents {
		run, err := agent.Prompt(b.ctx, "hi")
		if err != nil {
			return nil, err
		}
		runs[i] = run
	}
	for range runs {
		<-model.shown
	}
	flight := footprintNow()
	close(model.release)
	for _, run := range runs {
		if _, err := run.Wait(b.ctx); err != nil {
			return nil, err
		}
	}
	clear(runs) // the records of the runs are the harness's
	used := footprintNow()
	runtime.KeepAlive(agents)
	each, inFlight, after := idle.per(before, manyAgents), flight.per(idle, manyAgents), used.per(before, manyAgents)
	buffer := float64(eventBuffer * unsafe.Sizeof(agentkernel.Event{}))
	figures := []figure{
		most("idle_agent", each.heap, 4<<10, octets),
		report("agent_after_a_run", after.heap, octets),
		most("run_in_flight", inFlight.heap+inFlight.stacks, 64<<10, octets),
		report("run_in_flight_buffer", buffer, octets),
		report("run_in_flight_stacks", inFlight.stacks, octets),
		report("run_in_flight_state", inFlight.heap-buffer, octets),
		report("run_in_flight_goroutines", inFlight.goroutines, number),
	}
	history, err := historyFigures(b.ctx)
	return append(figures, history...), err
}

// held is a model that shows a few deltas, tells so, and waits.
type held struct {
	show    int
	shown   chan struct{}
	release chan struct{}
}

// Stream implements [agentkernel.ChatModel].
func (m *held) Stream(ctx context.Context, _ agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		for range m.show {
			if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: deltaText}, nil) {
				return
			}
		}
		m.shown <- struct{}{}
		select {
		case <-m.release:
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		case <-ctx.Done():
			yield(agentkernel.StreamEvent{}, ctx.Err())
		}
	}
}

// history is n messages that a user and an assistant said in turn.
func history(n int) []agentkernel.AgentMessage {
	messages := make([]agentkernel.AgentMessage, n)
	for i := range messages {
		m := agentkernel.UserMessage(fmt.Sprintf("message %6d", i))
		if i%2 == 1 {
			m.Role, m.StopReason = agentkernel.RoleAssistant, agentkernel.StopReasonStop
		}
		messages[i] = m
	}
	return messages
}

// historyFigures is what a long history takes in an agent, beside the same messages in a slice.
func historyFigures(ctx context.Context) ([]figure, error) {
	before := footprintNow()
	messages := history(longHistory)
	slice := footprintNow()
	s := &source{text: answer, n: 1}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: s})
	if err != nil {
		return nil, err
	}
	if err := agent.SetMessages(messages...); err != nil {
		return nil, err
	}
	set := footprintNow()
	if _, err := agent.Run(ctx, "hi"); err != nil {
		return nil, err
	}
	ran := footprintNow()
	runtime.KeepAlive(messages)
	runtime.KeepAlive(agent)
	return []figure{
		report("history_message_in_a_slice", slice.per(before, longHistory).heap, octets),
		report("history_message_in_an_agent", set.per(slice, longHistory).heap, octets),
		report("history_message_after_a_run", ran.per(slice, longHistory).heap, octets),
	}, nil
}
