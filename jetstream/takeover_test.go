package jetstream_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWorkerThatWakes: a worker that fell silent in the middle of a call loses the session. What it
// says when it wakes is not taken, and its run ends with kind "commit".
func TestWorkerThatWakes(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	var ran, again atomic.Int32
	silent, wake := make(chan struct{}), make(chan struct{})
	tools := func(once func(ctx context.Context)) []agentkernel.Tool {
		safe := tool("safe", func(ctx context.Context) (string, error) {
			again.Add(1)
			return jetstream.IdempotencyKey(ctx), nil
		})
		safe.Idempotent = true
		return []agentkernel.Tool{safe, tool("once", func(ctx context.Context) (string, error) {
			ran.Add(1)
			once(ctx)
			return "done", nil
		})}
	}
	// The first worker's connection goes away while its call runs: it cannot beat any more.
	first := w.connect()
	ended := make(chan error, 1)
	worker, err := jetstream.NewWorker(first, jetstream.WorkerConfig{
		Config: jetstream.Config{AckWait: testConfig.AckWait, PublishWait: 500 * time.Millisecond},
		Agent: agent(agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("c1", "safe", "{}").Call("c2", "once", "{}"), agenttest.Text("never said")),
			Tools: tools(func(context.Context) { close(silent); <-wake }),
		}),
		OnError: func(_, _ string, err error) { ended <- err },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- worker.Run(ctx) }()

	id := w.submit("s", "go")
	f, err := w.client.Follow("s", "")
	require.NoError(t, err)
	<-silent
	first.Close()
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("I see")),
		Tools: tools(func(context.Context) {}),
	})})
	o := w.wait("s", id)
	assert.Equal(t, agentkernel.EndStop, o.Reason)
	assert.Equal(t, 2, o.Attempts)
	close(wake)
	assert.ErrorIs(t, <-ended, agentkernel.KindCommit)
	cancel()
	assert.NoError(t, <-stopped)

	history, err := w.client.History(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, history, 5)
	assert.Equal(t, "s/c1", history[2].TextContent())
	assert.Equal(t, agentkernel.ToolInterrupted, history[3].(agentkernel.Message).Cause)
	assert.Equal(t, "I see", history[4].TextContent())
	assert.EqualValues(t, 1, ran.Load(), "not idempotent")
	assert.EqualValues(t, 2, again.Load(), "idempotent")

	var seen watcher
	for ev, err := range f.Events(t.Context()) {
		require.NoError(t, err)
		if seen.take(ev, f.State()); seen.ended == 1 {
			break
		}
	}
	require.NoError(t, seen.checker.Finish())
	assert.Equal(t, history, f.State().Messages)
}

// TestFence: a worker that is alive and was thought dead cannot commit.
func TestFence(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	silent, wake := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	id := w.submit("s", "go")
	first := w.connect()
	worker, err := jetstream.NewWorker(first, jetstream.WorkerConfig{
		// It believes that it need not beat so soon.
		Config: jetstream.Config{AckWait: time.Hour}, MaxSessions: 1,
		Agent: agent(agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("c1", "once", "{}"), agenttest.Text("never said")),
			Tools: []agentkernel.Tool{tool("once", func(context.Context) (string, error) { close(silent); <-wake; return "late", nil })},
		}),
		OnError: func(_, _ string, err error) { ended <- err },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- worker.Run(ctx) }()
	<-silent
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("I see"), agenttest.Text("yes"))})})
	assert.Equal(t, agentkernel.EndStop, w.wait("s", id).Reason)
	close(wake)
	err = <-ended
	assert.ErrorIs(t, err, agentkernel.KindCommit)
	assert.ErrorIs(t, err, jetstream.ErrFenced)
	cancel()
	assert.NoError(t, <-stopped)
	assert.Equal(t, []string{"user: go", "assistant: [once]", "tool: The call was interrupted. It may have had effects.",
		"assistant: I see"}, w.texts("s"))

	// Nor does it tell those who look on: what they see is whole, and ends once.
	w.wait("s", w.submit("s", "on"))
	f, err := w.client.Follow("s", "")
	require.NoError(t, err)
	var seen watcher
	for ev, err := range f.Events(t.Context()) {
		require.NoError(t, err)
		if seen.take(ev, f.State()); seen.ended == 1 {
			break
		}
	}
	assert.NoError(t, seen.checker.Finish())
	assert.Len(t, f.State().Messages, 6)
}

// TestHandOver: a worker that stops gives its session to another one at once.
func TestHandOver(t *testing.T) {
	cfg := testConfig
	cfg.AckWait = time.Hour // nobody waits for it
	w := newWorld(t, cfg, jetstream.EmbeddedConfig{})
	speaking := make(chan struct{})
	stop := w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("let me").Call("c1", "hang", "{}")),
		Tools: []agentkernel.Tool{tool("hang", func(ctx context.Context) (string, error) {
			close(speaking)
			<-ctx.Done()
			return "", context.Cause(ctx)
		})},
	})})
	id := w.submit("s", "go")
	<-speaking
	stop()
	assert.Equal(t, []string{"user: go", "assistant: let me[hang]"}, w.texts("s"))
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("I see"))})})
	assert.Equal(t, agentkernel.EndStop, w.wait("s", id).Reason)
}

