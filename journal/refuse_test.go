package journal_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestRefusedEvents: an event that the Encoder refuses leaves no trace in the journal, which
// goes on with a snapshot behind it, or with a better one in its place.
func TestRefusedEvents(t *testing.T) {
	for name, bad := range map[string]agentkernel.Event{
		"no type": {}, "no message": {Type: agentkernel.EventMessageEnd}, "no role": {Type: agentkernel.EventMessageEnd, Message: agentkernel.Message{}},
		"lines":    {Type: "newer", Raw: json.RawMessage("{\n}")},
		"end":      {Type: agentkernel.EventAgentEnd},
		"another":  {Type: agentkernel.EventAgentStart, RunID: "s", Args: json.RawMessage("7")},
		"no child": {Type: "", RunID: "c", ParentRunID: "r"},
		"cost": {Type: agentkernel.EventMessageEnd, Message: agentkernel.Message{Role: agentkernel.RoleAssistant,
			Usage: &agentkernel.Usage{Cost: new(math.Inf(1))}}},
	} {
		for _, again := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "j.jsonl")
			j, err := journal.Open(path, journal.Config{})
			require.NoError(t, err)
			write := func(seq uint64, ev agentkernel.Event) {
				ev.RunID, ev.Seq = "r", seq
				require.NoError(t, j.Append(ev), "%s", name)
			}
			message := agentkernel.Event{Type: agentkernel.EventMessageEnd, Message: agentkernel.UserMessage("hi")}
			write(1, agentkernel.Event{Type: agentkernel.EventAgentStart})
			bad.Seq = 2
			if bad.RunID == "" {
				bad.RunID = "r"
			}
			require.Error(t, j.Append(bad))
			if again {
				write(2, message)
			}
			write(3, agentkernel.Event{Type: agentkernel.EventTurnStart})
			write(4, message)
			want, err := journal.Restore(j)
			require.NoError(t, err)
			require.NotEmpty(t, want.Messages)
			require.NoError(t, j.Close())

			j, err = journal.Open(path, journal.Config{})
			require.NoError(t, err, "%s", name)
			seen := uint64(0)
			for ev, err := range journal.Events(j, false) {
				require.NoError(t, err, "%s, seq %d", name, ev.Seq)
				seen = max(seen, ev.Seq)
			}
			require.Equal(t, uint64(4), seen)
			got, err := journal.Restore(j)
			require.NoError(t, err)
			sameState(t, want, got)
			require.NoError(t, j.Close())
		}
	}
}
