package journal_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

// mark is a message of the harness that crashes when it is written.
type mark func()

func (m mark) GetRole() agentkernel.Role    { return "mark" }
func (m mark) GetTimestamp() time.Time      { return time.Time{} }
func (m mark) TextContent() string          { return "a mark" }
func (m mark) ThinkingContent() string      { return "" }
func (m mark) HasToolCalls() bool           { return false }
func (m mark) MarshalJSON() ([]byte, error) { m(); return nil, nil }

func init() { agentkernel.RegisterMessage[mark]("test_mark") }

// TestCrashingMessage: that a message could not be written is told with its seq, and costs no
// more than its own events: snapshots stand for them.
func TestCrashingMessage(t *testing.T) {
	for _, crash := range []mark{func() { panic("no luck") }, runtime.Goexit} {
		j := journal.NewRing(journal.Config{})
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("fine"))})
		require.NoError(t, err)
		journal.Follow(agent, j)
		run, err := agent.PromptMessages(t.Context(), agentkernel.UserMessage("hi"), crash)
		require.NoError(t, err)
		record, err := run.Wait(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, j.Err(), "journal: seq 5 of run "+`"`+run.ID()+`"`)
		var last agentkernel.Event
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err)
			last = ev
		}
		require.Equal(t, agentkernel.EventAgentEnd, last.Type)
		require.Len(t, last.NewMessages, len(record.Input)+1)
		state, err := journal.Restore(j)
		require.NoError(t, err)
		var said []string
		for _, m := range state.Messages {
			said = append(said, m.TextContent())
		}
		require.Equal(t, []string{"hi", "a mark", "fine"}, said)
	}
}
