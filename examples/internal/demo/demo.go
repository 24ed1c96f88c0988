// Package demo is what the examples have in common: a model that needs no endpoint, a tool, a
// printer of events, and what a page in a browser needs besides. Each example adds how it runs them.
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

// Main is the main function of an example that does no more than run a prompt.
func Main(name string, example Example) {
	Exec(func(ctx context.Context, env Env) int { return Run(ctx, name, example, env) })
}

// Exec calls run with the world of the process and ends the process with the code that it
// returns. An interrupt ends its context, a second one the process.
func Exec(run func(ctx context.Context, env Env) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, Env{
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
	prompt := flags.String("prompt", defaultPrompt, "what to ask")
	if code, ok := Parse(flags, env); !ok {
		return code
	}
	return ExitCode(name, run(ctx, example, *prompt, env), env)
}

// Parse parses the arguments, which must all be flags. Where it returns false the program has
// said why, and ends with code.
func Parse(flags *flag.FlagSet, env Env) (code int, ok bool) {
	flags.SetOutput(env.Stderr)
	switch err := flags.Parse(env.Args); {
	case errors.Is(err, flag.ErrHelp):
		return 0, false
	case err != nil:
		return exitUsage, false
	case flags.NArg() > 0:
		fmt.Fprintf(env.Stderr, "%s: unexpected argument %q; ask with -prompt\n", flags.Name(), flags.Arg(0))
		return exitUsage, false
	}
	return 0, true
}

// ExitCode says what a run ended with, on one line, and returns the exit code.
func ExitCode(name string, err error, env Env) int {
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
