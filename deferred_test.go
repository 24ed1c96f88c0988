package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// catalog is one plain tool and many that are deferred.
func catalog() []agentkernel.Tool {
	tools := []agentkernel.Tool{echo("plain")}
	for _, word := range []string{"weather", "news", "mail", "calendar"} {
		t := echo("get_" + word)
		t.Description, t.Deferred = "Reads the "+word+" of today.", true
		tools = append(tools, t)
	}
	for i := range 20 {
		t := echo(fmt.Sprint("spare_", i))
		t.Description, t.Deferred = "Is never needed.", true
		tools = append(tools, t)
	}
	return append(tools, agentkernel.SearchTool(tools...))
}

// offered are the names of the tools in each request.
func offered(model *agenttest.Model) []string {
	var out []string
	for _, req := range model.Requests() {
		var names []string
		for _, spec := range req.Tools {
			names = append(names, spec.Name)
		}
		out = append(out, strings.Join(names, " "))
	}
	return out
}

// TestDeferredTools are announced by name only; those that a search finds are offered from
// the next request on, at the end of the list.
func TestDeferredTools(t *testing.T) {
	tools := catalog()
	search := tools[len(tools)-1]
	require.Contains(t, search.Description, "get_weather, get_news, get_mail")
	require.NotContains(t, search.Description, "plain")
	model := agenttest.Script(
		agenttest.Call("", agentkernel.SearchToolName, `{"query":"TODAY mail"}`),
		agenttest.Call("", agentkernel.SearchToolName, `{"names":["get_weather","nobody"]}`),
		agenttest.Call("", agentkernel.SearchToolName, `{"query":"nothing like it"}`).Call("", agentkernel.SearchToolName, `{}`),
		agenttest.Call("", "get_weather", `{}`), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: tools})
	require.Equal(t, []string{
		"plain search_tools",
		"plain search_tools get_mail",
		"plain search_tools get_mail get_weather",
		"plain search_tools get_mail get_weather",
		"plain search_tools get_mail get_weather",
	}, offered(model))
	require.Equal(t, []string{"search_tools ok", "search_tools ok", "search_tools failed", "search_tools failed", "get_weather ok"}, causes(log))
	require.Equal(t, []string{"get_mail: Reads the mail of today."}, told(model, 2))
}

// TestDeferredToolsOfARestoredHistory are available again: what it found and what it used.
func TestDeferredToolsOfARestoredHistory(t *testing.T) {
	model := agenttest.Script(agenttest.Call("", agentkernel.SearchToolName, `{"query":"news"}`), agenttest.Call("", "get_calendar", `{}`), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: catalog()})
	raw, err := json.Marshal(final(log).NewMessages)
	require.NoError(t, err)
	var stored []agentkernel.Message
	require.NoError(t, json.Unmarshal(raw, &stored))
	var history []agentkernel.AgentMessage
	for _, m := range stored {
		history = append(history, m)
	}
	model = agenttest.Script(agenttest.Text("ok"))
	agenttest.Run(t, agentkernel.Config{Model: model, Tools: catalog()}, history, agentkernel.UserMessage("again"))
	require.Equal(t, []string{"plain search_tools get_news get_calendar"}, offered(model))
}

// TestSearchFindsAFew at once, however many there are.
func TestSearchFindsAFew(t *testing.T) {
	model := agenttest.Script(agenttest.Call("", agentkernel.SearchToolName, `{"query":"never"}`), agenttest.Text("ok"))
	play(t, agentkernel.Config{Model: model, Tools: catalog()})
	require.Len(t, model.Requests()[1].Tools, 2+8)
}

// TestDeferredToolThatIsGone: a history may speak of tools that are no more.
func TestDeferredToolThatIsGone(t *testing.T) {
	model := agenttest.Script(agenttest.Call("", agentkernel.SearchToolName, `{"names":["get_mail"]}`), agenttest.Text("ok"), agenttest.Text("ok"))
	agent := watch(t, agentkernel.Config{Model: model, Tools: catalog()})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	later := echo("later")
	later.Deferred = true
	require.NoError(t, agent.SetTools(echo("plain"), later))
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, "plain", offered(model)[2])
}

func ExampleSearchTool() {
	translate := agentkernel.MustTool("translate", "Translates a text.",
		func(_ context.Context, in struct {
			Text string `json:"text"`
		}) (string, error) {
			return "Guten Tag", nil
		})
	translate.Deferred = true
	model := agenttest.Script(
		agenttest.Call("", "search_tools", `{"query":"translate text"}`),
		agenttest.Call("", "translate", `{"text":"Good day"}`),
		agenttest.Text("Guten Tag"),
	)
	cfg := agentkernel.Config{
		Model: model,
		Tools: []agentkernel.Tool{translate, agentkernel.SearchTool(translate)},
	}
	for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("What is good day in German?")) {
		if ev.Type == agentkernel.EventModelRequest {
			fmt.Println("tools that the model knows:", len(ev.Request.Tools))
		}
	}
	// Output:
	// tools that the model knows: 1
	// tools that the model knows: 2
	// tools that the model knows: 2
}
