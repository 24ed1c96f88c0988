package agentkernel_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// leftOpen is a history that ends in calls "a" and "b" of a tool, and these as a run leaves them.
func leftOpen(t testing.TB) ([]agentkernel.AgentMessage, []agentkernel.Suspension) {
	t.Helper()
	asked := 0
	log := play(t, agentkernel.Config{Gate: suspender(&asked, "t"), Tools: []agentkernel.Tool{echo("t")},
		Model: agenttest.Script(agenttest.Call("a", "t", `{"n":1}`).Call("b", "t", `{"n":2}`))})
	require.Equal(t, agentkernel.EndSuspended, endReason(log))
	return final(log).NewMessages, final(log).Summary.Suspended
}

// TestResumeInABareLoop: Config.Resume says what Agent.Resume does.
func TestResumeInABareLoop(t *testing.T) {
	history, open := leftOpen(t)
	for name, tt := range map[string]struct {
		resume  agentkernel.Resumption
		prompts []agentkernel.AgentMessage
		ends    []string
		reason  agentkernel.EndReason
		asked   int
	}{
		"with answers":  {agentkernel.Resumption{Suspended: open, Answers: answers{"a": yes, "b": {}}}, nil, []string{"t ok", "t denied"}, agentkernel.EndStop, 0},
		"with one":      {agentkernel.Resumption{Suspended: open, Answers: answers{"a": yes}}, nil, []string{"t ok", "t not_started"}, agentkernel.EndSuspended, 1},
		"without":       {agentkernel.Resumption{Suspended: open}, nil, []string{"t not_started"}, agentkernel.EndSuspended, 1},
		"with a prompt": {agentkernel.Resumption{Suspended: open}, list(agentkernel.UserMessage("no")), []string{"t skipped", "t skipped"}, agentkernel.EndStop, 0},
		"with both":     {agentkernel.Resumption{Suspended: open, Answers: answers{"b": yes}}, list(agentkernel.UserMessage("only b")), []string{"t skipped", "t ok"}, agentkernel.EndStop, 0},
		"one of two":    {agentkernel.Resumption{Suspended: open[1:], Answers: answers{"b": yes}}, nil, []string{"t interrupted", "t ok"}, agentkernel.EndStop, 0},
		"of nothing":    {agentkernel.Resumption{}, nil, []string{"t interrupted", "t interrupted"}, agentkernel.EndStop, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			log := agenttest.Run(t, agentkernel.Config{Resume: &tt.resume, Gate: suspender(&asked, "t"), Tools: []agentkernel.Tool{echo("t")},
				Model: agenttest.Script(agenttest.Text("ok"))}, history, tt.prompts...)
			require.Equal(t, tt.reason, endReason(log))
			require.Equal(t, tt.ends, ended(log))
			require.Equal(t, tt.asked, asked)
		})
	}
}

// TestResumeIsBoundToTheCall: what is not the very call that is open is refused.
func TestResumeIsBoundToTheCall(t *testing.T) {
	history, open := leftOpen(t)
	changed := func(change func(*agentkernel.Suspension)) []agentkernel.Suspension {
		out := slices.Clone(open)
		change(&out[0])
		return out
	}
	for name, tt := range map[string]struct {
		resume  agentkernel.Resumption
		history []agentkernel.AgentMessage
	}{
		"another id":        {agentkernel.Resumption{Suspended: changed(func(s *agentkernel.Suspension) { s.Call.ID = "x" })}, history},
		"another tool":      {agentkernel.Resumption{Suspended: changed(func(s *agentkernel.Suspension) { s.Call.Name = "x" })}, history},
		"other arguments":   {agentkernel.Resumption{Suspended: changed(func(s *agentkernel.Suspension) { s.Call.Args = json.RawMessage(`{"n":7}`) })}, history},
		"no arguments":      {agentkernel.Resumption{Suspended: changed(func(s *agentkernel.Suspension) { s.Call.Args = nil })}, history},
		"a call twice":      {agentkernel.Resumption{Suspended: append(slices.Clone(open), open[0])}, history},
		"an unknown answer": {agentkernel.Resumption{Suspended: open, Answers: answers{"x": yes}}, history},
		"no suspension":     {agentkernel.Resumption{Answers: answers{"a": yes}}, history},
		"nothing open":      {agentkernel.Resumption{Suspended: open}, history[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			log := agenttest.Run(t, agentkernel.Config{Resume: &tt.resume, Tools: []agentkernel.Tool{echo("t")},
				Model: agenttest.Script(agenttest.Text("ok"))}, tt.history)
			require.ErrorIs(t, final(log).Err, agentkernel.KindInvalidRequest)
			require.Empty(t, ofType(log, agentkernel.EventToolExecStart))
		})
	}
	// Through JSON, however it is set, it is the same call.
	raw, err := json.MarshalIndent(open, "", "\t")
	require.NoError(t, err)
	var back []agentkernel.Suspension
	require.NoError(t, json.Unmarshal(raw, &back))
	log := agenttest.Run(t, agentkernel.Config{Resume: &agentkernel.Resumption{Suspended: back, Answers: answers{"a": yes, "b": yes}},
		Tools: []agentkernel.Tool{echo("t")}, Model: agenttest.Script(agenttest.Text("ok"))}, history)
	require.Equal(t, []string{"t ok", "t ok"}, ended(log))
}

