package jetstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failingFirst is a worker's Agent that fails as often as told, then makes cfg.
func failingFirst(times int32, cfg agentkernel.Config) func(context.Context, string) (agentkernel.Config, error) {
	var calls atomic.Int32
	return func(context.Context, string) (agentkernel.Config, error) {
		if calls.Add(1) <= times {
			return agentkernel.Config{}, errors.New("the model's key is not here yet")
		}
		return cfg, nil
	}
}

// counting is echo, which tells how often it ran.
func counting(ran *atomic.Int32) agentkernel.Tool {
	counted := echo
	counted.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		ran.Add(1)
		return echo.Execute(ctx, args)
	}
	return counted
}

// TestSuspendBehindAnotherWorker: the question of a request that had another worker before waits
// for its answer like any other.
func TestSuspendBehindAnotherWorker(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	var ran atomic.Int32
	w.work(jetstream.WorkerConfig{RetryWait: time.Millisecond, Agent: failingFirst(1, agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "echo", `{"text":"a"}`), agenttest.Text("so be it")),
		Tools: []agentkernel.Tool{counting(&ran)}, Gate: suspending,
	})})
	o := w.wait("s", w.submit("s", "go"))
	require.Equal(t, agentkernel.EndSuspended, o.Reason)
	require.Equal(t, 2, o.Attempts)
	require.Never(t, func() bool {
		open, err := w.client.Questions(t.Context(), "s")
		return err != nil || len(open) != 1
	}, 300*time.Millisecond, 20*time.Millisecond)
	require.NoError(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}))
	require.Eventually(t, func() bool { return len(w.texts("s")) == 4 }, 20*time.Second, 5*time.Millisecond)
	assert.Equal(t, []string{"user: go", "assistant: [echo]", "tool: a", "assistant: so be it"}, w.texts("s"))
	assert.EqualValues(t, 1, ran.Load())
}

// TestAnswerOutlivesAFailedAttempt: an answer is not lost because the worker that took it up first
// could not begin the run.
func TestAnswerOutlivesAFailedAttempt(t *testing.T) {
	w := suspended(t)
	require.NoError(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}))
	var ran atomic.Int32
	w.work(jetstream.WorkerConfig{RetryWait: time.Millisecond, Agent: failingFirst(2, agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("so be it")), Tools: []agentkernel.Tool{counting(&ran)}, Gate: suspending,
	})})
	require.Eventually(t, func() bool { return len(w.texts("s")) == 4 }, 20*time.Second, 5*time.Millisecond)
	assert.Equal(t, []string{"user: go", "assistant: [echo]", "tool: a", "assistant: so be it"}, w.texts("s"))
	assert.EqualValues(t, 1, ran.Load())
}

// TestAskThenSuspend: a gate that waits for a while, and then no longer, asks a question that can be
// answered for as long as it likes.
func TestAskThenSuspend(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	var ran atomic.Int32
	w.work(jetstream.WorkerConfig{AskWait: 50 * time.Millisecond, Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("c1", "echo", `{"text":"a"}`), agenttest.Text("so be it")),
		Tools: []agentkernel.Tool{counting(&ran)},
		Gate: func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			if d, err := jetstream.Ask(ctx, req, "quickly?"); err == nil {
				return d, nil
			}
			return suspending(ctx, req)
		},
	})})
	require.Equal(t, agentkernel.EndSuspended, w.wait("s", w.submit("s", "go")).Reason)
	open := w.questions("s")
	require.Len(t, open, 1)
	assert.Equal(t, "may I?", open[0].Text)
	assert.True(t, open[0].Suspended)
	require.NoError(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}))
	require.ErrorIs(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{}), jetstream.ErrAnswered)
	require.Eventually(t, func() bool { return len(w.texts("s")) == 4 }, 20*time.Second, 5*time.Millisecond)
	assert.EqualValues(t, 1, ran.Load())
}

// TestSuspendedStateWithoutEvents: who looks at a session whose events are gone sees what waits.
func TestSuspendedStateWithoutEvents(t *testing.T) {
	w := suspended(t)
	events, err := w.client.Follow("s", "")
	require.NoError(t, err)
	js, err := broker.New(w.nc)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "agentkernel-EVENTS")
	require.NoError(t, err)
	require.NoError(t, s.Purge(t.Context()))
	for ev, err := range events.Events(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, agentkernel.EventSnapshot, ev.Type)
		break
	}
	waits := events.State().Suspended
	require.Len(t, waits, 1)
	assert.Equal(t, "c1", waits[0].Call.ID)
	assert.Equal(t, "may I?", waits[0].Ask.Text)
}

