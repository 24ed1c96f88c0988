package jetstream_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	broker "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFollowLate: who comes late in a long run begins with a snapshot of its middle, and reads
// little.
func TestFollowLate(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	text := strings.Repeat("x", 3000)
	goOn := make(chan struct{})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text(text).Chunks(1).Call("c1", "wait", "{}"), agenttest.Text("done")),
		Tools: []agentkernel.Tool{tool("wait", func(context.Context) (string, error) { <-goOn; return "", nil })},
	})})
	id := w.submit("s", "go")
	follow := func(until agentkernel.EventType) (n int, f *jetstream.Follower) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		f, err := w.client.Follow("s", "")
		require.NoError(t, err)
		for ev, err := range f.Events(ctx) {
			require.NoError(t, err)
			if n++; ev.Type == until {
				return n, f
			}
		}
		require.NoError(t, ctx.Err())
		return n, f
	}
	all, _ := follow(agentkernel.EventToolExecStart)
	assert.Greater(t, all, 3000)
	few, _ := follow(agentkernel.EventToolExecStart)
	assert.Less(t, few, 1100, "from the last snapshot on")
	close(goOn)
	w.wait("s", id)
	_, f := follow(agentkernel.EventAgentEnd)
	history, err := w.client.History(t.Context(), "s")
	require.NoError(t, err)
	assert.Equal(t, history, f.State().Messages)
}

// TestFollowFromGone: a place that is not kept any more is answered with a snapshot of what was
// committed, also where events are left whose beginning is gone.
func TestFollowFromGone(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	hold := make(chan struct{})
	var seen watcher
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("one").Call("c1", "wait", "{}"), agenttest.Text("two"), agenttest.Text("three")),
		Tools: []agentkernel.Tool{tool("wait", func(context.Context) (string, error) { <-hold; return "", nil })},
	})})
	id := w.submit("s", "go")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f, err := w.client.Follow("s", "")
	require.NoError(t, err)
	for ev, err := range f.Events(ctx) {
		require.NoError(t, err)
		if ev.Type == agentkernel.EventToolExecStart {
			break
		}
	}
	js, err := broker.New(w.nc)
	require.NoError(t, err)
	s, err := js.Stream(ctx, "agentkernel-EVENTS")
	require.NoError(t, err)
	require.NoError(t, s.Purge(ctx)) // as their age does
	close(hold)
	w.wait("s", id)

	f, err = w.client.Follow("s", f.Place())
	require.NoError(t, err)
	asked := false
	for ev, err := range f.Events(ctx) {
		require.NoError(t, err)
		if seen.take(ev, f.State()); seen.ended == 1 {
			break
		}
		if ev.Type == agentkernel.EventSnapshot && !asked {
			asked = true
			assert.Len(t, f.State().Messages, 4)
			w.submit("s", "next")
		}
	}
	require.NoError(t, ctx.Err())
	assert.NoError(t, seen.checker.Finish())
	history, err := w.client.History(t.Context(), "s")
	require.NoError(t, err)
	assert.Equal(t, history, f.State().Messages)
}
