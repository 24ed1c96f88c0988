package main

import (
	"context"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/agentkernel-go/agentkernel"
)

// item is as large as an event and holds pointers as one does.
type item struct {
	message agentkernel.AgentMessage
	delta   string
	at      time.Time
	_       [sizeOfEvent - unsafe.Sizeof(agentkernel.AgentMessage(nil)) - unsafe.Sizeof("") - unsafe.Sizeof(time.Time{})]byte
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

// floorHand calls a function with a copy of an item, n times: what each further listener costs by
// itself.
func floorHand(n int) program {
	run := func(context.Context) (Done, error) {
		done := Done{Turns: 1}
		it := item{delta: deltaText}
		hand(n, &it, func(it item) {
			done.Deltas++
			done.Bytes += len(it.delta)
		})
		return done, nil
	}
	want := textDone(n, deltaText)
	want.Text = ""
	return program{name: "hand", units: n, run: run, want: want}
}

// hand is to floorHand what each is to floorCallback.
//
//go:noinline
func hand(n int, it *item, fn func(item)) {
	for range n {
		fn(*it)
	}
}

// What a turn with one call cannot do without, as the contract is: its ten events, each with the
// time; the nine messages that they, the history and the state show, which share no blocks; and two
// visits to user code, which may stay away, with a context each that ends alone, and a timer for
// the model that falls silent.
const (
	eventsOfATurn   = 10
	messagesOfATurn = 9
	visitsOfATurn   = 2
)

// ownMessage is a message with a block of its own.
type ownMessage struct {
	agentkernel.Message
	block [1]agentkernel.ContentBlock
}

func newOwnMessage() agentkernel.AgentMessage {
	m := &ownMessage{Message: agentkernel.Message{Role: agentkernel.RoleAssistant}}
	m.Content = m.block[:]
	return m
}

// floorTurns makes n such turns, with nothing between what they need.
func floorTurns(n int) program {
	run := func(ctx context.Context) (Done, error) {
		items := make(chan item, floorBuffer)
		var history []agentkernel.AgentMessage
		go func() { // ends once the loop below has read all
			for range n {
				floorTurn(ctx, items, &history)
			}
			close(items)
		}()
		done := Done{Turns: n, Calls: n}
		var state sync.Mutex
		for it := range items {
			state.Lock()
			done.Deltas += len(it.delta) / len(deltaText)
			state.Unlock()
			done.Bytes += len(it.delta)
		}
		return done, nil
	}
	want := Done{Turns: n, Calls: n, Deltas: n, Bytes: n * len(deltaText)}
	return program{name: "floor", units: n, run: run, want: want}
}

func floorTurn(ctx context.Context, items chan<- item, history *[]agentkernel.AgentMessage) {
	for range visitsOfATurn {
		visitCtx, cancel := context.WithCancelCause(ctx)
		back := make(chan string, 1)
		go func() { back <- deltaText }() // ends at once: there is room
		<-back
		cancel(nil)
		runtime.KeepAlive(visitCtx)
	}
	silence := time.AfterFunc(time.Minute, func() {})
	for i := range eventsOfATurn {
		it := item{at: time.Now()}
		if i < messagesOfATurn {
			it.message = newOwnMessage()
		}
		if i == 0 {
			it.delta = deltaText
			*history = append(*history, it.message)
		}
		items <- it
	}
	silence.Stop()
}

func floorRaces(b *bench) []race {
	n := b.size(10_000)
	return []race{{name: "floor", programs: []program{floorChannel(n), floorAppend(n), floorCallback(n), floorVisit(n), floorHand(n)}}}
}

func floorFigures(_ *bench, res results) ([]figure, error) {
	return []figure{
		report("floor_channel", res.of("floor/channel", nanoseconds), nanos),
		report("floor_append", res.of("floor/append", nanoseconds), nanos),
		report("floor_callback", res.of("floor/callback", nanoseconds), nanos),
		report("floor_visit", res.of("floor/visit", nanoseconds), nanos),
		report("floor_hand", res.of("floor/hand", nanoseconds), nanos),
		report("event_size", float64(sizeOfEvent), octets),
	}, nil
}

// The floor copies what the kernel copies.
const (
	sizeOfItem  = unsafe.Sizeof(item{})
	sizeOfEvent = unsafe.Sizeof(agentkernel.Event{})
)
