package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// show prints who said what.
func show(messages []agentkernel.AgentMessage) {
	for _, m := range messages {
		text := m.TextContent()
		if text == "" {
			text = "(calls a tool)"
		}
		fmt.Printf("%s: %s\n", m.GetRole(), text)
	}
}

// A message that arrives while the agent works is said before the model is asked again.
func ExampleAgent_Steer() {
	var agent *agentkernel.Agent
	search := agentkernel.MustTool("search", "Searches.", func(context.Context, struct{}) (string, error) {
		return "nothing yet", agent.Steer(agentkernel.UserMessage("Look in the attic instead.")) // a person types
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("search"), agenttest.Text("To the attic.")), // a real model in its place
		Tools: []agentkernel.Tool{search},
	})
	if err != nil {
		panic(err)
	}
	record, err := agent.Run(context.Background(), "Find my keys.")
	show(record.NewMessages)
	fmt.Println(record.EndReason, err)
	// Output:
	// user: Find my keys.
	// assistant: (calls a tool)
	// tool: nothing yet
	// user: Look in the attic instead.
	// assistant: To the attic.
	// stop <nil>
}

// A follow-up waits until the run would stop. The queue belongs to the Config, so that a bare
// loop has it too.
func ExampleQueue() {
	q := &agentkernel.Queue{Mode: agentkernel.QueueOneAtATime}
	if err := q.Push(agentkernel.UserMessage("Now in French."), agentkernel.UserMessage("And in Latin.")); err != nil {
		panic(err)
	}
	events := agentkernel.AgentLoop(context.Background(), agentkernel.Config{
		Model:     agenttest.Script(agenttest.Text("Hello"), agenttest.Text("Bonjour"), agenttest.Text("Salve")),
		FollowUps: q,
	}, nil, agentkernel.UserMessage("Greet me."))
	record, err := agentkernel.Collect(events)
	show(record.NewMessages)
	fmt.Println(len(q.Items()), err)
	// Output:
	// user: Greet me.
	// assistant: Hello
	// user: Now in French.
	// assistant: Bonjour
	// user: And in Latin.
	// assistant: Salve
	// 0 <nil>
}

// An attempt that fails is taken back and tried again; each further attempt is announced.
func ExampleRetryPolicy() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Text("Once upon a").EndsWithoutDone(),
			agenttest.Text("Once upon a time."),
		),
		Retry: agentkernel.RetryPolicy{MaxRetries: 5, BaseDelay: -1},
	})
	if err != nil {
		panic(err)
	}
	agent.Subscribe(func(ev agentkernel.Event) {
		switch ev.Type {
		case agentkernel.EventMessageDiscard:
			fmt.Printf("forget %q\n", ev.Message.TextContent())
		case agentkernel.EventRetry:
			e, _ := errors.AsType[*agentkernel.Error](ev.RetryInfo.Err)
			fmt.Printf("attempt %d of %d failed: %s\n", ev.RetryInfo.Attempt, 1+ev.RetryInfo.MaxRetries, e.Kind)
		}
	})
	record, err := agent.Run(context.Background(), "Tell me a story.")
	fmt.Println(record.Answer, record.Summary.Retries, err)
	// Output:
	// forget "Once upon a"
	// attempt 1 of 6 failed: stream_truncated
	// Once upon a time. 1 <nil>
}

// Commit stores each message before it takes effect, so that what was stored is enough to go
// on after a crash.
func ExampleConfig_commit() {
	var store []string // a file, a database
	pay := agentkernel.MustTool("pay", "Pays the bill.", func(context.Context, struct{}) (string, error) {
		fmt.Println("paying with", len(store), "messages stored")
		return "paid", nil
	})
	_, err := agentkernel.Collect(agentkernel.AgentLoop(context.Background(), agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("pay"), agenttest.Text("Done.")),
		Tools: []agentkernel.Tool{pay},
		Commit: func(_ context.Context, m agentkernel.AgentMessage) error {
			if m.GetRole() == agentkernel.RoleTool {
				return errors.New("the disk is full") // as if the process died here
			}
			raw, err := json.Marshal(m)
			store = append(store, string(raw))
			return err
		},
	}, nil, agentkernel.UserMessage("Pay my bill.")))
	fmt.Println(err)

	var history []agentkernel.AgentMessage
	for _, raw := range store {
		var m agentkernel.Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			panic(err)
		}
		history = append(history, m)
	}
	record, err := agentkernel.Collect(agentkernel.AgentLoop(context.Background(), agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("I may have paid already; let me check.")),
		Tools: []agentkernel.Tool{pay},
	}, history))
	show(record.NewMessages)
	fmt.Println(err)
	// Output:
	// paying with 2 messages stored
	// hook Commit: commit: the disk is full
	// tool: The call was interrupted. It may have had effects.
	// assistant: I may have paid already; let me check.
	// <nil>
}

