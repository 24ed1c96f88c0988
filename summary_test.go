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

// TestRunRecord is the archive of a run with a failed attempt, tools and an answer.
func TestRunRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool("slow", func(context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(3 * time.Second)
			return agentkernel.ToolResult{Content: []agentkernel.ContentBlock{agentkernel.TextBlock("r")}, Usage: &agentkernel.Usage{Total: 1}}, nil
		})
		bad := tool("bad", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{}, errors.New("no")
		})
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(
				agenttest.Text("x").Model("m-0").Usage(agentkernel.Usage{Total: 4}).Fail(failure(agentkernel.KindServer, true)).Delay(time.Second),
				agenttest.Text("look").Calls("slow", "bad").Model("m-1").Usage(agentkernel.Usage{Total: 10}).Delay(time.Second),
				agenttest.Text("done").Model("m-2").Usage(agentkernel.Usage{Total: 20}).Delay(time.Second),
			),
			Tools: []agentkernel.Tool{slow, bad},
			Retry: agentkernel.RetryPolicy{BaseDelay: -1},
		})
		began := time.Now()
		run, err := agent.PromptMessages(t.Context(), mark("m"), agentkernel.UserMessage("hi"))
		require.NoError(t, err)
		record, err := run.Wait(t.Context())
		require.NoError(t, err)

		require.Equal(t, run.ID(), record.ID)
		require.Equal(t, []string{"mark: m", "user: hi"}, said(record.Input))
		require.Equal(t, agentkernel.StatusCompleted, record.Status)
		require.Equal(t, agentkernel.EndStop, record.EndReason)
		require.Equal(t, "done", record.Answer)
		require.Equal(t, []string{"mark: m", "user: hi", "assistant: look", "tool: r", "tool: no", "assistant: done"}, said(record.NewMessages))
		require.True(t, record.Start.Equal(began))
		require.Equal(t, time.Since(began), record.End.Sub(record.Start))

		type step struct {
			kind    agentkernel.StepKind
			name    string
			turn    int
			attempt int
			failed  bool
			took    time.Duration
			tokens  int
			cause   agentkernel.ToolCause
		}
		var steps []step
		for _, s := range record.Steps {
			one := step{s.Kind, s.Name, s.Turn, s.Attempt, s.IsError, s.Duration, 0, s.Cause}
			if s.Usage != nil {
				one.tokens = s.Usage.Total
			}
			steps = append(steps, one)
		}
		require.Equal(t, []step{
			{kind: agentkernel.StepModel, name: "m-0", turn: 1, attempt: 1, failed: true, took: 3 * time.Second, tokens: 4},
			{kind: agentkernel.StepModel, name: "m-1", turn: 1, attempt: 2, took: 5 * time.Second, tokens: 10},
			{kind: agentkernel.StepTool, name: "slow", turn: 1, took: 3 * time.Second, cause: agentkernel.ToolOK},
			{kind: agentkernel.StepTool, name: "bad", turn: 1, failed: true, cause: agentkernel.ToolFailed},
			{kind: agentkernel.StepModel, name: "m-2", turn: 2, attempt: 1, took: 3 * time.Second, tokens: 20},
		}, steps)
		require.Equal(t, agentkernel.RunSummary{
			TurnCount: 2, ToolCalls: 2, ToolErrors: 1, Retries: 1, EndReason: agentkernel.EndStop,
			Usage: agentkernel.Usage{Total: 31}, DiscardedUsage: agentkernel.Usage{Total: 4}, Duration: time.Since(began),
		}, record.Summary)

		var again agentkernel.RunRecord
		for _, ev := range agent.events() {
			again.Add(ev)
		}
		require.Equal(t, record, again, "it is built from the events alone")
		_, err = json.Marshal(record)
		require.NoError(t, err)
	})
}

func TestRunRecordStatus(t *testing.T) {
	for name, c := range map[string]struct {
		reply agenttest.Reply
		abort bool
		want  agentkernel.RunStatus
	}{
		"completed":         {agenttest.Text("ok"), false, agentkernel.StatusCompleted},
		"completed, empty":  {agenttest.Reply{}, false, agentkernel.StatusCompleted},
		"failed":            {agenttest.Fail(failure(agentkernel.KindAuth, false)), false, agentkernel.StatusFailed},
		"failed by a panic": {agenttest.Panic("x"), false, agentkernel.StatusFailed},
		"aborted":           {agenttest.Text("half").Stall(), true, agentkernel.StatusAborted},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			events := agentkernel.AgentLoop(ctx, agentkernel.Config{Model: agenttest.Script(c.reply), Retry: unretried, MaxEmptyRetries: -1}, nil, agentkernel.UserMessage("hi"))
			if c.abort {
				events = cancelOn(events, agentkernel.EventMessageUpdate, cancel)
			}
			record, err := agentkernel.Collect(events)
			require.Equal(t, c.want, record.Status)
			require.Equal(t, record.Err, err)
			require.Equal(t, c.want == agentkernel.StatusCompleted, err == nil)
			require.NotEmpty(t, record.ID)
		})
	}
}

// TestRunRecordOfARunInFlight says so.
func TestRunRecordOfARunInFlight(t *testing.T) {
	log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	var record agentkernel.RunRecord
	for _, ev := range log[:len(log)-1] {
		record.Add(ev)
	}
	require.Equal(t, agentkernel.StatusRunning, record.Status)
	require.Equal(t, "ok", record.Answer)
	record.Add(agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "another", Message: agentkernel.UserMessage("x")})
	require.Equal(t, []string{"user: hi"}, said(record.Input))
}
