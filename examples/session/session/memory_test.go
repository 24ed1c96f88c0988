package session_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

func remembered(o *opened) (list []string) {
	for _, m := range o.Memory() {
		list = append(list, m.Text)
	}
	return list
}

// TestRules: what the rules keep, and what not.
func TestRules(t *testing.T) {
	for text, want := range map[string][]string{
		"My name is Ada. I prefer tea! What now?":      {"My name is Ada.", "I prefer tea!"},
		"REMEMBER the milk\nmy name is v1.2 of it.":    {"REMEMBER the milk", "my name is v1.2 of it."},
		"I remember. Do you remember me? i prefer":     nil,
		"First: remember this. Remembering is hard.\n": nil,
		"":                                nil,
		"Ça va? I prefer été. \U0001F600": {"I prefer été."},
	} {
		got, err := session.Rules{}.Extract(t.Context(), []session.Ended{
			{Place: 3, Message: agentkernel.UserMessage(text)},
			{Place: 4, Message: agentkernel.Message{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("I prefer not to.")}}},
		})
		require.NoError(t, err)
		var texts []string
		for _, m := range got {
			require.Equal(t, 3, m.Place)
			texts = append(texts, m.Text)
		}
		require.Equal(t, want, texts, text)
	}
}

// TestMemory: what the user asked to be remembered is stored once, at the end of the run, and
// the model is told from then on, also in a resumed session.
func TestMemory(t *testing.T) {
	for name, agent := range map[string]agentkernel.Config{
		"prompt": {SystemPrompt: "Be brief."},
		"blocks": {SystemBlocks: []agentkernel.SystemBlock{{Text: "Be brief.", Cache: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memoryStore(t)
				model := agenttest.Script(agenttest.Text("a"), agenttest.Text("b"), agenttest.Text("c"))
				o := open(t, store, model, session.Config{ID: "s", Agent: agent})
				require.NoError(t, o.prompt("My name is Ada. I prefer tea."))
				require.NoError(t, o.prompt("My name is Ada."))
				require.Equal(t, []string{"My name is Ada.", "I prefer tea."}, remembered(o))
				o.close()
				again := open(t, store, model, session.Config{ID: "s", Agent: agent})
				require.Equal(t, o.Memory(), again.Memory())
				require.NoError(t, again.prompt("hi"))
				require.Equal(t, []string{"My name is Ada.", "I prefer tea."}, remembered(again))
				for i, told := range []bool{false, true, true} {
					req := model.Requests()[i]
					var system strings.Builder
					system.WriteString(req.System)
					for _, b := range req.SystemBlocks {
						system.WriteString(b.Text)
					}
					require.True(t, strings.HasPrefix(system.String(), "Be brief."))
					require.Equal(t, told, strings.Contains(system.String(), "- My name is Ada.\n- I prefer tea."), system.String())
				}
			})
		})
	}
}

// modelExtractor is an extractor that asks a model.
type modelExtractor struct {
	model agentkernel.ChatModel
	mu    sync.Mutex
	asked [][]int
}

func (e *modelExtractor) Extract(ctx context.Context, messages []session.Ended) ([]session.Memory, error) {
	var places []int
	for _, m := range messages {
		places = append(places, m.Place)
	}
	e.mu.Lock()
	e.asked = append(e.asked, places)
	e.mu.Unlock()
	answer, err := agentkernel.Generate(ctx, e.model, agentkernel.ModelRequest{Messages: []agentkernel.Message{agentkernel.UserMessage("What is worth keeping?")}})
	if err != nil {
		return nil, err
	}
	return []session.Memory{{Text: answer.TextContent(), Place: places[0]}, {}}, nil
}

// TestExtractorThatAsksAModel: an extractor sees each message once; where it fails or takes too
// long a session_error tells, and it is asked about the same messages again.
func TestExtractorThatAsksAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		extractor := &modelExtractor{model: agenttest.Script(agenttest.Fail(errors.New("no")), agenttest.Stall(), agenttest.Text("likes tea"), agenttest.Text("likes tea"))}
		store := memoryStore(t)
		model := agenttest.Script(agenttest.Text("a"), agenttest.Text("b"), agenttest.Text("c"), agenttest.Text("d"))
		cfg := session.Config{ID: "s", Extractor: extractor, Timeout: time.Minute}
		o := open(t, store, model, cfg)
		require.NoError(t, o.prompt("1"))
		require.NoError(t, o.prompt("2"))
		failed := o.own(session.EventError)
		require.Len(t, failed, 2)
		require.Equal(t, "memory", failed[0].Error.Op)
		require.Empty(t, o.Memory())
		o.close()

		again := open(t, store, model, cfg)
		require.NoError(t, again.prompt("3"))
		require.NoError(t, again.prompt("4"))
		require.Equal(t, [][]int{{1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}, {7, 8}}, extractor.asked)
		require.Equal(t, []string{"likes tea"}, remembered(again))
	})
}
