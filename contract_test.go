package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestKindsOfAModel: a model cannot end a run with a kind that is not on the list, or that
// only the kernel can know of.
func TestKindsOfAModel(t *testing.T) {
	for kind, want := range map[agentkernel.Kind]agentkernel.Kind{
		"": agentkernel.KindProvider, "weird": agentkernel.KindProvider,
		agentkernel.KindStopGuard: agentkernel.KindProvider, agentkernel.KindMaxTurns: agentkernel.KindProvider,
		agentkernel.KindCommit: agentkernel.KindProvider, agentkernel.KindHook: agentkernel.KindProvider,
		agentkernel.KindCanceled: agentkernel.KindProvider, agentkernel.KindTool: agentkernel.KindProvider,
		agentkernel.KindAuth: agentkernel.KindAuth, agentkernel.KindTimeout: agentkernel.KindTimeout,
	} {
		cause := &agentkernel.Error{Kind: kind, Status: 418}
		log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Fail(cause)), Retry: unretried})
		got, ok := errors.AsType[*agentkernel.Error](final(log).Err)
		require.True(t, ok)
		require.Equal(t, want, got.Kind, "model said %q", kind)
		require.Equal(t, 418, got.Status)
		require.ErrorIs(t, got, cause)
	}
}

// TestSystemBlocksAreTheRunsOwn: they are valid text, and the caller's slice stays the caller's.
func TestSystemBlocksAreTheRunsOwn(t *testing.T) {
	blocks := []agentkernel.SystemBlock{{Text: "be\xffbrief"}}
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"), agenttest.Text("ok")), SystemBlocks: blocks})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	blocks[0].Text = "changed"
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	for _, ev := range agent.events() {
		if ev.Request != nil {
			require.Equal(t, "be\uFFFDbrief", ev.Request.SystemBlocks[0].Text)
			require.Equal(t, "be\uFFFDbrief", ev.Request.System)
		}
	}
}

// TestPrepareAgainBeginsAnew: after a recovery nothing of the first preparation stays.
func TestPrepareAgainBeginsAnew(t *testing.T) {
	var seen []string
	cfg := agentkernel.Config{
		Model:        agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindContextOverflow}), agenttest.Text("ok")),
		SystemPrompt: "plain", ContextManager: lastOnly{},
		Prepare: func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			seen = append(seen, req.Request.System)
			if len(seen) > 1 {
				return agentkernel.PrepareResult{}, nil
			}
			return agentkernel.PrepareResult{System: []agentkernel.SystemBlock{{Text: "prepared"}}}, nil
		},
	}
	history := []agentkernel.AgentMessage{agentkernel.UserMessage("one"), agentkernel.UserMessage("two")}
	log := agenttest.Run(t, cfg, history, agentkernel.UserMessage("three"))
	require.Equal(t, agentkernel.EndStop, endReason(log))
	require.Equal(t, []string{"plain", "plain"}, seen)
}

// TestRecordOfSilentAttempts: an attempt that showed nothing is a step too, and what is said
// behind it is no input.
func TestRecordOfSilentAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		model := agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true}), agenttest.Stall())
		record, err := agentkernel.Collect(agentkernel.AgentLoop(ctx, agentkernel.Config{
			Model: model, AbortMarker: "[stopped]", Retry: agentkernel.RetryPolicy{BaseDelay: time.Second, Jitter: -1},
		}, nil, agentkernel.UserMessage("hi")))
		require.ErrorIs(t, err, agentkernel.KindTimeout)
		require.Equal(t, []string{"user: hi"}, said(record.Input))
		require.Len(t, record.Steps, 2)
		require.True(t, record.Steps[0].IsError)
		require.Equal(t, 2*time.Second, record.Steps[1].Duration)
	})
}

// TestStopGuardTerminates: the guard may end a run as terminated.
func TestStopGuardTerminates(t *testing.T) {
	log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok")),
		StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{Action: agentkernel.StopTerminate}, nil
		}})
	require.Equal(t, agentkernel.EndTerminated, endReason(log))
}

// TestInjectBehindATerminatingTool: a run that takes nothing more is not said to be steered.
func TestInjectBehindATerminatingTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := agentkernel.Tool{Name: "last", Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{Terminate: true}, nil
		}}
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("last"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{last}, EventBuffer: 64})
		var got agentkernel.InjectResult
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventModelResponse && len(ev.ToolResults) > 0 {
				synctest.Wait() // the loop has ended
				var err error
				got, err = agent.Inject(t.Context(), agentkernel.UserMessage("x"))
				require.NoError(t, err)
			}
		})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, agentkernel.InjectQueued, got.Disposition)
	})
}
