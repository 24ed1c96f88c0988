package sse_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// TestMemoryOfStalledClients: what the server keeps for a client that has stopped reading does
// not grow with the run. AGENTKERNEL_FULL=1 makes it 500 clients and 100,000 deltas.
func TestMemoryOfStalledClients(t *testing.T) {
	cfg := journal.Config{SnapshotEvery: 100}
	t.Run("ring", func(t *testing.T) { memoryOfStalledClients(t, journal.NewRing(cfg)) })
	t.Run("file", func(t *testing.T) {
		j, err := journal.Open(filepath.Join(t.TempDir(), "j.jsonl"), cfg)
		require.NoError(t, err)
		defer j.Close()
		memoryOfStalledClients(t, j)
	})
}

func memoryOfStalledClients(t *testing.T, j *journal.Journal) {
	clients, deltas := 50, 20_000
	if os.Getenv("AGENTKERNEL_FULL") != "" {
		clients, deltas = 500, 100_000
	}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: paced(deltas, 0)})
	require.NoError(t, err)
	defer journal.Follow(agent, j)()
	var last agentkernel.Event
	agent.Subscribe(func(ev agentkernel.Event) { last = ev })
	h := sse.NewHandler(j, sse.Config{MaxPerAddress: -1, WriteTimeout: -1, Heartbeat: time.Millisecond})
	var written atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&counter{ResponseWriter: w, sum: &written}, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(8 << 10) // so that writes wait for the client soon
		return ctx
	}
	server.Start()
	defer server.Close()
	defer h.Close()

	_, err = agent.Run(t.Context(), "so that the ring is full")
	require.NoError(t, err)
	require.NoError(t, agent.Reset()) // so that its snapshots stay of one size
	before := memory()
	for i := range clients {
		id := "" // half of them stall in a long snapshot, half of them in what follows
		if i%2 == 0 {
			id = fmt.Sprintf("%s:%d", last.RunID, last.Seq)
		}
		stall(t, server.Listener.Addr().String(), id)
	}
	connected := memory()
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	var after float64
	for range 50 { // until the handlers have filled what the kernel takes
		time.Sleep(50 * time.Millisecond)
		if after = memory(); (after-before)/float64(clients) < 100<<10 {
			break
		}
	}
	per := func(bytes float64) float64 { return bytes / float64(clients) / 1024 }
	t.Logf("%d clients that do not read: %.1f KiB each when they connected, %.1f KiB more each behind a run of %d deltas, of %d KiB, of which each took %.1f",
		clients, per(connected-before), per(after-connected), deltas, len(record.Answer)/1024, per(float64(written.Load())))
	require.Less(t, per(after-before), 100.0)
	require.Less(t, int(written.Load())/clients, len(record.Answer)) // or nobody has stalled
}

// counter counts what is written to all clients.
type counter struct {
	http.ResponseWriter
	sum *atomic.Int64
}

func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sum.Add(int64(n))
	return n, err
}

// stall connects, reads the head of the answer, and no more.
func stall(t *testing.T, address, lastID string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: " + address + "\r\nLast-Event-ID: " + lastID + "\r\n\r\n"))
	require.NoError(t, err)
	in := bufio.NewReaderSize(conn, 16)
	for {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		if strings.TrimSpace(line) == "" {
			return
		}
	}
}
