package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// manager is a context manager of two functions; a nil one changes nothing.
type manager struct {
	project, recover func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error)
	requests         []agentkernel.ContextRequest // of Recover
}

func (m *manager) Project(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	if m.project == nil {
		return agentkernel.ContextResult{}, nil
	}
	return m.project(ctx, req)
}

func (m *manager) Recover(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	m.requests = append(m.requests, req)
	if m.recover == nil {
		return agentkernel.ContextResult{}, nil
	}
	return m.recover(ctx, req)
}

func replaced(messages ...agentkernel.AgentMessage) func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	return func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		return agentkernel.ContextResult{Messages: messages}, nil
	}
}

var (
	overflow = agenttest.Fail(failure(agentkernel.KindContextOverflow, false))
	long     = strings.Repeat("long ", 200)
)

// TestRecover: the replacement is the baseline for loop, agent and reducer alike, visibly, and
// the attempt that follows is made on it.
func TestRecover(t *testing.T) {
	summary := agentkernel.UserMessage("summary")
	script := replies(agenttest.Text(long).Calls("t"), overflow, agenttest.Text("ok"), agenttest.Text("again"))
	check := func(log []agentkernel.Event, model *agenttest.Model) {
		t.Helper()
		require.Equal(t, []agentkernel.EventType{"turn_start", "model_request", "retry", "context", "model_request", "message_start"}, typesOf(log[14:20]))
		ev := ofType(log, agentkernel.EventContext)[0]
		require.Equal(t, agentkernel.ContextRecovered, ev.Context.Reason)
		require.Equal(t, []string{"user: summary"}, said(ev.Context.Messages))
		require.Greater(t, ev.Context.TokensBefore, ev.Context.TokensAfter)
		require.Equal(t, []string{"user: summary"}, said(list(model.Requests()[2].Messages[0])))
		require.Len(t, model.Requests()[2].Messages, 1)
		retry := ofType(log, agentkernel.EventRetry)[0]
		require.ErrorIs(t, retry.Err, agentkernel.KindContextOverflow)
		require.Zero(t, retry.RetryInfo.Delay)
	}
	model := agenttest.Script(script...)
	m := &manager{recover: replaced(summary)}
	cfg := agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}, ContextManager: m}
	log := play(t, cfg)
	require.NoError(t, final(log).Err)
	require.Len(t, final(log).NewMessages, 4, "what ended in the run")
	check(log, model)
	require.ErrorIs(t, m.requests[0].Err, agentkernel.KindContextOverflow)
	require.Len(t, m.requests[0].History, 3)

	model = agenttest.Script(script...)
	cfg.Model = model
	agent := watch(t, cfg)
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	check(agent.events(), model)
	require.Equal(t, []string{"user: summary", "assistant: ok"}, said(agent.Messages()))
	_, err = agent.Run(t.Context(), "more")
	require.NoError(t, err)
	require.Equal(t, []string{"user: summary", "assistant: ok", "user: more", "assistant: again"}, said(agent.Messages()))
	var state agentkernel.AgentState
	for _, ev := range agent.events() {
		state = agentkernel.Reduce(state, ev)
	}
	require.Empty(t, differ(state, agent.State()))
}

// TestRecoverThatDoesNotHelp ends the run with the overflow: at most one recovery for a call,
// refused where it is not smaller, and its own failure is not the news.
func TestRecoverThatDoesNotHelp(t *testing.T) {
	big := agentkernel.UserMessage(long)
	for name, c := range map[string]struct {
		recover func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error)
		calls   int // of the model
	}{
		"no manager's help": {nil, 1},
		"not smaller":       {replaced(big, big), 1},
		"the same": {func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{Messages: req.History}, nil
		}, 1},
		"larger, it says": {func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{Messages: list(agentkernel.UserMessage("x")), TokensBefore: 1, TokensAfter: 2}, nil
		}, 1},
		"an error": {func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{}, errors.New("no")
		}, 1},
		"a panic":           {func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) { panic("no") }, 1},
		"a nil message":     {replaced(nil), 1},
		"smaller, too long": {replaced(agentkernel.UserMessage("x")), 2},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(overflow, overflow, agenttest.Text("never"))
			m := &manager{recover: c.recover}
			log := agenttest.Run(t, agentkernel.Config{Model: model, ContextManager: m}, nil, big)
			require.ErrorIs(t, final(log).Err, agentkernel.KindContextOverflow)
			require.Len(t, model.Requests(), c.calls)
			require.Len(t, m.requests, 1)
			require.Len(t, ofType(log, agentkernel.EventContext), c.calls-1)
		})
	}
}

