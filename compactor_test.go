package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestCompact on an idle agent holds at once and is announced by the next run.
func TestCompact(t *testing.T) {
	m := &manager{recover: replaced(agentkernel.UserMessage("summary"))}
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text(long), agenttest.Text("ok"), agenttest.Text("ok")), ContextManager: m})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	release, err := agent.HoldRuns(t.Context()) // which Compact does not mind
	require.NoError(t, err)
	done, err := agent.Compact(t.Context(), "tidy")
	require.NoError(t, err)
	require.True(t, done)
	release()
	require.Equal(t, agentkernel.ContextReason("tidy"), m.requests[0].Reason)
	require.Len(t, m.requests[0].History, 2)
	require.Positive(t, m.requests[0].Tokens)
	require.Equal(t, []string{"user: summary"}, said(agent.Messages()))
	require.Nil(t, agent.State().ContextTokens)

	n := len(agent.events())
	_, err = agent.Run(t.Context(), "more")
	require.NoError(t, err)
	head := agent.events()[n+1]
	require.Equal(t, agentkernel.EventContext, head.Type)
	require.Equal(t, agentkernel.ContextReason("tidy"), head.Context.Reason)
	require.Equal(t, []string{"user: summary", "user: more", "assistant: ok"}, said(agent.Messages()))

	m.recover = nil
	done, err = agent.Compact(t.Context(), "")
	require.NoError(t, err)
	require.False(t, done)
	_, err = agent.Run(t.Context(), "more")
	require.NoError(t, err)
	require.Len(t, ofType(agent.events(), agentkernel.EventContext), 1)
}

// TestCompactRefuses, and leaves the agent as it was.
func TestCompactRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("no")
		m := new(manager)
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok").Delay(time.Second), agenttest.Text("ok")), ContextManager: m})
		plain := watch(t, agentkernel.Config{Model: agenttest.Script()})
		_, err := plain.Compact(t.Context(), "x")
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
		_, err = agent.Compact(t.Context(), agentkernel.ContextReset)
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest)

		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		_, err = agent.Compact(t.Context(), "x")
		require.ErrorIs(t, err, agentkernel.ErrAlreadyRunning)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)

		for name, fail := range map[string]func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error){
			"an error": func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
				return agentkernel.ContextResult{}, no
			},
			"a panic": func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) { panic(no) },
			"an abort that it ignores": func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
				agent.Abort(no)
				time.Sleep(time.Hour)
				panic("late")
			},
			"an abort": func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
				agent.Abort(no)
				<-ctx.Done()
				return agentkernel.ContextResult{}, context.Cause(ctx)
			},
			"starts": func(ctx context.Context, _ agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
				_, err := agent.Prompt(ctx, "x")
				require.ErrorIs(t, err, agentkernel.ErrAlreadyRunning)
				require.ErrorIs(t, agent.Reset(), agentkernel.ErrAlreadyRunning)
				_, err = agent.Compact(ctx, "x")
				require.ErrorIs(t, err, agentkernel.ErrAlreadyRunning)
				return agentkernel.ContextResult{}, no
			},
		} {
			m.recover = fail
			done, err := agent.Compact(t.Context(), "x")
			require.ErrorIs(t, err, no, name)
			require.False(t, done)
			require.Len(t, agent.Messages(), 2)
		}
		// A message that is injected meanwhile starts a run afterwards.
		m.recover = func(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			time.Sleep(time.Minute)
			return agentkernel.ContextResult{}, nil
		}
		go func() { _, _ = agent.Compact(context.Background(), "x") }()
		synctest.Wait()
		got, err := agent.Inject(t.Context(), agentkernel.UserMessage("meanwhile"))
		require.NoError(t, err)
		require.Equal(t, agentkernel.InjectResumed, got.Disposition)
		_, err = got.Run.Wait(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Hour) // the late one has no effect
		require.Len(t, agent.Messages(), 4)
	})
}

// conversation is n turns of a user, a call, its long result and an answer.
func conversation(n int) []agentkernel.AgentMessage {
	var out []agentkernel.AgentMessage
	for i := range n {
		id := fmt.Sprint("c", i)
		answer := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonStop,
			Content: []agentkernel.ContentBlock{agentkernel.TextBlock(fmt.Sprint("answer ", i))}}
		out = append(out, agentkernel.UserMessage(fmt.Sprint("question ", i)), askedFor(id), resultOf(id, long), answer)
	}
	return out
}

