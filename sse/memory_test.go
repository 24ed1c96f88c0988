package sse_test

import (
	"bufio"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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
	h := sse.NewHandler(j, sse.Config{MaxPerAddress: -1, WriteTimeout: -1, Heartbeat: time.Millisecond})
	server := httptest.NewServer(h)
	defer server.Close()
	defer h.Close()

	_, err = agent.Run(t.Context(), "so that the ring is full")
	require.NoError(t, err)
	require.NoError(t, agent.Reset()) // so that its snapshots stay of one size
	before := memory()
	for range clients {
		stall(t, server.Listener.Addr().String())
	}
	connected := memory()
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	var after float64
	for range 50 { // until the handlers have filled what the kernel takes
		time.Sleep(50 * time.Millisecond)
		if after = memory(); (after-before)/float64(clients) < 100<<10 {
			break
		}
	}
	per := func(bytes float64) float64 { return bytes / float64(clients) / 1024 }
	t.Logf("%d clients that do not read: %.1f KiB each when they connected, %.1f KiB more each behind a run of %d deltas",
		clients, per(connected-before), per(after-connected), deltas)
	require.Less(t, per(after-before), 100.0)
}

// stall connects, reads the head of the answer, and no more.
func stall(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: " + address + "\r\n\r\n"))
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