// TestRecoverOncePerCall: the next call may recover again.
func TestRecoverOncePerCall(t *testing.T) {
	n := 0
	m := &manager{recover: func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		n++
		return agentkernel.ContextResult{Messages: list(agentkernel.UserMessage(fmt.Sprint("summary ", n)))}, nil
	}}
	model := agenttest.Script(overflow, agenttest.Text(long).Calls("t"), overflow, agenttest.Text("ok"))
	log := agenttest.Run(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}, ContextManager: m}, nil, agentkernel.UserMessage(long))
	require.NoError(t, final(log).Err)
	require.Equal(t, 2, n)
	require.Len(t, ofType(log, agentkernel.EventContext), 2)
}

// TestRecoverAfterPrepare: what Prepare shows is made anew from the smaller history.
func TestRecoverAfterPrepare(t *testing.T) {
	m := &manager{recover: replaced(agentkernel.UserMessage("summary"))}
	model := agenttest.Script(overflow, agenttest.Text("ok"))
	log := agenttest.Run(t, agentkernel.Config{Model: model, ContextManager: m,
		Prepare: func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{Messages: append(req.History, agentkernel.UserMessage("now"))}, nil
		}}, nil, agentkernel.UserMessage(long))
	require.NoError(t, final(log).Err)
	require.Equal(t, "summary", model.Requests()[1].Messages[0].TextContent())
	require.Len(t, model.Requests()[1].Messages, 2)
	require.Len(t, final(log).NewMessages, 2)
}

// TestProject replaces the history before a model call.
func TestProject(t *testing.T) {
	var asked []agentkernel.ContextRequest
	m := &manager{project: func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		asked = append(asked, req)
		if len(asked) != 2 {
			return agentkernel.ContextResult{}, nil
		}
		return agentkernel.ContextResult{Messages: list(mark("kept"), agentkernel.UserMessage("summary"))}, nil
	}}
	model := agenttest.Script(agenttest.Text(long).Usage(agentkernel.Usage{Input: 900, Output: 100, Total: 1000}).Calls("t"), agenttest.Calls("t"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}, ContextManager: m})
	require.NoError(t, final(log).Err)
	require.Len(t, final(log).NewMessages, 6)
	require.Equal(t, []int{1, 1, 3}, []int{len(model.Requests()[0].Messages), len(model.Requests()[1].Messages), len(model.Requests()[2].Messages)})
	ev := ofType(log, agentkernel.EventContext)
	require.Len(t, ev, 1)
	require.Equal(t, agentkernel.ContextProjected, ev[0].Context.Reason)
	require.Equal(t, 2, ev[0].Turn)
	// By usage and what came since; by estimate where usage is of another history.
	require.Equal(t, 1, asked[0].Tokens)
	require.Equal(t, 1001, asked[1].Tokens)
	require.Less(t, asked[2].Tokens, 20)
	require.Nil(t, asked[1].Err)
}

// TestStaleUsageIsNotBelieved: what was kept of a replaced history still carries the usage of
// the whole, which would make it look too long again at once.
func TestStaleUsageIsNotBelieved(t *testing.T) {
	var tokens []int
	keep := func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		return agentkernel.ContextResult{Messages: req.History[1:]}, nil
	}
	m := &manager{
		project: func(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			tokens = append(tokens, req.Tokens)
			if req.Tokens > 1000 {
				return keep(ctx, req)
			}
			return agentkernel.ContextResult{}, nil
		},
		recover: keep,
	}
	used := agentkernel.Usage{Input: 100_000, Output: 1, Total: 100_001}
	model := agenttest.Script(agenttest.Calls("t").Usage(used), agenttest.Calls("t"), agenttest.Text("ok").Usage(used), agenttest.Text("ok"), agenttest.Text("ok"))
	agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}, ContextManager: m})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Len(t, tokens, 3)
	require.Greater(t, tokens[1], 100_000)
	require.Less(t, tokens[2], 100)

	done, err := agent.Compact(t.Context(), "tidy")
	require.NoError(t, err)
	require.True(t, done)
	require.Nil(t, agent.State().ContextTokens)
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Less(t, tokens[3], 100, "nor after Compact")
	require.NoError(t, agent.SetMessages(agent.Messages()...))
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Less(t, tokens[4], 100, "nor after SetMessages")
}