// TestCompactor by the mildest means: old results first, then a summary, never the newest.
func TestCompactor(t *testing.T) {
	history := conversation(8) // about 2,050 tokens
	size := agentkernel.EstimateTokens(history)
	summariser := func() *agenttest.Model { return agenttest.Script(agenttest.Text("they talked")) }
	for name, c := range map[string]struct {
		compactor agentkernel.Compactor
		tokens    int
		messages  int
		summary   bool
	}{
		"roomy":         {agentkernel.Compactor{Window: 10_000}, size, 0, false},
		"results":       {agentkernel.Compactor{Window: 2200, KeepRecent: 600}, size, len(history), false},
		"summary":       {agentkernel.Compactor{Window: 700, KeepRecent: 300}, size, 0, true},
		"usage is more": {agentkernel.Compactor{Window: 10_000, KeepRecent: 600}, 9_500, len(history), false},
		"all reserved":  {agentkernel.Compactor{Window: 2200, Reserve: 2200, KeepRecent: 600}, size, len(history), false},
	} {
		t.Run(name, func(t *testing.T) {
			model := summariser()
			c.compactor.Model = model
			got, err := c.compactor.Project(t.Context(), agentkernel.ContextRequest{History: history, Tokens: c.tokens})
			require.NoError(t, err)
			if name == "roomy" {
				require.Empty(t, got.Messages)
				return
			}
			require.Less(t, got.TokensAfter, got.TokensBefore)
			require.Equal(t, size, got.TokensBefore)
			require.Equal(t, got.TokensAfter, agentkernel.EstimateTokens(got.Messages))
			require.Empty(t, agentkernel.ValidateHistory(got.Messages))
			require.Equal(t, history[len(history)-1], got.Messages[len(got.Messages)-1], "the newest stays as it is")
			if c.summary {
				require.Contains(t, got.Messages[0].TextContent(), "they talked")
				require.Contains(t, model.Requests()[0].Messages[0].TextContent(), "question 0")
				require.Contains(t, model.Requests()[0].Messages[0].TextContent(), "calls t({})")
				require.Less(t, len(got.Messages), len(history))
				return
			}
			require.Len(t, got.Messages, c.messages)
			require.Empty(t, model.Requests())
			require.NotContains(t, got.Messages[2].TextContent(), "long", "the oldest first")
			require.Contains(t, got.Messages[len(history)-2].TextContent(), "long")
		})
	}
	require.Equal(t, conversation(8)[2].TextContent(), history[2].TextContent(), "what it was given did not change")
}

// TestCompactorNeverTouchesTheNewest before a model refused it, however large: then its
// results go too.
func TestCompactorNeverTouchesTheNewest(t *testing.T) {
	newest := conversation(1)[:3]
	history := append(conversation(4), newest...)
	c := &agentkernel.Compactor{Window: 100}
	got, err := c.Project(t.Context(), agentkernel.ContextRequest{History: history, Tokens: 1000})
	require.NoError(t, err)
	n := len(got.Messages)
	require.Equal(t, newest[1:], got.Messages[n-2:])
	require.Contains(t, got.Messages[0].TextContent(), "left out")

	got, err = c.Recover(t.Context(), agentkernel.ContextRequest{History: newest, Tokens: 1000})
	require.NoError(t, err)
	require.Less(t, got.TokensAfter, got.TokensBefore/2)
	require.Empty(t, agentkernel.ValidateHistory(got.Messages))
}

// TestCompactorWithoutASummary: where the model has none, the old turns stay, without results.
func TestCompactorWithoutASummary(t *testing.T) {
	history := conversation(8)
	for name, reply := range map[string]agenttest.Reply{"fails": agenttest.Fail(errors.New("down")), "says nothing": {}} {
		t.Run(name, func(t *testing.T) {
			c := &agentkernel.Compactor{Window: 700, KeepRecent: 300, Model: agenttest.Script(reply)}
			got, err := c.Project(t.Context(), agentkernel.ContextRequest{History: history, Tokens: 2000})
			require.NoError(t, err)
			require.Len(t, got.Messages, len(history))
			require.Less(t, got.TokensAfter, got.TokensBefore)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &agentkernel.Compactor{Window: 700, KeepRecent: 300, Model: agenttest.Script(agenttest.Stall())}
	_, err := c.Project(ctx, agentkernel.ContextRequest{History: history, Tokens: 2000})
	require.ErrorIs(t, err, agentkernel.KindCanceled)
	_, err = new(agentkernel.Compactor).Project(t.Context(), agentkernel.ContextRequest{})
	require.Error(t, err)
	_, err = new(agentkernel.Compactor).Recover(t.Context(), agentkernel.ContextRequest{})
	require.Error(t, err)
}

// TestCompactorKeepsALongRunGoing: a model of a small window, a hundred turns with results.
func TestCompactorKeepsALongRunGoing(t *testing.T) {
	const window = 3000
	n, refused := 0, 0
	model := agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		require.NoError(t, sound(req.Messages))
		boxed := make([]agentkernel.AgentMessage, len(req.Messages))
		for i, m := range req.Messages {
			boxed[i] = m
		}
		used := 300 + 2*agentkernel.EstimateTokens(boxed) // it counts otherwise than we estimate
		if used > window {
			refused++
			return agenttest.Script(overflow).Stream(ctx, req)
		}
		if n++; n > 100 {
			return agenttest.Script(agenttest.Text("done")).Stream(ctx, req)
		}
		return agenttest.Script(agenttest.Call(fmt.Sprint("c", n), "t", "{}").Usage(agentkernel.Usage{Input: used, Output: 10, Total: used + 10})).Stream(ctx, req)
	})
	summariser := agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return agenttest.Script(agenttest.Text("summary")).Stream(ctx, req)
	})
	result := tool("t", func(context.Context) (agentkernel.ToolResult, error) { return agentkernel.TextResult(long), nil })
	agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{result}, MaxTurns: -1,
		ContextManager: &agentkernel.Compactor{Window: window, Model: summariser}})
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, "done", record.Answer)
	replacements := ofType(agent.events(), agentkernel.EventContext)
	require.NotEmpty(t, replacements)
	require.Less(t, len(replacements), 60)
	require.Less(t, refused, 3)
	require.Empty(t, agentkernel.ValidateHistory(agent.Messages()))
	t.Logf("%d replacements, %d refusals", len(replacements), refused)
}
