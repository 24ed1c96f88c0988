package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestMerged: merged records rebuild to a stream that accounts for every event and has the
// same texts, whatever part of the journal they are taken from.
func TestMerged(t *testing.T) {
	chatty := agentkernel.Tool{Name: "chatty", Execute: func(ctx context.Context, _ json.RawMessage) (agentkernel.ToolResult, error) {
		for i := range 30 {
			for _, kind := range []agentkernel.ProgressKind{agentkernel.ProgressToolDelta, agentkernel.ProgressSummary} {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: kind, Text: fmt.Sprintf("%d ", i)})
			}
		}
		return agentkernel.TextResult("ok"), nil
	}}
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{SnapshotEvery: 1 << 20})
		agent, err := agentkernel.NewAgent(agentkernel.Config{Tools: []agentkernel.Tool{chatty}, Model: agenttest.Script(
			agenttest.Thinking(strings.Repeat("think ", 50)).Text(strings.Repeat(`"message": `, 50)).Call("a", "chatty", `{"x":"yyyyyyyyyyyyyyyyyyyy"}`).Chunks(3),
			agenttest.Text(strings.Repeat("answer ", 50)).Chunks(2))})
		require.NoError(t, err)
		journal.Follow(agent, j)
		progress := map[agentkernel.ProgressKind]string{}
		agent.Subscribe(func(ev agentkernel.Event) { addProgress(progress, ev) })
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		var all []journal.Record
		for batch := []journal.Record{{}}; len(batch) > 0; all = append(all, batch...) {
			batch, err = j.Since(uint64(len(all)), 1<<20)
			require.NoError(t, err)
		}
		for _, size := range []int{1, 2, 7, 100, len(all)} {
			var dec agentkernel.Decoder
			checker := agenttest.Checker{AllowCoalesced: true}
			got := map[agentkernel.ProgressKind]string{}
			records := 0
			for begin := 0; begin < len(all); begin += size {
				for rec := range journal.Merged(all[begin:min(begin+size, len(all))]) {
					records++
					ev, err := dec.Decode(rec.Data)
					require.NoError(t, err)
					require.Equal(t, [2]any{rec.Seq, rec.Type}, [2]any{ev.Seq, ev.Type})
					addProgress(got, ev)
					if ev.Type != agentkernel.EventSnapshot {
						checker.Listen(ev)
					}
				}
			}
			require.NoError(t, checker.Finish(), size)
			require.Equal(t, progress[agentkernel.ProgressToolDelta], got[agentkernel.ProgressToolDelta])
			sameState(t, agent.State(), dec.State())
			if size == len(all) {
				require.Less(t, records, 60)
			}
		}
	})
}

// addProgress joins what the delta kinds say, in the order of their kind.
func addProgress(sums map[agentkernel.ProgressKind]string, ev agentkernel.Event) {
	if ev.Progress != nil {
		sums[ev.Progress.Kind] += ev.Progress.Text
	}
}
