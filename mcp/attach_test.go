package mcp_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/mcp"
)

// add gives a server one more tool, which answers with text.
func add(server *sdk.Server, name, text string) {
	addRaw(server, &sdk.Tool{Name: name}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	})
}

// A tool that a server adds while a run goes on is there from the next turn on.
func TestChangedListHoldsFromTheNextTurn(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s"}, nil)
	add(server, "first", "one")
	known := make(chan int, 8)
	grow := agentkernel.MustTool("grow", "", func(ctx context.Context, _ struct{}) (string, error) {
		add(server, "second", "two")
		for {
			select {
			case n := <-known:
				if n == 3 {
					return "grown", nil
				}
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	})
	model := agenttest.Script(agenttest.Calls("grow"), agenttest.Calls("s_second"), agenttest.Text("ok"))
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
	require.NoError(t, err)
	attached, err := mcp.Attach(t.Context(), agent, mcp.AttachConfig{
		Own: []agentkernel.Tool{grow}, Sessions: []*mcp.Session{connect(t, server, mcp.Config{})},
		OnChange: func(tools []agentkernel.Tool, problem error) { known <- len(tools) },
	})
	require.NoError(t, err)
	defer attached.Close()
	checker := agenttest.NewChecker()
	agent.Subscribe(checker.Listen)
	record, err := agent.Run(t.Context(), "go")
	require.NoError(t, err)
	require.NoError(t, checker.Finish())
	require.Len(t, model.Requests()[0].Tools, 2)
	require.Len(t, model.Requests()[1].Tools, 3)
	require.Equal(t, "two", record.NewMessages[4].TextContent())
}

// Two servers with the same tool do not clash, unless the program wants it so.
func TestTwoServers(t *testing.T) {
	one, two := sdk.NewServer(&sdk.Implementation{Name: "one"}, nil), sdk.NewServer(&sdk.Implementation{Name: "two"}, nil)
	add(one, "go", "1")
	add(two, "go", "2")
	agent, err := agentkernel.NewAgent(agentkernel.Config{})
	require.NoError(t, err)
	attached, err := mcp.Attach(t.Context(), agent, mcp.AttachConfig{
		Sessions: []*mcp.Session{connect(t, one, mcp.Config{}), connect(t, two, mcp.Config{})},
	})
	require.NoError(t, err)
	attached.Close()
	attached.Close()
	_, err = mcp.Attach(t.Context(), agent, mcp.AttachConfig{
		Sessions: []*mcp.Session{connect(t, one, mcp.Config{Prefix: "-"}), connect(t, two, mcp.Config{Prefix: "-"})},
	})
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
}

// What goes wrong at a change is told, and the tools of before stay.
func TestProblemsOfAChange(t *testing.T) {
	var mu sync.Mutex
	var listed []*sdk.Tool
	server := listing(func(string) *sdk.ListToolsResult {
		mu.Lock()
		defer mu.Unlock()
		return &sdk.ListToolsResult{Tools: append([]*sdk.Tool{}, listed...)}
	})
	type told struct {
		tools   []agentkernel.Tool
		problem error
	}
	heard := make(chan told, 16)
	agent, err := agentkernel.NewAgent(agentkernel.Config{})
	require.NoError(t, err)
	session := connect(t, server, mcp.Config{Prefix: "-"})
	attached, err := mcp.Attach(t.Context(), agent, mcp.AttachConfig{
		Sessions: []*mcp.Session{session},
		OnChange: func(tools []agentkernel.Tool, problem error) { heard <- told{tools, problem} },
	})
	require.NoError(t, err)
	defer attached.Close()
	require.Empty(t, (<-heard).tools)

	mu.Lock()
	listed = []*sdk.Tool{{Name: "bad", InputSchema: map[string]any{"type": 7}}, {Name: "good", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	mu.Unlock()
	add(server, "poke", "")
	got := <-heard
	require.Len(t, got.tools, 1)
	require.ErrorContains(t, got.problem, `tool "bad"`)

	_, err = mcp.Attach(t.Context(), agent, mcp.AttachConfig{Own: got.tools, Sessions: []*mcp.Session{session}})
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest, "a name twice")

	require.NoError(t, session.Close())
	_, err = mcp.Attach(t.Context(), agent, mcp.AttachConfig{Sessions: []*mcp.Session{session}})
	require.Error(t, err)
}

// A set that the agent refuses is told, and the agent keeps what it had.
func TestRefusedChange(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s"}, nil)
	add(server, "first", "")
	model := agenttest.Script(agenttest.Text("ok"))
	own := agentkernel.MustTool("mine", "", func(context.Context, struct{}) (string, error) { return "", nil })
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
	require.NoError(t, err)
	problems, changes := make(chan error, 8), make(chan struct{}, 8)
	attached, err := mcp.Attach(t.Context(), agent, mcp.AttachConfig{
		Own: []agentkernel.Tool{own},
		Sessions: []*mcp.Session{connect(t, server, mcp.Config{Prefix: "-", Client: &sdk.ClientOptions{
			ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changes <- struct{}{} },
		}})},
		OnChange: func(tools []agentkernel.Tool, problem error) {
			if problem != nil {
				require.Nil(t, tools)
			}
			problems <- problem
		},
	})
	require.NoError(t, err)
	defer attached.Close()
	require.NoError(t, <-problems)

	add(server, "mine", "") // a name that the agent has
	problem := <-problems
	for problem == nil { // the server may still tell of its first tool
		problem = <-problems
	}
	require.ErrorIs(t, problem, agentkernel.KindInvalidRequest)
	<-changes // the program's own handler is called as well
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	var names []string
	for _, tool := range model.Requests()[0].Tools {
		names = append(names, tool.Name)
	}
	require.Equal(t, []string{"mine", "first"}, names)
}

// A server that says again and again that its list has changed costs one request at a time.
func TestFloodOfChanges(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s"}, nil)
	add(server, "first", "")
	agent, err := agentkernel.NewAgent(agentkernel.Config{})
	require.NoError(t, err)
	counts := make(chan int, 1000)
	attached, err := mcp.Attach(t.Context(), agent, mcp.AttachConfig{
		Sessions: []*mcp.Session{connect(t, server, mcp.Config{Prefix: "-"})},
		OnChange: func(tools []agentkernel.Tool, _ error) { counts <- len(tools) },
	})
	require.NoError(t, err)
	defer attached.Close()
	for i := range 100 {
		add(server, string(rune('a'+i%26))+string(rune('a'+i/26)), "")
	}
	for n := range counts {
		if n == 101 {
			break
		}
	}
}
