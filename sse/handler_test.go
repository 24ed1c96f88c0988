package sse_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// talk is an agent that answers in many deltas, and a ring that follows it.
func talk(t testing.TB, cfg journal.Config, answers ...string) (*agentkernel.Agent, *journal.Journal) {
	t.Helper()
	var replies []agenttest.Reply
	for _, a := range answers {
		replies = append(replies, agenttest.Text(a).Chunks(2))
	}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(replies...)})
	require.NoError(t, err)
	j := journal.NewRing(cfg)
	journal.Follow(agent, j)
	return agent, j
}

// recorder is a ResponseWriter that keeps what was flushed.
type recorder struct {
	header http.Header
	status int

	mu    sync.Mutex
	body  strings.Builder
	stuck chan struct{} // a write waits for it, where it is not nil
	until time.Time
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(status int) {
	r.status = status
}
func (r *recorder) FlushError() error { return nil }

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = t
	return nil
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.stuck != nil {
		for {
			r.mu.Lock()
			until := r.until
			r.mu.Unlock()
			if !until.IsZero() && !time.Now().Before(until) {
				return 0, errors.New("deadline")
			}
			select {
			case <-r.stuck:
				return len(p), nil
			case <-time.After(time.Second):
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.Write(p)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.String()
}

// serve runs the handler for one request until ctx ends.
func serve(ctx context.Context, h http.Handler, lastID string) (*recorder, <-chan struct{}) {
	w := &recorder{header: make(http.Header)}
	r := httptest.NewRequestWithContext(ctx, "GET", "/events", nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	return w, run(h, w, r)
}

func run(h http.Handler, w http.ResponseWriter, r *http.Request) <-chan struct{} {
	done := make(chan struct{})
	go func() { // the test waits for done
		defer close(done)
		h.ServeHTTP(w, r)
	}()
	return done
}

// TestResume: a client gets what follows its last id, and with an id that is not known, or
// that makes no sense, a snapshot first.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, j := talk(t, journal.Config{}, "one two three", "four")
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		h := sse.NewHandler(j, sse.Config{})
		first := stream(t, h, "")
		require.Contains(t, first[0], `"type":"snapshot"`)
		ids := idsOf(first)
		for i, id := range ids {
			rest := stream(t, h, id)
			require.Len(t, rest, len(merge(first[i+1:])), id)
			require.NotContains(t, strings.Join(rest, ""), `"type":"snapshot"`)
		}
		for name, id := range map[string]string{
			"huge": strings.Repeat("9", 1<<20), "huge seq": "run:99999999999999999999999999", "garbage": "%%%", "no seq": "run:",
			"another": "run:7", "negative": ids[0] + "-1", "sql": "' or 1=1:1", "binary": "\xff\xfe:1",
		} {
			got := stream(t, h, id)
			require.Contains(t, got[0], `"type":"snapshot"`, name)
			require.Len(t, got, len(first), name)
		}
	})
}

// stream is what a client gets whose connection ends when all is there. It is called in a
// bubble.
func stream(t *testing.T, h http.Handler, lastID string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w, done := serve(ctx, h, lastID)
	time.Sleep(time.Second)
	cancel()
	<-done
	events := strings.Split(strings.TrimSuffix(w.text(), "\n\n"), "\n\n")
	return events[1:]
}

func idsOf(events []string) []string {
	var ids []string
	for _, ev := range events {
		if id, ok := strings.CutPrefix(ev, "id: "); ok {
			id, _, _ = strings.Cut(id, "\n")
			ids = append(ids, id)
		}
	}
	return ids
}

// merge counts updates that follow one another as one.
func merge(events []string) []string {
	var out []string
	for i, ev := range events {
		if i > 0 && strings.Contains(ev, `"message_update"`) && strings.Contains(events[i-1], `"message_update"`) {
			continue
		}
		out = append(out, ev)
	}
	return out
}

func TestMethod(t *testing.T) {
	_, j := talk(t, journal.Config{})
	w := httptest.NewRecorder()
	sse.NewHandler(j, sse.Config{}).ServeHTTP(w, httptest.NewRequest("POST", "/events", nil))
	require.Equal(t, 405, w.Code)
}

// TestShutdown: streams end, also one whose client does not read, and no new one begins.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := talk(t, journal.Config{})
		h := sse.NewHandler(j, sse.Config{WriteTimeout: -1})
		_, done := serve(t.Context(), h, "")
		stuck := &recorder{header: make(http.Header), stuck: make(chan struct{})}
		stuckDone := run(h, stuck, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, h.Shutdown(short), context.DeadlineExceeded)
		require.NoError(t, h.Shutdown(t.Context()))
		<-done
		<-stuckDone
		require.True(t, stuck.until.IsZero())
		w, done := serve(t.Context(), h, "")
		<-done
		require.Equal(t, 503, w.status)
		h.Close()
	})
}

// TestStalledClientDoesNotSlowTheRun: the run ends although a client has stopped reading.
func TestStalledClientDoesNotSlowTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, j := talk(t, journal.Config{SnapshotEvery: 10}, strings.Repeat("word ", 1000))
		h := sse.NewHandler(j, sse.Config{WriteTimeout: -1})
		w := &recorder{header: make(http.Header), stuck: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done := run(h, w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		synctest.Wait()
		began := time.Now()
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		close(w.stuck)
		cancel()
		<-done
	})
}