// TestManagersThatFail end the run with kind hook, or panic, where they are asked before a call.
func TestManagersThatFail(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		project func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error)
		kind    agentkernel.Kind
	}{
		"an error": {func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{}, no
		}, agentkernel.KindHook},
		"a panic": {func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) { panic(no) }, agentkernel.KindPanic},
	} {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("never")), ContextManager: &manager{project: c.project}})
			require.ErrorIs(t, final(log).Err, c.kind)
			require.ErrorIs(t, final(log).Err, no)
		})
	}
}

// TestManagerThatGrowsTheHistory is not listened to.
func TestManagerThatGrowsTheHistory(t *testing.T) {
	m := &manager{project: func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		return agentkernel.ContextResult{Messages: append(req.History, agentkernel.UserMessage(long))}, nil
	}}
	model := agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}, ContextManager: m})
	require.NoError(t, final(log).Err)
	require.Empty(t, ofType(log, agentkernel.EventContext))
}

// TestManagerThatPartsACallFromItsResult: its replacement is mended, in the baseline too.
func TestManagerThatPartsACallFromItsResult(t *testing.T) {
	for name, keep := range map[string]func([]agentkernel.AgentMessage) []agentkernel.AgentMessage{
		"without the result": func(h []agentkernel.AgentMessage) []agentkernel.AgentMessage { return h[1:2] },
		"without the call":   func(h []agentkernel.AgentMessage) []agentkernel.AgentMessage { return append(h[:1:1], h[2:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			m := &manager{project: func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
				if len(req.History) != 3 {
					return agentkernel.ContextResult{}, nil
				}
				return agentkernel.ContextResult{Messages: keep(req.History), TokensBefore: 9, TokensAfter: 1}, nil
			}}
			model := agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok"))
			agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}, ContextManager: m})
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.NoError(t, sound(model.Requests()[1].Messages))
			require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
		})
	}
}

// TestReplacementWithTheSlowestOfListeners: no message twice, none lost, wherever a listener
// looks, and whatever is said meanwhile.
func TestReplacementWithTheSlowestOfListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		compactEach := func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			last := req.History[len(req.History)-1]
			if last.GetRole() == agentkernel.RoleTool || len(req.History) < 3 {
				return agentkernel.ContextResult{}, nil
			}
			n++
			return agentkernel.ContextResult{Messages: list(agentkernel.UserMessage(fmt.Sprint("summary ", n)), last), TokensBefore: 2, TokensAfter: 1}, nil
		}
		var script []agenttest.Reply
		for i := range 6 {
			script = append(script, agenttest.Text(fmt.Sprint("look ", i)).Calls("t"), agenttest.Text(fmt.Sprint("answer ", i)))
		}
		q := &agentkernel.Queue{Mode: agentkernel.QueueOneAtATime}
		for i := range 5 {
			require.NoError(t, q.Push(agentkernel.UserMessage(fmt.Sprint("follow ", i))))
		}
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(script...), Tools: []agentkernel.Tool{echo("t")}, FollowUps: q,
			ContextManager: &manager{project: compactEach}, EventBuffer: 64})
		var baseline, ended []string
		agent.Subscribe(func(ev agentkernel.Event) {
			time.Sleep(time.Minute)
			switch ev.Type {
			case agentkernel.EventContext:
				baseline, ended = said(ev.Context.Messages), nil
			case agentkernel.EventMessageEnd:
				ended = append(ended, said(list(ev.Message))...)
			}
			require.Equal(t, append(baseline[:len(baseline):len(baseline)], ended...), said(agent.Messages()))
		})
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, 5, n)
		require.Equal(t, []string{"user: summary 5", "user: follow 4", "assistant: look 5", "tool: {}", "assistant: answer 5"}, said(agent.Messages()))
		require.Len(t, record.NewMessages, 24)
		seen := map[string]bool{}
		for _, s := range said(record.NewMessages) {
			require.True(t, !seen[s] || s == "tool: {}", s)
			seen[s] = true
		}
	})
}
