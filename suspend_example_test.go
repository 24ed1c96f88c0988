package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// A gate that needs a person ends the run. What is asked is kept, here as the agent's state,
// and another process, tomorrow, goes on with the answer.
func ExampleSuspend() {
	newAgent := func(replies ...agenttest.Reply) *agentkernel.Agent {
		agent, err := agentkernel.NewAgent(agentkernel.Config{
			Model: agenttest.Script(replies...), // a real model in its place
			Tools: []agentkernel.Tool{agentkernel.MustTool("pay", "Pays a bill.", func(context.Context, struct{}) (string, error) {
				return "paid", nil
			})},
			Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "May I " + req.Call.Name + "?"})
			},
		})
		if err != nil {
			panic(err)
		}
		return agent
	}

	first := newAgent(agenttest.Calls("pay"))
	record, err := first.Run(context.Background(), "Pay the bill.")
	fmt.Println(record.EndReason, err)
	stored, err := json.Marshal(first.State()) // package journal writes it as it happens
	if err != nil {
		panic(err)
	}

	var state agentkernel.AgentState
	if err := json.Unmarshal(stored, &state); err != nil {
		panic(err)
	}
	second := newAgent(agenttest.Text("It is paid."))
	if err := second.Restore(state); err != nil {
		panic(err)
	}
	answers := make(map[string]agentkernel.GateDecision)
	for _, s := range second.State().Suspended {
		fmt.Println(s.Call.Name, "asks:", s.Ask.Text)
		answers[s.Call.ID] = agentkernel.GateDecision{Allow: true} // says a person
	}
	run, err := second.Resume(context.Background(), answers)
	if err != nil {
		panic(err)
	}
	record, err = run.Wait(context.Background())
	show(record.NewMessages)
	fmt.Println(record.EndReason, err)
	// Output:
	// suspended <nil>
	// pay asks: May I pay?
	// tool: paid
	// assistant: It is paid.
	// stop <nil>
}
