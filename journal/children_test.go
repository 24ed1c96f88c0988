package journal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestManyChildren: a journal keeps every event of a run with more open children than an
// Encoder follows, and its readers get them all.
func TestManyChildren(t *testing.T) {
	const children = 1500
	said := agentkernel.UserMessage("x")
	events := []agentkernel.Event{{Type: agentkernel.EventAgentStart, RunID: "own", Seq: 1}}
	for step, of := range []agentkernel.EventType{agentkernel.EventAgentStart, agentkernel.EventMessageStart, agentkernel.EventMessageEnd} {
		for i := range children {
			ev := agentkernel.Event{Type: of, RunID: fmt.Sprint("child", i), ParentRunID: "own", Seq: uint64(step + 1)}
			if step > 0 {
				ev.Message = said
			}
			events = append(events, ev)
		}
	}
	events = append(events,
		agentkernel.Event{Type: agentkernel.EventMessageStart, RunID: "own", Seq: 2, Message: said},
		agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "own", Seq: 3, Message: said})
	j := journal.NewRing(journal.Config{SnapshotEvery: 1 << 20})
	var live agentkernel.AgentState
	for _, ev := range events {
		live = agentkernel.Reduce(live, ev)
		require.NoError(t, j.Append(ev))
	}
	var came []agentkernel.Event
	for ev, err := range journal.Events(j, false) {
		require.NoError(t, err)
		if ev.Type != agentkernel.EventSnapshot {
			came = append(came, ev)
		}
	}
	require.Len(t, came, len(events))
	state, err := journal.Restore(j)
	require.NoError(t, err)
	require.Equal(t, live.RunID, state.RunID)
	require.Len(t, state.Messages, 1)
}
