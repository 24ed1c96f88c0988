package jetstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/agentkernel-go/agentkernel/sse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// node is a server of pages, one of many.
func (w *world) node(cfg jetstream.FrontConfig) (url string, stop func()) {
	w.t.Helper()
	client, err := jetstream.NewClient(w.connect(), w.cfg)
	require.NoError(w.t, err)
	front, err := jetstream.NewFront(client, cfg)
	require.NoError(w.t, err)
	mux := http.NewServeMux()
	mux.Handle("GET /sessions/{session}/events", front)
	server := httptest.NewServer(mux)
	return server.URL + "/sessions/", func() { front.Close(); server.Close() }
}

// TestFront: a page goes from node to node in the middle of a run, and misses nothing.
func TestFront(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("one two three four five six").Chunks(1).Delay(5 * time.Millisecond)),
	})})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	checker := agenttest.NewChecker()
	checker.AllowCoalesced = true
	place, state := "", agentkernel.AgentState{}
	w.submit("s", "go")
	for done := false; !done; {
		url, stop := w.node(jetstream.FrontConfig{})
		client := sse.NewClient(url+"s/events", sse.ClientConfig{HTTP: &http.Client{Transport: transport}, LastEventID: place, State: state})
		n := 0
		for ev, err := range client.Events(ctx) {
			require.NoError(t, err)
			if ev.Type == agentkernel.EventSnapshot {
				require.Empty(t, place, "it was known")
				continue
			}
			checker.Listen(ev)
			if done = ev.Type == agentkernel.EventAgentEnd; done {
				break
			}
			if n++; n == 10 && ev.Type == agentkernel.EventMessageUpdate {
				break
			}
		}
		require.NoError(t, ctx.Err())
		place, state = client.LastEventID(), client.State()
		stop()
	}
	assert.NoError(t, checker.Err())
}

// TestFrontRefuses: what it cannot serve it says.
func TestFrontRefuses(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	url, stop := w.node(jetstream.FrontConfig{MaxSessions: 1, Linger: time.Millisecond,
		Session: func(r *http.Request) string { return r.URL.Query().Get("s") }})
	defer stop()
	defer http.DefaultClient.CloseIdleConnections()
	get := func(ctx context.Context, session string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"x/events?s="+session, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.StatusCode
	}
	assert.Equal(t, http.StatusNotFound, get(t.Context(), ""))
	ctx, leave := context.WithCancel(t.Context())
	assert.Equal(t, http.StatusOK, get(ctx, "a"))
	assert.Equal(t, http.StatusServiceUnavailable, get(t.Context(), "b"))
	leave()
	require.Eventually(t, func() bool { return get(t.Context(), "b") == http.StatusOK }, 10*time.Second, 10*time.Millisecond)
}
