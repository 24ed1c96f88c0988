package jetstream_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func suspending(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
	return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "may I?"})
}

// suspended is a world in which a session's call waits for a person, and no worker is there.
func suspended(t *testing.T) *world {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	stop := w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "echo", `{"text":"a"}`)), Tools: []agentkernel.Tool{echo}, Gate: suspending,
	})})
	o := w.wait("s", w.submit("s", "go"))
	assert.Equal(t, agentkernel.EndSuspended, o.Reason)
	assert.NoError(t, o.Err())
	stop()
	open := w.questions("s")
	require.Len(t, open, 1)
	assert.Equal(t, "c1", open[0].Call)
	assert.Equal(t, "may I?", open[0].Text)
	assert.JSONEq(t, `{"text":"a"}`, string(open[0].Args))
	assert.Zero(t, w.stored("WORK"), "nothing waits but the question")
	return w
}

// TestSuspend: a call waits for a person while no worker is there, and the first answer resumes
// the session on another one.
func TestSuspend(t *testing.T) {
	w := suspended(t)
	require.NoError(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}))
	for range 2 {
		assert.ErrorIs(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{}), jetstream.ErrAnswered)
	}
	var ran atomic.Int32
	counted := echo
	execute := counted.Execute
	counted.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		ran.Add(1)
		return execute(ctx, args)
	}
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("so be it")), Tools: []agentkernel.Tool{counted}, Gate: suspending,
	})})
	require.Eventually(t, func() bool { return len(w.texts("s")) == 4 }, 20*time.Second, 5*time.Millisecond)
	assert.Equal(t, []string{"user: go", "assistant: [echo]", "tool: a", "assistant: so be it"}, w.texts("s"))
	assert.EqualValues(t, 1, ran.Load())
	open, err := w.client.Questions(t.Context(), "s")
	require.NoError(t, err)
	assert.Empty(t, open)
}

// TestPromptInsteadOfAnswer: who says something else instead answers the call with that, and nobody
// can answer it any more.
func TestPromptInsteadOfAnswer(t *testing.T) {
	w := suspended(t)
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("well then")), Tools: []agentkernel.Tool{echo}, Gate: suspending,
	})})
	assert.Equal(t, agentkernel.EndStop, w.wait("s", w.submit("s", "never mind")).Reason)
	history, err := w.client.History(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, history, 5)
	assert.Equal(t, agentkernel.ToolSkipped, history[2].(agentkernel.Message).Cause)
	assert.ErrorIs(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}), jetstream.ErrNotAsked)
}
