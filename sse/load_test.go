package sse_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// paced is a model that streams n deltas, ten of them each tick.
func paced(n int, tick time.Duration) agentkernel.ChatModel {
	return agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for i := range n {
				if i%10 == 0 {
					time.Sleep(tick)
				}
				if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: fmt.Sprintf("%07d ", i)}, nil) {
					return
				}
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		}
	})
}

// TestLoad: many clients on one run; one in five stalls until the run is over, two in five
// leave and come again at random. Every one of them has exactly the final text.
//
// AGENTKERNEL_FULL=1 makes it 500 clients and 10,000 deltas.
func TestLoad(t *testing.T) {
	clients, deltas, every := 50, 1_000, 100
	if os.Getenv("AGENTKERNEL_FULL") != "" {
		clients, deltas, every = 500, 10_000, 1_000
	}
	const tick = 5 * time.Millisecond
	j := journal.NewRing(journal.Config{SnapshotEvery: every})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: paced(deltas, tick)})
	require.NoError(t, err)
	defer journal.Follow(agent, j)()
	checker := agenttest.NewChecker()
	agent.Subscribe(checker.Listen)
	h := sse.NewHandler(j, sse.Config{MaxPerAddress: -1})
	server := httptest.NewServer(h)
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	l := &load{t: t, url: server.URL, http: &http.Client{Transport: transport}, over: make(chan struct{})}

	base := memory()
	began := time.Now()
	run, err := agent.Prompt(t.Context(), "go")
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { l.client(i) })
	}
	var perClient atomic.Int64 // KiB
	measured := time.AfterFunc(time.Duration(deltas)*tick/10/2, func() {
		perClient.Store(int64((memory() - base) / float64(clients) / 1024))
	})
	record, err := run.Wait(t.Context())
	require.NoError(t, err)
	took := time.Since(began)
	measured.Stop()
	close(l.over)
	wg.Wait()
	require.NoError(t, checker.Finish())
	require.NoError(t, j.Err())
	require.Len(t, l.texts, clients)
	for i, text := range l.texts {
		require.Equal(t, record.Answer, text, "client %d", i)
	}
	t.Logf("%d clients, %d deltas: run %v, all done %v, %d connections, %d snapshots, %d merged updates, %d KiB per client (server and client in one process)",
		clients, deltas, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond),
		l.connects.Load(), l.snapshots.Load(), l.merged.Load(), perClient.Load())
	require.NoError(t, h.Shutdown(t.Context()))
}

// memory is what the process has in use after a collection, stacks included.
func memory() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

type load struct {
	t    *testing.T
	url  string
	http *http.Client
	over chan struct{} // closed when the run is

	connects, snapshots, merged atomic.Int64
	mu                          sync.Mutex
	texts                       map[int]string
}

// client reads the run to its end and keeps the text.
func (l *load) client(i int) {
	c := sse.NewClient(l.url, sse.ClientConfig{HTTP: l.http})
	r := &reader{checker: agenttest.Checker{AllowCoalesced: true}, late: i > 50} // a checker reads each partial as a whole
	for !r.done {
		l.connects.Add(1)
		n, stay := 0, -1
		if i%5 == 1 || i%5 == 2 {
			stay = rand.IntN(40)
		}
		for ev, err := range c.Events(l.t.Context()) {
			if err != nil {
				l.t.Errorf("client %d: %v", i, err)
				return
			}
			l.count(&ev)
			r.take(ev, c.State())
			if n++; i%5 == 0 && n == 20 {
				<-l.over // stalls
			}
			if r.done || n == stay {
				break
			}
		}
		if l.t.Context().Err() != nil {
			return
		}
		if !r.done {
			time.Sleep(rand.N(300 * time.Millisecond))
		}
	}
	if err := r.err(); err != nil {
		l.t.Errorf("client %d: %v", i, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.texts == nil {
		l.texts = make(map[int]string)
	}
	l.texts[i] = r.final
}

func (l *load) count(ev *agentkernel.Event) {
	if ev.Type == agentkernel.EventSnapshot {
		l.snapshots.Add(1)
	}
	if ev.Coalesced > 0 {
		l.merged.Add(1)
	}
}

// reader is a front end that appends deltas, and begins anew with a snapshot.
type reader struct {
	text    strings.Builder
	final   string
	done    bool
	checker agenttest.Checker
	late    bool // it began in the middle of the run, so that the checker cannot follow, or is not to
	wrong   error
}

func (r *reader) take(ev agentkernel.Event, state agentkernel.AgentState) {
	switch ev.Type {
	case agentkernel.EventSnapshot:
		r.text.Reset()
		if r.late = r.late || ev.RunID != ""; ev.Message != nil {
			r.text.WriteString(ev.Message.TextContent())
		}
		if !state.IsRunning && len(state.Messages) > 0 {
			r.end(state)
		}
		return
	case agentkernel.EventMessageUpdate:
		r.text.WriteString(ev.Delta)
		if got := ev.Message.TextContent(); len(got) != r.text.Len() && r.wrong == nil {
			r.wrong = fmt.Errorf("seq %d: the partial has %d bytes, the deltas %d", ev.Seq, len(got), r.text.Len())
		}
	case agentkernel.EventMessageEnd:
		if got := ev.Message.TextContent(); ev.Message.GetRole() == agentkernel.RoleAssistant && got != r.text.String() && r.wrong == nil {
			r.wrong = fmt.Errorf("seq %d: the deltas come to another text", ev.Seq)
		}
	case agentkernel.EventAgentEnd:
		r.end(state)
	}
	if !r.late {
		r.checker.Listen(ev)
	}
}

func (r *reader) end(state agentkernel.AgentState) {
	r.done = true
	r.final = state.Messages[len(state.Messages)-1].TextContent()
}

func (r *reader) err() error {
	if r.wrong != nil || r.late {
		return r.wrong
	}
	return r.checker.Finish()
}
