package jetstream_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func asking(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
	return jetstream.Ask(ctx, req, "may I?")
}

// questions waits until the session asks something.
func (w *world) questions(session string) []jetstream.Question {
	w.t.Helper()
	for range 2000 {
		open, err := w.client.Questions(w.t.Context(), session)
		require.NoError(w.t, err)
		if len(open) > 0 {
			return open
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatal("it asks nothing")
	return nil
}

var echo = agentkernel.MustTool("echo", "says it", func(_ context.Context, in struct {
	Text string `json:"text"`
}) (string, error) {
	return in.Text, nil
})

// TestAnswer: the first of two answers counts, and the other one is told.
func TestAnswer(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c/1", "echo", `{"text":"a"}`), agenttest.Text("so be it")),
		Tools: []agentkernel.Tool{echo}, Gate: asking,
	})})
	id := w.submit("s", "go")
	open := w.questions("s")
	require.Len(t, open, 1)
	assert.Equal(t, "c/1", open[0].Call)
	assert.Equal(t, "may I?", open[0].Text)
	assert.JSONEq(t, `{"text":"a"}`, string(open[0].Args))
	assert.ErrorIs(t, w.client.Answer(t.Context(), "s", "c2", agentkernel.GateDecision{}), jetstream.ErrNotAsked)

	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = w.client.Answer(t.Context(), "s", "c/1", agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{"text":"b"}`)})
		})
	}
	all.Wait()
	first := 0
	for _, err := range errs {
		if err == nil {
			first++
			continue
		}
		assert.ErrorIs(t, err, jetstream.ErrAnswered)
	}
	assert.Equal(t, 1, first)
	w.wait("s", id)
	assert.Equal(t, []string{"user: go", "assistant: [echo]", "tool: b", "assistant: so be it"}, w.texts("s"))
	open, err := w.client.Questions(t.Context(), "s")
	require.NoError(t, err)
	assert.Empty(t, open)
}

// TestQuestionWithdrawn: what nobody answers in time, or an abort made pointless, waits no more.
func TestQuestionWithdrawn(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	w.work(jetstream.WorkerConfig{AskWait: 50 * time.Millisecond, Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "echo", `{"text":"a"}`), agenttest.Text("so be it")),
		Tools: []agentkernel.Tool{echo}, Gate: asking,
	})})
	w.wait("s", w.submit("s", "go"))
	assert.Contains(t, w.texts("s")[2], "nobody answered within 50ms")
	assert.ErrorIs(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}), jetstream.ErrNotAsked)
}

// TestAskOutside: only a worker's gate can ask.
func TestAskOutside(t *testing.T) {
	_, err := jetstream.Ask(t.Context(), agentkernel.GateRequest{}, "")
	assert.Error(t, err)
}

// TestQuestionOfTheDead: a question of a worker that died is withdrawn, since its call counts as
// interrupted.
func TestQuestionOfTheDead(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	stop := w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "echo", `{"text":"a"}`)), Tools: []agentkernel.Tool{echo}, Gate: asking,
	})})
	id := w.submit("s", "go")
	w.questions("s")
	stop()
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("so be it")), Tools: []agentkernel.Tool{echo}, Gate: asking,
	})})
	w.wait("s", id)
	require.Eventually(t, func() bool {
		open, err := w.client.Questions(t.Context(), "s")
		return err == nil && len(open) == 0
	}, 10*time.Second, 5*time.Millisecond)
	assert.ErrorIs(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}), jetstream.ErrNotAsked)
}
