package agentkernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestAsyncMaxRate: the first update at once, no more than the rate, the last before its edge,
// and no edge late.
func TestAsyncMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := agenttest.Text(strings.Repeat("x", 1000)).Chunks(1).Delay(time.Millisecond)
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(reply, reply)})
		type arrival struct {
			typ agentkernel.EventType
			at  time.Duration
		}
		var want, got []arrival
		began := time.Now()
		agent.Subscribe(func(ev agentkernel.Event) {
			if !isUpdate(ev) {
				want = append(want, arrival{ev.Type, time.Since(began)})
			}
		})
		var at []time.Duration
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: 50}, func(ev agentkernel.Event) {
			if isUpdate(ev) {
				at = append(at, time.Since(began))
			} else {
				got = append(got, arrival{ev.Type, time.Since(began)})
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, int(final(agent.events()).Seq), accounted(r.drain(t)))
		require.Equal(t, want, got)
		require.Len(t, at, 51)
		require.Equal(t, time.Millisecond, at[0])
		for i := range 50 {
			require.Equal(t, time.Duration(1+20*i)*time.Millisecond, at[i])
		}
		require.Equal(t, 1001*time.Millisecond, at[50], "the rest, at the time of the end")
	})
}

// TestAsyncMaxRateAfterAStart: the first update of a message or call comes at once, however soon.
func TestAsyncMaxRateAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "talk", "{}"), agenttest.Text("end").Chunks(1).Delay(time.Millisecond)),
			Tools: []agentkernel.Tool{talker("talk", agentkernel.ProgressToolDelta, "a", "b", "c")},
		})
		var at []string
		began := time.Now()
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: 0.001}, func(ev agentkernel.Event) {
			if isUpdate(ev) {
				at = append(at, fmt.Sprintf("%v %s+%d", time.Since(began), ev.Type, ev.Coalesced))
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		r.drain(t)
		require.Equal(t, []string{
			"0s message_update+0",
			"1ms tool_exec_update+0", "4ms tool_exec_update+1",
			"5ms message_update+0", "8ms message_update+1",
		}, at)
	})
}

// TestAsyncMaxRateMeetsAnEdge: an edge may come in the moment in which an update is due.
func TestAsyncMaxRateMeetsAnEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 200
		reply := agenttest.Text("ab").Chunks(1).Delay(time.Millisecond)
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(slices.Repeat(replies(reply), runs)...)})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: 500}, nil)
		for range runs {
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
		}
		require.Len(t, r.drain(t), len(agent.events()))
	})
}
