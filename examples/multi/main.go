// Multi is an orchestrator that asks three agents at once. All that they say comes on the one
// stream of the orchestrator's run; the screen tells the runs apart, and shows in the end which
// run asked which.
//
// It needs no endpoint: scripted models play the agents. With OPENAI_API_KEY or OPENAI_BASE_URL
// set (and OPENAI_MODEL) that endpoint does.
package main

import (
	"context"
	"flag"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

func main() { demo.Exec(run) }

// run is main in a given world. It returns the exit code.
func run(ctx context.Context, env demo.Env) int {
	flags := flag.NewFlagSet("multi", flag.ContinueOnError)
	prompt := flags.String("prompt", "We begin on 2026-11-02. Can we release on 2026-12-24?", "what to ask")
	color := flags.Bool("color", env.Color, "color each run's lines")
	retries := flags.Int("retries", 3, "how often a failed model call is tried again")
	if code, ok := demo.Parse(flags, env); !ok {
		return code
	}
	model, err := demo.Endpoint(env.Getenv)
	if err == nil {
		err = ask(ctx, newTeam(model, *retries), *prompt, &screen{w: env.Stdout, color: *color})
	}
	return demo.ExitCode("multi", err, env)
}

// ask has the orchestrator of a team answer a prompt.
func ask(ctx context.Context, t team, prompt string, s *screen) error {
	cfg, err := t.orchestrator()
	if err != nil {
		return err
	}
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		return err
	}
	s.nameOf = t.nameOf
	agent.Subscribe(s.show)
	_, err = agent.Run(ctx, prompt)
	return err
}
