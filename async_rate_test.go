package agentkernel_test

import (
	"context"
	"encoding/json"
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

// TestAsyncMaxRateInParallel: of calls that report at the same time each shows its first update
// at once and its last before its end, and all of them together no more than the rate.
func TestAsyncMaxRateInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tools []agentkernel.Tool
		var calls []string
		for i := range 5 {
			talks := talker(fmt.Sprint("talk", i), agentkernel.ProgressToolDelta, strings.Split(strings.Repeat("x", 1000), "")...)
			report := talks.Execute
			talks.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
				time.Sleep(time.Duration(i) * 17 * time.Millisecond)
				return report(ctx, args)
			}
			tools, calls = append(tools, talks), append(calls, talks.Name)
		}
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls(calls...), agenttest.Text("ok")), Tools: tools})
		want, got := newTimes(), newTimes()
		agent.Subscribe(want.note)
		const rate = 10
		r := read(t, agent.Agent, agentkernel.AsyncOptions{MaxRate: rate}, got.note)
		began := time.Now()
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		all := r.drain(t)
		require.Equal(t, int(final(agent.events()).Seq), accounted(all))
		require.Equal(t, edges(agent.events()), edges(all))
		require.Len(t, got.first, 5+1+5)
		require.Equal(t, want.first, got.first, "the first update at once")
		require.Equal(t, want.end, got.end, "no edge late")
		for what, last := range got.last {
			require.Equal(t, want.last[what].Seq, last.Seq, "%s: the last update before the end", what)
		}
		// Beside the rate each first update and each end lets all go ahead that is held.
		most := int(time.Since(began).Seconds()*rate) + 5*(5+5)
		require.LessOrEqual(t, len(ofType(all, agentkernel.EventToolExecUpdate)), most)
	})
}

// times is when the first update of each block and call came, which was the last, and when it
// ended.
type times struct {
	first, end map[string]time.Time
	last       map[string]agentkernel.Event
}

func newTimes() *times {
	return &times{make(map[string]time.Time), make(map[string]time.Time), make(map[string]agentkernel.Event)}
}

func (x *times) note(ev agentkernel.Event) {
	what := fmt.Sprint(ev.RunID, " ", ev.Turn, " ", ev.ToolID)
	switch {
	case ev.Type == agentkernel.EventMessageUpdate:
		what = fmt.Sprint(ev.RunID, " ", ev.Turn, " block ", ev.ContentIndex)
		fallthrough
	case ev.Type == agentkernel.EventToolExecUpdate:
		if _, ok := x.first[what]; !ok {
			x.first[what] = time.Now()
		}
		x.last[what] = ev
	case ev.Type == agentkernel.EventToolExecEnd, ev.Type == agentkernel.EventMessageEnd:
		x.end[fmt.Sprint(what, " ", ev.Seq)] = time.Now()
	}
}

// TestAsyncMaxRateOfBlocks: each block of a message begins to show at once, also where it comes
// again in the next attempt, and another agent's while one is held back.
func TestAsyncMaxRateOfBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := agenttest.Thinking("abcd").Text("efgh").Chunks(1).Delay(time.Millisecond)
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(reply.Fail(failure(agentkernel.KindServer, true)), reply),
			Retry: agentkernel.RetryPolicy{BaseDelay: -1},
		})
		other := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ij").Chunks(1).Delay(7 * time.Millisecond / 2))})
		var at []string
		began := time.Now()
		r := readMany(agent.Agent, agentkernel.AsyncOptions{MaxRate: 0.001}, func(ev agentkernel.Event) {
			if isUpdate(ev) {
				at = append(at, fmt.Sprintf("%v %q", time.Since(began), ev.Delta))
			}
		})
		r.sub.Follow(other.Agent)
		run, err := other.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		for id, log := range byRun(r.drain(t)) {
			require.Equal(t, int(final(log).Seq), accounted(log), id)
		}
		require.Equal(t, []string{
			`1ms "a"`, `3.5ms "bc"`, `3.5ms "i"`, `5ms "d"`, `5ms "e"`, // of the first attempt and of the other agent
			`9ms "j"`, `9ms "fgh"`, // its failure
			`10ms "a"`, `14ms "bcd"`, `14ms "e"`, `18ms "fgh"`, // of the second
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
