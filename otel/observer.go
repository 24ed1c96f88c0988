package otel

import (
	"context"
	"errors"
	"iter"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
)

// SchemaURL names the version of the semantic conventions that the telemetry follows.
const SchemaURL = semconv.SchemaURL

// ScopeName is the name of the instrumentation scope.
const ScopeName = "github.com/agentkernel-go/agentkernel/otel"

// Config says where telemetry goes and what is in it. Its zero value is usable.
type Config struct {
	// TracerProvider makes the spans. Nil means the global one at the time of New.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics. Nil means the global one at the time of New.
	MeterProvider metric.MeterProvider
	// SubAgents says more of the agents that agents ask, found by their Name, which is that of
	// agentkernel.SubAgent. One that is not listed is known by its name alone.
	SubAgents []Identity
	// CaptureContent records what was said: prompts, answers, thinking, system prompts, tool
	// definitions, arguments and results, as attributes of the spans, and the texts of errors.
	// It may hold personal data, and each chat carries the conversation so far.
	CaptureContent bool
	// MaxContentBytes bounds each attribute, and each text of an error, that CaptureContent
	// makes: of messages the newest that fit are kept, of other texts the beginning. Zero means
	// 65536; negative means no bound.
	MaxContentBytes int
}

const defaultMaxContentBytes = 64 << 10

// Identity says whose runs a subscription hears: what events do not tell. Empty fields are
// left out of the telemetry.
type Identity struct {
	// Name, ID and Description are the agent's.
	Name        string
	ID          string
	Description string
	// Provider is the gen_ai.provider.name, "openai" for example. Empty means "unknown".
	Provider string
	// Model is the name of the model that is asked; leave it empty where several are, by
	// Agent.SetModel or Config.Prepare. A call that went over to one of Config.Fallbacks is
	// shown without it. The name of the model that answers is on the events.
	Model string
	// ConversationID names the conversation; a sub-agent's runs have that of the run that
	// asked.
	ConversationID string
}

// Observer makes spans and metrics of the events of runs. Make one with [New]. It may serve
// any number of agents, and its methods may be called from any goroutine.
type Observer struct {
	cfg    Config
	tracer trace.Tracer
	meters instruments
}

// New returns an observer. The error is that of a MeterProvider which refuses an instrument.
func New(cfg Config) (*Observer, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.MaxContentBytes == 0 {
		cfg.MaxContentBytes = defaultMaxContentBytes
	}
	meters, err := newInstruments(cfg.MeterProvider.Meter(ScopeName, metric.WithSchemaURL(SchemaURL)))
	if err != nil {
		return nil, errors.Join(errors.New("otel: cannot make the instruments"), err)
	}
	return &Observer{
		cfg:    cfg,
		tracer: cfg.TracerProvider.Tracer(ScopeName, trace.WithSchemaURL(SchemaURL)),
		meters: meters,
	}, nil
}

// Subscribe observes every later run of the agent, and the current one from the next event
// on, until stop is called. The span in ctx, if there is one, is the parent of the runs'
// spans; ctx ending stops nothing. For a parent of its own for each run subscribe for that
// run, with the context of its request.
//
// It is a listener of the agent: see [agentkernel.Agent.Subscribe] for order and goroutine.
// stop ends the spans that are open, and may be called more than once and from any goroutine.
func (o *Observer) Subscribe(ctx context.Context, agent *agentkernel.Agent, who Identity) (stop func()) {
	listen, end := o.Listener(ctx, who)
	unsubscribe := agent.Subscribe(listen)
	return func() {
		unsubscribe()
		end()
	}
}

// Observe returns a loop over the events of a bare run that observes each of them before the
// body sees it:
//
//	for ev := range observer.Observe(ctx, agentkernel.AgentLoop(ctx, cfg, nil, prompt), who) { … }
//
// ctx is as in [Observer.Subscribe]. Leaving the loop early ends the spans that are open; the
// channel is then the caller's again. It is for one loop.
func (o *Observer) Observe(ctx context.Context, events <-chan agentkernel.Event, who Identity) iter.Seq[agentkernel.Event] {
	return func(yield func(agentkernel.Event) bool) {
		listen, stop := o.Listener(ctx, who)
		defer stop()
		for ev := range events {
			listen(ev)
			if !yield(ev) {
				return
			}
		}
	}
}

// Listener returns the function that observes events, one by one, for whatever brings them:
// [agentkernel.Agent.SubscribeAsync], a [agentkernel.Decoder], a channel. It may be called
// from several goroutines, each with runs of its own, and is told of a run and of that run's
// children in the order of their events. ctx and stop are as in [Observer.Subscribe]; after
// stop it does nothing.
func (o *Observer) Listener(ctx context.Context, who Identity) (listen func(agentkernel.Event), stop func()) {
	s := &stream{observer: o, ctx: ctx, who: who, runs: make(map[string]*run)}
	return s.listen, s.stop
}
