package agentkernel_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// eventful is an agent whose runs bring every event that changes a state.
func eventful(t testing.TB) *watched {
	t.Helper()
	return watch(t, agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Text("lost").Usage(agentkernel.Usage{Input: 4, Total: 4}).Fail(failure(agentkernel.KindServer, true)),
			agenttest.Thinking("hm").Text("look").Calls("echo", "bad").Usage(agentkernel.Usage{Input: 10, Output: 5, Total: 15}).Chunks(2),
			agenttest.Text("done").Usage(agentkernel.Usage{Input: 20, Output: 5}),
			agenttest.Text("second"),
			agenttest.Text("par").Fail(failure(agentkernel.KindAuth, false)),
		),
		Tools: []agentkernel.Tool{echo("echo")},
		Retry: agentkernel.RetryPolicy{BaseDelay: -1},
	})
}

// TestReducingGivesTheLiveState at every event, from the state that the recording began with.
func TestReducingGivesTheLiveState(t *testing.T) {
	agent := eventful(t)
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("before"), mark("m")))
	reduced := agent.State()
	n := 0
	agent.Subscribe(func(ev agentkernel.Event) {
		reduced = agentkernel.Reduce(reduced, ev)
		require.Empty(t, differ(reduced, agent.State()), "%d %s", ev.Seq, ev.Type)
		n++
	})
	for range 3 {
		_, err := agent.Run(t.Context(), "hi")
		require.Equal(t, agent.State().Err, err)
	}
	require.Len(t, agent.events(), n)
	require.ErrorIs(t, agent.State().Err, agentkernel.KindAuth)
	require.Equal(t, 4, agent.State().DiscardedUsage.Total)
	require.Equal(t, 30, agent.State().TotalUsage.Input)
	require.Equal(t, 25, *agent.State().ContextTokens, "input and output where there is no total")
}

// TestRecordedStreamRebuildsTheState from nothing, replacements between runs included.
func TestRecordedStreamRebuildsTheState(t *testing.T) {
	agent := eventful(t)
	rebuild := func() {
		t.Helper()
		var state agentkernel.AgentState
		for _, ev := range agent.events() {
			state = agentkernel.Reduce(state, ev)
		}
		require.Empty(t, differ(state, agent.State()))
	}
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("before")))
	require.Equal(t, []string{"user: before"}, said(agent.Messages()), "it holds at once")
	_, err := agent.Run(t.Context(), "one")
	require.NoError(t, err)
	rebuild()
	replaced := ofType(agent.events(), agentkernel.EventContext)
	require.Len(t, replaced, 1)
	require.Equal(t, agentkernel.ContextSetMessages, replaced[0].Context.Reason)

	require.NoError(t, agent.Reset())
	require.Empty(t, agent.Messages())
	require.Zero(t, agent.State().TotalUsage)
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("after")))
	_, err = agent.Run(t.Context(), "two")
	require.NoError(t, err)
	rebuild()
	replaced = ofType(agent.events(), agentkernel.EventContext)
	require.Len(t, replaced, 2, "replacements before one run are one")
	require.Equal(t, agentkernel.ContextReset, replaced[1].Context.Reason, "which clears the usage too")
	require.Equal(t, 25, replaced[1].Context.TokensBefore)

	_, err = agent.Run(t.Context(), "three")
	require.ErrorIs(t, err, agentkernel.KindAuth)
	rebuild()
	require.Len(t, ofType(agent.events(), agentkernel.EventContext), 2)
}

// TestReplacingClearsContextTokens until the next response, and no usage.
func TestReplacingClearsContextTokens(t *testing.T) {
	agent := eventful(t)
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NotNil(t, agent.State().ContextTokens)
	total := agent.State().TotalUsage
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("a summary")))
	require.Nil(t, agent.State().ContextTokens)
	require.Equal(t, total, agent.State().TotalUsage)
}

