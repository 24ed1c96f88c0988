package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestHostileTimeouts: limits as long as there are do not overflow into none.
func TestHostileTimeouts(t *testing.T) {
	for name, cfg := range map[string]agentkernel.Config{
		"stop":  {StopTimeout: math.MaxInt64, ToolTimeout: time.Minute},
		"tool":  {ToolTimeout: math.MaxInt64},
		"both":  {StopTimeout: math.MaxInt64, ToolTimeout: math.MaxInt64},
		"whole": {RunTimeout: math.MaxInt64, StreamIdleTimeout: math.MaxInt64, DrainTimeout: math.MaxInt64, StopTimeout: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.Model = agenttest.Script(agenttest.Calls("wait"), agenttest.Text("ok"))
				cfg.Tools = []agentkernel.Tool{tool("wait", func(context.Context) (agentkernel.ToolResult, error) {
					time.Sleep(time.Second)
					return agentkernel.TextResult("x"), nil
				})}
				log := play(t, cfg)
				require.NoError(t, final(log).Err)
				require.Equal(t, []string{"wait ok"}, causes(log))
				require.Zero(t, final(log).Summary.Abandoned)
			})
		})
	}
}

// TestHostileEventBuffer: a buffer outside 0..2^20 is refused at once, and only that.
func TestHostileEventBuffer(t *testing.T) {
	for _, n := range []int{math.MinInt, -1, 1<<20 + 1, 1 << 40, math.MaxInt} {
		_, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(), EventBuffer: n})
		require.Error(t, err, n)
	}
	_, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(), EventBuffer: 1 << 20})
	require.NoError(t, err)
}

// TestHostileCost: every event of a run whose provider counts no number can be written.
func TestHostileCost(t *testing.T) {
	for _, cost := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, ev := range play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("a").Usage(agentkernel.Usage{Input: 1, Total: 1, Cost: &cost}))}) {
			_, err := json.Marshal(ev)
			require.NoError(t, err, "%v %s", cost, ev.Type)
			_, err = json.Marshal(ev.Message)
			require.NoError(t, err, "%v %s", cost, ev.Type)
		}
	}
}

// TestHostileCostKeepsBudget: a cost that is no number does not switch the budget off.
func TestHostileCostKeepsBudget(t *testing.T) {
	calls := 0
	log := play(t, agentkernel.Config{MaxTurns: 20, Budget: agentkernel.Budget{Cost: 10}, Tools: []agentkernel.Tool{echo("echo")},
		Model: modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
			cost := 5.0
			if calls++; calls == 1 {
				cost = math.NaN()
			}
			yield(callDelta("0", "", "echo", fmt.Sprintf(`{"n":%d}`, calls)), nil)
			end := done("")
			end.Usage = &agentkernel.Usage{Input: 1, Cost: &cost}
			yield(end, nil)
		})})
	require.Equal(t, agentkernel.EndLimit, endReason(log))
	require.Less(t, calls, 5)
}

// deep is JSON as deep as encoding/json reads it, alone.
var deep = json.RawMessage(strings.Repeat("[", 9999) + strings.Repeat("]", 9999))

// TestHostileDeepJSON: whatever goes into events and messages deep can be written and read back.
func TestHostileDeepJSON(t *testing.T) {
	n := 0
	log := play(t, agentkernel.Config{
		Model: modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
			text := textDelta("a")
			text.Extra = deep
			yield(text, nil)
			if n++; n == 1 {
				yield(callDelta("0", "", "d", "{}"), nil)
			}
			yield(done(""), nil)
		}),
		Tools: []agentkernel.Tool{tool("d", func(ctx context.Context) (agentkernel.ToolResult, error) {
			agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressCustom, Data: deep})
			return agentkernel.ToolResult{JSON: deep}, nil
		})},
	})
	require.NoError(t, final(log).Err)
	for _, ev := range log {
		raw, err := json.Marshal(ev)
		require.NoError(t, err, ev.Type)
		require.NoError(t, json.Unmarshal(raw, new(agentkernel.Event)), ev.Type)
	}
	for _, m := range final(log).NewMessages {
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, new(agentkernel.Message)))
	}
}

// TestHostileBlocks: a message of more than 4,096 blocks ends the run with kind limit.
func TestHostileBlocks(t *testing.T) {
	if withRaceDetector() {
		t.Skip("megabytes of snapshots, on one goroutine")
	}
	yielded := 0
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
		block := []agentkernel.StreamEvent{thinkingDelta("a"), textDelta("b")}
		for yield(block[yielded%2], nil) {
			yielded++
		}
	})})
	require.NoError(t, err)
	_, err = agent.Run(t.Context(), "hi") // 4,096 snapshots of up to 4,096 blocks: nothing to keep for the checker
	require.ErrorIs(t, err, agentkernel.KindLimit)
	require.Equal(t, 4096, yielded)
}
