package jetstream_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
	broker "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoBroker: what needs the broker says in time that there is none.
func TestNoBroker(t *testing.T) {
	cfg := jetstream.Config{AckWait: time.Second, PublishWait: 300 * time.Millisecond}
	w := newWorld(t, cfg, jetstream.EmbeddedConfig{})
	worker, err := jetstream.NewWorker(w.nc, jetstream.WorkerConfig{Config: cfg, Agent: agent(agentkernel.Config{})})
	require.NoError(t, err)
	w.broker.Close()
	_, err = w.client.Submit(t.Context(), "s", prompt("hello"))
	assert.ErrorIs(t, err, jetstream.ErrUnavailable)
	assert.ErrorIs(t, w.client.Abort(t.Context(), "s"), jetstream.ErrUnavailable)
	_, err = w.client.History(t.Context(), "s")
	assert.ErrorIs(t, err, jetstream.ErrUnavailable)
	_, err = w.client.Sessions(t.Context())
	assert.ErrorIs(t, err, jetstream.ErrUnavailable)
	assert.ErrorIs(t, jetstream.Setup(t.Context(), w.nc, cfg), jetstream.ErrUnavailable)
	assert.ErrorIs(t, worker.Run(t.Context()), jetstream.ErrUnavailable)
	w.nc.Close()
	_, err = w.client.Submit(t.Context(), "s", prompt("hello"))
	assert.ErrorIs(t, err, jetstream.ErrUnavailable)
}

// TestNoSetup: without the streams nothing works, and says so.
func TestNoSetup(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	other := testConfig
	other.Name, other.PublishWait = "other", 200*time.Millisecond
	worker, err := jetstream.NewWorker(w.nc, jetstream.WorkerConfig{Config: other, Agent: agent(agentkernel.Config{})})
	require.NoError(t, err)
	assert.ErrorIs(t, worker.Run(t.Context()), broker.ErrStreamNotFound)
	client, err := jetstream.NewClient(w.nc, other)
	require.NoError(t, err)
	_, err = client.Submit(t.Context(), "s", prompt("hello"))
	assert.ErrorIs(t, err, jetstream.ErrUnavailable)
}

// TestFull: where a stream is full nothing is dropped and nothing half-done: the request goes on
// when there is room.
func TestFull(t *testing.T) {
	cfg := testConfig
	cfg.MaxBytes = 16 << 10
	w := newWorld(t, cfg, jetstream.EmbeddedConfig{})
	refused := make(chan error, 100)
	w.work(jetstream.WorkerConfig{RetryWait: 20 * time.Millisecond,
		Agent: agent(agentkernel.Config{Model: agenttest.Script(
			agenttest.Text("first"), agenttest.Text(strings.Repeat("long ", 4000)), agenttest.Text("second"), agenttest.Text("second"),
			agenttest.Text("second"), agenttest.Text("second"), agenttest.Text("second"), agenttest.Text("second"))}),
		OnError: func(_, _ string, err error) {
			select {
			case refused <- err:
			default:
			}
		},
	})
	w.wait("s", w.submit("s", "one"))
	id := w.submit("s", "two")
	err := <-refused
	assert.ErrorIs(t, err, agentkernel.KindCommit)
	assert.ErrorIs(t, err, jetstream.ErrFull)
	assert.Equal(t, []string{"user: one", "assistant: first", "user: two"}, w.texts("s")[:3])

	_, err = w.client.Submit(t.Context(), "s", prompt(strings.Repeat("long ", 4000)))
	assert.ErrorIs(t, err, jetstream.ErrFull)

	cfg.MaxBytes = 1 << 20
	require.NoError(t, jetstream.Setup(t.Context(), w.nc, cfg))
	assert.Equal(t, agentkernel.EndStop, w.wait("s", id).Reason)
	assert.Equal(t, []string{"user: one", "assistant: first", "user: two", "assistant: second"}, w.texts("s"))
}

// TestDiskFull: the same for the disk as a whole.
func TestDiskFull(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{MaxBytes: 64 << 10})
	for range 100 {
		_, err := w.client.Submit(t.Context(), "s", prompt(strings.Repeat("long ", 1000)))
		if err != nil {
			assert.ErrorIs(t, err, jetstream.ErrFull)
			return
		}
	}
	t.Fatal("it took all")
}

