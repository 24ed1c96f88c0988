package jetstream_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/nats-io/nats.go"
)

// The test's own program is also the broker and the workers that TestProof kills. What they are
// to be is in their environment.
const (
	envRole   = "AGENTKERNEL_ROLE"
	envDir    = "AGENTKERNEL_DIR"    // the broker's
	envListen = "AGENTKERNEL_LISTEN" // the broker's address
	envCalls  = "AGENTKERNEL_CALLS"  // the file to which each call that runs adds a line
)

// proofConfig is for processes that are killed every second.
var proofConfig = jetstream.Config{AckWait: time.Second, PublishWait: 20 * time.Second}

// child is the whole of a child process. It returns its exit code.
func child(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	switch role {
	case "broker":
		var b *jetstream.Broker
		if b, err = jetstream.StartEmbedded(os.Getenv(envDir), jetstream.EmbeddedConfig{Listen: os.Getenv(envListen)}); err == nil {
			<-ctx.Done()
			b.Close()
		}
	case "worker":
		err = childWorker(ctx)
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		return 1
	}
	return 0
}

func dial(address string) (*nats.Conn, error) {
	return nats.Connect("nats://"+address, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(50*time.Millisecond), nats.Timeout(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
}

func childWorker(ctx context.Context) error {
	nc, err := dial(os.Getenv(envListen))
	if err != nil {
		return err
	}
	defer nc.Close()
	w, err := jetstream.NewWorker(nc, jetstream.WorkerConfig{
		Config: proofConfig, MaxSessions: 100, MaxAttempts: 1000, RetryWait: 100 * time.Millisecond,
		Agent: agent(agentkernel.Config{
			Model: agentkernel.ChatModelFunc(proofModel),
			Tools: []agentkernel.Tool{noted("once", false), noted("again", true)},
			Gate:  proofGate,
		}),
		OnError: func(session, request string, err error) {},
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil { // the broker may be gone when it begins
		if err = w.Run(ctx); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// noted is a tool that notes in a file that it ran, under the call's key.
func noted(name string, idempotent bool) agentkernel.Tool {
	t := tool(name, func(ctx context.Context) (string, error) {
		f, err := os.OpenFile(os.Getenv(envCalls), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, "%s %s\n", name, jetstream.IdempotencyKey(ctx)); err != nil {
			return "", err
		}
		time.Sleep(20 * time.Millisecond) // time enough to be killed in
		return name + " ran", nil
	})
	t.Idempotent = idempotent
	return t
}

// proofGate wants a person to be asked about one call in every other turn.
func proofGate(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
	var messages int
	if _, err := fmt.Sscanf(req.Call.ID, "once-%d", &messages); err == nil && messages/5%2 == 1 {
		return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "once?"})
	}
	return agentkernel.GateDecision{Allow: true}, nil
}

// proofModel calls both tools for each prompt, and answers then. It says the same each time it is
// asked the same.
func proofModel(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	last := req.Messages[len(req.Messages)-1]
	var say []agentkernel.StreamEvent
	if last.Role == agentkernel.RoleTool {
		for _, word := range strings.SplitAfter("that is all that there is to say about it", " ") {
			say = append(say, agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: word})
		}
		say = append(say, agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: agentkernel.StopReasonStop})
	} else {
		for _, name := range []string{"once", "again"} {
			say = append(say, agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta,
				ID: fmt.Sprintf("%s-%d", name, len(req.Messages)), Name: name, Delta: "{}"})
		}
		say = append(say, agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: agentkernel.StopReasonToolUse})
	}
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		for _, ev := range say {
			select {
			case <-time.After(30 * time.Millisecond):
			case <-ctx.Done():
				yield(agentkernel.StreamEvent{}, context.Cause(ctx))
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
	}
}
