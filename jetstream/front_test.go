package jetstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/agentkernel-go/agentkernel/sse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// node is one of many that serve pages.
func (w *world) node(cfg jetstream.FrontConfig) *jetstream.Front {
	w.t.Helper()
	client, err := jetstream.NewClient(w.connect(), w.cfg)
	require.NoError(w.t, err)
	front, err := jetstream.NewFront(client, cfg)
	require.NoError(w.t, err)
	return front
}

// TestFront: a page is sent from node to node in the middle of a run, and misses nothing.
func TestFront(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("one two three four five six seven eight nine ten").Chunks(1).Delay(5 * time.Millisecond)),
	})})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	newNode := func() *jetstream.Front {
		return w.node(jetstream.FrontConfig{SSE: sse.Config{Retry: 10 * time.Millisecond, MinInterval: -1}})
	}
	var node atomic.Pointer[jetstream.Front]
	node.Store(newNode())
	defer func() { node.Load().Close() }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sessions/{session}/events", func(w http.ResponseWriter, r *http.Request) { node.Load().ServeHTTP(w, r) })
	server := httptest.NewServer(mux)
	defer server.Close()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()

	checker := agenttest.NewChecker()
	checker.AllowCoalesced = true
	w.submit("s", "go")
	snapshots, n := 0, 0
	client := sse.NewClient(server.URL+"/sessions/s/events", sse.ClientConfig{HTTP: &http.Client{Transport: transport}})
	for ev, err := range client.Events(ctx) {
		require.NoError(t, err)
		if ev.Type == agentkernel.EventSnapshot {
			snapshots++
			continue
		}
		checker.Listen(ev)
		if ev.Type == agentkernel.EventAgentEnd {
			break
		}
		if n++; n == 6 || n == 12 {
			old := node.Swap(newNode())
			old.Close()
		}
	}
	require.NoError(t, ctx.Err())
	assert.NoError(t, checker.Finish())
	assert.Equal(t, 1, snapshots, "at the beginning")
	assert.GreaterOrEqual(t, n, 12)
}

// TestFrontRefuses: what it cannot serve it says.
func TestFrontRefuses(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	front := w.node(jetstream.FrontConfig{MaxSessions: 1, Linger: time.Millisecond,
		Session: func(r *http.Request) string { return r.URL.Query().Get("s") }})
	server := httptest.NewServer(front)
	defer server.Close()
	defer front.Close()
	defer http.DefaultClient.CloseIdleConnections()
	get := func(ctx context.Context, session string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"?s="+session, nil)
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
