package session_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// TestSubscribersInOrder: each event to all subscribers, in the order of their registration,
// before the next event; one that is removed hears no more.
func TestSubscribersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, memoryStore(t), agenttest.Script(agenttest.Text("a"), agenttest.Text("b")), session.Config{})
		var heard []string
		for _, name := range []string{"x", "y"} {
			o.Subscribe(func(ev session.SessionEvent) { heard = append(heard, name+strconv.FormatUint(ev.Seq, 10)) })
		}
		remove := o.Subscribe(func(session.SessionEvent) { heard = append(heard, "z") })
		remove()
		remove()
		require.NoError(t, o.prompt("hi"))
		for i, ev := range o.all() {
			seq := strconv.FormatUint(ev.Seq, 10)
			require.Equal(t, []string{"x" + seq, "y" + seq}, heard[2*i:2*i+2])
		}
		require.Len(t, heard, 2*len(o.all()))
		require.Panics(t, func() { o.Subscribe(nil) })
	})
}

// TestSubscriberMakesEvents: what a subscriber causes comes behind the event that it was called
// with, for everyone, and nothing waits for itself.
func TestSubscriberMakesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, memoryStore(t), agenttest.Script(agenttest.Text("a"), agenttest.Text("b")), session.Config{})
		o.Subscribe(func(ev session.SessionEvent) {
			switch {
			case ev.Type == session.EventThinkingChanged && ev.Changed.To == "low":
				require.NoError(t, o.SetThinking(context.Background(), agentkernel.ThinkingHigh))
			case ev.AgentEvent == nil:
			case ev.AgentEvent.Type == agentkernel.EventTurnStart && ev.AgentEvent.Turn == 1 && o.Thinking() == "":
				require.NoError(t, o.SetThinking(context.Background(), agentkernel.ThinkingLow))
			case ev.AgentEvent.Type == agentkernel.EventAgentEnd && len(o.State().Messages) == 2:
				_, err := o.Prompt(context.Background(), "again") // a run that starts where one ends
				require.NoError(t, err)
			}
		})
		require.NoError(t, o.prompt("hi"))
		o.close()
		require.Equal(t, []string{"turn_start", "thinking_changed", "thinking_changed", "agent_end", "turn_start", "agent_end"},
			o.order(agentkernel.EventTurnStart, agentkernel.EventAgentEnd))
		require.Equal(t, []string{"user: hi", "assistant: a", "user: again", "assistant: b"}, texts(o.State().Messages))
	})
}

// TestSubscriberThatFails: a panic, or leaving the goroutine, stays in the subscriber. The others
// hear everything, the run goes on, and a session_error tells.
func TestSubscriberThatFails(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("oops") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(agenttest.Fail(kernelError(agentkernel.KindServer, true)), agenttest.Text("a"))
				o := open(t, memoryStore(t), model, session.Config{Agent: agentkernel.Config{Retry: noJitter,
					OnListenerPanic: func(any, []byte, agentkernel.Event) {}}}) // the kernel hears of who leaves its goroutine
				o.Subscribe(func(ev session.SessionEvent) {
					if ev.Type == session.EventError || ev.AgentEvent != nil && ev.AgentEvent.Type != agentkernel.EventMessageUpdate {
						fail()
					}
				})
				behind := 0
				o.Subscribe(func(session.SessionEvent) { behind++ })
				require.NoError(t, o.prompt("hi"))
				synctest.Wait()
				require.Equal(t, len(o.all()), behind)
				kernel := 0
				for _, ev := range o.all() {
					if ev.AgentEvent != nil && ev.AgentEvent.Type != agentkernel.EventMessageUpdate {
						kernel++
					}
				}
				failed := o.own(session.EventError)
				require.Len(t, failed, kernel, "one for each, and none for those about it")
				require.Equal(t, "subscriber", failed[0].Error.Op)
				require.Equal(t, []string{"user: hi", "assistant: a"}, texts(o.State().Messages))
				require.Len(t, o.own(session.EventRetryStart, session.EventRetryEnd), 2, "the session does its work")
				calls, err := o.Calls(t.Context())
				require.NoError(t, err)
				require.Len(t, calls, 2)
			})
		})
	}
}

// TestManyWhoMakeEvents: however many goroutines make events while a run streams, everyone hears
// all of them in one order.
func TestManyWhoMakeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := agenttest.Reply{}
		for range 200 {
			reply = reply.Text("word ")
		}
		o := open(t, memoryStore(t), agenttest.Script(reply.Delay(time.Millisecond)), session.Config{})
		var other []uint64
		o.Subscribe(func(ev session.SessionEvent) { other = append(other, ev.Seq) })
		run, err := o.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		levels := []agentkernel.ThinkingLevel{agentkernel.ThinkingLow, agentkernel.ThinkingHigh}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 40 {
					_ = o.SetThinking(context.Background(), levels[(i+j)%2])
					time.Sleep(time.Duration(i+1) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		require.NoError(t, ended(run))
		synctest.Wait()
		require.Len(t, other, len(o.all()))
		before := ""
		for _, ev := range o.own(session.EventThinkingChanged) {
			require.Equal(t, before, ev.Changed.From, "each change begins where the one before ended")
			before = ev.Changed.To
		}
	})
}