// TestTwoAnswersAndResultsBetween: of two answers that came before a worker did, one request goes on
// with both, and the other one finds nothing to do, also where the results stand in another order
// than the calls.
func TestTwoAnswersAndResultsBetween(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	cfg := agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Text("").Call("c1", "echo", `{"text":"a"}`).Call("c2", "quick", `{}`).Call("c3", "echo", `{"text":"b"}`)),
		Tools: []agentkernel.Tool{echo, readOnly("quick")},
		Gate: func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			if req.Call.Name == "quick" {
				return agentkernel.GateDecision{Allow: true}, nil
			}
			return suspending(ctx, req)
		},
	}
	cfg.Tools[0].ConcurrencySafe = agentkernel.Always
	stop := w.work(jetstream.WorkerConfig{Agent: agent(cfg)})
	require.Equal(t, agentkernel.EndSuspended, w.wait("s", w.submit("s", "go")).Reason)
	stop()
	for _, call := range []string{"c1", "c3"} {
		require.NoError(t, w.client.Answer(t.Context(), "s", call, agentkernel.GateDecision{Allow: true}))
	}
	cfg.Model = agenttest.Script(agenttest.Text("both"))
	w.work(jetstream.WorkerConfig{Agent: agent(cfg)})
	require.Eventually(t, func() bool { return w.stored("WORK") == 0 }, 20*time.Second, 5*time.Millisecond)
	assert.Equal(t, []string{"user: go", "assistant: [echo][quick][echo]", "tool: quick", "tool: a", "tool: b", "assistant: both"}, w.texts("s"))
	for _, o := range w.outcomes("s") {
		assert.NoError(t, o.Err())
	}
}

func readOnly(name string) agentkernel.Tool {
	quick := tool(name, func(context.Context) (string, error) { return name, nil })
	quick.ReadOnly = agentkernel.Always
	return quick
}

// outcomes are how the requests of a session ended.
func (w *world) outcomes(session string) (all []jetstream.Outcome) {
	w.t.Helper()
	js, err := broker.New(w.nc)
	require.NoError(w.t, err)
	s, err := js.Stream(w.t.Context(), "agentkernel-SESSIONS")
	require.NoError(w.t, err)
	for seq := uint64(1); ; {
		msg, err := s.GetMsg(w.t.Context(), seq, broker.WithGetMsgSubject("agentkernel.SESSIONS."+session))
		if errors.Is(err, broker.ErrMsgNotFound) {
			return all
		}
		require.NoError(w.t, err)
		if msg.Header.Get("Ak-Kind") == "end" {
			var o jetstream.Outcome
			require.NoError(w.t, json.Unmarshal(msg.Data, &o))
			all = append(all, o)
		}
		seq = msg.Sequence + 1
	}
}

// severed is a connection that dies when it is to carry a word, which never gets through.
type severed struct {
	net.Conn
	word string
	died func()
}

func (c *severed) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte(c.word)) {
		_ = c.Conn.Close()
		c.died()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(data)
}

// Dial connects to a broker, once.
func (c *severed) Dial(network, address string) (_ net.Conn, err error) {
	if c.Conn != nil {
		return nil, net.ErrClosed
	}
	c.Conn, err = net.Dial(network, address)
	return c, err
}

// workUntil starts a worker whose connection dies when it is to write word, and returns what tells so.
func (w *world) workUntil(word string, cfg agentkernel.Config) (died chan struct{}) {
	w.t.Helper()
	died = make(chan struct{})
	line := &severed{word: word, died: sync.OnceFunc(func() { close(died) })}
	closed := make(chan struct{})
	nc, err := nats.Connect(w.broker.URL(), nats.SetCustomDialer(line), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(w.t, err)
	worker, err := jetstream.NewWorker(nc, jetstream.WorkerConfig{Config: w.cfg, Agent: agent(cfg), OnError: func(string, string, error) {}})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	w.t.Cleanup(func() {
		nc.Close()
		cancel()
		<-done
		<-closed
	})
	return died
}

// TestWorkerDiesWhileItSuspends: a call that waits is not taken for one that may have begun, wherever the
// worker died since, and its answer is not lost.
func TestWorkerDiesWhileItSuspends(t *testing.T) {
	for name, tt := range map[string]struct {
		word         string
		first, later bool // the answer comes before the next worker, or to it
	}{
		"before the question":               {word: "Ak-Kind: question", later: true},
		"before the outcome":                {word: "Ak-Kind: end", later: true},
		"before the outcome, answered then": {word: "Ak-Kind: end", first: true},
		"before the resumed run":            {word: "Ak-Kind: begun"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testConfig, jetstream.EmbeddedConfig{Listen: "127.0.0.1:0"})
			var ran atomic.Int32
			cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Call("c1", "echo", `{"text":"a"}`), agenttest.Text("so be it")),
				Tools: []agentkernel.Tool{counting(&ran)}, Gate: suspending}
			answer := func() {
				w.questions("s")
				require.NoError(t, w.client.Answer(t.Context(), "s", "c1", agentkernel.GateDecision{Allow: true}))
			}
			if tt.word == "Ak-Kind: begun" {
				stop := w.work(jetstream.WorkerConfig{Agent: agent(cfg)})
				w.wait("s", w.submit("s", "go"))
				stop()
				answer()
				<-w.workUntil(tt.word, cfg)
			} else {
				died := w.workUntil(tt.word, cfg)
				w.submit("s", "go")
				<-died
			}
			if tt.first {
				answer()
			}
			w.work(jetstream.WorkerConfig{Agent: agent(cfg)})
			if tt.later {
				answer()
			}
			require.Eventually(t, func() bool { return len(w.texts("s")) == 4 }, 20*time.Second, 5*time.Millisecond)
			assert.Equal(t, []string{"user: go", "assistant: [echo]", "tool: a", "assistant: so be it"}, w.texts("s"))
			assert.EqualValues(t, 1, ran.Load())
			require.Eventually(t, func() bool { return w.stored("WORK") == 0 }, 20*time.Second, 5*time.Millisecond)
		})
	}
}
