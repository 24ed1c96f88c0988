package jetstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	broker "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type none struct{}

func tool(name string, fn func(ctx context.Context) (string, error)) agentkernel.Tool {
	return agentkernel.MustTool(name, "does it", func(ctx context.Context, _ none) (string, error) { return fn(ctx) })
}

// TestRequest: a request is answered, its events are seen, its messages are kept.
func TestRequest(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	var key string
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("let me see").Call("c1", "look", "{}"), agenttest.Text("it is blue").Chunks(2), agenttest.Text("yes")),
		Tools: []agentkernel.Tool{tool("look", func(ctx context.Context) (string, error) {
			key = jetstream.IdempotencyKey(ctx)
			return "blue", nil
		})},
	})})
	first := w.submit("a b", "what colour?")
	o := w.wait("a b", first)
	assert.Equal(t, agentkernel.EndStop, o.Reason)
	assert.NoError(t, o.Err())
	assert.Equal(t, 1, o.Attempts)
	second := w.submit("a b", "sure?")
	w.wait("a b", second)
	assert.Equal(t, []string{"user: what colour?", "assistant: let me see[look]", "tool: blue", "assistant: it is blue",
		"user: sure?", "assistant: yes"}, w.texts("a b"))
	assert.Equal(t, "=YSBi/c1", key)
	list, err := w.client.Sessions(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []jetstream.SessionInfo{{ID: "a b", Records: 10}}, list)
}

// TestFollow: a follower sees whole events, and another one goes on where it left.
func TestFollow(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("one two three four").Chunks(3).Delay(5*time.Millisecond),
			agenttest.Text("five six").Chunks(1)),
	})})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var seen watcher
	place, seq := "", uint64(0)
	w.submit("s", "go")
	for round := 0; seen.ended < 2; round++ {
		f, err := w.client.Follow("s", place)
		require.NoError(t, err)
		n := 0
		for ev, err := range f.Events(ctx) {
			require.NoError(t, err)
			if ev.Type == agentkernel.EventAgentEnd && seen.ended == 0 {
				w.submit("s", "on")
			}
			if ev.Type == agentkernel.EventAgentStart {
				seq = 0
			}
			if ev.Type != agentkernel.EventSnapshot {
				seq++
				require.Equal(t, seq, ev.Seq)
			}
			seen.take(ev, f.State())
			if n++; n == 7 || seen.ended == 2 {
				break
			}
		}
		require.NoError(t, ctx.Err())
		place = f.Place()
	}
	assert.Zero(t, seen.marks)
	assert.NoError(t, seen.checker.Finish())
}

// TestSteer: what a client says in between is said once, and off the subject afterwards.
func TestSteer(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	running := make(chan struct{})
	var steering, followUps agentkernel.Queue
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "wait", "{}"), agenttest.Text("well"), agenttest.Text("bye")),
		Tools: []agentkernel.Tool{tool("wait", func(ctx context.Context) (string, error) {
			close(running)
			for len(steering.Items()) < 2 || len(followUps.Items()) < 1 {
				time.Sleep(time.Millisecond)
			}
			return "", nil
		})},
		Steering: &steering, FollowUps: &followUps,
	})})
	id := w.submit("s", "go")
	<-running
	require.NoError(t, w.client.FollowUp(t.Context(), "s", agentkernel.UserMessage("and then")))
	require.NoError(t, w.client.Steer(t.Context(), "s", agentkernel.UserMessage("left"), agentkernel.UserMessage("right")))
	w.wait("s", id)
	assert.Equal(t, []string{"user: go", "assistant: [wait]", "tool: ", "user: left", "user: right", "assistant: well",
		"user: and then", "assistant: bye"}, w.texts("s"))
	assert.Zero(t, w.stored("CONTROL"))
}

// stored is the number of records of a stream.
func (w *world) stored(part string) uint64 {
	w.t.Helper()
	js, err := broker.New(w.nc)
	require.NoError(w.t, err)
	s, err := js.Stream(w.t.Context(), "agentkernel-"+part)
	require.NoError(w.t, err)
	return s.CachedInfo().State.Msgs
}

// TestSteerThenTakeover: what was said before a worker went is not said again, and what was not is.
func TestSteerThenTakeover(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	var steering agentkernel.Queue
	speaking := make(chan struct{})
	stop := w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "wait", "{}"), agenttest.Stall()),
		Tools: []agentkernel.Tool{tool("wait", func(context.Context) (string, error) {
			require.NoError(t, w.client.Steer(t.Context(), "s", agentkernel.UserMessage("left")))
			for len(steering.Items()) == 0 {
				time.Sleep(time.Millisecond)
			}
			return "", nil
		})},
		Steering: &steering,
		Prepare: func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			if req.Turn == 2 {
				close(speaking)
			}
			return agentkernel.PrepareResult{}, nil
		},
	})})
	id := w.submit("s", "go")
	<-speaking
	require.NoError(t, w.client.FollowUp(t.Context(), "s", agentkernel.UserMessage("and then")))
	stop()
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("well"), agenttest.Text("bye"))})})
	w.wait("s", id)
	assert.Equal(t, []string{"user: go", "assistant: [wait]", "tool: ", "user: left", "assistant: well",
		"user: and then", "assistant: bye"}, w.texts("s"))
}

// TestAbort: an abort ends the request that runs and those that wait, and none that comes later.
func TestAbort(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	running := make(chan struct{})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "hang", "{}"), agenttest.Text("later")),
		Tools: []agentkernel.Tool{tool("hang", func(ctx context.Context) (string, error) {
			close(running)
			<-ctx.Done()
			return "", context.Cause(ctx)
		})},
	})})
	first, second := w.submit("s", "one"), w.submit("s", "two")
	<-running
	require.NoError(t, w.client.Abort(t.Context(), "s"))
	o := w.wait("s", first)
	assert.Equal(t, agentkernel.EndAborted, o.Reason)
	assert.ErrorIs(t, o.Err(), agentkernel.KindCanceled)
	assert.Equal(t, agentkernel.EndAborted, w.wait("s", second).Reason)
	assert.Equal(t, agentkernel.EndStop, w.wait("s", w.submit("s", "three")).Reason)
}
