package mcp_test

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/mcp"
)

// An agent with the tools of a server. A program gives another transport, such as
// &sdk.CommandTransport{Command: exec.Command("some-server")}.
func Example() {
	ctx := context.Background()
	near, far := sdk.NewInMemoryTransports()
	serving, err := newServer().Connect(ctx, far, nil)
	if err != nil {
		panic(err)
	}
	defer serving.Wait()
	session, err := mcp.Connect(ctx, near, mcp.Config{})
	if err != nil {
		panic(err)
	}
	defer session.Close()
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("1", "shop_order", `{"item":"tea","count":2}`), agenttest.Text("That is 6.")),
	})
	if err != nil {
		panic(err)
	}
	attached, err := mcp.Attach(ctx, agent, mcp.AttachConfig{Sessions: []*mcp.Session{session}})
	if err != nil {
		panic(err)
	}
	defer attached.Close()
	agentkernel.On(agent, func(e agentkernel.ToolEnded) { fmt.Println(e.ToolLabel, e.Result.TextContent()) })
	record, err := agent.Run(ctx, "tea for two")
	fmt.Println(record.Answer, err)
	// Output:
	// Order something {"total":6}
	// That is 6. <nil>
}

// An agent as a server. A program runs it on another transport, such as &sdk.StdioTransport{}.
func ExampleServe() {
	ctx := context.Background()
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("Behind the sofa."))})
	if err != nil {
		panic(err)
	}
	near, far := sdk.NewInMemoryTransports()
	serving, err := mcp.Serve(agent, mcp.ServeConfig{Name: "finder"}).Connect(ctx, far, nil)
	if err != nil {
		panic(err)
	}
	defer serving.Wait()

	client, err := sdk.NewClient(&sdk.Implementation{Name: "client"}, nil).Connect(ctx, near, nil)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	got, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"prompt": "Where are my keys?"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(got.Content[0].(*sdk.TextContent).Text)
	// Output: Behind the sofa.
}
