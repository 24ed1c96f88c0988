package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestPrepareChangesOneCall: whatever it changes holds for one model call and is not stored.
func TestPrepareChangesOneCall(t *testing.T) {
	first := agenttest.Script(agenttest.Calls("own"))
	second := agenttest.Script(agenttest.Text("ok"))
	var asked []agentkernel.PrepareRequest
	ran := false
	cfg := agentkernel.Config{
		Model: second, SystemPrompt: "system", Tools: []agentkernel.Tool{echo("t")}, ThinkingLevel: agentkernel.ThinkingLow, CacheKey: "key",
		Prepare: func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			asked = append(asked, req)
			if len(asked) > 1 {
				return agentkernel.PrepareResult{}, nil
			}
			return agentkernel.PrepareResult{
				Messages: list(agentkernel.UserMessage("instead")), Model: first,
				Tools: []agentkernel.Tool{tool("own", func(context.Context) (agentkernel.ToolResult, error) {
					ran = true
					return agentkernel.TextResult("done"), nil
				})},
				System:        []agentkernel.SystemBlock{{Text: "other", Cache: true}},
				ThinkingLevel: agentkernel.ThinkingHigh, Temperature: new(0.5), CacheBreakpoints: []int{0},
			}, nil
		},
	}
	log := play(t, cfg)
	require.True(t, ran)
	require.Equal(t, []string{"user: hi", "assistant: ", "tool: done", "assistant: ok"}, said(final(log).NewMessages))

	changed := first.Requests()[0]
	require.Equal(t, "other", changed.System)
	require.Equal(t, []agentkernel.SystemBlock{{Text: "other", Cache: true}}, changed.SystemBlocks)
	require.Equal(t, "instead", changed.Messages[0].TextContent())
	require.Len(t, changed.Messages, 1)
	require.Equal(t, "own", changed.Tools[0].Name)
	require.Equal(t, agentkernel.ThinkingHigh, changed.ThinkingLevel)
	require.Equal(t, 0.5, *changed.Temperature)
	require.Equal(t, []int{0}, changed.CacheBreakpoints)
	require.Equal(t, "key", changed.CacheKey)

	plain := second.Requests()[0]
	require.Equal(t, "system", plain.System)
	require.Nil(t, plain.SystemBlocks)
	require.Equal(t, "t", plain.Tools[0].Name)
	require.Len(t, plain.Messages, 3)
	require.Equal(t, agentkernel.ThinkingLow, plain.ThinkingLevel)
	require.Nil(t, plain.Temperature)
	require.Nil(t, plain.CacheBreakpoints)

	require.Equal(t, final(log).RunID, asked[0].RunID)
	require.Equal(t, []int{1, 2}, []int{asked[0].Turn, asked[1].Turn})
	require.Len(t, asked[0].History, 1)
	require.Equal(t, "system", asked[0].Request.System)
	require.Equal(t, plain, asked[1].Request)
}

// TestPrepareIsAskedOncePerCall, not for each attempt.
func TestPrepareIsAskedOncePerCall(t *testing.T) {
	n := 0
	model := agenttest.Script(agenttest.Text("x").EndsWithoutDone(), agenttest.Reply{}, agenttest.Text("ok"))
	play(t, agentkernel.Config{Model: model, Retry: unwaited,
		Prepare: func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			n++
			return agentkernel.PrepareResult{Messages: list(agentkernel.UserMessage("seen"))}, nil
		}})
	require.Equal(t, 1, n)
	for _, req := range model.Requests() {
		require.Equal(t, "seen", req.Messages[0].TextContent())
	}
}

