package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// A bare loop is a function and a channel. Collect reads it to its end.
func ExampleAgentLoop() {
	cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Text("Good morning."))}
	record, err := agentkernel.Collect(agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("hi")))
	fmt.Println(record.Answer, record.EndReason, err)
	// Output: Good morning. stop <nil>
}

// One answer of a model, without tools, turns and events.
func ExampleGenerate() {
	model := agenttest.Script(agenttest.Text("Greeting"))
	title, err := agentkernel.Generate(context.Background(), model, agentkernel.ModelRequest{
		System:   "Name the topic in one word.",
		Messages: []agentkernel.Message{agentkernel.UserMessage("hi there")},
	})
	fmt.Println(title.TextContent(), err)
	// Output: Greeting <nil>
}

// An abort ends the run at once. What was said so far is kept, and the conversation goes on.
func ExampleAgent_Abort() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("First, ").Stall(), agenttest.Text("Never mind.")),
	})
	if err != nil {
		panic(err)
	}
	agentkernel.On(agent, func(agentkernel.MessageUpdated) { agent.Abort(errors.New("the user pressed Esc")) })
	record, err := agent.Run(context.Background(), "explain everything")
	fmt.Println(record.EndReason, errors.Is(err, agentkernel.KindCanceled))
	for _, m := range agent.Messages() {
		fmt.Printf("%s: %s\n", m.GetRole(), m.TextContent())
	}
	// Output:
	// aborted true
	// user: explain everything
	// assistant: First,
}

// Continue goes on behind a failure, with the history as it is.
func ExampleAgent_Continue() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindAuth, Op: "model"}),
			agenttest.Text("Now I am here."),
		),
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	_, err = agent.Run(ctx, "hello?")
	fmt.Println(err)
	run, err := agent.Continue(ctx) // after the key was corrected
	if err != nil {
		panic(err)
	}
	record, err := run.Wait(ctx)
	fmt.Println(record.Answer, err)
	// Output:
	// model: auth
	// Now I am here. <nil>
}

// A budget is asked before each model call and each tool call.
func ExampleBudget() {
	used := agentkernel.Usage{Input: 900, Output: 100, Total: 1000}
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model:  agenttest.Script(agenttest.Calls("look").Usage(used), agenttest.Text("never said")),
		Tools:  []agentkernel.Tool{agentkernel.MustTool("look", "", func(context.Context, struct{}) (string, error) { return "", nil })},
		Budget: agentkernel.Budget{Tokens: 500},
	})
	if err != nil {
		panic(err)
	}
	record, err := agent.Run(context.Background(), "look around")
	fmt.Println(record.EndReason, errors.Is(err, agentkernel.KindLimit), record.Summary.Usage.Total)
	// Output: limit true 1000
}

// Another model gets the call that the first one has failed.
func ExampleConfig_fallbacks() {
	down := &agentkernel.Error{Kind: agentkernel.KindQuota, Op: "model"}
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model:     agenttest.Script(agenttest.Fail(down)),
		Fallbacks: []agentkernel.ChatModel{agenttest.Script(agenttest.Text("The other one answers."))},
	})
	if err != nil {
		panic(err)
	}
	agentkernel.On(agent, func(e agentkernel.Retrying) { fmt.Println("retry after:", e.RetryInfo.Err) })
	record, err := agent.Run(context.Background(), "hi")
	fmt.Println(record.Answer, err)
	// Output:
	// retry after: model: quota
	// The other one answers. <nil>
}

// The state of an agent is a fold of its events: a recording gives the same.
func ExampleReduce() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok").Usage(agentkernel.Usage{Total: 7}))})
	if err != nil {
		panic(err)
	}
	var replayed agentkernel.AgentState
	agent.Subscribe(func(ev agentkernel.Event) { replayed = agentkernel.Reduce(replayed, ev) })
	_, _ = agent.Run(context.Background(), "hi")
	fmt.Println(len(replayed.Messages), replayed.TotalUsage.Total, replayed.IsRunning)
	// Output: 2 7 false
}

// A program's own message stands in the history, and models do not see it.
type note struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

func (n note) GetRole() agentkernel.Role { return "note" }
func (n note) GetTimestamp() time.Time   { return n.At }
func (n note) TextContent() string       { return n.Text }
func (n note) ThinkingContent() string   { return "" }
func (n note) HasToolCalls() bool        { return false }

// With a name for its type it also survives a journal and the wire.
func ExampleRegisterMessage() {
	agentkernel.RegisterMessage[note]("example.note")
	model := agenttest.Script(agenttest.Text("Hello."))
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
	if err != nil {
		panic(err)
	}
	run, err := agent.PromptMessages(context.Background(), note{Text: "the user came back"}, agentkernel.UserMessage("hi"))
	if err != nil {
		panic(err)
	}
	_, _ = run.Wait(context.Background())
	fmt.Println("history:", len(agent.Messages()), "seen by the model:", len(model.Requests()[0].Messages))
	// Output: history: 3 seen by the model: 1
}