// A stop guard is asked whether the run may end, and can send the model back to work.
func ExampleStopDecision() {
	tests := []string{"2 tests fail", "all tests pass"}
	record, err := agentkernel.Collect(agentkernel.AgentLoop(context.Background(), agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("I think it works."), agenttest.Text("Now it does.")),
		StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			report := tests[0]
			tests = tests[1:]
			if strings.Contains(report, "fail") {
				return agentkernel.StopDecision{Action: agentkernel.StopGoOn, Message: agentkernel.UserMessage(report)}, nil
			}
			return agentkernel.StopDecision{}, nil
		},
	}, nil, agentkernel.UserMessage("Fix the bug.")))
	show(record.NewMessages)
	fmt.Println(record.EndReason, err)
	// Output:
	// user: Fix the bug.
	// assistant: I think it works.
	// user: 2 tests fail
	// assistant: Now it does.
	// stop <nil>
}

// Prepare changes what one model call is asked; nothing of it is stored.
func ExampleConfig_prepare() {
	model := agenttest.Script(agenttest.Text("It is noon."))
	record, err := agentkernel.Collect(agentkernel.AgentLoop(context.Background(), agentkernel.Config{
		Model: model,
		Prepare: func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			view := append(req.History, agentkernel.UserMessage("(The clock shows 12:00.)"))
			return agentkernel.PrepareResult{Messages: view, ThinkingLevel: agentkernel.ThinkingLow}, nil
		},
	}, nil, agentkernel.UserMessage("What time is it?")))
	fmt.Println("the model saw", len(model.Requests()[0].Messages), "messages")
	show(record.NewMessages)
	fmt.Println(err)
	// Output:
	// the model saw 2 messages
	// user: What time is it?
	// assistant: It is noon.
	// <nil>
}

// A Compactor keeps the history within the model's window. What it does is visible.
func ExampleCompactor() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Text("Pages 1 to 9.")),
		ContextManager: &agentkernel.Compactor{
			Window:     400,
			KeepRecent: 20,
			Model:      agenttest.Script(agenttest.Text("The user reads a book aloud.")), // a cheap model
		},
	})
	if err != nil {
		panic(err)
	}
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventContext && ev.Turn > 0 {
			fmt.Println(ev.Context.Reason, ev.Context.TokensBefore > 2*ev.Context.TokensAfter)
		}
	})
	var book []agentkernel.AgentMessage
	for range 9 {
		book = append(book, agentkernel.UserMessage(strings.Repeat("A page. ", 25)))
	}
	if err := agent.SetMessages(book...); err != nil {
		panic(err)
	}
	if _, err := agent.Run(context.Background(), "Where were we?"); err != nil {
		panic(err)
	}
	show(agent.Messages())
	// Output:
	// projected true
	// user: Summary of the conversation so far:
	// The user reads a book aloud.
	// user: Where were we?
	// assistant: Pages 1 to 9.
}

// While runs are held none starts, so that what the agent works on can be changed in peace.
func ExampleAgent_HoldRuns() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("Hello."))})
	if err != nil {
		panic(err)
	}
	release, err := agent.HoldRuns(context.Background()) // waits for the active run
	if err != nil {
		panic(err)
	}
	_, err = agent.Run(context.Background(), "Hi.")
	fmt.Println(err)
	release()
	record, err := agent.Run(context.Background(), "Hi.")
	fmt.Println(record.Answer, err)
	// Output:
	// agentkernel: runs are held
	// Hello. <nil>
}

// A history that others wrote is mended as a provider wants it.
func ExampleRepairHistory() {
	call := agentkernel.ContentBlock{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "1", Name: "pay", Args: json.RawMessage(`{}`)}}
	history := []agentkernel.AgentMessage{
		agentkernel.UserMessage("Pay my bill."),
		agentkernel.Message{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{call}},
		agentkernel.UserMessage("Hello?"),
	}
	for _, p := range agentkernel.ValidateHistory(history) {
		fmt.Printf("message %d: %s\n", p.Index, p.Problem)
	}
	show(agentkernel.RepairHistory(history))
	// Output:
	// message 1: the call "1" has no result
	// user: Pay my bill.
	// assistant: (calls a tool)
	// tool: The call was interrupted. It may have had effects.
	// user: Hello?
}

// Inject delivers a message whatever the agent is doing.
func ExampleAgent_Inject() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("Thank you."))})
	if err != nil {
		panic(err)
	}
	got, err := agent.Inject(context.Background(), agentkernel.UserMessage("The build has finished."))
	if err != nil {
		panic(err)
	}
	fmt.Println(got.Disposition)
	record, err := got.Run.Wait(context.Background())
	fmt.Println(record.Answer, err)
	// Output:
	// resumed
	// Thank you. <nil>
}
