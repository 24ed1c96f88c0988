package sse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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

// TestChain sends random sessions from the agent over an asynchronous subscriber, a journal, a
// handler and connections that break anywhere to clients, and proves at each joint that nothing
// is lost, nothing comes twice and every state is the live one.
//
// AGENTKERNEL_CHAIN_RUNS is how many sessions (12), AGENTKERNEL_CHAIN_SEED repeats one.
func TestChain(t *testing.T) {
	if s := os.Getenv("AGENTKERNEL_CHAIN_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		chained(t, seed)
		return
	}
	runs := 12
	if s := os.Getenv("AGENTKERNEL_CHAIN_RUNS"); s != "" {
		var err error
		runs, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	for range runs {
		seed := rand.Uint64()
		if chained(t, seed); t.Failed() {
			t.Fatalf("AGENTKERNEL_CHAIN_SEED=%d", seed)
		}
	}
}

func chained(t *testing.T, seed uint64) {
	defer func() {
		if t.Failed() {
			t.Logf("AGENTKERNEL_CHAIN_SEED=%d", seed)
		}
	}()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &chain{t: t, rng: rand.New(rand.NewPCG(seed, 1)), states: make(map[string]string), path: filepath.Join(dir, "j.jsonl")}
		c.play()
	})
}

// chain is one random session.
type chain struct {
	t    *testing.T
	rng  *rand.Rand
	path string

	mu      sync.Mutex
	handler *sse.Handler
	// states are those of the agent, as JSON, by the run and the seq of the event before.
	states map[string]string
	orders []agentkernel.Event // edges
}

func (c *chain) n(n int) int { return c.rng.IntN(n) }

func (c *chain) upTo(d time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(d) + 1)) }

func key(ev *agentkernel.Event) string { return fmt.Sprint(ev.RunID, ":", ev.Seq) }

func stateText(t *testing.T, state agentkernel.AgentState) string {
	data, err := json.Marshal(state)
	require.NoError(t, err)
	return string(data)
}

// replies are random answers; delegates tells whether they may ask a sub-agent.
func (c *chain) replies(delegates bool) []agenttest.Reply {
	var out []agenttest.Reply
	for i := range 2 + c.n(4) {
		r := agenttest.Thinking(fmt.Sprint("thought ", i))
		for range c.n(4) {
			switch c.n(4) {
			case 0:
				r = r.Thinking("more «thoughts» of it 🙂")
			case 1:
				r = r.Text("and <words> \"quoted\" \\ with\nlines 世界 ")
			case 2:
				r = r.Call("", "work", fmt.Sprintf(`{"n":%d,"s":"\u00e9\n"}`, c.n(100)))
			case 3:
				if delegates {
					r = r.Call("", "ask", `{"mode":"parallel","tasks":[{"agent":"a","prompt":"x"},{"agent":"a","prompt":"y"}]}`)
				}
			}
		}
		if r = r.Chunks(1 + c.n(5)); c.n(2) == 0 {
			r = r.Delay(c.upTo(20 * time.Millisecond))
		}
		if c.n(6) == 0 {
			r = r.Fail(&agentkernel.Error{Kind: agentkernel.KindOverloaded, Retryable: c.n(3) > 0, Err: errors.New("no luck")})
		}
		out = append(out, r)
	}
	return append(out, agenttest.Text("the end").Chunks(2))
}

func (c *chain) agent() *agentkernel.Agent {
	pause := c.upTo(3 * time.Millisecond)
	work := agentkernel.Tool{Name: "work", Execute: func(ctx context.Context, _ json.RawMessage) (agentkernel.ToolResult, error) {
		for i := range 6 {
			for _, kind := range []agentkernel.ProgressKind{agentkernel.ProgressToolDelta, agentkernel.ProgressSummary} {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: kind, Text: fmt.Sprint(i, "<\n>")})
			}
			time.Sleep(pause)
		}
		return agentkernel.TextResult("done"), nil
	}}
	work.ConcurrencySafe = func(json.RawMessage) bool { return true }
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Forward: agentkernel.ForwardEvents,
		Agents: []agentkernel.SubAgent{{Name: "a", Description: "a", Config: agentkernel.Config{
			Model: agenttest.Script(c.replies(false)...), Tools: []agentkernel.Tool{work}}}}})
	require.NoError(c.t, err)
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(c.replies(true)...), Tools: []agentkernel.Tool{work, ask}})
	require.NoError(c.t, err)
	agent.Subscribe(func(ev agentkernel.Event) {
		text := stateText(c.t, agent.State())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.states[key(&ev)] = text
		if ev.Type != agentkernel.EventMessageUpdate && ev.Type != agentkernel.EventToolExecUpdate {
			c.orders = append(c.orders, ev)
		}
	})
	return agent
}