// TestHandOversDoNotCount: workers that stop do not use up a request's attempts.
func TestHandOversDoNotCount(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	id := w.submit("s", "go")
	for range 4 {
		asked := make(chan struct{})
		stop := w.work(jetstream.WorkerConfig{MaxAttempts: 1, Agent: agent(agentkernel.Config{
			Model: agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
				close(asked)
				return agenttest.Script(agenttest.Stall()).Stream(ctx, req)
			})})})
		<-asked
		stop()
	}
	w.work(jetstream.WorkerConfig{MaxAttempts: 1, Agent: agent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("fine"))})})
	o := w.wait("s", id)
	assert.Equal(t, agentkernel.EndStop, o.Reason)
	assert.Equal(t, 5, o.Attempts)
	assert.Equal(t, []string{"user: go", "assistant: fine"}, w.texts("s"))
}

// TestGivesUp: a request that ends every worker is answered with that, and the next one is taken.
func TestGivesUp(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	var asked atomic.Int32
	w.work(jetstream.WorkerConfig{MaxAttempts: 3, RetryWait: time.Millisecond, OnError: func(string, string, error) {},
		Agent: func(context.Context, string) (agentkernel.Config, error) {
			if asked.Add(1) <= 3 {
				panic("not me")
			}
			return agentkernel.Config{Model: agenttest.Script(agenttest.Text("fine"))}, nil
		}})
	o := w.wait("s", w.submit("s", "go"))
	assert.Equal(t, agentkernel.EndError, o.Reason)
	assert.ErrorIs(t, o.Err(), agentkernel.KindLimit)
	assert.Equal(t, agentkernel.EndStop, w.wait("s", w.submit("s", "go on")).Reason)
}

// TestSubmitTwice: a request with an id is answered once, also long after.
func TestSubmitTwice(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("a"), agenttest.Text("b"))})})
	req := prompt("go")
	req.ID = "r1"
	for range 3 {
		id, err := w.client.Submit(t.Context(), "s", req)
		require.NoError(t, err)
		require.Equal(t, "r1", id)
	}
	w.wait("s", "r1")
	w.wait("s", w.submit("s", "next"))
	assert.Equal(t, []string{"user: go", "assistant: a", "user: next", "assistant: b"}, w.texts("s"))
}

// TestDiedBeforeItSaidSo: where a worker said the last word and died before it wrote the outcome,
// nothing is run again, and those who look on are told.
func TestDiedBeforeItSaidSo(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	first, gone := w.connect(), make(chan struct{})
	worker, err := jetstream.NewWorker(first, jetstream.WorkerConfig{
		Config: jetstream.Config{AckWait: testConfig.AckWait, PublishWait: 300 * time.Millisecond},
		Agent: agent(agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("that is all")),
			StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
				first.Close()
				close(gone)
				return agentkernel.StopDecision{}, nil
			},
		}),
		OnError: func(string, string, error) {},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- worker.Run(ctx) }()
	defer func() { cancel(); <-stopped }()
	id := w.submit("s", "go")
	<-gone
	f, err := w.client.Follow("s", "")
	require.NoError(t, err)
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{Model: agenttest.Script()})})
	var seen watcher
	watch, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	for ev, err := range f.Events(watch) {
		require.NoError(t, err)
		seen.take(ev, f.State())
		if s := f.State(); len(s.Messages) == 2 && !s.IsRunning {
			break
		}
	}
	o := w.wait("s", id)
	assert.Equal(t, agentkernel.EndStop, o.Reason)
	assert.Equal(t, 2, o.Attempts)
	assert.Empty(t, o.RunID)
	assert.Equal(t, []string{"user: go", "assistant: that is all"}, w.texts("s"))
	assert.NoError(t, seen.checker.Finish())
}

// TestKeysWithin: a call of a run that a tool makes has a key of its own, within that of the tool.
func TestKeysWithin(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	keys := make(chan string, 2)
	note := tool("note", func(ctx context.Context) (string, error) {
		keys <- jetstream.IdempotencyKey(ctx)
		return jetstream.Session(ctx), nil
	})
	helper, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{
		Name: "helper", Description: "helps",
		Agents: []agentkernel.SubAgent{{Name: "inner", Config: agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("c1", "note", "{}"), agenttest.Text("helped")), Tools: []agentkernel.Tool{note},
		}}},
	})
	require.NoError(t, err)
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "note", "{}").Call("c2", "helper", `{"tasks":[{"agent":"inner","prompt":"go"}]}`), agenttest.Text("ok")),
		Tools: []agentkernel.Tool{note, helper},
	})})
	w.wait("s", w.submit("s", "go"))
	require.Len(t, keys, 2, w.texts("s"))
	assert.Equal(t, "s/c1", <-keys)
	assert.Regexp(t, `^s/c2/\w+/c1$`, <-keys)
	assert.Empty(t, jetstream.IdempotencyKey(t.Context()))
}
