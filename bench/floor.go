package main

import (
	"context"
	"time"
	"unsafe"

	"github.com/agentkernel-go/agentkernel"
)

// item is as large as an event and holds pointers as one does.
type item struct {
	message agentkernel.AgentMessage
	delta   string
	_       [sizeOfEvent - unsafe.Sizeof(agentkernel.AgentMessage(nil)) - unsafe.Sizeof("")]byte
}

const floorBuffer = 128

// floorChannel passes n deltas through a channel between two goroutines, with one message on
// the heap for each: what a stream of events costs by itself.
func floorChannel(n int) program {
	began := time.Now()
	run := func(context.Context) (Done, error) {
		items := make(chan item, floorBuffer)
		go func() { // ends once the loop below has read all
			for range n {
				items <- item{
					message: agentkernel.Message{Role: agentkernel.RoleAssistant, Timestamp: began},
					delta:   deltaText,
				}
			}
			close(items)
		}()
		done := Done{Turns: 1}
		for it := range items {
			done.Deltas++
			done.Bytes += len(it.delta)
		}
		return done, nil
	}
	want := textDone(n, deltaText)
	want.Text = "" // nobody puts it together
	return program{name: "channel", units: n, run: run, want: want}
}

// floorAppend appends n deltas to a buffer and takes a view of the whole after each: what the
// text so far costs by itself.
func floorAppend(n int) program {
	run := func(context.Context) (Done, error) {
		var buf []byte
		done := Done{Turns: 1}
		for range n {
			buf = append(buf, deltaText...)
			view := unsafe.String(unsafe.SliceData(buf), len(buf))
			done.Deltas++
			done.Bytes += len(view) - len(done.Text)
			done.Text = view
		}
		return done, nil
	}
	return program{name: "append", units: n, run: run, want: textDone(n, deltaText)}
}

// floorCallback calls a function with each of n deltas.
func floorCallback(n int) program {
	run := func(context.Context) (Done, error) {
		done := Done{Turns: 1}
		each(n, func(delta string) {
			done.Deltas++
			done.Bytes += len(delta)
		})
		return done, nil
	}
	want := textDone(n, deltaText)
	want.Text = ""
	return program{name: "callback", units: n, run: run, want: want}
}

// each calls fn n times. It is a function of its own so that the call stays one.
//
//go:noinline
func each(n int, fn func(string)) {
	for range n {
		fn(deltaText)
	}
}

// floorVisit has n calls of a function made on goroutines of their own, one after the other, each
// of which sends its result: what a fence around user code costs by itself.
func floorVisit(n int) program {
	run := func(context.Context) (Done, error) {
		done := Done{Turns: 1}
		for range n {
			back := make(chan string, 1)
			go func() { back <- deltaText }() // ends at once: there is room
			done.Deltas++
			done.Bytes += len(<-back)
		}
		return done, nil
	}
	want := textDone(n, deltaText)
	want.Text = ""
	return program{name: "visit", units: n, run: run, want: want}
}

func floorRaces(b *bench) []race {
	n := b.size(10_000)
	return []race{{name: "floor", programs: []program{floorChannel(n), floorAppend(n), floorCallback(n), floorVisit(n)}}}
}

// A turn with one call is ten events and two visits to user code.
const (
	eventsOfATurn = 10
	visitsOfATurn = 2
)

func floorFigures(_ *bench, res results) ([]figure, error) {
	event, visit := res.of("floor/channel", nanoseconds), res.of("floor/visit", nanoseconds)
	return []figure{
		report("floor_channel", event, nanos),
		report("floor_append", res.of("floor/append", nanoseconds), nanos),
		report("floor_callback", res.of("floor/callback", nanoseconds), nanos),
		report("floor_visit", visit, nanos),
		report("floor_turn", eventsOfATurn*event+visitsOfATurn*visit, nanos),
		report("event_size", float64(sizeOfEvent), octets),
	}, nil
}

// The floor copies what the kernel copies.
const (
	sizeOfItem  = unsafe.Sizeof(item{})
	sizeOfEvent = unsafe.Sizeof(agentkernel.Event{})
)
