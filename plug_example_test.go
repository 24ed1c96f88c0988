package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// A model is one method that yields increments; the kernel puts them together. This one asks
// nobody.
func ExampleChatModelFunc() {
	model := agentkernel.ChatModelFunc(func(_ context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			prompt := req.Messages[len(req.Messages)-1].TextContent()
			for word := range strings.FieldsSeq(prompt) {
				if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: strings.ToUpper(word) + "!"}, nil) {
					return
				}
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: agentkernel.StopReasonStop}, nil)
		}
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
	if err != nil {
		panic(err)
	}
	record, err := agent.Run(context.Background(), "good morning")
	fmt.Println(record.Answer, err)
	// Output: GOOD!MORNING! <nil>
}

// A tool is a struct. Everything but its name and its function is optional: here its schema, its
// name for people, what it would do, and that it changes nothing.
func ExampleTool() {
	add := agentkernel.Tool{
		Name:        "add",
		Description: "Adds two numbers.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`),
		Label:       "Addition",
		ReadOnly:    agentkernel.Always,
		Preview: func(_ context.Context, args json.RawMessage) (agentkernel.ProgressPayload, error) {
			return agentkernel.ProgressPayload{Text: "would add " + string(args)}, nil
		},
		Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			var in struct{ A, B float64 }
			if err := json.Unmarshal(args, &in); err != nil {
				return agentkernel.ToolResult{}, err
			}
			return agentkernel.TextResult(fmt.Sprint(in.A + in.B)), nil
		},
	}
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Call("1", "add", `{"a":2,"b":3}`).Call("2", "add", `{"a":2}`), // a call that does not fit the schema
			agenttest.Text("It is 5."),
		),
		Tools: []agentkernel.Tool{add},
	})
	if err != nil {
		panic(err)
	}
	agentkernel.On(agent, func(e agentkernel.ToolProgressed) { fmt.Println(e.ToolLabel, e.Progress.Text) })
	record, err := agent.Run(context.Background(), "What is 2 + 3?")
	show(record.NewMessages)
	fmt.Println(err)
	// Output:
	// Addition would add {"a":2,"b":3}
	// user: What is 2 + 3?
	// assistant: (calls a tool)
	// tool: 5
	// tool: The call was not run: the arguments do not fit the schema:
	// - /b: expected a number, which is required, got nothing (add "b")
	// assistant: It is 5.
	// <nil>
}

// Arguments that do not fit may be made better before the model is told.
func ExampleConfig_repairToolCall() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Call("1", "greet", `{"name":"Ada"`), agenttest.Text("Done.")),
		Tools: []agentkernel.Tool{agentkernel.MustTool("greet", "Greets.", func(_ context.Context, in struct {
			Name string `json:"name"`
		}) (string, error) {
			return "Hello " + in.Name, nil
		})},
		RepairToolCall: func(_ context.Context, req agentkernel.RepairRequest) (json.RawMessage, error) {
			return json.RawMessage(req.Call.RawArgs + "}"), nil
		},
	})
	if err != nil {
		panic(err)
	}
	agentkernel.On(agent, func(e agentkernel.ToolEnded) { fmt.Println(e.Result.TextContent(), e.Result.Cause) })
	_, err = agent.Run(context.Background(), "Greet Ada.")
	fmt.Println(err)
	// Output:
	// Hello Ada ok
	// <nil>
}

// lastTwo keeps the last two messages of a history that a model refused, or that is to be
// compacted.
type lastTwo struct{}

func (lastTwo) Project(context.Context, agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	return agentkernel.ContextResult{}, nil // no change
}

func (lastTwo) Recover(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
	return agentkernel.ContextResult{Messages: req.History[max(len(req.History)-2, 0):]}, nil
}

// A context manager decides what of a history goes on. Compact asks it for an idle agent; a model
// that refuses a request as too long does so in a run. [agentkernel.Compactor] is one for most
// purposes.
func ExampleAgent_Compact() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(), ContextManager: lastTwo{}})
	if err != nil {
		panic(err)
	}
	if err := agent.SetMessages(agentkernel.UserMessage("one"), agentkernel.UserMessage("two"), agentkernel.UserMessage("three")); err != nil {
		panic(err)
	}
	changed, err := agent.Compact(context.Background(), "")
	fmt.Println(changed, err)
	show(agent.Messages())
	// Output:
	// true <nil>
	// user: two
	// user: three
}
