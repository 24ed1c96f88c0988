package agentkernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestWireSuspended: a run that was suspended, in both encodings, and the snapshot behind it,
// which restores what waits.
func TestWireSuspended(t *testing.T) {
	var events []agentkernel.Event
	synctest.Test(t, func(t *testing.T) {
		tool := echo("pay")
		tool.Label = "Pays"
		events = play(t, agentkernel.Config{Tools: []agentkernel.Tool{tool},
			Model: agenttest.Script(agenttest.Call("a", "pay", `{"to":"Anna"}`).Call("b", "pay", `{"to":"<Ben>"}`)),
			Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				return yes, agentkernel.Suspend(agentkernel.ProgressPayload{Tool: "bank", Text: "Pay?", Data: req.Call.Args, Count: 1, Of: 2})
			},
		})
	})
	var out bytes.Buffer
	var enc agentkernel.Encoder
	var dec agentkernel.Decoder
	var state agentkernel.AgentState
	for _, ev := range events {
		state = agentkernel.Reduce(state, ev)
		out.WriteString(onWire(t, ev) + "\n")
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		got, err := dec.Decode(line)
		require.NoError(t, err)
		if ev.Type != agentkernel.EventModelRequest { // which is shorter there
			require.Equal(t, onWire(t, ev), onWire(t, got))
		}
		if ev.Type == agentkernel.EventAgentEnd {
			out.Write(append(line, '\n'))
		}
	}
	snapshot, err := enc.Snapshot()
	require.NoError(t, err)
	out.Write(append(snapshot, '\n'))
	agenttest.Golden(t, "testdata/wire/suspended.jsonl", namedRuns(events, out.String()))

	var late agentkernel.Decoder
	_, err = late.Decode(snapshot)
	require.NoError(t, err)
	require.Len(t, late.State().Suspended, 2)
	require.Equal(t, state.Suspended, late.State().Suspended)
	require.Equal(t, state.Suspended, dec.State().Suspended)
}

// TestSuspensionOnTheWire is refused where no call could be meant.
func TestSuspensionOnTheWire(t *testing.T) {
	for _, bad := range []string{`[]`, `{"call":[]}`, `{"call":{"id":1}}`, `{"call":{"id":"a","name":"t","args":[]},"turn":1}`,
		`{"call":{"id":"a","name":"t"},"args":"x","turn":1}`, `{"turn":"x"}`} {
		require.Error(t, json.Unmarshal([]byte(bad), new(agentkernel.Suspension)), bad)
	}
}
