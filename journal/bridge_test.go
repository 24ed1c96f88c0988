package journal

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// failing is a store whose next append fails where fail is set.
type failing struct {
	store
	fail bool
}

func (f *failing) append(rec Record) error {
	if f.fail {
		f.fail = false
		return errors.New("no space left")
	}
	return f.store.append(rec)
}

// TestFollowBridges: where the snapshot that Follow begins with in mid-run cannot be written,
// the next event begins with one.
func TestFollowBridges(t *testing.T) {
	j := NewRing(Config{})
	j.store = &failing{store: j.store, fail: true}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("one two three").Chunks(2))})
	require.NoError(t, err)
	n := 0
	agent.Subscribe(func(agentkernel.Event) {
		if n++; n == 5 {
			Follow(agent, j)
		}
	})
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.ErrorContains(t, j.Err(), "no space left")
	state, err := Restore(j)
	require.NoError(t, err)
	require.Equal(t, "one two three", state.Messages[1].(agentkernel.Message).TextContent())
	for ev, err := range Events(j, false) {
		require.NoError(t, err, ev.Type)
	}
}
