package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// guardOf is a stop guard that decides as listed, then allows. It notes what it was asked.
func guardOf(asked *[]agentkernel.StopRequest, decisions ...agentkernel.StopDecision) func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
	return func(_ context.Context, req agentkernel.StopRequest) (agentkernel.StopDecision, error) {
		*asked = append(*asked, req)
		if n := len(*asked); n <= len(decisions) {
			return decisions[n-1], nil
		}
		return agentkernel.StopDecision{}, nil
	}
}

func goOn(text string) agentkernel.StopDecision {
	return agentkernel.StopDecision{Action: agentkernel.StopGoOn, Message: agentkernel.UserMessage(text)}
}

// TestStopGuardIsAskedAtEachNormalStop, and at nothing else.
func TestStopGuardIsAskedAtEachNormalStop(t *testing.T) {
	finish := tool("finish", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{Terminate: true}, nil
	})
	for name, c := range map[string]struct {
		cfg    agentkernel.Config
		script []agenttest.Reply
		asked  agentkernel.EndReason
	}{
		"stop":         {script: replies(agenttest.Text("ok")), asked: agentkernel.EndStop},
		"terminated":   {script: replies(agenttest.Calls("finish")), asked: agentkernel.EndTerminated},
		"refusal":      {script: replies(agenttest.Text("no").Stop(agentkernel.StopReasonRefusal)), asked: agentkernel.EndRefusal},
		"length":       {script: replies(agenttest.Text("hal").Stop(cutShort)), asked: agentkernel.EndLength},
		"empty":        {script: replies(agenttest.Reply{}), asked: agentkernel.EndEmpty},
		"an error":     {script: replies(agenttest.Fail(failure(agentkernel.KindAuth, false)))},
		"turns":        {cfg: agentkernel.Config{MaxTurns: 1}, script: replies(agenttest.Calls("t"))},
		"the budget":   {cfg: agentkernel.Config{Budget: agentkernel.Budget{Tokens: 1}}, script: replies(agenttest.Calls("t").Usage(agentkernel.Usage{Total: 1}))},
		"with queued":  {cfg: agentkernel.Config{FollowUps: queueOf(t, "", "more")}, script: replies(agenttest.Text("one"), agenttest.Text("two")), asked: agentkernel.EndStop},
		"after a tool": {script: replies(agenttest.Calls("t"), agenttest.Text("ok")), asked: agentkernel.EndStop},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []agentkernel.StopRequest
			c.cfg.Model = agenttest.Script(c.script...)
			c.cfg.Tools = []agentkernel.Tool{finish, echo("t")}
			c.cfg.MaxEmptyRetries, c.cfg.MaxLengthRecoveries = -1, -1
			c.cfg.StopGuard = guardOf(&asked)
			log := play(t, c.cfg)
			if c.asked == "" {
				require.Empty(t, asked)
				return
			}
			require.Len(t, asked, 1)
			require.Equal(t, c.asked, asked[0].Reason)
			require.Equal(t, c.asked, endReason(log))
			require.Equal(t, final(log).RunID, asked[0].RunID)
			require.Equal(t, final(log).NewMessages, asked[0].History)
			require.Equal(t, agentkernel.RoleAssistant, asked[0].Answer.Role)
		})
	}
}

// TestStopGuardGoesOn with its message, a user's or the harness's own, also after a terminal tool.
func TestStopGuardGoesOn(t *testing.T) {
	finish := tool("finish", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{Terminate: true, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("done")}}, nil
	})
	var asked []agentkernel.StopRequest
	log := play(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("finish"), agenttest.Text("one"), agenttest.Text("two")), Tools: []agentkernel.Tool{finish},
		StopGuard: guardOf(&asked, goOn("not yet"), agentkernel.StopDecision{Action: agentkernel.StopGoOn, Message: mark("nudge")}),
	})
	require.Equal(t, []string{"user: hi", "assistant: ", "tool: done", "user: not yet", "assistant: one", "mark: nudge", "assistant: two"}, said(final(log).NewMessages))
	require.Equal(t, agentkernel.EndStop, endReason(log))
}

