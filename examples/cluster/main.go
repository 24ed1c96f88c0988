// Cluster is a conversation that outlives the process which runs it: one command starts a
// broker, two workers as processes of their own, and a page. Kill a worker from a second terminal
// while text streams, and the page goes on: the other one takes the session over. The terminal says
// how to kill each of them. It does not say which one speaks; where the text just goes on, it was
// the other one, and a new worker stands in its place.
//
// With -check it does all of that by itself, and ends.
//
// It needs no endpoint: a scripted model tells a story. With OPENAI_API_KEY or OPENAI_BASE_URL set
// (and OPENAI_MODEL) it asks that endpoint.
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
	"syscall"
	"time"

	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/jetstream"
)

// config is the same for all of it. A worker that is silent for a second counts as dead.
var config = jetstream.Config{AckWait: time.Second}

// main ends everything cleanly on an interrupt, and the program on a second one.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// options are the command's.
type options struct {
	addr, dir, worker, broker string
	pace                      time.Duration
	check                     bool
}

// run is main in a given world. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8080", "where the page is")
	flags.StringVar(&o.dir, "dir", "", "where the broker keeps its streams; a temporary one if empty")
	flags.DurationVar(&o.pace, "pace", 80*time.Millisecond, "time between two words of the scripted model")
	flags.BoolVar(&o.check, "check", false, "ask as the page would, kill a worker while it speaks, and end")
	flags.StringVar(&o.worker, "worker", "", "be the worker of that name, until the standard input ends; the command starts these itself")
	flags.StringVar(&o.broker, "broker", "", "the worker's broker")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "cluster: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	var err error
	if o.worker != "" {
		err = work(ctx, o, stdin)
	} else {
		err = cluster(ctx, o, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "cluster: %s\n", demo.OneLine(err))
		return 1
	}
	return 0
}

// cluster runs the broker, the workers and the page until ctx ends, or the check is done.
func cluster(ctx context.Context, o options, stdout io.Writer) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "agentkernel-cluster-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	broker, err := jetstream.StartEmbedded(o.dir, jetstream.EmbeddedConfig{Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer broker.Close()
	nc, err := broker.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := jetstream.Setup(ctx, nc, config); err != nil {
		return err
	}
	client, err := jetstream.NewClient(nc, config)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) {
		if !o.check {
			fmt.Fprintf(stdout, format+"\n", args...)
		}
	}
	crew, err := hire(2, broker.URL(), o.pace, say)
	if err != nil {
		return err
	}
	defer crew.close()
	if o.check {
		o.addr = "127.0.0.1:0"
	}
	return serve(ctx, o.addr, client, func(ctx context.Context, url string) error {
		if o.check {
			return check(ctx, url, crew, stdout)
		}
		say("the page is at %s", url)
		<-ctx.Done()
		return nil
	})
}

// serve serves the page at addr for as long as visit takes.
func serve(ctx context.Context, addr string, client *jetstream.Client, visit func(ctx context.Context, url string) error) error {
	web, err := newSite(client)
	if err != nil {
		return err
	}
	defer web.front.Close()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: web.handler(), ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { // ends with Close, below; its end is waited for there
		served <- server.Serve(listener)
		stop()
	}()
	err = visit(ctx, "http://"+listener.Addr().String()+"/")
	web.front.Close()
	_ = server.Close()
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
