package mcp_test

import (
	"context"
	"os"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// TestMain is also the server that TestStdio starts: this very program, told so by its environment.
func TestMain(m *testing.M) {
	if os.Getenv("AGENTKERNEL_MCP_SERVER") != "" {
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
