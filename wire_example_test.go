package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// The delta-only form of a message costs the bytes of its text; a Decoder makes the whole
// message of it again.
func ExampleEncoder() {
	model := agenttest.Script(agenttest.Text("Hello there.").Chunks(6))
	enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
	for ev := range agentkernel.AgentLoop(context.Background(), agentkernel.Config{Model: model}, nil, agentkernel.UserMessage("hi")) {
		record, err := enc.Encode(ev)
		if err != nil {
			panic(err)
		}
		// … the record goes over a wire …
		back, err := dec.Decode(record)
		if err != nil {
			panic(err)
		}
		if back.Type == agentkernel.EventMessageUpdate {
			var onWire struct {
				Seq     uint64          `json:"seq"`
				Delta   string          `json:"delta"`
				Message json.RawMessage `json:"message"`
			}
			if err := json.Unmarshal(record, &onWire); err != nil {
				panic(err)
			}
			fmt.Printf("on the wire: %q, %d bytes of message; rebuilt: %q\n", onWire.Delta, len(onWire.Message), back.Message.TextContent())
		}
	}
	fmt.Println("messages:", len(dec.State().Messages))
	// Output:
	// on the wire: "Hello ", 0 bytes of message; rebuilt: "Hello "
	// on the wire: "there.", 0 bytes of message; rebuilt: "Hello there."
	// messages: 2
}
