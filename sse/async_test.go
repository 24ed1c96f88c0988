package sse_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestJournalThatIsLate: a client of a journal that an asynchronous subscriber writes, which is
// late, follows without an error and ends with the agent's state.
func TestJournalThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chat := agentkernel.Tool{Name: "chat", Execute: func(ctx context.Context, _ json.RawMessage) (agentkernel.ToolResult, error) {
			for range 50 {
				time.Sleep(time.Millisecond)
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressToolDelta, Text: "word "})
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressSummary, Text: "busy"})
			}
			return agentkernel.TextResult("ok"), nil
		}}
		agent, err := agentkernel.NewAgent(agentkernel.Config{Tools: []agentkernel.Tool{chat}, Model: agenttest.Script(
			agenttest.Calls("chat", "chat"), agenttest.Text(strings.Repeat("word ", 50)).Chunks(2))})
		require.NoError(t, err)
		j := journal.NewRing(journal.Config{SnapshotEvery: 20})
		c, done := connected(t, j)
		merged := 0
		sub := agent.SubscribeAsync(func(ev agentkernel.Event) {
			time.Sleep(7 * time.Millisecond)
			merged += ev.Coalesced
			j.Listen(ev)
		}, agentkernel.AsyncOptions{})
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.NoError(t, sub.Drain(t.Context()))
		require.Positive(t, merged)
		require.NoError(t, j.Err())
		require.NoError(t, j.Close())
		<-done
		require.Len(t, c.State().Messages, len(agent.State().Messages))
		require.Equal(t, record.Answer, c.State().Messages[4].TextContent())
	})
}
