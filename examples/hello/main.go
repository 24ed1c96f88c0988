// Hello runs one prompt through an Agent and shows the run as it happens.
//
// It needs no endpoint: a scripted model thinks, calls a tool and answers. With
// OPENAI_API_KEY or OPENAI_BASE_URL set (and OPENAI_MODEL) it asks that endpoint.
package main

import (
	"context"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

func main() { demo.Main("hello", hello) }

func hello(ctx context.Context, cfg agentkernel.Config, prompt string, show func(agentkernel.Event)) error {
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		return err
	}
	agent.Subscribe(show)
	_, err = agent.Run(ctx, prompt)
	return err
}
