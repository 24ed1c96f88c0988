package jetstream_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/jetstream"
)

// One binary with everything inside: a broker, a worker and a client.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	broker, err := jetstream.StartEmbedded(dir, jetstream.EmbeddedConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	nc, err := broker.Connect()
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	if err := jetstream.Setup(ctx, nc, jetstream.Config{}); err != nil {
		log.Fatal(err)
	}

	worker, err := jetstream.NewWorker(nc, jetstream.WorkerConfig{
		Agent: func(context.Context, string) (agentkernel.Config, error) {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Text("It is blue."))}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()

	client, err := jetstream.NewClient(nc, jetstream.Config{})
	if err != nil {
		log.Fatal(err)
	}
	id, err := client.Submit(ctx, "session-1", jetstream.Request{
		Messages: []agentkernel.AgentMessage{agentkernel.UserMessage("What colour is the sky?")},
	})
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := client.Wait(ctx, "session-1", id)
	if err != nil {
		log.Fatal(err)
	}
	history, err := client.History(ctx, "session-1")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range history {
		fmt.Printf("%s: %s\n", m.GetRole(), m.TextContent())
	}
	fmt.Println(outcome.Reason)
	stop()
	fmt.Println(<-done)
	// Output:
	// user: What colour is the sky?
	// assistant: It is blue.
	// stop
	// <nil>
}

// A screen in any process. The snapshot with which it begins, and with which it goes on where a worker
// died, is to be drawn anew; everything else is added to what stands there.
func ExampleFollower() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	broker, err := jetstream.StartEmbedded(dir, jetstream.EmbeddedConfig{Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	nc, err := nats.Connect(broker.URL(), nats.MaxReconnects(-1)) // as another process does
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	cfg := jetstream.Config{Name: "stories"} // the same one for Setup, workers and clients
	if err := jetstream.Setup(ctx, nc, cfg); err != nil {
		log.Fatal(err)
	}
	worker, err := jetstream.NewWorker(nc, jetstream.WorkerConfig{
		Config: cfg,
		Agent: func(context.Context, string) (agentkernel.Config, error) {
			return agentkernel.Config{Model: agenttest.Script(agenttest.Text("Once upon a time.").Chunks(9))}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()

	client, err := jetstream.NewClient(nc, cfg)
	if err != nil {
		log.Fatal(err)
	}
	follower, err := client.Follow("session-1", "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Submit(ctx, "session-1", jetstream.Request{
		Messages: []agentkernel.AgentMessage{agentkernel.UserMessage("Tell me a story.")},
	}); err != nil {
		log.Fatal(err)
	}
	for ev, err := range follower.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch e := ev.Payload().(type) {
		case agentkernel.MessageUpdated:
			fmt.Println(e.Delta)
		case agentkernel.RunEnded:
			fmt.Println(e.Summary.EndReason)
			stop() // ends the loop, and the worker
		default:
			if ev.Type == agentkernel.EventSnapshot {
				fmt.Println("draw", len(follower.State().Messages), "messages")
			}
		}
	}
	fmt.Println(<-done)
	// Output:
	// draw 0 messages
	// Once upon
	//  a time.
	// stop
	// <nil>
}

// A call that needs a person ends its run and holds nothing. Who answers, at whatever time and
// from whatever process, lets the session go on.
func ExampleClient_Answer() {
	ctx, stop := context.WithCancel(context.Background())
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	broker, err := jetstream.StartEmbedded(dir, jetstream.EmbeddedConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	nc, err := broker.Connect()
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	if err := jetstream.Setup(ctx, nc, jetstream.Config{}); err != nil {
		log.Fatal(err)
	}
	model := agenttest.Script(agenttest.Text("Let me see.").Call("c1", "pay", "{}"), agenttest.Text("It is paid."))
	worker, err := jetstream.NewWorker(nc, jetstream.WorkerConfig{
		Agent: func(context.Context, string) (agentkernel.Config, error) {
			return agentkernel.Config{
				Model: model,
				Tools: []agentkernel.Tool{agentkernel.MustTool("pay", "Pays a bill.", func(context.Context, struct{}) (string, error) {
					return "paid", nil
				})},
				Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
					return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "May I pay?"})
				},
			}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()

	client, err := jetstream.NewClient(nc, jetstream.Config{})
	if err != nil {
		log.Fatal(err)
	}
	id, err := client.Submit(ctx, "bills", jetstream.Request{
		Messages: []agentkernel.AgentMessage{agentkernel.UserMessage("Pay the bill.")},
	})
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := client.Wait(ctx, "bills", id)
	fmt.Println(outcome.Reason, err)
	open, err := client.Questions(ctx, "bills")
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range open {
		fmt.Println(q.Tool, "asks:", q.Text)
		if err := client.Answer(ctx, "bills", q.Call, agentkernel.GateDecision{Allow: true}); err != nil { // says a person
			log.Fatal(err)
		}
	}
	follower, err := client.Follow("bills", "")
	if err != nil {
		log.Fatal(err)
	}
	for ev, err := range follower.Events(ctx) { // of the last run, and of later ones
		if err != nil {
			log.Fatal(err)
		}
		if ev.Type == agentkernel.EventAgentEnd && ev.Summary.EndReason == agentkernel.EndStop {
			break
		}
	}
	history, err := client.History(ctx, "bills")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range history {
		fmt.Printf("%s: %s\n", m.GetRole(), m.TextContent())
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// suspended <nil>
	// pay asks: May I pay?
	// user: Pay the bill.
	// assistant: Let me see.
	// tool: paid
	// assistant: It is paid.
	// <nil>
}