// TestReduceIsPure: two callers reduce one state, each to its own end, also at once.
func TestReduceIsPure(t *testing.T) {
	agent := eventful(t)
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	base := agent.State()
	want := said(base.Messages)
	end := func(text string) agentkernel.Event {
		return agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: base.RunID, Message: agentkernel.UserMessage(text)}
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			state, name := base, fmt.Sprint(i)
			for j := range 100 {
				state = agentkernel.Reduce(state, end(fmt.Sprint(name, " ", j)))
				state = agentkernel.Reduce(state, agentkernel.Event{Type: agentkernel.EventToolExecStart, RunID: base.RunID, ToolID: name})
				if len(state.PendingToolCalls) != 1 || state.PendingToolCalls[0] != name {
					t.Errorf("pending: %v", state.PendingToolCalls)
				}
				state = agentkernel.Reduce(state, agentkernel.Event{Type: agentkernel.EventToolExecEnd, RunID: base.RunID, ToolID: name})
			}
			for j, m := range state.Messages[len(want):] {
				if m.TextContent() != fmt.Sprint(name, " ", j) {
					t.Errorf("message %d of %s is %q", j, name, m.TextContent())
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, want, said(base.Messages))
	_, err = agent.Run(t.Context(), "again") // the live state went on from the same base
	require.NoError(t, err)
	require.Equal(t, want, said(agent.Messages())[:len(want)])
	require.Equal(t, "user: again", said(agent.Messages())[len(want)])
}

// TestReduceBranches: of one state can be made two, and neither sees the other's future.
func TestReduceBranches(t *testing.T) {
	of := func(s agentkernel.AgentState, kind agentkernel.EventType, text string) agentkernel.AgentState {
		ev := agentkernel.Event{Type: kind, RunID: "1"}
		if kind == agentkernel.EventMessageEnd {
			ev.Message = agentkernel.UserMessage(text)
		} else {
			ev.ToolID = text
		}
		return agentkernel.Reduce(s, ev)
	}
	base := of(agentkernel.AgentState{}, agentkernel.EventAgentStart, "")
	for _, id := range []string{"a", "b", "c"} {
		base = of(base, agentkernel.EventMessageEnd, id)
		base = of(base, agentkernel.EventToolExecStart, id)
	}
	left, right := of(base, agentkernel.EventMessageEnd, "left"), of(base, agentkernel.EventMessageEnd, "right")
	require.Equal(t, []string{"user: a", "user: b", "user: c", "user: left"}, said(left.Messages))
	require.Equal(t, []string{"user: a", "user: b", "user: c", "user: right"}, said(right.Messages))
	left, right = of(base, agentkernel.EventToolExecEnd, "a"), of(base, agentkernel.EventToolExecEnd, "b")
	require.Equal(t, []string{"b", "c"}, left.PendingToolCalls)
	require.Equal(t, []string{"a", "c"}, right.PendingToolCalls)
	require.Equal(t, []string{"a", "b", "c"}, base.PendingToolCalls)
	left, right = of(base, agentkernel.EventToolExecStart, "d"), of(base, agentkernel.EventToolExecStart, "e")
	require.Equal(t, []string{"a", "b", "c", "d"}, left.PendingToolCalls)
	require.Equal(t, []string{"a", "b", "c", "e"}, right.PendingToolCalls)
}

// TestKeptStatesNeverChange, whatever came later.
func TestKeptStatesNeverChange(t *testing.T) {
	agent := eventful(t)
	type kept struct {
		state  agentkernel.AgentState
		looked string
	}
	look := func(s agentkernel.AgentState) string {
		stream := ""
		if s.StreamMessage != nil {
			stream = look(s.StreamMessage)
		}
		return fmt.Sprint(said(s.Messages), stream, s.PendingToolCalls, s.TotalUsage, s.DiscardedUsage, s.IsRunning, s.RunID, s.Err)
	}
	var all []kept
	var wg sync.WaitGroup
	agent.Subscribe(func(agentkernel.Event) {
		s := agent.State()
		all = append(all, kept{s, look(s)})
		wg.Go(func() { _ = look(s) })
	})
	for range 3 {
		_, _ = agent.Run(t.Context(), "hi")
	}
	require.NoError(t, agent.Reset())
	wg.Wait()
	for _, k := range all {
		require.Equal(t, k.looked, look(k.state))
	}
}

// TestStateDuringARun shows what is open, and from AgentStart to AgentEnd that it runs.
func TestStateDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("wait"), agenttest.Text("never")),
			Tools: []agentkernel.Tool{waiter("wait")},
		})
		var running []bool
		agent.Subscribe(func(ev agentkernel.Event) {
			s := agent.State()
			running = append(running, s.IsRunning)
			switch ev.Type {
			case agentkernel.EventMessageUpdate:
				require.Equal(t, ev.Message, s.StreamMessage)
			case agentkernel.EventMessageEnd:
				require.Nil(t, s.StreamMessage)
				require.Equal(t, ev.Message, s.Messages[len(s.Messages)-1])
			}
		})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"call_1"}, agent.State().PendingToolCalls)
		require.Equal(t, run.ID(), agent.State().RunID)
		cause := errors.New("enough")
		run.Abort(cause)
		_, err = run.Wait(t.Context())
		require.ErrorIs(t, err, cause)
		require.Empty(t, agent.State().PendingToolCalls)
		require.Equal(t, err, agent.State().Err)
		for i, is := range running {
			require.Equal(t, i < len(running)-1, is)
		}
	})
}

// TestReduceOfChildRuns: what a tool's run says on the same stream changes nothing.
func TestReduceOfChildRuns(t *testing.T) {
	s := agentkernel.Reduce(agentkernel.AgentState{}, agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "1"})
	for _, of := range []agentkernel.EventType{agentkernel.EventAgentStart, agentkernel.EventMessageStart, agentkernel.EventMessageEnd, agentkernel.EventAgentEnd} {
		after := agentkernel.Reduce(s, agentkernel.Event{Type: of, RunID: "2", ParentRunID: "1", Message: agentkernel.UserMessage("child")})
		require.Equal(t, s, after)
	}
}
