package agenttest_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// A scripted model calls a tool and answers; the checker proves that the stream of the run
// keeps the kernel's contract.
func Example() {
	model := agenttest.Script(
		agenttest.Thinking("I should look.").Call("c1", "weather", `{"city":"Bern"}`),
		agenttest.Text("Sunny.").Chunks(3),
	)
	weather := agentkernel.Tool{
		Name: "weather",
		Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
			return agentkernel.TextResult("sun"), nil
		},
	}
	cfg := agentkernel.Config{Model: model, Tools: []agentkernel.Tool{weather}}

	var events []agentkernel.Event
	for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("Weather?")) {
		events = append(events, ev)
	}
	fmt.Print(agenttest.Format(events))
	fmt.Println("contract:", agenttest.CheckRun(nil, events))
	// Output:
	// agent_start
	// turn_start 1
	// message_start user "Weather?"
	// message_end user "Weather?"
	// model_request messages=1 tools=1
	// message_start assistant thinking("I should look.")
	// message_update [0] thinking +"I should look." =14
	// message_update [1] call #1 weather +"{\"city\":\"Bern\"}" =15
	// message_end assistant tool_use thinking("I should look.") call(#1 weather {"city":"Bern"})
	// tool_exec_start #1 weather {"city":"Bern"}
	// tool_exec_end #1 weather {"city":"Bern"} ok "sun"
	// message_start tool #1 weather ok "sun"
	// message_end tool #1 weather ok "sun"
	// model_response assistant tool_use thinking("I should look.") call(#1 weather {"city":"Bern"}) results=1
	// turn_start 2
	// model_request messages=3 tools=1
	// message_start assistant "Sun"
	// message_update [0] text +"Sun" =3
	// message_update [0] text +"ny." =6
	// message_end assistant stop "Sunny."
	// model_response assistant stop "Sunny." results=0
	// agent_end stop turns=2 calls=1 errors=0 retries=0 usage(in=0 out=0 total=0) new=4
	// contract: <nil>
}
