// Package demo is what the examples have in common: a model that needs no endpoint, a tool,
// and a printer of events. Each example adds how it runs them.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/agentkernel-go/agentkernel"
)

// Example runs one prompt on cfg and hands each event to show, in its order. It returns the
// run's error.
type Example func(ctx context.Context, cfg agentkernel.Config, prompt string, show func(agentkernel.Event)) error

// Env is the world around an example.
type Env struct {
	Args           []string
	Getenv         func(string) string
	Stdout, Stderr io.Writer
	// Color is whether Stdout shows ANSI styles.
	Color bool
}

// Exit codes.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitAborted = 130 // as shells show an interrupt
)

// Main is the main function of an example. An interrupt aborts the run, a second one the
// program.
func Main(name string, example Example) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, name, example, Env{
		Args:   os.Args[1:],
		Getenv: os.Getenv,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Color:  os.Getenv("NO_COLOR") == "" && isTerminal(os.Stdout),
	}))
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const defaultPrompt = "How many days are there from 2026-03-01 to 2026-12-24?"

// Run is Main in a given world. It returns the exit code.
func Run(ctx context.Context, name string, example Example, env Env) int {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	prompt := flags.String("prompt", defaultPrompt, "what to ask")
	switch err := flags.Parse(env.Args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(env.Stderr, "%s: unexpected argument %q; ask with -prompt\n", name, flags.Arg(0))
		return exitUsage
	}
	err := run(ctx, example, *prompt, env)
	switch {
	case errors.Is(err, agentkernel.KindCanceled):
		fmt.Fprintf(env.Stderr, "%s: interrupted\n", name)
		return exitAborted
	case err != nil:
		fmt.Fprintf(env.Stderr, "%s: %s\n", name, OneLine(err))
		return exitFailed
	}
	return 0
}

func run(ctx context.Context, example Example, prompt string, env Env) error {
	model, err := chooseModel(env.Getenv)
	if err != nil {
		return err
	}
	p := &printer{w: env.Stdout, color: env.Color}
	p.line(plain, prompt)
	return example(ctx, agentkernel.Config{
		Model:        model,
		SystemPrompt: "Answer briefly. Let the tools count.",
		Tools:        []agentkernel.Tool{Tool()},
	}, prompt, p.show)
}
