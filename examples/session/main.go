// Session is a conversation that is stored as it happens and goes on after the death of its
// process. Package session in the folder of that name is the product layer that does it; this
// program prints each of its events as a line.
//
//	go run -C examples/session .                        # a new session, in session.db
//	go run -C examples/session . -list
//	go run -C examples/session . -session ID -prompt "From 2026-01-01 to 2026-02-01?"
//	go run -C examples/session . -resume                # the last one, where it was interrupted
//
// A run takes half a second. One that is to be killed takes longer with -pace 1s; it is the process
// named session that dies then, such as by pkill -9 -x session, since go run is only its parent.
//
// It needs no endpoint: a scripted model fails once, thinks, calls tools and answers. With
// OPENAI_API_KEY or OPENAI_BASE_URL set (and OPENAI_MODEL) it asks that endpoint.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
)

// Exit codes.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitAborted = 130 // as shells show an interrupt
)

// main stops the run on an interrupt, and the program on a second one.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

const defaultPrompt = "My name is Ada. How many days are there from 2026-03-01 to 2026-12-24?"

// options are the flags.
type options struct {
	db, id, prompt, goal string
	resume, list, json   bool
	pace                 time.Duration
}

// run is main in a given world. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("session", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.db, "db", "session.db", "the file that keeps the sessions; "+session.InMemory+" keeps nothing")
	flags.StringVar(&o.id, "session", "", "the session to open (default a new one; with -resume the last one)")
	flags.BoolVar(&o.resume, "resume", false, "go on with what was interrupted, then say -prompt if it is given")
	flags.BoolVar(&o.list, "list", false, "list the sessions")
	flags.StringVar(&o.prompt, "prompt", "", "what to say")
	flags.StringVar(&o.goal, "goal", "", "what the session is for")
	flags.BoolVar(&o.json, "json", false, "print the events as JSON")
	flags.DurationVar(&o.pace, "pace", 15*time.Millisecond, "time between two words of the scripted model")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "session: unexpected argument %q; say it with -prompt\n", flags.Arg(0))
		return exitUsage
	}
	if o.prompt == "" && !o.resume {
		o.prompt = defaultPrompt
	}
	switch err := o.run(ctx, getenv, stdout); {
	case errors.Is(err, agentkernel.KindCanceled):
		fmt.Fprintln(stderr, "session: interrupted")
		return exitAborted
	case err != nil:
		fmt.Fprintf(stderr, "session: %s\n", demo.OneLine(err))
		return exitFailed
	}
	return 0
}

func (o *options) run(ctx context.Context, getenv func(string) string, stdout io.Writer) (err error) {
	store, err := session.OpenSQLite(ctx, o.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if o.list {
		return list(ctx, store, stdout)
	}
	if o.resume && o.id == "" {
		if o.id, err = last(ctx, store); err != nil {
			return err
		}
	}
	cfg, err := config(getenv, o.pace)
	if err != nil {
		return err
	}
	cfg.Store, cfg.ID = store, o.id
	s, err := session.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }() // no run is active
	s.Subscribe(o.show(stdout))
	if err := o.talk(ctx, s, stdout); err != nil {
		return err
	}
	if o.json {
		return nil
	}
	return summarize(ctx, s, stdout)
}

// talk makes the runs that the flags ask for.
func (o *options) talk(ctx context.Context, s *session.Session, stdout io.Writer) error {
	if o.goal != "" {
		if err := s.SetGoal(ctx, o.goal); err != nil {
			return err
		}
	}
	if o.resume {
		err := wait(s.Continue(ctx))
		switch {
		case errors.Is(err, agentkernel.ErrBadContinuation) || errors.Is(err, agentkernel.ErrNoMessages):
			if !o.json {
				fmt.Fprintln(stdout, "nothing was interrupted")
			}
		case err != nil:
			return err
		}
	}
	if o.prompt == "" {
		return nil
	}
	return wait(s.Prompt(ctx, o.prompt))
}

// wait waits for a run that was started, if it was. An abort comes by the context of the run.
func wait(run *agentkernel.Run, err error) error {
	if err == nil {
		_, err = run.Wait(context.Background())
	}
	return err
}

// show returns a subscriber that prints each event.
func (o *options) show(stdout io.Writer) func(session.SessionEvent) {
	if !o.json {
		return func(ev session.SessionEvent) { fmt.Fprintln(stdout, line(ev)) }
	}
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	return func(ev session.SessionEvent) {
		if err := enc.Encode(ev); err != nil {
			panic(err) // a session_error, which can be written
		}
	}
}

// last is the session that was used last.
func last(ctx context.Context, store session.Store) (string, error) {
	sessions, err := store.List(ctx)
	if err == nil && len(sessions) == 0 {
		err = errors.New("there is no session to resume")
	}
	if err != nil {
		return "", err
	}
	return sessions[0].ID, nil
}

func list(ctx context.Context, store session.Store, stdout io.Writer) error {
	sessions, err := store.List(ctx)
	if err != nil {
		return err
	}
	for _, info := range sessions {
		fmt.Fprintf(stdout, "%s  %s  %d messages  %q\n", info.ID, info.Updated.Format(time.DateTime), info.Messages, info.Name)
	}
	return nil
}
