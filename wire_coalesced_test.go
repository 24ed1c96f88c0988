package agentkernel_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// coalesced sends the stream of an asynchronous subscriber, who takes time over every so many
// events, over the wire, and gives each event to same beside what came back. It returns the
// Decoder when the run and the subscriber are done; updates were merged.
func coalesced(t *testing.T, agent *agentkernel.Agent, every uint64, same func(ev, back agentkernel.Event)) *agentkernel.Decoder {
	enc, dec := new(agentkernel.Encoder), &agentkernel.Decoder{AllowCoalesced: true}
	checker := agenttest.Checker{AllowCoalesced: true}
	merged := 0
	sub := agent.SubscribeAsync(func(ev agentkernel.Event) {
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		back, err := dec.Decode(line)
		require.NoError(t, err)
		same(ev, back)
		if merged += ev.Coalesced; ev.Seq%every == 0 {
			time.Sleep(7 * time.Millisecond)
		}
		checker.Listen(back)
	}, agentkernel.AsyncOptions{})
	defer sub.Close()
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NoError(t, sub.Drain(t.Context()))
	require.NoError(t, checker.Finish())
	requireSameState(t, agent.State(), dec.State())
	require.Positive(t, merged)
	return dec
}

// TestWireCoalesced: the stream of an asynchronous subscriber that is slow is rebuilt too.
func TestWireCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("hello world ", 400)
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text(text).Chunks(2).Delay(time.Millisecond))})
		require.NoError(t, err)
		dec := coalesced(t, agent, 3, func(ev, back agentkernel.Event) {
			require.Equal(t, onDelta(t, ev), onWire(t, back))
		})
		require.Equal(t, text, dec.State().Messages[1].TextContent())
	})
}

// TestWireCoalescedCalls: so is one whose calls came interleaved, so that updates passed each
// other: the partials of the calls that lag behind catch up by the end of the message.
func TestWireCoalescedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var increments []agentkernel.StreamEvent
		for i := range 400 {
			key := fmt.Sprint(i % 2)
			ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, Key: key, Delta: fmt.Sprintf(`"%d":%d,`, i, i)}
			if i < 2 {
				ev.ID, ev.Name, ev.Delta = "call_"+key, "echo", "{"
			}
			if i >= 398 {
				ev.Delta = `"end":0}`
			}
			increments = append(increments, ev)
		}
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(
			agenttest.Events(increments...).Delay(time.Millisecond), agenttest.Text("done"))})
		require.NoError(t, err)
		passed, last := false, uint64(0)
		coalesced(t, agent, 5, func(ev, back agentkernel.Event) {
			if ev.Type != agentkernel.EventMessageUpdate {
				require.Equal(t, onDelta(t, ev), onWire(t, back))
			}
			require.Equal(t, [3]any{ev.Seq, ev.Delta, ev.Coalesced}, [3]any{back.Seq, back.Delta, back.Coalesced})
			passed = passed || ev.Seq != last+1+uint64(ev.Coalesced)
			last = ev.Seq
		})
		require.True(t, passed, "no update passed another one")
	})
}
