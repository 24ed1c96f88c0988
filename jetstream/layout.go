package jetstream

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
)

// layoutKey marks the streams of this package, with the version of what is in them.
const (
	layoutKey     = "agentkernel-layout"
	layoutVersion = "1"
)

// dedupWindow is how long a broker knows the ids of what it took. Records of a session do not
// depend on it: each names the one that it follows.
const dedupWindow = 2 * time.Minute

// askAge is how long a person may take to answer, and an answer is remembered.
const askAge = 30 * 24 * time.Hour

// Setup makes the streams of the installation that are not there yet, and brings the bounds of
// those that are to those of cfg. A stream that has one of their names and another layout is left
// as it is: *[LayoutError]. It may be called at each start, from any number of processes.
func Setup(ctx context.Context, nc *nats.Conn, cfg Config) error {
	b, err := newBus(nc, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.PublishWait, ErrUnavailable)
	defer cancel()
	for _, want := range b.cfg.streams() {
		if err := b.retry(ctx, func(ctx context.Context) error { return b.setUpStream(ctx, want) }); err != nil {
			return err
		}
	}
	return b.retry(ctx, b.setUpConsumer)
}

// streams is what the installation consists of.
func (cfg *Config) streams() []broker.StreamConfig {
	of := func(part string, more func(*broker.StreamConfig)) broker.StreamConfig {
		s := broker.StreamConfig{
			Name: cfg.stream(part), Subjects: []string{cfg.Name + "." + part + ".*"},
			Retention: broker.LimitsPolicy, Storage: broker.FileStorage, Discard: broker.DiscardNew,
			Replicas: cfg.Replicas, MaxBytes: -1, MaxMsgs: -1, MaxConsumers: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1,
			Duplicates: dedupWindow, AllowDirect: true,
			Metadata: map[string]string{layoutKey: layoutVersion},
		}
		if cfg.MaxBytes > 0 {
			s.MaxBytes = cfg.MaxBytes
		}
		more(&s)
		return s
	}
	return []broker.StreamConfig{
		of(streamWork, func(s *broker.StreamConfig) { s.Retention = broker.WorkQueuePolicy }),
		of(streamSessions, func(*broker.StreamConfig) {}),
		of(streamEvents, func(s *broker.StreamConfig) {
			s.Discard, s.MaxAge = broker.DiscardOld, cfg.EventAge
			s.Duplicates = min(dedupWindow, cfg.EventAge)
		}),
		of(streamControl, func(s *broker.StreamConfig) {
			s.MaxAge = cfg.ControlAge
			s.Duplicates = min(dedupWindow, cfg.ControlAge)
		}),
		of(streamAsks, func(s *broker.StreamConfig) {
			s.Subjects, s.MaxAge = []string{cfg.Name + "." + streamAsks + ".*.*"}, askAge
		}),
	}
}

func (b *bus) setUpStream(ctx context.Context, want broker.StreamConfig) error {
	s, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, broker.ErrStreamNotFound) {
		_, err = b.js.CreateStream(ctx, want)
		if errors.Is(err, broker.ErrStreamNameAlreadyInUse) { // just now, by another process
			s, err = b.js.Stream(ctx, want.Name)
		}
	}
	if err != nil || s == nil {
		return err
	}
	got := s.CachedInfo().Config
	if err := compareLayout(&got, &want); err != nil {
		return err
	}
	if got.MaxBytes == want.MaxBytes && got.MaxAge == want.MaxAge && got.Replicas == want.Replicas {
		return nil
	}
	got.MaxBytes, got.MaxAge, got.Replicas, got.Duplicates = want.MaxBytes, want.MaxAge, want.Replicas, want.Duplicates
	_, err = b.js.UpdateStream(ctx, got)
	return err
}

// compareLayout tells what of a stream is not as it must be.
func compareLayout(got, want *broker.StreamConfig) error {
	for _, f := range []struct {
		name      string
		got, want any
	}{
		{"the layout in its metadata", got.Metadata[layoutKey], want.Metadata[layoutKey]},
		{"Subjects", got.Subjects, want.Subjects},
		{"Retention", got.Retention, want.Retention},
		{"Discard", got.Discard, want.Discard},
		{"MaxMsgs", got.MaxMsgs, want.MaxMsgs},
		{"MaxMsgsPerSubject", got.MaxMsgsPerSubject, want.MaxMsgsPerSubject},
		{"AllowDirect", got.AllowDirect, want.AllowDirect},
	} {
		if !reflect.DeepEqual(f.got, f.want) {
			return &LayoutError{Stream: want.Name, Field: f.name, Got: f.got, Want: f.want}
		}
	}
	return nil
}

// setUpConsumer makes the one consumer that all workers share, or brings it to what cfg says.
func (b *bus) setUpConsumer(ctx context.Context) error {
	_, err := b.js.CreateOrUpdateConsumer(ctx, b.cfg.stream(streamWork), broker.ConsumerConfig{
		Durable: workers, AckPolicy: broker.AckExplicitPolicy, AckWait: b.cfg.AckWait,
		MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: 4096,
	})
	if err != nil {
		return fmt.Errorf("jetstream: the workers' consumer: %w", err)
	}
	return nil
}
