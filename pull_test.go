package agentkernel_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestEvents yields what listeners get, run after run, until its context ends.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 4)
		_, err := agent.Run(t.Context(), "before")
		require.NoError(t, err)
		before := len(agent.events())

		ctx, cancel := context.WithCancel(t.Context())
		events := agent.Events(ctx)
		var got []agentkernel.Event
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ev := range events {
				got = append(got, ev)
			}
		}()
		for range 2 {
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
		}
		cancel()
		<-done
		require.Equal(t, agent.events()[before:], got)
		_, err = agent.Run(t.Context(), "after")
		require.NoError(t, err)
	})
}

// TestEventsFromItsCallOn: a run that starts before the loop does is seen whole, and waits.
func TestEventsFromItsCallOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 1)
		events := agent.Events(t.Context())
		_, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Len(t, agent.events(), 1)
		var got []agentkernel.Event
		for ev := range events {
			if got = append(got, ev); ev.Type == agentkernel.EventAgentEnd {
				break
			}
		}
		require.NoError(t, agenttest.CheckEvents(got))
	})
}

// TestEventsHoldsTheRunBack as a listener does.
func TestEventsHoldsTheRunBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("x", 100)).Chunks(1)), EventBuffer: 2})
		events := agent.Events(t.Context())
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		n := 0
		for ev := range events {
			n++
			time.Sleep(time.Second)
			synctest.Wait()
			require.LessOrEqual(t, len(agent.events()), n+1, "the agent is one event ahead")
			if ev.Type == agentkernel.EventAgentEnd {
				break
			}
		}
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, int(final(agent.events()).Seq), n)
	})
}

// TestEventsLeftEarly unsubscribes: the run goes on, and so do later ones.
func TestEventsLeftEarly(t *testing.T) {
	agent := chatty(t, 2)
	events := agent.Events(t.Context())
	run, err := agent.Prompt(t.Context(), "hi")
	require.NoError(t, err)
	for ev := range events {
		if ev.Type == agentkernel.EventMessageUpdate {
			break
		}
	}
	record, err := run.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello world", record.Answer)
	for range events {
		t.Error("it is for one loop")
	}
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
}

// TestEventsContext: its end stops the loop, also in the middle of a run, which goes on, and
// frees a run that waits for a loop that never begins.
func TestEventsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		agent.Events(ctx) // nobody ranges over this one
		events := agent.Events(ctx)
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, agent.events(), 1)
		cancel()
		for range events {
			t.Error("the context has ended")
		}
		_, err = run.Wait(t.Context())
		require.NoError(t, err)

		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		events = agent.Events(ctx)
		run, err = agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		var got []agentkernel.Event
		for ev := range events {
			got = append(got, ev)
			cancel()
		}
		require.Len(t, got, 1, "none after the context has ended")
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
	})
}

// TestEventsPulled: without a loop, and by one that stops before it has begun.
func TestEventsPulled(t *testing.T) {
	agent := chatty(t, 2)
	next, stop := iter.Pull(agent.Events(t.Context()))
	run, err := agent.Prompt(t.Context(), "hi")
	require.NoError(t, err)
	ev, ok := next()
	require.True(t, ok)
	require.Equal(t, agentkernel.EventAgentStart, ev.Type)
	stop()
	_, err = run.Wait(t.Context())
	require.NoError(t, err)
}

// TestEventsInsideAListener yields nothing, for it would wait for itself.
func TestEventsInsideAListener(t *testing.T) {
	agent := chatty(t, 1)
	agent.Subscribe(func(agentkernel.Event) {
		for range agent.Events(context.Background()) {
			t.Error("a listener waits for itself")
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
}

// TestEventsLeftCostsNothing: neither the agent nor the context remembers a loop that was left.
func TestEventsLeftCostsNothing(t *testing.T) {
	agent := chatty(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agentkernel.On(agent.Agent, func(agentkernel.RunStarted) {
		before := heap()
		for range 5000 {
			for range agent.Events(ctx) { // inside a listener it is left at once
				t.Error("a listener waits for itself")
			}
		}
		require.Less(t, heap(), before+256<<10)
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
}

// TestStreamLeftByPanic unsubscribes as break does.
func TestStreamLeftByPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 1)
		require.Panics(t, func() {
			for range agent.Stream(t.Context(), agentkernel.UserMessage("hi")) {
				panic("the consumer")
			}
		})
		synctest.Wait()
		require.False(t, agent.State().IsRunning)
		require.Equal(t, []string{"user: hi", "assistant: hello world"}, said(agent.Messages()))
	})
}