// TestResumptionIsKnownBeforeItsCalls: no call is executed before every listener has heard
// that the run began, and the state shows nothing suspended.
func TestResumptionIsKnownBeforeItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, _, ran := suspended(t, agentkernel.Config{})
		slow := true
		agentkernel.On(agent.Agent, func(agentkernel.RunStarted) {
			require.Empty(t, agent.State().Suspended)
			time.Sleep(time.Hour)
			require.Zero(t, *ran)
			slow = false
		})
		run, err := agent.Resume(t.Context(), answers{"a": yes, "b": yes})
		wait(t, run, err)
		require.False(t, slow)
		require.Equal(t, 2, *ran)
	})
}

// TestAbortBeforeAResumptionIsKnown does not wait for a slow listener to execute anything.
func TestAbortBeforeAResumptionIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, _, ran := suspended(t, agentkernel.Config{})
		agentkernel.On(agent.Agent, func(agentkernel.RunStarted) { time.Sleep(time.Hour) })
		run, err := agent.Resume(t.Context(), answers{"a": yes, "b": yes})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		run.Abort(nil)
		_, err = run.Wait(t.Context())
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Zero(t, *ran)
	})
}

// TestRepairedCallIsAnsweredAsAsked: a person who allowed repaired arguments gets these, not
// what another repair makes of the call.
func TestRepairedCallIsAnsweredAsAsked(t *testing.T) {
	asked, repairs := 0, 0
	agent := watchLoosely(t, agentkernel.Config{Gate: suspender(&asked, "t"), Tools: []agentkernel.Tool{echo("t")},
		Model: agenttest.Script(agenttest.Call("a", "t", `{"n": x}`), agenttest.Text("ok")),
		RepairToolCall: func(context.Context, agentkernel.RepairRequest) (json.RawMessage, error) {
			repairs++
			return json.RawMessage([]string{`{"n": 1}`, `{"n":2}`}[repairs-1]), nil
		}})
	run, err := agent.Prompt(t.Context(), "hi")
	record := wait(t, run, err)
	require.Equal(t, `{"n":1}`, string(record.Summary.Suspended[0].Args))
	require.Equal(t, `{}`, string(record.Summary.Suspended[0].Call.Args))
	run, err = agent.Resume(t.Context(), answers{"a": yes})
	wait(t, run, err)
	require.Equal(t, 1, repairs)
	require.Equal(t, "tool: {\"n\":1}", said(agent.Messages())[2])
}

// TestResumptionIsCopied: what a caller changes in what it passed has no effect on the run.
func TestResumptionIsCopied(t *testing.T) {
	history, open := leftOpen(t)
	resume := agentkernel.Resumption{Suspended: slices.Clone(open), Answers: answers{"a": yes, "b": yes}}
	resume.Suspended[1].Args = json.RawMessage(`{"n":5}`)
	meddles := echo("t")
	execute := meddles.Execute
	meddles.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		copy(resume.Suspended[1].Args, `{"n":6}`)
		resume.Answers["b"] = agentkernel.GateDecision{}
		return execute(ctx, args)
	}
	log := agenttest.Run(t, agentkernel.Config{Resume: &resume, Tools: []agentkernel.Tool{meddles},
		Model: agenttest.Script(agenttest.Text("ok"))}, history)
	require.Equal(t, []string{"t ok", "t ok"}, ended(log))
	require.Equal(t, `{"n":5}`, ofType(log, agentkernel.EventToolExecEnd)[1].Result.TextContent())
}

// watchLoosely is watch for an agent whose calls are repaired.
func watchLoosely(t testing.TB, cfg agentkernel.Config) *agentkernel.Agent {
	t.Helper()
	agent, err := agentkernel.NewAgent(cfg)
	require.NoError(t, err)
	checker := agenttest.NewChecker()
	checker.AllowRepair = true
	agent.Subscribe(checker.Listen)
	t.Cleanup(func() { require.NoError(t, checker.Finish()) })
	return agent
}

// TestSuspendedState is a fold, and holds only what the history leaves open.
func TestSuspendedState(t *testing.T) {
	agent, _, ran := suspended(t, agentkernel.Config{})
	var state agentkernel.AgentState
	for _, ev := range agent.events() {
		state = agentkernel.Reduce(state, ev)
	}
	require.Equal(t, agent.State(), state)

	raw, err := json.Marshal(agent.State())
	require.NoError(t, err)
	var back agentkernel.AgentState
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, state.Suspended, back.Suspended)

	other := state
	other.Messages = state.Messages[:1]
	require.NoError(t, agent.Restore(other))
	require.Empty(t, agent.State().Suspended, "the call is not there")
	require.NoError(t, agent.Restore(back))
	require.Equal(t, state.Suspended, agent.State().Suspended)

	require.NoError(t, agent.SetMessages(state.Messages...))
	require.Equal(t, state.Suspended, agent.State().Suspended, "it is the same history")
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("new")))
	require.Empty(t, agent.State().Suspended)
	_, err = agent.Resume(t.Context(), answers{"a": yes})
	require.Equal(t, agentkernel.ErrNotSuspended, err)
	require.Zero(t, *ran)
}

