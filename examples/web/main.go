// Web is a conversation in a browser: one binary that serves a page, runs an Agent and
// streams its journal to every page that looks on, also to one that was loaded anew.
//
// What the page does can be done without it:
//
//	curl -N localhost:8080/events                          # the stream, by package sse
//	curl -d '{"text":"hello"}' localhost:8080/prompt       # 409 while a run is active
//	curl -d '{"text":"and cats"}' localhost:8080/steer
//	curl -X POST localhost:8080/abort
//
// It needs no endpoint: a scripted model thinks, calls a tool that reports its progress, and
// answers. With OPENAI_API_KEY or OPENAI_BASE_URL set (and OPENAI_MODEL) it asks that endpoint.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// main ends the server cleanly on an interrupt, and the program on a second one.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is main in a given world. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("web", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "127.0.0.1:8080", "where to listen")
	pace := flags.Duration("pace", 40*time.Millisecond, "time between two words of the scripted model")
	once := flags.Bool("check", false, "ask one prompt as the page would, on a free port, and end")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "web: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	visit := func(ctx context.Context, url string) error {
		fmt.Fprintln(stdout, "listening on", url)
		<-ctx.Done()
		return nil
	}
	if *once {
		*addr = "127.0.0.1:0"
		visit = func(ctx context.Context, url string) error { return check(ctx, url, stdout) }
	}
	model, err := demo.Endpoint(getenv)
	if model == nil {
		model = script(*pace)
	}
	if err == nil {
		err = serve(ctx, *addr, config(model, *pace), visit)
	}
	if err != nil {
		fmt.Fprintf(stderr, "web: %s\n", demo.OneLine(err))
		return 1
	}
	return 0
}

func config(model agentkernel.ChatModel, pace time.Duration) agentkernel.Config {
	return agentkernel.Config{
		Model:        model,
		SystemPrompt: "Answer briefly. Let the tools count.",
		Tools:        []agentkernel.Tool{primesTool(pace)},
	}
}

// serve serves a chat at addr for as long as visit takes, which gets the address, and a
// context that also ends when serving fails.
func serve(ctx context.Context, addr string, cfg agentkernel.Config, visit func(ctx context.Context, url string) error) error {
	c, err := newChat(cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { // ends with Shutdown, below; its end is waited for there
		served <- server.Serve(listener)
		stop()
	}()
	err = visit(ctx, "http://"+listener.Addr().String()+"/")
	c.close()
	shutdown(server)
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// shutdown lets the streams of a chat that is closed tell the rest, and cuts off who does not read.
func shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
