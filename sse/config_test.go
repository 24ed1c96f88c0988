package sse_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := talk(t, journal.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		w, done := serve(ctx, sse.NewHandler(j, sse.Config{Retry: 2 * time.Second}), "")
		time.Sleep(46 * time.Second)
		synctest.Wait()
		require.Equal(t, "text/event-stream", w.header.Get("Content-Type"))
		require.Regexp(t, `^retry: 2000\n\nid: [A-Z0-9]+:0\ndata: {"v":1,"type":"snapshot"`, w.text())
		require.Equal(t, 3, strings.Count(w.text(), ":\n\n"))
		cancel()
		<-done
	})
}

// TestConnectionsOfOneAddress: of a hundred connections of one address those over the limit
// are refused, others are not, and a place that gets free is taken again.
func TestConnectionsOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := talk(t, journal.Config{})
		h := sse.NewHandler(j, sse.Config{MaxPerAddress: 10, MaxConnections: 15})
		ctx, cancel := context.WithCancel(t.Context())
		var ends []<-chan struct{}
		connect := func(address string) *recorder {
			w := &recorder{header: make(http.Header)}
			r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
			r.RemoteAddr = address
			ends = append(ends, run(h, w, r))
			synctest.Wait()
			return w
		}
		counts := map[int]int{}
		for i := range 100 {
			counts[connect(fmt.Sprintf("192.0.2.1:%d", 1000+i)).status]++
		}
		require.Equal(t, map[int]int{0: 10, 429: 90}, counts)
		for i := range 6 {
			w := connect(fmt.Sprintf("192.0.2.%d:1", 2+i))
			require.Equal(t, i == 5, w.status == 503)
		}
		cancel()
		for _, end := range ends {
			<-end
		}
		ctx, cancel = context.WithCancel(t.Context())
		require.Zero(t, connect("192.0.2.1:5000").status)
		cancel()
		require.NoError(t, h.Shutdown(t.Context()))
	})
}

// TestAddress: behind a proxy the server says who the client is.
func TestAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := talk(t, journal.Config{})
		h := sse.NewHandler(j, sse.Config{MaxPerAddress: 1, Address: func(r *http.Request) string { return r.Header.Get("X-Client") }})
		ctx, cancel := context.WithCancel(t.Context())
		statusOf := func(client string) int {
			w, r := &recorder{header: make(http.Header)}, httptest.NewRequestWithContext(ctx, "GET", "/", nil)
			r.Header.Set("X-Client", client)
			run(h, w, r)
			synctest.Wait()
			return w.status
		}
		require.Equal(t, []int{0, 429, 0}, []int{statusOf("one"), statusOf("one"), statusOf("two")})
		cancel()
		require.NoError(t, h.Shutdown(t.Context()))
	})
}

// TestNegativeNumbers: no heartbeats, no pause between events, and nothing about when to come
// again.
func TestNegativeNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := talk(t, journal.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		w, done := serve(ctx, sse.NewHandler(j, sse.Config{Heartbeat: -1, Retry: -1, MinInterval: -1}), "")
		synctest.Wait()
		bring := func(seq uint64, of agentkernel.EventType) {
			require.NoError(t, j.Append(agentkernel.Event{Type: of, RunID: "r", Seq: seq}))
			synctest.Wait() // and no time passes
			require.Equal(t, int(seq)+1, strings.Count(w.text(), "data: "))
		}
		bring(1, agentkernel.EventAgentStart)
		bring(2, agentkernel.EventTurnStart)
		said := w.text()
		require.NotContains(t, said, "retry:")
		time.Sleep(time.Hour)
		require.Equal(t, said, w.text())
		cancel()
		<-done
	})
}

// TestWriteTimeout: a client that does not read loses its connection in time.
func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := talk(t, journal.Config{})
		h := sse.NewHandler(j, sse.Config{WriteTimeout: 10 * time.Second})
		w := &recorder{header: make(http.Header), stuck: make(chan struct{})}
		began := time.Now()
		<-run(h, w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}
