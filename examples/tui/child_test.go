package main

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asked is a sub-agent's model: it looks once, and answers with its question.
func asked(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	reply := agenttest.Calls("look")
	if len(req.Messages) > 1 {
		reply = agenttest.Text("About " + req.Messages[0].TextContent() + ": much.").Chunks(3)
	}
	return agenttest.Script(reply).Stream(ctx, req)
}

func askTool(t *testing.T, model agentkernel.ChatModel, tools ...agentkernel.Tool) agentkernel.Tool {
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{
		Name: "ask", Description: "Asks.", Forward: agentkernel.ForwardEvents,
		Agents: []agentkernel.SubAgent{{Name: "a", Description: "a", Config: agentkernel.Config{Model: model, Tools: tools}}},
	})
	require.NoError(t, err)
	ask.Label = "ask"
	return ask
}

func asking(mode string, prompts ...string) string {
	type task struct {
		Agent  string `json:"agent"`
		Prompt string `json:"prompt"`
	}
	in := struct {
		Mode  string `json:"mode"`
		Tasks []task `json:"tasks"`
	}{Mode: mode}
	for _, p := range prompts {
		in.Tasks = append(in.Tasks, task{"a", p})
	}
	raw, _ := json.Marshal(in)
	return string(raw)
}

// TestChildren: the runs of sub-agents show within the card of the call that asked for them,
// also where several ask at once.
func TestChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "ask", asking("single", "cats")).
				Call("2", "ask", asking("parallel", "dogs", "birds")).
				Call("3", "ask", asking("chain", "fish", "more than {previous}")), agenttest.Text("So.")),
			Tools: []agentkernel.Tool{askTool(t, agentkernel.ChatModelFunc(asked), tool("look", says("seen")))},
		}, nil, "Hi")
		s := newScreen().take(log...)
		cards := make(map[string][]string)
		for _, ev := range log {
			if ev.Type == agentkernel.EventToolExecEnd && ev.ParentRunID == "" {
				cards[ev.ToolID] = nil
			}
		}
		require.Len(t, cards, 3)
		printed := s.printed()
		for _, want := range []string{
			"● ask · 0 ms\n  │ asked: cats\n  │   ● look\n  │ About cats: much.",
			"  │ asked: fish\n  │   ● look\n  │ asked: more than About fish: much.\n  │   ● look\n  │ [1] a:\n",
		} {
			assert.Contains(t, printed, want)
		}
		assert.Equal(t, 4, strings.Count(printed, "● look")-1, printed) // the fifth one is of a parallel task
		dogs := strings.Index(printed, "asked: dogs")
		birds := strings.Index(printed, "asked: birds")
		require.True(t, dogs >= 0 && birds >= 0)
		between := printed[min(dogs, birds):max(dogs, birds)]
		assert.NotContains(t, between, "ask ·", "both are in one card")
	})
}

// TestChildrenLive: while a sub-agent works, its card shows what it does and says.
func TestChildrenLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "ask", asking("single", "cats")), agenttest.Text("So.")),
			Tools: []agentkernel.Tool{askTool(t, agentkernel.ChatModelFunc(asked), tool("look", says("seen")))},
		}, nil, "Hi")
		s := newScreen()
		var lives []string
		for _, ev := range log {
			s.take(ev)
			if live := s.live(); live != "" && (len(lives) == 0 || lives[len(lives)-1] != live) {
				lives = append(lives, live)
			}
		}
		require.Greater(t, len(lives), 5)
		assert.Equal(t, []string{
			"◌ ask",
			"◌ ask\n  │ asked: cats",
			"◌ ask\n  │ asked: cats\n  │   ◌ look",
			"◌ ask\n  │ asked: cats\n  │   ● look",
			"◌ ask\n  │ asked: cats\n  │   ● look\n  │ Abo",
		}, lives[:5])
		assert.Equal(t, "Hi", s.feed.state.Messages[0].TextContent(), "what a sub-agent says is not of this history")
		assert.Len(t, s.feed.state.Messages, 4)
	})
}

// TestGrandchildren: a sub-agent's sub-agents show in the same card.
func TestGrandchildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := askTool(t, agentkernel.ChatModelFunc(asked), tool("look", says("seen")))
		outer := askTool(t, agenttest.Script(agenttest.Call("i", "ask", asking("single", "mice")), agenttest.Text("Enough.")), inner)
		log := events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("o", "ask", asking("single", "cats")), agenttest.Text("So.")),
			Tools: []agentkernel.Tool{outer},
		}, nil, "Hi")
		assert.Contains(t, newScreen().take(log...).printed(),
			"● ask · 0 ms\n  │ asked: cats\n  │   ● ask\n  │ asked: mice\n  │   ● look\n  │ Enough.\nSo.")
	})
}

// TestChildAborted: an abort reaches the sub-agents; their card says so.
func TestChildAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := events(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "ask", asking("single", "cats"))),
			Tools: []agentkernel.Tool{askTool(t, agenttest.Script(agenttest.Text("About").Stall()))},
		}, func(agent *agentkernel.Agent, ev agentkernel.Event) {
			if ev.Type == agentkernel.EventMessageUpdate && ev.ParentRunID != "" {
				agent.Abort(errUser)
			}
		}, "Hi")
		printed := newScreen().take(log...).printed()
		assert.Contains(t, printed, "✗ ask · interrupted · 0 ms\n  │ asked: cats\n")
		assert.Contains(t, printed, "── aborted · 1 turn")
	})
}

// TestOrphan: events of a run whose beginning was missed harm nothing.
func TestOrphan(t *testing.T) {
	s := newScreen()
	for _, typ := range []agentkernel.EventType{agentkernel.EventTurnStart, agentkernel.EventToolExecStart, agentkernel.EventModelRequest} {
		s.take(agentkernel.Event{Type: typ, RunID: "child", ParentRunID: "unknown"})
	}
	s.take(agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "child", ParentRunID: "unknown", Message: agentkernel.UserMessage("hi")})
	assert.Empty(t, s.printed()+s.live())
}
