package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// A conversation moves to another process as JSON. Package journal does that as it happens.
func ExampleAgent_Restore() {
	first, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("Hello Ada."))})
	if err != nil {
		panic(err)
	}
	if _, err := first.Run(context.Background(), "I am Ada."); err != nil {
		panic(err)
	}
	stored, err := json.Marshal(first.State())
	if err != nil {
		panic(err)
	}

	var state agentkernel.AgentState
	if err := json.Unmarshal(stored, &state); err != nil {
		panic(err)
	}
	second, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("You are Ada."))})
	if err != nil {
		panic(err)
	}
	if err := second.Restore(state); err != nil {
		panic(err)
	}
	record, err := second.Run(context.Background(), "Who am I?")
	fmt.Println(record.Answer, len(second.Messages()), err)
	// Output: You are Ada. 4 <nil>
}

// State is a snapshot that stays as it is. It may be taken at any time, also in a listener.
func ExampleAgent_State() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("Good morning.").Chunks(5))})
	if err != nil {
		panic(err)
	}
	var seen []agentkernel.AgentState
	agentkernel.On(agent, func(agentkernel.MessageUpdated) { seen = append(seen, agent.State()) })
	if _, err := agent.Run(context.Background(), "hi"); err != nil {
		panic(err)
	}
	for _, s := range seen {
		fmt.Printf("running=%t messages=%d %q\n", s.IsRunning, len(s.Messages), s.StreamMessage.TextContent())
	}
	s := agent.State()
	fmt.Println(s.IsRunning, len(s.Messages), s.StreamMessage)
	// Output:
	// running=true messages=1 "Good "
	// running=true messages=1 "Good morni"
	// running=true messages=1 "Good morning."
	// false 2 <nil>
}

// Settings change at any time and hold from the next turn on, here between two of one run.
func ExampleAgent_SetModel() {
	small := agenttest.Script(agenttest.Calls("escalate").Model("small"))
	large := agenttest.Script(agenttest.Text("It is done.").Model("large"))
	var agent *agentkernel.Agent
	escalate := agentkernel.MustTool("escalate", "Asks for a better model.", func(context.Context, struct{}) (string, error) {
		return "granted", agent.SetModel(large)
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: small, Tools: []agentkernel.Tool{escalate}})
	if err != nil {
		panic(err)
	}
	agentkernel.On(agent, func(e agentkernel.ModelResponded) {
		if m, ok := e.Message.(agentkernel.Message); ok {
			fmt.Println("turn", e.Turn, "by", m.Model)
		}
	})
	record, err := agent.Run(context.Background(), "Prove it.")
	fmt.Println(record.Answer, err)
	// Output:
	// turn 1 by small
	// turn 2 by large
	// It is done. <nil>
}

// What a run did, step by step, for an archive.
func ExampleRunRecord() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("look"), agenttest.Text("It is blue.")),
		Tools: []agentkernel.Tool{agentkernel.MustTool("look", "Looks.", func(context.Context, struct{}) (string, error) { return "blue", nil })},
	})
	if err != nil {
		panic(err)
	}
	record, err := agent.Run(context.Background(), "What colour is the sky?")
	if err != nil {
		panic(err)
	}
	for _, s := range record.Steps {
		if s.Kind == agentkernel.StepModel {
			fmt.Println("turn", s.Turn, "model")
			continue
		}
		fmt.Println("turn", s.Turn, s.Kind, s.Name, s.Cause)
	}
	fmt.Println(record.Status, record.EndReason, record.Summary.TurnCount, record.Summary.ToolCalls)
	// Output:
	// turn 1 model
	// turn 1 tool look ok
	// turn 2 model
	// completed stop 2 1
}
