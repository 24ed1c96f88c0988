// Package mcp brings the tools of MCP servers to agents, and agents to MCP clients.
//
//	session, err := mcp.Connect(ctx, &sdk.CommandTransport{Command: exec.Command("some-server")}, mcp.Config{})
//	tools, err := mcp.Tools(ctx, session)
//
// makes kernel tools of a server's: with their schema, their hints (read-only, idempotent),
// content of every kind, structured output, progress and cancellation. [Attach] gives them to
// an agent and keeps the set true when the server changes it. [Serve] is the other direction:
// an agent as a server with one tool.
//
// The protocol is the SDK's, github.com/modelcontextprotocol/go-sdk, whose package mcp is
// called sdk here. Its transports are used as they are: a command's standard input and output,
// streamable HTTP, or in memory.
//
// It is a module of its own: go get github.com/agentkernel-go/agentkernel/mcp.
package mcp
