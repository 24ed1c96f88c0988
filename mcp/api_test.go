package mcp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/internal/surface"
)

// TestAPI compares everything that this module exports with a page of docs, so that a change
// of the surface is a decision: AGENTTEST_UPDATE=1 go test -run TestAPI . writes it anew.
func TestAPI(t *testing.T) {
	lines, err := surface.List("github.com/agentkernel-go/agentkernel/mcp")
	require.NoError(t, err)
	require.Greater(t, len(lines), 20)
	agenttest.Golden(t, "../docs/api-mcp.txt", strings.Join(lines, "\n")+"\n")
}