// TestForeignLayout: a stream of another layout is told and left alone.
func TestForeignLayout(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	js, err := broker.New(w.nc)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*broker.StreamConfig){
		"no mark":   func(s *broker.StreamConfig) { s.Metadata = nil },
		"retention": func(s *broker.StreamConfig) { s.Retention = broker.InterestPolicy },
		"subjects":  func(s *broker.StreamConfig) { s.Subjects = []string{"elsewhere.>"} },
		"discard":   func(s *broker.StreamConfig) { s.Discard = broker.DiscardOld },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := js.Stream(t.Context(), "agentkernel-SESSIONS")
			require.NoError(t, err)
			cfg := s.CachedInfo().Config
			require.NoError(t, js.DeleteStream(t.Context(), cfg.Name))
			good := cfg
			spoil(&cfg)
			_, err = js.CreateStream(t.Context(), cfg)
			require.NoError(t, err)
			err = jetstream.Setup(t.Context(), w.nc, testConfig)
			layout, ok := errors.AsType[*jetstream.LayoutError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, cfg.Name, layout.Stream)
			assert.ErrorContains(t, err, "foreign layout")
			require.NoError(t, js.DeleteStream(t.Context(), cfg.Name))
			_, err = js.CreateStream(t.Context(), good)
			require.NoError(t, err)
			require.NoError(t, jetstream.Setup(t.Context(), w.nc, testConfig))
		})
	}
}

// TestTooLarge: what no broker takes is refused at once, and answered where a model wrote it.
func TestTooLarge(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{MaxPayload: 32 << 10})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text(strings.Repeat("long ", 10000)), agenttest.Text("short"))})})
	_, err := w.client.Submit(t.Context(), "s", prompt(strings.Repeat("long ", 10000)))
	assert.ErrorIs(t, err, jetstream.ErrTooLarge)
	o := w.wait("s", w.submit("s", "go"))
	assert.ErrorIs(t, o.Err(), agentkernel.KindCommit)
	assert.Equal(t, agentkernel.EndStop, w.wait("s", w.submit("s", "again")).Reason)
}

// TestBadArguments: what makes no sense is refused where it is said.
func TestBadArguments(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"no session":    func() error { _, err := w.client.Submit(ctx, "", prompt("x")); return err },
		"id":            func() error { _, err := w.client.Submit(ctx, "s", jetstream.Request{ID: "a b"}); return err },
		"id of our own": func() error { _, err := w.client.Submit(ctx, "s", jetstream.Request{ID: "_resume-1"}); return err },
		"role": func() error {
			_, err := w.client.Submit(ctx, "s", jetstream.Request{Messages: []agentkernel.AgentMessage{agentkernel.Message{Role: agentkernel.RoleAssistant}}})
			return err
		},
		"nothing to steer": func() error { return w.client.Steer(ctx, "s") },
		"place":            func() error { _, err := w.client.Follow("s", "7"); return err },
		"wait":             func() error { _, err := w.client.Wait(ctx, "s", ""); return err },
		"name":             func() error { return jetstream.Setup(ctx, w.nc, jetstream.Config{Name: "a.b"}) },
		"age":              func() error { return jetstream.Setup(ctx, w.nc, jetstream.Config{EventAge: 1}) },
		"ack wait":         func() error { return jetstream.Setup(ctx, w.nc, jetstream.Config{AckWait: 1}) },
		"connection":       func() error { _, err := jetstream.NewClient(nil, testConfig); return err },
		"agent":            func() error { _, err := jetstream.NewWorker(w.nc, jetstream.WorkerConfig{}); return err },
		"directory":        func() error { _, err := jetstream.StartEmbedded("", jetstream.EmbeddedConfig{}); return err },
		"address": func() error {
			_, err := jetstream.StartEmbedded(t.TempDir(), jetstream.EmbeddedConfig{Listen: "x"})
			return err
		},
		"a file": func() error {
			path := filepath.Join(t.TempDir(), "file")
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			_, err := jetstream.StartEmbedded(path, jetstream.EmbeddedConfig{})
			return err
		},
	} {
		assert.Error(t, do(), name)
	}
}

// TestNoRequest: what is in the queue and is no request is dropped, and told.
func TestNoRequest(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	told := make(chan error, 1)
	w.work(jetstream.WorkerConfig{
		Agent:   agent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("hello"))}),
		OnError: func(_, _ string, err error) { told <- err },
	})
	js, err := broker.New(w.nc)
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "agentkernel.WORK.s", []byte("nonsense"))
	require.NoError(t, err)
	assert.ErrorContains(t, <-told, "no request")
	assert.Equal(t, agentkernel.EndStop, w.wait("s", w.submit("s", "go")).Reason)
}
