package openai

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestForeignServer talks to a server that others wrote. .ci/foreign-server starts it with the
// answers of .ci/mock-llm.yaml and says where it is.
func TestForeignServer(t *testing.T) {
	cfg := Config{Model: "m-foreign", APIKey: "the-right-key", BaseURL: os.Getenv("AGENTKERNEL_FOREIGN")}
	if cfg.BaseURL == "" {
		t.Skip("AGENTKERNEL_FOREIGN names no server: .ci/foreign-server starts one")
	}
	t.Cleanup(sharedClient(defaultConnectTimeout).CloseIdleConnections)

	models, err := Models(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, "m-foreign", models[0].ID)

	// A tool turn, with answers that are streamed and with answers in one piece.
	for _, stream := range []bool{true, false} {
		cfg.ExtraBody = map[string]any{"stream": stream, "stream_options": nil}
		m, err := New(cfg)
		require.NoError(t, err)
		var asked []string
		end := endOf(agenttest.Run(t, agentkernel.Config{Model: m, Tools: []agentkernel.Tool{{
			Name: "days_between",
			Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
				asked = append(asked, string(args))
				return agentkernel.TextResult("298 days"), nil
			},
		}}}, nil, agentkernel.UserMessage("How many days?")))
		require.NoError(t, end.Err)
		require.Equal(t, []string{`{"from":"2026-03-01","to":"2026-12-24"}`}, asked)
		require.Equal(t, "It is 298 days.", end.NewMessages[3].TextContent())
	}

	cfg.APIKey, cfg.ExtraBody = "a-wrong-key", nil
	m, err := New(cfg)
	require.NoError(t, err)
	requireFailure(t, ask(t.Context(), m).err, agentkernel.KindAuth, false, "Incorrect API key")
}