// TestStopGuardThatNeverAllows is bounded by MaxTurns.
func TestStopGuardThatNeverAllows(t *testing.T) {
	var script []agenttest.Reply
	for i := range 9 {
		script = append(script, agenttest.Text(fmt.Sprint(i)))
	}
	model := agenttest.Script(script...)
	log := play(t, agentkernel.Config{Model: model, MaxTurns: 4,
		StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			return goOn("more"), nil
		}})
	require.ErrorIs(t, final(log).Err, agentkernel.KindMaxTurns)
	require.Len(t, model.Requests(), 4)
	require.Equal(t, "assistant: 3", said(final(log).NewMessages)[7])
}

// TestStopGuardEnds the run as failed: where it escalates, fails, or decides nonsense.
func TestStopGuardEnds(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		guard func() (agentkernel.StopDecision, error)
		kind  agentkernel.Kind
		end   agentkernel.EndReason
		text  string
	}{
		"escalates": {func() (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{Action: agentkernel.StopEscalate, Reason: "the tests still fail"}, nil
		}, agentkernel.KindStopGuard, agentkernel.EndStopGuard, "the tests still fail"},
		"fails":  {func() (agentkernel.StopDecision, error) { return goOn("x"), no }, agentkernel.KindHook, agentkernel.EndError, "no"},
		"panics": {func() (agentkernel.StopDecision, error) { panic("boom") }, agentkernel.KindPanic, agentkernel.EndError, "boom"},
		"no message": {func() (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{Action: agentkernel.StopGoOn}, nil
		}, agentkernel.KindHook, agentkernel.EndError, "hook StopGuard: hook: StopGoOn needs a Message"},
		"nil message": {func() (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{Action: agentkernel.StopGoOn, Message: (*agentkernel.Message)(nil)}, nil
		}, agentkernel.KindHook, agentkernel.EndError, "hook StopGuard: hook: StopGoOn needs a Message"},
		"odd action": {func() (agentkernel.StopDecision, error) { return agentkernel.StopDecision{Action: "odd"}, nil }, agentkernel.KindHook, agentkernel.EndError, "odd"},
		"model's role": {func() (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{Action: agentkernel.StopGoOn, Message: askedFor("1")}, nil
		}, agentkernel.KindHook, agentkernel.EndError, "role"},
	} {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok")),
				StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) { return c.guard() }})
			require.ErrorIs(t, final(log).Err, c.kind)
			require.ErrorContains(t, final(log).Err, c.text)
			require.Equal(t, c.end, endReason(log))
			require.Equal(t, []string{"user: hi", "assistant: ok"}, said(final(log).NewMessages))
		})
	}
}

// TestStopGuardOverridesNoAbort: the run that is aborted while it decides ends as aborted.
func TestStopGuardOverridesNoAbort(t *testing.T) {
	model := agenttest.Script(agenttest.Text("ok"), agenttest.Text("never"))
	var agent *watched
	agent = watch(t, agentkernel.Config{Model: model,
		StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			agent.Abort(nil)
			return goOn("more"), nil
		}})
	record, err := agent.Run(t.Context(), "hi")
	require.ErrorIs(t, err, agentkernel.KindCanceled)
	require.Equal(t, []string{"user: hi", "assistant: ok"}, said(record.NewMessages))
	require.Len(t, model.Requests(), 1)
}

// TestStopGuardAndQueues: what is queued while the guard thinks is taken, and it is asked again.
func TestStopGuardAndQueues(t *testing.T) {
	q := new(agentkernel.Queue)
	n := 0
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("one"), agenttest.Text("two")), FollowUps: q,
		StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			if n++; n == 1 {
				return agentkernel.StopDecision{}, q.Push(agentkernel.UserMessage("late"))
			}
			return agentkernel.StopDecision{}, nil
		}})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"user: hi", "assistant: one", "user: late", "assistant: two"}, said(agent.Messages()))
}
