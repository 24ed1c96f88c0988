package agentkernel_test

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
)

// heldAt runs the agent with a subscriber that is held at the first event of a type until the
// run is over, and returns what that one got.
func heldAt(t *testing.T, agent *watched, of agentkernel.EventType) []agentkernel.Event {
	t.Helper()
	each, release := holdAt(of)
	r := read(t, agent.Agent, agentkernel.AsyncOptions{}, each)
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	release()
	return r.drain(t)
}

// TestAsyncMergesUpdates that wait, and nothing else.
func TestAsyncMergesUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello world").Chunks(3).Delay(time.Millisecond))})
		got := heldAt(t, agent, agentkernel.EventMessageUpdate)
		all := agent.events()
		require.Equal(t, []string{`7 [0] "hel" +0`, `10 [0] "lo world" +2`}, updates(got))
		require.Equal(t, edges(all), edges(got))
		require.Equal(t, int(final(all).Seq), accounted(got))

		newest := ofType(all, agentkernel.EventMessageUpdate)[3]
		newest.Delta, newest.Coalesced = "lo world", 2
		require.Equal(t, newest, ofType(got, agentkernel.EventMessageUpdate)[1])
		require.Equal(t, "hello world", newest.Message.TextContent())
	})
}

// TestAsyncPromptConsumer gets the stream as it is.
func TestAsyncPromptConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello world").Chunks(2).Delay(time.Millisecond))})
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, nil)
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, agent.events(), r.drain(t))
	})
}

// TestAsyncBlocksOfAMessage merge each for itself; one that grows goes to the back.
func TestAsyncBlocksOfAMessage(t *testing.T) {
	delta := func(key, id, args string) agentkernel.StreamEvent {
		return agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, Key: key, ID: id, Name: "echo", Delta: args}
	}
	reply := agenttest.Thinking("so").Events(
		delta("a", "1", `{"a`), delta("b", "2", `{"b`), delta("a", "1", `":1}`), delta("b", "2", `":2`), delta("b", "2", `}`))
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(reply, agenttest.Text("ok")), Tools: []agentkernel.Tool{echo("echo")}})
	got := heldAt(t, agent, agentkernel.EventMessageStart)
	require.Equal(t, []string{`7 [0] "so" +0`, `10 [1] "{\"a\":1}" +1`, `12 [2] "{\"b\":2}" +2`}, updates(got)[:3])
	require.Equal(t, edges(agent.events()), edges(got))
}

// TestAsyncEmptyDelta: an update that adds no text, since it brings a call's id or data, takes
// none away from what it merges with.
func TestAsyncEmptyDelta(t *testing.T) {
	delta := func(id, name, args string) agentkernel.StreamEvent {
		return agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, Key: "a", ID: id, Name: name, Delta: args}
	}
	says := tool("says", func(ctx context.Context) (agentkernel.ToolResult, error) {
		for _, p := range []agentkernel.ProgressPayload{
			{Kind: agentkernel.ProgressToolDelta, Text: "abc"}, {Kind: agentkernel.ProgressToolDelta, Data: json.RawMessage(`1`)},
		} {
			agentkernel.ReportProgress(ctx, p)
			time.Sleep(time.Millisecond) // each is an event of its own
		}
		return agentkernel.TextResult("said"), nil
	})
	synctest.Test(t, func(t *testing.T) {
		reply := agenttest.Text("so").Events(delta("", "", `{"a":1}`), delta("1", "", ""), delta("", "says", ""))
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(reply, agenttest.Text("ok")), Tools: []agentkernel.Tool{says}})
		got := heldAt(t, agent, agentkernel.EventAgentStart)
		require.Equal(t, []string{`7 [0] "so" +0`, `10 [1] "{\"a\":1}" +2`, `1 tool_delta "abc" +1`, `22 [0] "ok" +0`}, updates(got))
		require.JSONEq(t, `1`, string(ofType(got, agentkernel.EventToolExecUpdate)[0].Progress.Data))
	})
}

// TestAsyncFailedAttempt: what it showed does not merge with what the next one shows.
func TestAsyncFailedAttempt(t *testing.T) {
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("abcd").Chunks(2).Fail(failure(agentkernel.KindServer, true)), agenttest.Text("efgh").Chunks(2)),
		Retry: agentkernel.RetryPolicy{BaseDelay: -1},
	})
	got := heldAt(t, agent, agentkernel.EventAgentStart)
	require.Equal(t, []string{`8 [0] "abcd" +1`, `14 [0] "efgh" +1`}, updates(got))
	require.Equal(t, edges(agent.events()), edges(got))
}

// TestAsyncProgress merges per call and kind: deltas add up, of the others the newest holds.
func TestAsyncProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "adds", "{}").Call("2", "states", "{}"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{
				talker("adds", agentkernel.ProgressToolDelta, "a", "b", "c"),
				talker("states", agentkernel.ProgressSummary, "1 of 3", "2 of 3", "3 of 3"),
			},
		})
		got := heldAt(t, agent, agentkernel.EventToolExecStart)
		require.ElementsMatch(t, []string{`1 tool_delta "abc" +2`, `2 summary "3 of 3" +2`},
			updates(ofType(got, agentkernel.EventToolExecUpdate)))
		require.Equal(t, edges(agent.events()), edges(got))
		var texts []string
		for _, ev := range ofType(agent.events(), agentkernel.EventToolExecUpdate) {
			texts = append(texts, ev.Progress.Text)
		}
		require.ElementsMatch(t, []string{"a", "b", "c", "1 of 3", "2 of 3", "3 of 3"}, texts, "what others got stays as it was")
	})
}

// TestAsyncPreviewAndGate are edges: what they say stands alone.
func TestAsyncPreviewAndGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		careful := talker("careful", agentkernel.ProgressPreview, "x", "y")
		careful.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
			return agentkernel.ProgressPayload{Text: "would do"}, nil
		}
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("careful"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{careful},
			Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				return agentkernel.GateDecision{Allow: true, Reason: "fine"}, nil
			},
		})
		got := heldAt(t, agent, agentkernel.EventAgentStart)
		var kinds []agentkernel.ToolExecUpdateKind
		for _, ev := range ofType(got, agentkernel.EventToolExecUpdate) {
			kinds = append(kinds, ev.UpdateKind)
		}
		require.Equal(t, []agentkernel.ToolExecUpdateKind{"preview", "gate", "progress"}, kinds)
	})
}

// TestAsyncOvertakenUpdate gets its turn, although whenever the consumer is ready another
// call's update stands before it.
func TestAsyncOvertakenUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := strings.Split(strings.Repeat("x", 1000), "")
		second := talker("second", agentkernel.ProgressToolDelta, texts...)
		report := second.Execute
		second.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			time.Sleep(time.Millisecond / 2)
			return report(ctx, args)
		}
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("1", "first", "{}").Call("2", "second", "{}"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{talker("first", agentkernel.ProgressToolDelta, texts...), second},
		})
		busy := 10*time.Millisecond + time.Millisecond/4
		r := read(t, agent.Agent, agentkernel.AsyncOptions{}, func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventToolExecUpdate {
				time.Sleep(busy)
				busy = 10 * time.Millisecond
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		count := make(map[string]int)
		for _, ev := range ofType(r.drain(t), agentkernel.EventToolExecUpdate) {
			count[ev.ToolID]++
		}
		require.GreaterOrEqual(t, min(count["1"], count["2"]), 10, "%v", count)
	})
}