// TestJournalCloses: the streams of a journal end with it.
func TestJournalCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := talk(t, journal.Config{})
		_, done := serve(t.Context(), sse.NewHandler(j, sse.Config{}), "")
		synctest.Wait()
		require.NoError(t, j.Close())
		<-done
	})
}

// TestSnapshotsBridgeGaps: a client that is connected gets the snapshot that stands for an
// event which could not be written, and goes on.
func TestSnapshotsBridgeGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nan = math.NaN()
		events, _ := frames(t)
		j := journal.NewRing(journal.Config{})
		c, done := connected(t, j)
		for i, ev := range events {
			if i == 3 {
				ev.Request = &agentkernel.ModelRequest{Temperature: &nan}
				require.Error(t, j.Append(ev))
			} else {
				require.NoError(t, j.Append(ev))
			}
			time.Sleep(time.Second)
		}
		require.NoError(t, j.Close())
		<-done
		require.Len(t, c.State().Messages, 2)
		require.False(t, c.State().IsRunning)
	})
}

// TestFollowInTheMiddleOfAStream: a client that was there before Follow began in mid-run.
func TestFollowInTheMiddleOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("one two three").Chunks(2))})
		require.NoError(t, err)
		j := journal.NewRing(journal.Config{})
		c, done := connected(t, j)
		n := 0
		agent.Subscribe(func(agentkernel.Event) {
			if n++; n == 5 {
				journal.Follow(agent, j)
			}
			time.Sleep(time.Second)
		})
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.NoError(t, j.Close())
		<-done
		require.Equal(t, "one two three", c.State().Messages[1].TextContent())
	})
}

// connected is a client of j, in a bubble, that ends with j and fails the test for any error.
func connected(t *testing.T, j *journal.Journal) (*sse.Client, <-chan struct{}) {
	h := sse.NewHandler(j, sse.Config{})
	c := sse.NewClient("http://example.com/", sse.ClientConfig{HTTP: &http.Client{Transport: direct{h}}})
	done := make(chan struct{})
	go func() { // the caller waits for done
		defer close(done)
		for ev, err := range c.Events(t.Context()) {
			if err != nil {
				t.Errorf("%s: %v", ev.Type, err)
			}
		}
	}()
	synctest.Wait()
	return c, done
}

// direct is a RoundTripper that has a handler answer, over a pipe.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	w := &piped{header: make(http.Header), out: out, status: make(chan int, 1)}
	go func() { // ends with the handler, whose writes fail once the client has closed in
		d.h.ServeHTTP(w, r)
		w.WriteHeader(200)
		out.Close()
	}()
	status := <-w.status
	return &http.Response{StatusCode: status, Header: w.header.Clone(), Body: in, Request: r}, nil
}

type piped struct {
	header http.Header
	out    *io.PipeWriter
	status chan int
	begun  bool
}

func (p *piped) Header() http.Header { return p.header }
func (p *piped) FlushError() error   { return nil }
func (p *piped) WriteHeader(status int) {
	if !p.begun {
		p.begun = true
		p.status <- status
	}
}

func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(200)
	return p.out.Write(b)
}

// TestStreamEnds: the stream of a closed journal ends, once its client has all of it: at 204
// the client comes no more.
func TestStreamEnds(t *testing.T) {
	agent, j := talk(t, journal.Config{}, "hello there")
	server := httptest.NewServer(sse.NewHandler(j, sse.Config{Retry: time.Millisecond}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NoError(t, j.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := sse.NewClient(server.URL, sse.ClientConfig{HTTP: &http.Client{Transport: transport}})
	var last agentkernel.Event
	for ev, err := range c.Events(ctx) {
		require.NoError(t, err)
		last = ev
	}
	require.NoError(t, ctx.Err())
	require.Equal(t, agentkernel.EventAgentEnd, last.Type)
}

// TestEndOfAClosedFile: who has all of it is told so, others get the rest, and, once the file
// is gone, that it is.
func TestEndOfAClosedFile(t *testing.T) {
	events, _ := frames(t)
	path := filepath.Join(t.TempDir(), "j.jsonl")
	j, err := journal.Open(path, journal.Config{})
	require.NoError(t, err)
	for _, ev := range events {
		require.NoError(t, j.Append(ev))
	}
	require.NoError(t, j.Close())
	h := sse.NewHandler(j, sse.Config{})
	last := events[len(events)-1]
	check := func(others int) {
		for id, want := range map[string]int{fmt.Sprintf("%s:%d", last.RunID, last.Seq): 204, last.RunID + ":1": others, "": others} {
			w, done := serve(t.Context(), h, id)
			<-done
			require.Equal(t, want, w.status, id)
			require.Equal(t, want == 0, strings.Contains(w.text(), `"type":"agent_end"`), id)
		}
	}
	check(0)
	require.NoError(t, os.Remove(path))
	check(410)
}

// TestRealServer: the handler's stream over a real connection, and the server's own shutdown.
func TestRealServer(t *testing.T) {
	agent, j := talk(t, journal.Config{}, "hello there")
	h := sse.NewHandler(j, sse.Config{})
	server := httptest.NewUnstartedServer(h)
	server.Config.RegisterOnShutdown(h.Close)
	server.Start()
	defer server.Close()
	resp, err := http.Get(server.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		if strings.Contains(line, `"type":"agent_end"`) {
			break
		}
	}
	require.NoError(t, server.Config.Shutdown(t.Context()))
	_, err = io.Copy(io.Discard, in)
	require.NoError(t, err)
	http.DefaultClient.CloseIdleConnections()
}
