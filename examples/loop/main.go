// Loop is the hello example without an Agent: it ranges over the channel of AgentLoop, which
// keeps nothing and needs no listener.
package main

import (
	"context"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

func main() { demo.Main("loop", loop) }

func loop(ctx context.Context, cfg agentkernel.Config, prompt string, show func(agentkernel.Event)) error {
	var err error
	for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage(prompt)) {
		show(ev)
		if ev.Type == agentkernel.EventAgentEnd {
			err = ev.Err
		}
	}
	return err
}
