package jetstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
)

// TestBatchOfAWorkerThatWakes: events of a worker before, which come in the middle of a run, are
// passed by, and the run is followed to its end.
func TestBatchOfAWorkerThatWakes(t *testing.T) {
	w := newWorld(t, testConfig, jetstream.EmbeddedConfig{})
	entered, leave := make(chan struct{}), make(chan struct{})
	wait := agentkernel.MustTool("wait", "", func(context.Context, struct{}) (string, error) {
		close(entered)
		<-leave
		return "waited", nil
	})
	w.work(jetstream.WorkerConfig{Agent: agent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("one"), agenttest.Calls("wait"), agenttest.Text("two")),
		Tools: []agentkernel.Tool{wait},
	})})
	w.wait("s", w.submit("s", "first"))

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f, err := w.client.Follow("s", "")
	require.NoError(t, err)
	w.submit("s", "second")
	<-entered
	js, err := broker.New(w.nc)
	require.NoError(t, err)
	late := &nats.Msg{Subject: "agentkernel.EVENTS.s", Data: []byte("{}"), Header: nats.Header{
		"Ak-Start": {"1"}, nats.MsgIdHdr: {"agentkernel.EVENTS.s.1.99"},
	}}
	_, err = js.PublishMsg(ctx, late)
	require.NoError(t, err)
	close(leave)

	ended := 0
	for ev, err := range f.Events(ctx) {
		require.NoError(t, err)
		if ev.Type == agentkernel.EventAgentEnd && len(f.State().Messages) == 6 {
			ended++
			cancel()
		}
	}
	require.Equal(t, 1, ended)
}
