package mcp_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/mcp"
)

// TestEverything talks to a server that others wrote: the npm package
// @modelcontextprotocol/server-everything, which .ci/mcp-server installs.
func TestEverything(t *testing.T) {
	script := os.Getenv("AGENTKERNEL_MCP_EVERYTHING")
	if script == "" {
		t.Skip("AGENTKERNEL_MCP_EVERYTHING names no script: .ci/mcp-server installs one")
	}
	session, err := mcp.Connect(t.Context(), &sdk.CommandTransport{Command: exec.Command("node", script, "stdio")}, mcp.Config{Prefix: "-"})
	require.NoError(t, err)
	defer session.Close()
	all, err := mcp.Tools(t.Context(), session)
	if err != nil {
		_, ok := errors.AsType[*mcp.ToolError](err)
		require.True(t, ok, err)
	}
	got := map[string]agentkernel.Tool{}
	for _, tool := range all {
		t.Log(tool.Name, tool.Label)
		got[tool.Name] = tool
	}
	result := resultOf(t, run(t, t.Context(), call("echo", `{"message":"hello"}`), got["echo"]))
	require.Contains(t, result.TextContent(), "hello")

	result = resultOf(t, run(t, t.Context(), call("get-sum", `{"a":2,"b":3}`), got["get-sum"]))
	require.Contains(t, result.TextContent(), "5")

	result = resultOf(t, run(t, t.Context(), call("get-sum", `{"a":"two"}`), got["get-sum"]))
	require.Equal(t, agentkernel.ToolInvalid, result.Cause)

	result = resultOf(t, run(t, t.Context(), call("get-tiny-image", `{}`), got["get-tiny-image"]))
	var images int
	for _, b := range result.Content {
		if b.Image != nil {
			images++
			require.NotEmpty(t, b.Image.Data)
		}
	}
	require.Equal(t, 1, images)

	result = resultOf(t, run(t, t.Context(), call("get-structured-content", `{"location":"New York"}`), got["get-structured-content"]))
	require.Equal(t, agentkernel.ToolOK, result.Cause, result.TextContent())
	require.Contains(t, string(result.JSON), "temperature")

	events := run(t, t.Context(), call("trigger-long-running-operation", `{"duration":1,"steps":4}`), got["trigger-long-running-operation"])
	var last *agentkernel.ProgressPayload
	for _, ev := range events {
		if ev.Type == agentkernel.EventToolExecUpdate {
			last = ev.Progress
		}
	}
	require.NotNil(t, last, "it tells of its progress")
	require.Equal(t, 4, last.Of)
}
