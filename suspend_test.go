package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

type answers = map[string]agentkernel.GateDecision

var yes = agentkernel.GateDecision{Allow: true}

// suspender is a gate that suspends the calls of the named tools and allows the others. It
// counts how often it is asked.
func suspender(asked *int, tools ...string) gateFunc {
	return func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		for _, name := range tools {
			if req.Call.Name == name {
				*asked++
				return agentkernel.GateDecision{}, fmt.Errorf("later: %w",
					agentkernel.Suspend(agentkernel.ProgressPayload{Text: "May I " + name + "?", Data: json.RawMessage(` {"n": 1} `)}))
			}
		}
		return yes, nil
	}
}

// wait waits for a run that was started.
func wait(t testing.TB, run *agentkernel.Run, err error) agentkernel.RunRecord {
	t.Helper()
	require.NoError(t, err)
	record, err := run.Wait(t.Context())
	require.NoError(t, err)
	return record
}

// TestSuspend: what runs comes to its end, what is asked is told, what did not begin is left
// open, and nothing is held. A day later the answer lets it go on.
func TestSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		slow := safe(tool("slow", func(context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(time.Minute)
			return agentkernel.TextResult("slow done"), nil
		}))
		pay := safe(echo("pay"))
		pay.Label = "Pays"
		model := agenttest.Script(agenttest.Calls("pay", "slow", "later"), agenttest.Text("paid"))
		agent := watch(t, agentkernel.Config{Model: model, Gate: suspender(&asked, "pay"),
			Tools: []agentkernel.Tool{pay, slow, echo("later")}})
		run, err := agent.Prompt(t.Context(), "pay it")
		record := wait(t, run, err)
		require.Equal(t, agentkernel.EndSuspended, record.EndReason)
		require.Equal(t, agentkernel.StatusSuspended, record.Status)
		raw, err := json.Marshal(record)
		require.NoError(t, err)
		var kept agentkernel.RunRecord
		require.NoError(t, json.Unmarshal(raw, &kept))
		require.Equal(t, record.Summary, kept.Summary)
		require.Equal(t, time.Minute, record.Summary.Duration)
		require.Equal(t, []string{"user: pay it", "assistant: ", "tool: slow done"}, said(record.NewMessages))
		require.Equal(t, []string{"slow ok", "pay not_started"}, ended(agent.events()))

		state := agent.State()
		require.Equal(t, record.Summary.Suspended, state.Suspended)
		require.Len(t, state.Suspended, 2)
		first, second := state.Suspended[0], state.Suspended[1]
		require.Equal(t, "pay", first.Call.Name)
		require.Equal(t, "Pays", first.Label)
		require.Equal(t, 1, first.Turn)
		require.Equal(t, &agentkernel.ProgressPayload{Kind: agentkernel.ProgressAsk, Text: "May I pay?", Data: json.RawMessage(`{"n":1}`)}, first.Ask)
		require.Equal(t, "later", second.Call.Name)
		require.Nil(t, second.Ask)
		updates := slices.DeleteFunc(ofType(agent.events(), agentkernel.EventToolExecUpdate),
			func(ev agentkernel.Event) bool { return ev.ToolID != first.Call.ID })
		require.Len(t, updates, 1)
		require.Equal(t, first.Ask, updates[0].Progress)
		require.Equal(t, agentkernel.ToolExecUpdateGate, updates[0].UpdateKind)

		time.Sleep(24 * time.Hour)
		run, err = agent.Resume(t.Context(), answers{first.Call.ID: yes})
		record = wait(t, run, err)
		require.Equal(t, agentkernel.EndStop, record.EndReason)
		require.Equal(t, []string{"tool: {}", "tool: {}", "assistant: paid"}, said(record.NewMessages))
		require.Equal(t, 1, asked, "an answered call is not asked about")
		require.Empty(t, agent.State().Suspended)
		var order []string // which the model sees as it made the calls
		for _, m := range model.Requests()[1].Messages {
			order = append(order, m.ToolName)
		}
		require.Equal(t, []string{"", "", "pay", "slow", "later"}, order)
		_, err = agent.Resume(t.Context(), answers{first.Call.ID: yes})
		require.Equal(t, agentkernel.ErrNotSuspended, err)
	})
}

