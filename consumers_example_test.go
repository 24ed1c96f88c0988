package agentkernel_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// scripted returns an agent with a tool whose model plays the replies.
func scripted(replies ...agenttest.Reply) *agentkernel.Agent {
	add := agentkernel.MustTool("add", "Adds two numbers.", func(_ context.Context, in struct{ A, B int }) (string, error) {
		return fmt.Sprint(in.A + in.B), nil
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(replies...), Tools: []agentkernel.Tool{add}})
	if err != nil {
		panic(err)
	}
	return agent
}

// Each listener gets one type of event, with the fields that this type fills.
func ExampleOn() {
	agent := scripted(agenttest.Call("1", "add", `{"A":2,"B":3}`), agenttest.Text("It is 5."))
	agentkernel.On(agent, func(e agentkernel.ToolStarted) { fmt.Printf("%s %s\n", e.Tool, e.Args) })
	agentkernel.On(agent, func(e agentkernel.ToolEnded) { fmt.Println("=", e.Result.Content[0].Text) })
	agentkernel.On(agent, func(e agentkernel.RunEnded) { fmt.Println(e.Summary.EndReason, e.Summary.TurnCount) })
	_, _ = agent.Run(context.Background(), "What is 2 + 3?")
	// Output:
	// add {"A":2,"B":3}
	// = 5
	// stop 2
}

// A payload is for a type switch where one listener wants several types.
func ExampleEvent_Payload() {
	agent := scripted(agenttest.Text("Hello."))
	agent.Subscribe(func(ev agentkernel.Event) {
		switch e := ev.Payload().(type) {
		case agentkernel.MessageUpdated:
			fmt.Println("delta:", e.Delta)
		case agentkernel.MessageEnded:
			fmt.Println(e.Message.GetRole(), "said", e.Message.TextContent())
		}
	})
	_, _ = agent.Run(context.Background(), "Hi.")
	// Output:
	// user said Hi.
	// delta: Hello.
	// assistant said Hello.
}

// The run does not wait for a consumer that is slow. What it gets late it gets merged.
func ExampleAgent_SubscribeAsync() {
	agent := scripted(agenttest.Text("one two three").Chunks(4).Delay(time.Millisecond))
	text, updates := "", 0
	sub := agent.SubscribeAsync(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			text += ev.Delta
			updates += 1 + ev.Coalesced
			time.Sleep(20 * time.Millisecond) // draw
		}
	}, agentkernel.AsyncOptions{Name: "screen", MaxRate: 60})
	defer sub.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := agent.Run(ctx, "Count."); err != nil {
		fmt.Println(err)
	}
	if err := sub.Drain(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%q by %d updates\n", text, updates)
	// Output:
	// "one two three" by 4 updates
}

// One goroutine consumes several agents and tells their runs apart.
func ExampleSubscription_Follow() {
	first, second := scripted(agenttest.Text("Yes.")), scripted(agenttest.Text("No."))
	answers := make(map[string]string) // by run
	sub := first.SubscribeAsync(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate {
			answers[ev.RunID] += ev.Delta
		}
	}, agentkernel.AsyncOptions{})
	sub.Follow(second)
	ctx := context.Background()
	one, _ := first.Run(ctx, "Is it?")
	two, _ := second.Run(ctx, "Is it?")
	_ = sub.Drain(ctx)
	fmt.Println(answers[one.ID], answers[two.ID])
	// Output:
	// Yes. No.
}

// A loop over one run, which it starts.
func ExampleAgent_Stream() {
	agent := scripted(agenttest.Text("one two").Chunks(4))
	for ev, err := range agent.Stream(context.Background(), agentkernel.UserMessage("Count.")) {
		if err != nil {
			fmt.Println("it did not start:", err)
			break
		}
		if ev.Type == agentkernel.EventMessageUpdate {
			fmt.Printf("%q\n", ev.Delta)
		}
	}
	// Output:
	// "one "
	// "two"
}

// A loop over all runs, whoever starts them.
func ExampleAgent_Events() {
	agent := scripted(agenttest.Text("one"), agenttest.Text("two"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := agent.Events(ctx)
	go func() {
		_, _ = agent.Run(ctx, "First.")
		_, _ = agent.Run(ctx, "Second.")
		cancel()
	}()
	for ev := range events {
		if ev.Type == agentkernel.EventMessageEnd {
			fmt.Println(ev.Message.GetRole(), ev.Message.TextContent())
		}
	}
	// Output:
	// user First.
	// assistant one
	// user Second.
	// assistant two
}
