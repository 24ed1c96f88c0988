package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/internal/demotest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asking is a Config whose model has one agent asked, and then says "done".
func asking(t *testing.T, task, name string, asked agentkernel.Config) agentkernel.Config {
	tool, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{
		Name: teamTool, Forward: agentkernel.ForwardEvents,
		Agents: []agentkernel.SubAgent{{Name: name, Config: asked}},
	})
	require.NoError(t, err)
	return agentkernel.Config{
		SystemPrompt: task,
		Model: agenttest.Script(
			agenttest.Call("a", teamTool, fmt.Sprintf(`{"tasks":[{"agent":%q,"prompt":"go"}]}`, name)),
			agenttest.Text("done")),
		Tools: []agentkernel.Tool{tool},
	}
}

// TestDeepTree: agents ask agents, one is tried again, and one is nobody known.
func TestDeepTree(t *testing.T) {
	demotest.InBubble(t, "", func(t *testing.T) {
		down := &agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true, Err: errors.New("down\nfor now")}
		leaf := agentkernel.Config{
			SystemPrompt: "nobody's",
			Model:        agenttest.Script(agenttest.Text("It was").Fail(down), agenttest.Text("It is\n\nso.")),
			Retry:        agentkernel.RetryPolicy{Jitter: -1},
		}
		agent, err := agentkernel.NewAgent(asking(t, lead.task, "sceptic", asking(t, members[1].task, "leaf", leaf)))
		require.NoError(t, err)
		var out bytes.Buffer
		s := &screen{w: &out, nameOf: team{}.nameOf}
		checker := agenttest.NewChecker()
		agent.Subscribe(checker.Listen)
		agent.Subscribe(s.show)
		_, err = agent.Run(t.Context(), "Well?")
		require.NoError(t, err)
		require.NoError(t, checker.Finish())
		leafID := s.root.children[0].children[0].id
		golden(t, "deep.txt", strings.ReplaceAll(out.String(), leafID[:8]+" ", "LEAF     "))

		// Another run of the same agent has a tree of its own.
		out.Reset()
		agent.SetModel(agenttest.Script(agenttest.Text("Yes.")))
		_, err = agent.Run(t.Context(), "Sure?")
		require.NoError(t, err)
		_, tree, _ := strings.Cut(out.String(), "\n\n")
		assert.Equal(t, 1, strings.Count(tree, "\n"), tree)
	})
}

func TestLineEnd(t *testing.T) {
	long := strings.Repeat("x", width)
	for text, want := range map[string][2]int{
		"": {-1, -1}, "a": {-1, -1}, "a\nb": {1, 2}, "\n": {0, 1},
		long: {-1, -1}, long + "\n": {width, width + 1}, long + "x": {width, width}, long + " x": {width, width + 1},
		"a " + long: {1, 2}, " " + long: {width, width}, long[1:] + "é": {width - 1, width - 1},
		strings.Repeat("\x80", width+1): {0, 0},
	} {
		end, next := lineEnd(text)
		assert.Equal(t, want, [2]int{end, next}, "%q", text)
	}
}

// TestText: however a text comes, the same lines are shown, and nothing is lost but the spaces
// at which they break.
func TestText(t *testing.T) {
	text := strings.Repeat("Words of several läängths, ", 20) + "\n" + strings.Repeat("é", 2*width) + "\n\nend"
	var want string
	for n := range 40 {
		var out bytes.Buffer
		s := &screen{w: &out}
		run := &node{name: "x"}
		if n == 0 {
			s.text(run, text)
		} else {
			for rest := []rune(text); len(rest) > 0; {
				k := min(n, len(rest))
				s.text(run, string(rest[:k]))
				rest = rest[k:]
			}
		}
		s.endLine(run)
		if n == 0 {
			want = out.String()
			flat := strings.NewReplacer("x            │ ", "", "\n", "", " ", "")
			assert.Equal(t, flat.Replace(text), flat.Replace(want))
		}
		assert.Equal(t, want, out.String(), "%d runes at a time", n)
	}
}