// TestResume: each answer does what a gate's would.
func TestResume(t *testing.T) {
	typed := echo("t")
	typed.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	typed.Validate = func(_ context.Context, args json.RawMessage) error {
		if string(args) == `{"n":13}` {
			return errors.New("13 brings bad luck")
		}
		return nil
	}
	for name, tt := range map[string]struct {
		answer agentkernel.GateDecision
		cause  agentkernel.ToolCause
		told   string
		update string
	}{
		"allow":             {yes, agentkernel.ToolOK, `{"n":1}`, ` {"allow":true}`},
		"deny":              {agentkernel.GateDecision{Reason: "too dear"}, agentkernel.ToolDenied, "too dear", `too dear {"allow":false}`},
		"rewrite":           {agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{ "n":2}`)}, agentkernel.ToolOK, `{"n":2}`, ` {"allow":true}`},
		"against schema":    {agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{"n":"x"}`)}, agentkernel.ToolInvalid, "expected an integer", ` {"allow":true}`},
		"no JSON":           {agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{`)}, agentkernel.ToolInvalid, "no JSON", ` {"allow":true}`},
		"against its tool":  {agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{"n":13}`)}, agentkernel.ToolInvalid, "bad luck", ` {"allow":true}`},
		"the zero decision": {agentkernel.GateDecision{}, agentkernel.ToolDenied, "denied", ` {"allow":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			agent := watch(t, agentkernel.Config{Gate: suspender(&asked, "t"), Tools: []agentkernel.Tool{typed},
				Model: agenttest.Script(agenttest.Call("a", "t", `{"n":1}`), agenttest.Text("ok"))})
			run, err := agent.Prompt(t.Context(), "hi")
			wait(t, run, err)
			before := len(agent.events())
			given := answers{"a": tt.answer}
			run, err = agent.Resume(t.Context(), given)
			delete(given, "a") // the caller's own
			wait(t, run, err)
			log := agent.events()[before:]
			got := results(log)["t"]
			require.Equal(t, tt.cause, got.Cause)
			require.Contains(t, got.TextContent(), tt.told)
			updates := ofType(log, agentkernel.EventToolExecUpdate)
			require.Len(t, updates, 1)
			require.Equal(t, tt.update, updates[0].Progress.Text+" "+string(updates[0].Progress.Data))
			require.Equal(t, 1, asked)
			require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
		})
	}
}

// TestResumeMisuse is told at once and changes nothing.
func TestResumeMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		agent := watch(t, agentkernel.Config{Gate: suspender(&asked, "t"), Tools: []agentkernel.Tool{echo("t")},
			Model: agenttest.Script(agenttest.Call("a", "t", `{}`), agenttest.Text("ok").Delay(time.Second))})
		_, err := agent.Resume(t.Context(), nil)
		require.Equal(t, agentkernel.ErrNotSuspended, err)
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		_, err = agent.Resume(t.Context(), nil)
		require.Equal(t, agentkernel.ErrAlreadyRunning, err)
		wait(t, run, nil)

		state, log := agent.State(), len(agent.events())
		_, err = agent.Resume(t.Context(), answers{"a": yes, "b": yes})
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
		require.ErrorContains(t, err, `"b"`)
		require.Equal(t, state, agent.State())
		require.Len(t, agent.events(), log)

		run, err = agent.Resume(t.Context(), answers{"a": yes})
		require.NoError(t, err)
		_, err = agent.Resume(t.Context(), answers{"a": yes})
		require.Equal(t, agentkernel.ErrAlreadyRunning, err)
		wait(t, run, nil)
		_, err = agent.Resume(t.Context(), answers{"a": yes})
		require.Equal(t, agentkernel.ErrNotSuspended, err)

		_, err = agentkernel.NewAgent(agentkernel.Config{Resume: &agentkernel.Resumption{}})
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
		_, err = agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Agents: []agentkernel.SubAgent{
			{Name: "a", Config: agentkernel.Config{Model: agenttest.Script(), Resume: &agentkernel.Resumption{}}}}})
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	})
}

// suspended is an agent that waits for an answer to call "a" of a tool, of which it counts
// the executions, with call "b" of the same tool behind it.
func suspended(t testing.TB, cfg agentkernel.Config) (agent *watched, asked, ran *int) {
	t.Helper()
	asked, ran = new(int), new(int)
	cfg.Gate = suspender(asked, "t")
	cfg.Tools = append(cfg.Tools, tool("t", func(context.Context) (agentkernel.ToolResult, error) {
		*ran++
		return agentkernel.TextResult("did it"), nil
	}))
	cfg.Model = agenttest.Script(agenttest.Call("a", "t", `{}`).Call("b", "t", `{}`), agenttest.Text("ok"), agenttest.Text("ok"))
	agent = watch(t, cfg)
	run, err := agent.Prompt(t.Context(), "hi")
	require.Equal(t, agentkernel.EndSuspended, wait(t, run, err).EndReason)
	require.Equal(t, 1, *asked)
	return agent, asked, ran
}

// TestPromptOnASuspendedAgent: the person said something else.
func TestPromptOnASuspendedAgent(t *testing.T) {
	agent, asked, ran := suspended(t, agentkernel.Config{})
	run, err := agent.Prompt(t.Context(), "leave it")
	record := wait(t, run, err)
	require.Equal(t, agentkernel.EndStop, record.EndReason)
	require.Equal(t, []string{"t skipped", "t skipped"}, causes(agent.events())[0:2])
	require.Equal(t, agentkernel.RoleUser, record.NewMessages[2].GetRole())
	require.Equal(t, 1, *asked)
	require.Zero(t, *ran)
	require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
}

// TestInjectOnASuspendedAgent is a prompt.
func TestInjectOnASuspendedAgent(t *testing.T) {
	agent, _, ran := suspended(t, agentkernel.Config{})
	injected, err := agent.Inject(t.Context(), agentkernel.UserMessage("leave it"))
	require.Equal(t, agentkernel.InjectResumed, injected.Disposition)
	wait(t, injected.Run, err)
	require.Zero(t, *ran)
}

// TestSuspendAgain: a gate may suspend as often as it likes; each answer is for one call.
func TestSuspendAgain(t *testing.T) {
	agent, asked, ran := suspended(t, agentkernel.Config{MaxTurns: 2})
	for range 5 { // asks the gate again
		run, err := agent.Continue(t.Context())
		record := wait(t, run, err)
		require.Equal(t, agentkernel.EndSuspended, record.EndReason)
		require.Len(t, record.Summary.Suspended, 2)
		require.Empty(t, record.NewMessages)
	}
	require.Equal(t, 6, *asked)
	run, err := agent.Resume(t.Context(), answers{"a": yes})
	record := wait(t, run, err)
	require.Equal(t, agentkernel.EndSuspended, record.EndReason)
	require.Equal(t, "b", record.Summary.Suspended[0].Call.ID)
	require.Equal(t, 1, *ran)
	_, err = agent.Resume(t.Context(), answers{"a": yes})
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest, "it has its result")
	run, err = agent.Resume(t.Context(), answers{"b": yes})
	require.Equal(t, agentkernel.EndStop, wait(t, run, err).EndReason)
	require.Equal(t, 2, *ran)
	require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
}

// TestAnswerBehindAnOpenCall is not lost where an earlier call still waits.
func TestAnswerBehindAnOpenCall(t *testing.T) {
	agent, asked, ran := suspended(t, agentkernel.Config{})
	run, err := agent.Resume(t.Context(), answers{"b": yes})
	record := wait(t, run, err)
	require.Equal(t, agentkernel.EndSuspended, record.EndReason)
	require.Len(t, record.Summary.Suspended, 1)
	require.Equal(t, "a", record.Summary.Suspended[0].Call.ID)
	require.Equal(t, 2, *asked)
	require.Equal(t, 1, *ran)
}

// TestSeveralAsks: gates that are asked at once are all heard.
func TestSeveralAsks(t *testing.T) {
	asked := 0
	agent := watch(t, agentkernel.Config{Tools: []agentkernel.Tool{safe(echo("t"))},
		Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			return yes, agentkernel.Suspend(agentkernel.ProgressPayload{Text: req.Call.ID})
		},
		Model: agenttest.Script(agenttest.Call("a", "t", `{}`).Call("b", "t", `{}`).Call("c", "t", `{}`), agenttest.Text("ok"))})
	run, err := agent.Prompt(t.Context(), "hi")
	record := wait(t, run, err)
	require.Len(t, record.Summary.Suspended, 3)
	for _, s := range record.Summary.Suspended {
		require.Equal(t, s.Call.ID, s.Ask.Text)
	}
	run, err = agent.Resume(t.Context(), answers{"a": yes, "b": {Reason: "no"}, "c": yes})
	require.Equal(t, agentkernel.EndStop, wait(t, run, err).EndReason)
	require.Zero(t, asked)
	require.Equal(t, []string{"t ok", "t denied", "t ok"}, causes(agent.events()))
}

// TestSteeringAndSuspension: steering that comes before the end answers what waits, as at any
// gate; what is queued while nothing runs is said behind the results of the resumed run.
func TestSteeringAndSuspension(t *testing.T) {
	cfg := func() (agentkernel.Config, *int) {
		asked := new(int)
		return agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("t", "slow", "t"), agenttest.Text("ok"), agenttest.Text("then")),
			Gate:  suspender(asked, "t"),
			Tools: []agentkernel.Tool{safe(echo("t")), safe(tool("slow", func(context.Context) (agentkernel.ToolResult, error) {
				time.Sleep(time.Hour)
				return agentkernel.TextResult("done"), nil
			}))},
			MaxParallelTools: 2,
		}, asked
	}
	t.Run("within the run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := cfg()
			agent := watch(t, c)
			time.AfterFunc(time.Minute, func() { _ = agent.Steer(agentkernel.UserMessage("no")) })
			run, err := agent.Prompt(t.Context(), "hi")
			record := wait(t, run, err)
			require.Equal(t, agentkernel.EndStop, record.EndReason)
			require.Empty(t, record.Summary.Suspended)
			require.ElementsMatch(t, []string{"t skipped", "t skipped", "slow ok"}, ended(agent.events()))
		})
	})
	t.Run("where calls are finished first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := cfg()
			c.SteerPolicy = agentkernel.SteerFinish
			agent := watch(t, c)
			time.AfterFunc(time.Minute, func() { _ = agent.Steer(agentkernel.UserMessage("no")) })
			run, err := agent.Prompt(t.Context(), "hi")
			record := wait(t, run, err)
			require.Equal(t, agentkernel.EndSuspended, record.EndReason)
			require.NoError(t, agent.FollowUp(agentkernel.UserMessage("and then")))
			given := answers{}
			for _, s := range record.Summary.Suspended {
				given[s.Call.ID] = yes
			}
			run, err = agent.Resume(t.Context(), given)
			record = wait(t, run, err)
			require.Equal(t, []string{"tool: {}", "tool: {}", "user: no", "assistant: ok"}, said(record.NewMessages)[:4])
		})
	})
}

// TestAbortOfASuspension: every call is answered then, and nothing can be resumed.
func TestAbortOfASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("t", "slow", "later")),
			Gate:  suspender(&asked, "t"),
			Tools: []agentkernel.Tool{safe(echo("t")), safe(waiter("slow")), echo("later")},
		})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		run.Abort(nil)
		record, err := run.Wait(t.Context())
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Empty(t, record.Summary.Suspended)
		require.Len(t, record.NewMessages, 5)
		got := results(agent.events())
		require.Equal(t, agentkernel.ToolNotStarted, got["t"].Cause)
		require.Equal(t, agentkernel.ToolNotStarted, got["later"].Cause)
		require.Equal(t, agentkernel.ToolInterrupted, got["slow"].Cause)
		_, err = agent.Resume(t.Context(), nil)
		require.Equal(t, agentkernel.ErrNotSuspended, err)
	})
}

// TestAbortOfAResumption before its calls begin: they are answered as not started.
func TestAbortOfAResumption(t *testing.T) {
	agent, _, ran := suspended(t, agentkernel.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run, err := agent.Resume(ctx, answers{"a": yes})
	require.NoError(t, err)
	_, err = run.Wait(t.Context())
	require.ErrorIs(t, err, agentkernel.KindCanceled)
	require.Equal(t, []string{"t not_started", "t not_started"}, causes(agent.events()))
	require.Zero(t, *ran)
	require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
}

// TestPanicsBesideASuspension stay in their calls.
func TestPanicsBesideASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		inner := suspender(&asked, "t")
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("t", "bomb", "mad"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{safe(echo("t")), safe(echo("mad")), safe(tool("bomb", func(context.Context) (agentkernel.ToolResult, error) {
				time.Sleep(time.Second)
				panic("boom")
			}))},
			Gate: func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				if req.Call.Name == "mad" {
					time.Sleep(time.Second)
					return yes, hollowError{}
				}
				return inner(ctx, req)
			},
		})
		run, err := agent.Prompt(t.Context(), "hi")
		record := wait(t, run, err)
		require.Equal(t, agentkernel.EndSuspended, record.EndReason)
		require.Equal(t, []string{"bomb panic", "mad denied"}, causes(agent.events()))
		run, err = agent.Resume(t.Context(), answers{record.Summary.Suspended[0].Call.ID: yes})
		require.Equal(t, agentkernel.EndStop, wait(t, run, err).EndReason)
	})
}

// hollowError panics when it is looked into.
type hollowError struct{}

func (hollowError) Error() string { panic("no text") }
func (hollowError) Unwrap() error { panic("nothing inside") }

// TestSuspendAndTerminate: who asked to end the run is heard once all calls are answered.
func TestSuspendAndTerminate(t *testing.T) {
	asked := 0
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("done", "t", "t")),
		Gate:  suspender(&asked, "t"),
		Tools: []agentkernel.Tool{echo("t"), tool("done", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{Terminate: true}, nil
		})},
	})
	run, err := agent.Prompt(t.Context(), "hi")
	record := wait(t, run, err)
	for range 2 {
		require.Equal(t, agentkernel.EndSuspended, record.EndReason)
		require.True(t, record.Summary.Suspended[0].Terminate)
		run, err = agent.Resume(t.Context(), answers{record.Summary.Suspended[0].Call.ID: yes})
		record = wait(t, run, err)
	}
	require.Equal(t, agentkernel.EndTerminated, record.EndReason)
}

// TestSuspendAndCommit: where the result of another call is not taken, the run has failed, and
// what never began can still be resumed; the call that ran is not run again.
func TestSuspendAndCommit(t *testing.T) {
	asked, ran, full := 0, 0, true
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("t", "once"), agenttest.Text("ok")),
		Gate:  suspender(&asked, "t"),
		Tools: []agentkernel.Tool{safe(echo("t")), safe(tool("once", func(context.Context) (agentkernel.ToolResult, error) {
			ran++
			return agentkernel.TextResult("done"), nil
		}))},
		Commit: func(_ context.Context, m agentkernel.AgentMessage) error {
			if m.GetRole() == agentkernel.RoleTool && full {
				return errors.New("the disk is full")
			}
			return nil
		},
	})
	run, err := agent.Prompt(t.Context(), "hi")
	require.NoError(t, err)
	record, err := run.Wait(t.Context())
	require.ErrorIs(t, err, agentkernel.KindCommit)
	require.Len(t, record.Summary.Suspended, 1)
	full = false
	run, err = agent.Resume(t.Context(), answers{record.Summary.Suspended[0].Call.ID: yes})
	require.Equal(t, agentkernel.EndStop, wait(t, run, err).EndReason)
	require.Equal(t, []string{"t ok", "once interrupted"}, causes(agent.events()))
	require.Equal(t, 1, ran)
}

// TestSuspendInASubAgent denies: the run that waits for it holds a goroutine.
func TestSuspendInASubAgent(t *testing.T) {
	asked := 0
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Forward: agentkernel.ForwardEvents, Agents: []agentkernel.SubAgent{{
		Name: "clerk", Config: agentkernel.Config{Model: agenttest.Script(agenttest.Calls("t"), agenttest.Text("I may not.")),
			Tools: []agentkernel.Tool{echo("t")}, Gate: suspender(&asked, "t")}}}})
	require.NoError(t, err)
	log := play(t, agentkernel.Config{Tools: []agentkernel.Tool{ask},
		Model: agenttest.Script(agenttest.Call("a", "ask", `{"tasks":[{"agent":"clerk","prompt":"x"}]}`), agenttest.Text("ok"))})
	require.Equal(t, agentkernel.EndStop, endReason(log))
	require.Equal(t, []string{"t denied", "ask ok"}, ended(log))
	require.Contains(t, results(log)["t"].TextContent(), "cannot wait")
	require.Equal(t, 1, asked)
}

// TestSuspendFromElsewhere is an error like any other.
func TestSuspendFromElsewhere(t *testing.T) {
	log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok")),
		Tools: []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{}, agentkernel.Suspend(agentkernel.ProgressPayload{})
		})}})
	require.Equal(t, []string{"t failed"}, ended(log))
	require.Equal(t, agentkernel.EndStop, endReason(log))
}