// TestResumeInAListener: who knows the answer may give it where the run ends.
func TestResumeInAListener(t *testing.T) {
	agent, _, ran := suspended(t, agentkernel.Config{})
	resumed := make(chan *agentkernel.Run, 2)
	answer := func() {
		given := answers{}
		for _, s := range agent.State().Suspended {
			given[s.Call.ID] = yes
		}
		run, err := agent.Resume(t.Context(), given)
		require.NoError(t, err)
		resumed <- run
	}
	agentkernel.On(agent.Agent, func(e agentkernel.RunEnded) {
		if e.Summary.EndReason == agentkernel.EndSuspended {
			answer()
		}
	})
	run, err := agent.Continue(t.Context()) // is suspended again
	wait(t, run, err)
	require.Equal(t, agentkernel.EndStop, wait(t, <-resumed, nil).EndReason)
	require.Equal(t, 2, *ran)
}

// TestResumeByOne: of many who answer at once, one does.
func TestResumeByOne(t *testing.T) {
	var ran, started atomic.Int32
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("a", "t", `{}`), agenttest.Text("ok")),
		Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{})
		},
		Tools: []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
			ran.Add(1)
			return agentkernel.TextResult("did it"), nil
		})},
	})
	run, err := agent.Prompt(t.Context(), "hi")
	wait(t, run, err)
	done := make(chan struct{})
	for range 8 {
		go func() {
			if run, err := agent.Resume(t.Context(), answers{"a": yes}); err == nil {
				started.Add(1)
				_, _ = run.Wait(t.Context())
			}
			done <- struct{}{}
		}()
	}
	for range 8 {
		<-done
	}
	require.EqualValues(t, 1, started.Load())
	require.EqualValues(t, 1, ran.Load())
}

// oneWord is a model that always says the same.
func oneWord(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	return agenttest.Script(agenttest.Text("yes")).Stream(ctx, req)
}

// TestUpdatesBeforeTheChild: what a call reported before it began a run is on the stream before
// the events of that run, whichever of the two the loop hears first.
func TestUpdatesBeforeTheChild(t *testing.T) {
	synctest.Test(t, updatesBeforeTheChild)
}

func updatesBeforeTheChild(t *testing.T) {
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Forward: agentkernel.ForwardEvents, Agents: []agentkernel.SubAgent{{
		Name: "clerk", Config: agentkernel.Config{Model: agentkernel.ChatModelFunc(oneWord)}}}})
	require.NoError(t, err)
	ask.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
		return agentkernel.ProgressPayload{Text: "would ask"}, nil
	}
	execute := ask.Execute
	ask.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Text: "asks"})
		return execute(ctx, args)
	}
	var calls agenttest.Reply
	for range 60 {
		calls = calls.Call("", "ask", `{"tasks":[{"agent":"clerk","prompt":"x"}]}`)
	}
	events := agentkernel.AgentLoop(t.Context(), agentkernel.Config{Tools: []agentkernel.Tool{ask}, MaxParallelTools: 1, EventBuffer: 1,
		Model: agenttest.Script(calls, agenttest.Text("ok")),
		Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			time.Sleep(time.Millisecond) // in which the loop takes the preview, and waits for the consumer
			return yes, nil
		},
	}, nil, agentkernel.UserMessage("hi"))
	var log []agentkernel.Event
	for ev := range events {
		log = append(log, ev)
		time.Sleep(time.Second) // so that the loop finds both waiting
	}
	require.NoError(t, agenttest.CheckRun(nil, log))
	main, updates := log[0].RunID, 0
	for _, ev := range log {
		switch {
		case ev.RunID == main && ev.Type == agentkernel.EventToolExecUpdate:
			updates++
		case ev.RunID != main && ev.Type == agentkernel.EventAgentStart:
			require.Zero(t, updates%3, "a preview, an answer and a report come before the child")
		}
	}
	require.Equal(t, 180, updates)
}

// TestRestoreOfAForeignSuspension: a suspension of a call that the kernel knows under another id, since
// its own is taken in that history, is none, and the agent can be talked to.
func TestRestoreOfAForeignSuspension(t *testing.T) {
	history, suspended := leftOpen(t)
	open := history[len(history)-1].(agentkernel.Message)
	id := suspended[0].Call.ID
	before := []agentkernel.AgentMessage{agentkernel.UserMessage("before"), open,
		agentkernel.Message{Role: agentkernel.RoleTool, ToolCallID: id, ToolName: suspended[0].Call.Name, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("x")}}}
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("well"))})
	require.NoError(t, agent.Restore(agentkernel.AgentState{Messages: append(before, history...), Suspended: suspended}))
	for _, s := range agent.State().Suspended {
		require.NotEqual(t, id, s.Call.ID)
	}
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
}
