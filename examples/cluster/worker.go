package main

import (
	"context"
	"io"
	"iter"
	"os"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/nats-io/nats.go"
)

// work is a worker until ctx or the standard input ends.
func work(ctx context.Context, o options, stdin io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // ends with the process at the latest, as the input does
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	model, err := demo.Endpoint(os.Getenv)
	if err != nil {
		return err
	}
	if model == nil {
		model = signed(o.worker, demo.Script(o.pace, story))
	}
	nc, err := nats.Connect(o.broker, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	w, err := jetstream.NewWorker(nc, jetstream.WorkerConfig{
		Config: config, Name: o.worker,
		Agent: func(context.Context, string) (agentkernel.Config, error) {
			return agentkernel.Config{Model: model, SystemPrompt: "Answer in a few sentences."}, nil
		},
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// signed is a model that names the worker which it speaks for.
func signed(name string, model agentkernel.ChatModel) agentkernel.ChatModel {
	return agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for ev, err := range model.Stream(ctx, req) {
				ev.Model = name
				if !yield(ev, err) {
					return
				}
			}
		}
	})
}

// story is the model that needs no endpoint: whatever it is told, it says the same.
func story(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	return demo.End(req, demo.Text("A story, then. Two workers sat by one queue. One of them told a story, word by word, "+
		"and everyone listened. Then the lights went out. The other one looked up, found what had been said and kept, "+
		"and told the story again from where it was sure. Nobody had to ask twice. That is the end of it."))
}