// TestPrepareThatFails ends the run with kind hook, or panic.
func TestPrepareThatFails(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		prepare func() (agentkernel.PrepareResult, error)
		kind    agentkernel.Kind
	}{
		"an error":      {func() (agentkernel.PrepareResult, error) { return agentkernel.PrepareResult{}, no }, agentkernel.KindHook},
		"a panic":       {func() (agentkernel.PrepareResult, error) { panic(no) }, agentkernel.KindPanic},
		"a nil message": {func() (agentkernel.PrepareResult, error) { return agentkernel.PrepareResult{Messages: list(nil)}, nil }, agentkernel.KindHook},
		"a tool of no use": {func() (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{Tools: []agentkernel.Tool{{Name: "x"}}}, nil
		}, agentkernel.KindHook},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(agenttest.Text("never"))
			log := play(t, agentkernel.Config{Model: model, Prepare: func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
				return c.prepare()
			}})
			require.ErrorIs(t, final(log).Err, c.kind)
			require.ErrorContains(t, final(log).Err, "Prepare")
			require.Empty(t, model.Requests())
			if c.kind == agentkernel.KindPanic || name == "an error" {
				require.ErrorIs(t, final(log).Err, no)
			}
		})
	}
}

// TestProjectionIsMended: what Prepare shows a model is sound too.
func TestProjectionIsMended(t *testing.T) {
	model := agenttest.Script(agenttest.Text("ok"))
	play(t, agentkernel.Config{Model: model, Prepare: func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
		return agentkernel.PrepareResult{Messages: list(agentkernel.UserMessage("a"), askedFor("1"), mark("m"), agentkernel.UserMessage("b"))}, nil
	}})
	require.NoError(t, sound(model.Requests()[0].Messages))
	require.Len(t, model.Requests()[0].Messages, 4)
}

// TestRequestPrefixIsByteStable: the JSON of each request continues that of the one before,
// so that a provider's cache holds: system prompt, tools and history.
func TestRequestPrefixIsByteStable(t *testing.T) {
	var script []agenttest.Reply
	for range 6 {
		script = append(script, agenttest.Thinking("hm").Text("look").Call("", "t", `{ "b": 1, "a" : "<ü>" }`).Calls("t", "reed"))
	}
	script = append(script, agenttest.Text("one"), agenttest.Text("tw").EndsWithoutDone(), agenttest.Text("two"), agenttest.Text("three"))
	model := agenttest.Script(script...)
	agent := watch(t, agentkernel.Config{
		Model: model, Tools: []agentkernel.Tool{echo("t"), echo("a"), echo("b")}, Retry: unwaited, CacheKey: "k",
		SystemBlocks: []agentkernel.SystemBlock{{Text: "You are stable.", Cache: true}, {Text: "Today is Monday."}},
	})
	require.NoError(t, agent.FollowUp(agentkernel.UserMessage("more")))
	for range 2 {
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	}
	before := ""
	for i, req := range model.Requests() {
		require.Equal(t, "You are stable.\n\nToday is Monday.", req.System)
		messages := req.Messages
		req.Messages = nil
		head, err := json.Marshal(req)
		require.NoError(t, err)
		body, err := json.Marshal(messages)
		require.NoError(t, err)
		now := string(head) + strings.TrimSuffix(string(body), "]")
		require.True(t, strings.HasPrefix(now, before), "request %d", i)
		before = now
	}
	require.Len(t, model.Requests(), 10)
}

// TestSystemPromptOrBlocks, not both.
func TestSystemPromptOrBlocks(t *testing.T) {
	blocks := []agentkernel.SystemBlock{{Text: "a", Cache: true}}
	_, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(), SystemPrompt: "a", SystemBlocks: blocks})
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	model := agenttest.Script(agenttest.Text("1"), agenttest.Text("2"), agenttest.Text("3"))
	agent := watch(t, agentkernel.Config{Model: model, SystemPrompt: "text"})
	for _, set := range []func() error{
		func() error { return nil },
		func() error { return agent.SetSystemBlocks(blocks...) },
		func() error {
			return errors.Join(agent.SetSystemPrompt("again"), agent.SetThinkingLevel(agentkernel.ThinkingHigh))
		},
	} {
		require.NoError(t, set())
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	}
	requests := model.Requests()
	require.Equal(t, []string{"text", "a", "again"}, []string{requests[0].System, requests[1].System, requests[2].System})
	require.Equal(t, blocks, requests[1].SystemBlocks)
	require.Nil(t, requests[2].SystemBlocks)
	require.Equal(t, agentkernel.ThinkingHigh, requests[2].ThinkingLevel)
}
