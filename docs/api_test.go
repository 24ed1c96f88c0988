package docs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/internal/surface"
)

// TestAPI compares everything that is exported with api.txt, so that a change of the surface
// is a decision: AGENTTEST_UPDATE=1 go test ./docs writes the file anew. The modules beside
// this one do the same with files of their own.
func TestAPI(t *testing.T) {
	lines, err := surface.List(module, module+"/agenttest", module+"/journal", module+"/openai", module+"/sse")
	require.NoError(t, err)
	require.Greater(t, len(lines), 500)
	agenttest.Golden(t, "api.txt", strings.Join(lines, "\n")+"\n")
}
