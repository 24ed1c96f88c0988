package jetstream_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testConfig is short of breath.
var testConfig = jetstream.Config{AckWait: time.Second, PublishWait: 10 * time.Second}

// world is a broker within the test, and everything that is connected to it.
type world struct {
	t      *testing.T
	broker *jetstream.Broker
	cfg    jetstream.Config
	client *jetstream.Client
	nc     *nats.Conn
}

func newWorld(t *testing.T, cfg jetstream.Config, embedded jetstream.EmbeddedConfig) *world {
	t.Helper()
	b, err := jetstream.StartEmbedded(t.TempDir(), embedded)
	require.NoError(t, err)
	t.Cleanup(b.Close)
	w := &world{t: t, broker: b, cfg: cfg}
	w.nc = w.connect()
	require.NoError(t, jetstream.Setup(t.Context(), w.nc, cfg))
	w.client, err = jetstream.NewClient(w.nc, cfg)
	require.NoError(t, err)
	return w
}

func (w *world) connect() *nats.Conn {
	nc, err := w.broker.Connect()
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		if nc.IsClosed() {
			return
		}
		done := make(chan struct{})
		nc.SetClosedHandler(func(*nats.Conn) { close(done) })
		nc.Close()
		<-done
	})
	return nc
}

// work starts a worker and returns what ends it and waits for it.
func (w *world) work(cfg jetstream.WorkerConfig) (stop func()) {
	w.t.Helper()
	cfg.Config = w.cfg
	if cfg.OnError == nil {
		cfg.OnError = func(session, request string, err error) { w.t.Logf("put back: %s %s: %v", session, request, err) }
	}
	worker, err := jetstream.NewWorker(w.connect(), cfg)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(w.t, <-done)
	})
	w.t.Cleanup(stop)
	return stop
}

// agent is a worker's Agent that makes the same config each time.
func agent(cfg agentkernel.Config) func(context.Context, string) (agentkernel.Config, error) {
	return func(context.Context, string) (agentkernel.Config, error) { return cfg, nil }
}

func (w *world) submit(session, text string) string {
	w.t.Helper()
	id, err := w.client.Submit(w.t.Context(), session, prompt(text))
	require.NoError(w.t, err)
	return id
}

func (w *world) wait(session, id string) jetstream.Outcome {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	o, err := w.client.Wait(ctx, session, id)
	require.NoError(w.t, err)
	return o
}

// texts are the messages of a session, each as its role and text.
func (w *world) texts(session string) []string {
	w.t.Helper()
	history, err := w.client.History(w.t.Context(), session)
	require.NoError(w.t, err)
	return texts(history)
}

func texts(history []agentkernel.AgentMessage) []string {
	var out []string
	for _, m := range history {
		var text strings.Builder
		text.WriteString(m.TextContent())
		for _, call := range m.(agentkernel.Message).ToolCalls() {
			text.WriteString("[" + call.Name + "]")
		}
		out = append(out, fmt.Sprintf("%s: %s", m.GetRole(), text.String()))
	}
	return out
}

func prompt(text string) jetstream.Request {
	return jetstream.Request{Messages: []agentkernel.AgentMessage{agentkernel.UserMessage(text)}}
}

// watcher checks a session's stream as a client sees it.
type watcher struct {
	checker *agenttest.Checker
	marks   int // snapshots behind the first
	ended   int // runs
	errs    []error
}

// take checks the next event: behind a restart mark a new checker begins.
func (w *watcher) take(ev agentkernel.Event, state agentkernel.AgentState) {
	if ev.Type == agentkernel.EventSnapshot {
		if w.checker != nil {
			w.marks++
			w.errs = append(w.errs, w.checker.Err())
		}
		w.checker = agenttest.NewChecker()
		w.checker.StartFrom(state.Messages)
		return
	}
	w.checker.Listen(ev)
	if ev.Type == agentkernel.EventAgentEnd && ev.ParentRunID == "" {
		w.ended++
	}
}