// play is two sessions with one journal, between which the process dies.
func (c *chain) play() {
	clients := make([]*follower, 1+c.n(4))
	var done sync.WaitGroup
	for i := range clients {
		clients[i] = c.follower()
		done.Go(clients[i].follow)
	}
	c.session(false)
	last := c.session(true)
	done.Wait()
	for _, f := range clients {
		require.Equal(c.t, stateText(c.t, last), stateText(c.t, f.client.State()))
	}
}

// session runs an agent on the journal, behind what that holds, and returns its state.
func (c *chain) session(last bool) agentkernel.AgentState {
	j, err := journal.Open(c.path, journal.Config{SnapshotEvery: []int{-1, 0, 3, 20}[c.n(4)]})
	require.NoError(c.t, err)
	state, err := journal.Restore(j)
	require.NoError(c.t, err)
	agent := c.agent()
	require.NoError(c.t, agent.Restore(state))
	subs := []*agentkernel.Subscription{c.consumer(agent), c.consumer(agent)}
	if late := c.upTo(4 * time.Millisecond); c.n(2) == 0 {
		subs = append(subs, agent.SubscribeAsync(func(ev agentkernel.Event) {
			time.Sleep(late)
			j.Listen(ev)
		}, agentkernel.AsyncOptions{MaxPending: []int{1, 5, 0, -1}[c.n(4)]}))
	} else {
		defer journal.Follow(agent, j)()
	}
	h := sse.NewHandler(j, sse.Config{MinInterval: []time.Duration{-1, 0, time.Second}[c.n(3)], Heartbeat: time.Second, MaxPerAddress: -1})
	c.setHandler(h)
	for range 1 + c.n(3) {
		ctx, cancel := context.WithCancel(c.t.Context())
		if c.n(4) == 0 {
			time.AfterFunc(c.upTo(50*time.Millisecond), cancel)
		}
		_, _ = agent.Run(ctx, "hi")
		cancel()
	}
	for _, s := range subs {
		require.NoError(c.t, s.Drain(c.t.Context()))
		s.Close()
	}
	require.NoError(c.t, j.Err())
	if !last {
		c.setHandler(nil)
	}
	require.NoError(c.t, j.Close())
	if !last {
		h.Close()
		c.crash()
		return state
	}
	got, err := journal.Restore(j)
	require.NoError(c.t, err)
	require.Equal(c.t, stateText(c.t, agent.State()), stateText(c.t, got))
	return agent.State()
}

// crash cuts the file somewhere, as a process does that dies.
func (c *chain) crash() {
	info, err := os.Stat(c.path)
	require.NoError(c.t, err)
	if c.n(2) == 0 {
		require.NoError(c.t, os.Truncate(c.path, c.rng.Int64N(info.Size()+1)))
	}
}

func (c *chain) setHandler(h *sse.Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = h
}

