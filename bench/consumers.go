package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

const (
	consumerDeltas = 10_000
	wholeDeltas    = 1_000 // of the whole form, whose bytes grow with the square of the text
)

// asyncRun is a run of an Agent with one asynchronous listener, which takes so long for each
// event, until the listener has had everything. Merged updates count for all they stand for.
func asyncRun(n int, pause time.Duration) Run {
	s := &source{text: deltaText, n: n}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: s})
	if err != nil {
		return failed(err)
	}
	var saw Done
	sub := agent.SubscribeAsync(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			saw.Deltas += 1 + ev.Coalesced
			saw.Bytes += len(ev.Delta)
		}
		if pause > 0 {
			time.Sleep(pause)
		}
	}, agentkernel.AsyncOptions{})
	return func(ctx context.Context) (Done, error) {
		s.begin()
		saw = Done{}
		record, err := agent.Run(ctx, "hi")
		if err != nil {
			return Done{}, err
		}
		if err := sub.Drain(ctx); err != nil {
			return Done{}, err
		}
		if err := agent.Reset(); err != nil {
			return Done{}, err
		}
		return s.seen(saw.Deltas, saw.Bytes, record.NewMessages), nil
	}
}

// recorded is the events of a run of n deltas.
func recorded(n int) []agentkernel.Event {
	var events []agentkernel.Event
	cfg := agentkernel.Config{Model: &source{text: deltaText, n: n}}
	for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("hi")) {
		events = append(events, ev)
	}
	return events
}

// encoding is a program over recorded events: code makes of one what a consumer of it counts.
func encoding(name string, n int, begin func() (code func(i int) (agentkernel.Event, error)), events int) program {
	run := func(context.Context) (Done, error) {
		code := begin()
		done := Done{Turns: 1}
		for i := range events {
			ev, err := code(i)
			if err != nil {
				return Done{}, err
			}
			switch ev.Type {
			case agentkernel.EventMessageUpdate:
				done.Deltas++
				done.Bytes += len(ev.Delta)
			case agentkernel.EventAgentEnd:
				done.Text = ev.NewMessages[len(ev.NewMessages)-1].TextContent()
			}
		}
		return done, nil
	}
	return program{name: name, units: n, run: run, want: textDone(n, deltaText)}
}

// encodings are the two forms of the wire, and the way back of the one that is linear.
func encodings(b *bench) ([]program, error) {
	n, wholeN := b.size(consumerDeltas), b.size(wholeDeltas)
	events, few := recorded(n), recorded(wholeN)
	lines := make([][]byte, len(events))
	var enc agentkernel.Encoder
	for i, ev := range events {
		line, err := enc.Encode(ev)
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	return []program{
		encoding("encode_delta", n, func() func(int) (agentkernel.Event, error) {
			var enc agentkernel.Encoder
			return func(i int) (agentkernel.Event, error) {
				_, err := enc.Encode(events[i])
				return events[i], err
			}
		}, len(events)),
		encoding("decode_delta", n, func() func(int) (agentkernel.Event, error) {
			var dec agentkernel.Decoder
			return func(i int) (agentkernel.Event, error) { return dec.Decode(lines[i]) }
		}, len(lines)),
		encoding("encode_whole", wholeN, func() func(int) (agentkernel.Event, error) {
			return func(i int) (agentkernel.Event, error) {
				_, err := json.Marshal(few[i])
				return few[i], err
			}
		}, len(few)),
	}, nil
}

func consumersRaces(b *bench) []race {
	n := b.size(consumerDeltas)
	programs, err := encodings(b)
	if err != nil {
		programs = []program{{name: "encodings", units: 1, run: failed(err)}}
	}
	return []race{
		{"async", []program{
			textProgram("sync", n, agentRun(&source{text: deltaText, n: n}, 1)),
			textProgram("async", n, asyncRun(n, 0)),
			textProgram("async_slow", n, asyncRun(n, time.Millisecond)),
		}},
		{"encodings", programs},
	}
}

func consumersFigures(_ *bench, res results) ([]figure, error) {
	return []figure{
		report("async_listener", res.of("async/async", nanoseconds), nanos),
		report("async_listener_of_1ms", res.of("async/async_slow", nanoseconds), nanos),
		report("async_over_sync", res.ratio("async/async", "async/sync"), ratio),
		report("async_of_1ms_over_sync", res.ratio("async/async_slow", "async/sync"), ratio),
		report("async_allocations_per_delta", res.of("async/async", allocations), allocs),
		report("encode_delta_only", res.of("encodings/encode_delta", nanoseconds), nanos),
		report("encode_delta_only_allocations", res.of("encodings/encode_delta", allocations), allocs),
		report("encode_whole_1000_deltas", res.of("encodings/encode_whole", nanoseconds), nanos),
		report("decode_delta_only", res.of("encodings/decode_delta", nanoseconds), nanos),
		report("decode_delta_only_allocations", res.of("encodings/decode_delta", allocations), allocs),
	}, nil
}
