// Cli is a live command line: it asks one prompt and shows each step of the run as it happens.
//
// It needs no endpoint: a scripted model has a calculator work out what stands in the prompt.
// With OPENAI_API_KEY or OPENAI_BASE_URL set (and OPENAI_MODEL) it asks that endpoint. With
// -journal it keeps the conversation in a file, and goes on with it the next time.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

func main() { demo.Exec(run) }

// run is main in a given world. It returns the exit code.
func run(ctx context.Context, env demo.Env) int {
	flags := flag.NewFlagSet("cli", flag.ContinueOnError)
	prompt := flags.String("prompt", "What is 6 * 7?", "what to ask")
	path := flags.String("journal", "", "a file that keeps the conversation")
	retries := flags.Int("retries", 3, "how often a failed model call is tried again")
	if code, ok := demo.Parse(flags, env); !ok {
		return code
	}
	model, err := demo.Endpoint(env.Getenv)
	if model == nil {
		model = demo.Script(15*time.Millisecond, reply)
	}
	if err == nil {
		err = ask(ctx, config(model, *retries), *prompt, *path, env.Stdout, env.Color)
	}
	return demo.ExitCode("cli", err, env)
}

func config(model agentkernel.ChatModel, retries int) agentkernel.Config {
	if retries == 0 {
		retries = -1 // none; zero means the kernel's default
	}
	return agentkernel.Config{
		Model:        model,
		SystemPrompt: "Answer briefly. Let the calculator do all arithmetic.",
		Tools:        []agentkernel.Tool{calculator()},
		Retry:        agentkernel.RetryPolicy{MaxRetries: retries},
	}
}

// ask runs one prompt. Whoever wants to know something of the run is an observer of the agent,
// of which the run knows nothing; each event comes to them in this order.
func ask(ctx context.Context, cfg agentkernel.Config, prompt, path string, w io.Writer, terminal bool) (err error) {
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		return err
	}
	showSteps(agent, w)
	countTokens(agent, w, terminal)
	if path != "" {
		closeJournal, failed := keepJournal(agent, path)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, closeJournal()) }()
	}
	_, err = agent.Run(ctx, prompt)
	return err
}