// consumer subscribes a slow renderer that proves what an asynchronous one is promised.
func (c *chain) consumer(agent *agentkernel.Agent) *agentkernel.Subscription {
	late := c.upTo(2 * time.Millisecond)
	type run struct{ seq, counted uint64 }
	runs := make(map[string]*run)
	text := make(map[string]string) // appended
	var edges int
	c.mu.Lock()
	edges = len(c.orders)
	c.mu.Unlock()
	return agent.SubscribeAsync(func(ev agentkernel.Event) {
		time.Sleep(late)
		r := runs[ev.RunID]
		if r == nil {
			r = new(run)
			runs[ev.RunID] = r
		}
		require.Greater(c.t, ev.Seq, r.seq)
		r.seq = ev.Seq
		r.counted += 1 + uint64(ev.Coalesced)
		block := func(i int) string { return fmt.Sprint(ev.RunID, ":", i) }
		switch ev.Type {
		case agentkernel.EventMessageStart:
			for i := range 20 {
				delete(text, block(i))
			}
		case agentkernel.EventMessageUpdate:
			text[block(ev.ContentIndex)] += ev.Delta
			b := ev.Message.(agentkernel.Message).Content[ev.ContentIndex]
			if b.ToolCall != nil {
				require.Equal(c.t, b.ToolCall.RawArgs, text[block(ev.ContentIndex)])
			} else {
				require.Equal(c.t, b.Text+b.Thinking, text[block(ev.ContentIndex)])
			}
			return
		case agentkernel.EventToolExecUpdate:
			return
		case agentkernel.EventAgentEnd:
			require.Equal(c.t, ev.Seq, r.counted)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Equal(c.t, key(&c.orders[edges]), key(&ev))
		edges++
	}, agentkernel.AsyncOptions{MaxPending: []int{1, 3, 0, -1}[c.n(4)], MaxRate: []float64{0, 60, 1e4}[c.n(3)]})
}

// follower is a client whose connections break.
type follower struct {
	*chain
	rng    *rand.Rand // its own: followers run beside each other
	client *sse.Client
	slow   time.Duration
	seqs   map[string]uint64
}

func (c *chain) follower() *follower {
	f := &follower{chain: c, rng: rand.New(rand.NewPCG(c.rng.Uint64(), 2)), slow: c.upTo(3 * time.Millisecond), seqs: make(map[string]uint64)}
	f.client = f.connect("", agentkernel.AgentState{})
	return f
}

func (f *follower) connect(lastID string, state agentkernel.AgentState) *sse.Client {
	return sse.NewClient("http://example.com/", sse.ClientConfig{HTTP: &http.Client{Transport: f}, LastEventID: lastID, State: state, MaxWait: 2 * time.Second})
}

// follow reads until the handler has no more, and leaves the loop now and then, for good or
// to go on with another client.
func (f *follower) follow() {
	for ended := false; !ended; {
		left := false
		for ev, err := range f.client.Events(f.t.Context()) {
			require.NoError(f.t, err)
			f.take(&ev)
			if left = f.rng.IntN(40) == 0; left {
				break
			}
		}
		ended = !left
	}
}

func (f *follower) take(ev *agentkernel.Event) {
	time.Sleep(f.slow)
	if ev.Type == agentkernel.EventSnapshot {
		clear(f.seqs)
	} else {
		if seq, ok := f.seqs[ev.RunID]; ok {
			require.Equal(f.t, seq+1+uint64(ev.Coalesced), ev.Seq)
		}
		f.seqs[ev.RunID] = ev.Seq
	}
	f.mu.Lock()
	want, ok := f.states[key(ev)]
	f.mu.Unlock()
	if ok && ev.Type != agentkernel.EventSnapshot {
		require.Equal(f.t, want, stateText(f.t, f.client.State()), key(ev))
	}
}

// RoundTrip serves the request with the handler of the moment, and breaks the connection
// behind a random number of bytes.
func (f *follower) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	h := f.handler
	f.mu.Unlock()
	if h == nil || f.rng.IntN(10) == 0 {
		return nil, errors.New("nobody listens")
	}
	ctx, cancel := context.WithCancel(r.Context())
	in, out := io.Pipe()
	left := int(1) << f.rng.IntN(18)
	w := &pipeWriter{header: make(http.Header), out: out, left: f.rng.IntN(left) + left/2, head: make(chan struct{})}
	go func() { // ends with the connection: the reader closes it
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(200)
		out.Close()
	}()
	context.AfterFunc(ctx, func() { out.CloseWithError(io.ErrUnexpectedEOF) })
	<-w.head
	return &http.Response{StatusCode: w.status, Header: w.header, Body: &pipeBody{in, cancel}}, nil
}

type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// pipeWriter is a connection that breaks when left bytes were written.
type pipeWriter struct {
	header http.Header
	out    *io.PipeWriter
	left   int
	once   sync.Once
	status int
	head   chan struct{} // closed when status is known
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) FlushError() error   { return nil }
func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status = status
		close(w.head)
	})
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(200)
	n, err := w.out.Write(p[:min(len(p), w.left)])
	if w.left -= n; w.left == 0 && err == nil {
		err = errors.New("the connection broke")
		w.out.CloseWithError(io.ErrUnexpectedEOF)
	}
	return n, err
}
