package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
)

// bus is how workers and clients write and read.
type bus struct {
	nc  *nats.Conn
	js  broker.JetStream
	cfg Config

	mu      sync.Mutex
	streams map[string]broker.Stream // handles, by name
}

// stream is a handle of a stream, for reading.
func (b *bus) stream(ctx context.Context, part string) (broker.Stream, error) {
	name := b.cfg.stream(part)
	b.mu.Lock()
	s := b.streams[name]
	b.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[name] = s
	return s, nil
}

func newBus(nc *nats.Conn, cfg Config) (*bus, error) {
	if nc == nil {
		return nil, errors.New("jetstream: there is no connection")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	js, err := broker.New(nc, broker.WithDefaultTimeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	return &bus{nc: nc, js: js, cfg: cfg, streams: make(map[string]broker.Stream)}, nil
}

// attemptTime bounds one attempt of a write or a read, behind which another one follows.
const attemptTime = 3 * time.Second

// retry calls try until it succeeds, fails for good, or ctx or Config.PublishWait ends.
func (b *bus) retry(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.PublishWait, ErrUnavailable)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		attempt, done := context.WithTimeout(ctx, attemptTime)
		err := try(attempt)
		done()
		if err == nil {
			return nil
		}
		if foreign, ok := errors.AsType[*LayoutError](err); ok {
			return foreign
		}
		meaning, transient := classify(err)
		if !transient {
			return meaning
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, ErrUnavailable) {
				return fmt.Errorf("%w: %w", cause, meaning)
			}
			return meaning
		case <-time.After(wait):
		}
	}
}

// anywhere is for records that may follow any other.
const anywhere = ^uint64(0)

// publish writes a record and waits until it is kept. id makes a record that was tried twice
// one. Where after is not anywhere, the record must follow that one of its subject (0: be the
// first), or it is ErrFenced. It returns the record's place in its stream.
func (b *bus) publish(ctx context.Context, part string, msg *nats.Msg, id string, after uint64) (seq uint64, err error) {
	opts := []broker.PublishOpt{
		broker.WithMsgID(id), broker.WithExpectStream(b.cfg.stream(part)), broker.WithRetryAttempts(0),
	}
	if after != anywhere {
		opts = append(opts, broker.WithExpectLastSequencePerSubject(after))
	}
	tried := false
	err = b.retry(ctx, func(ctx context.Context) error {
		ack, err := b.js.PublishMsg(ctx, msg, opts...)
		if err == nil {
			seq = ack.Sequence
			return nil
		}
		if meaning, _ := classify(err); tried && errors.Is(meaning, ErrFenced) {
			// It may have been taken by an attempt whose answer was lost.
			last, lastErr := b.last(ctx, part, msg.Subject)
			switch {
			case lastErr != nil:
				return lastErr
			case last != nil && last.Header.Get(broker.MsgIDHeader) == id:
				seq = last.Sequence
				return nil
			}
		}
		tried = true
		return err
	})
	return seq, err
}

// last is the last record of a subject, nil where there is none.
func (b *bus) last(ctx context.Context, part, subject string) (*broker.RawStreamMsg, error) {
	s, err := b.stream(ctx, part)
	if err != nil {
		return nil, err
	}
	return found(s.GetLastMsgForSubject(ctx, subject))
}

// next is the first record of a subject from the place seq on, nil where there is none.
func (b *bus) next(ctx context.Context, part, subject string, seq uint64) (msg *broker.RawStreamMsg, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		s, err := b.stream(ctx, part)
		if err == nil {
			msg, err = found(s.GetMsg(ctx, max(seq, 1), broker.WithGetMsgSubject(subject)))
		}
		return err
	})
	return msg, err
}

func found(msg *broker.RawStreamMsg, err error) (*broker.RawStreamMsg, error) {
	if errors.Is(err, broker.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}

// records yields those of a subject that are there now, from the place seq on. An error ends it.
func (b *bus) records(ctx context.Context, part, subject string, seq uint64) iter.Seq2[*broker.RawStreamMsg, error] {
	return func(yield func(*broker.RawStreamMsg, error) bool) {
		for {
			msg, err := b.next(ctx, part, subject, seq)
			if err != nil {
				yield(nil, err)
				return
			}
			if msg == nil || !yield(msg, nil) {
				return
			}
			seq = msg.Sequence + 1
		}
	}
}

// tail yields the records of a subject from the place seq on, or their headers, and waits for
// more until ctx ends. It comes back by itself after a loss of the connection.
func (b *bus) tail(ctx context.Context, part, subject string, seq uint64, headers bool) iter.Seq[broker.Msg] {
	return func(yield func(broker.Msg) bool) {
		for ctx.Err() == nil {
			again, next := b.tailOnce(ctx, part, broker.OrderedConsumerConfig{
				FilterSubjects: []string{subject}, DeliverPolicy: broker.DeliverByStartSequencePolicy,
				OptStartSeq: max(seq, 1), HeadersOnly: headers, InactiveThreshold: 10 * time.Second,
			}, yield)
			if !again {
				return
			}
			seq = next
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// tailOnce is tail with one consumer of the broker. It reports whether to go on with another one.
func (b *bus) tailOnce(ctx context.Context, part string, cfg broker.OrderedConsumerConfig, yield func(broker.Msg) bool) (bool, uint64) {
	attempt, cancel := context.WithTimeout(ctx, attemptTime)
	seq := cfg.OptStartSeq
	c, err := b.js.OrderedConsumer(attempt, b.cfg.stream(part), cfg)
	cancel()
	if err != nil {
		return true, seq
	}
	messages, err := c.Messages(broker.PullExpiry(4*time.Second), broker.PullHeartbeat(time.Second))
	if err != nil {
		return true, seq
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(broker.NextContext(ctx))
		if err != nil {
			return ctx.Err() == nil, seq
		}
		meta, err := msg.Metadata()
		if err != nil || meta.Sequence.Stream < seq {
			continue
		}
		if !yield(msg) {
			return false, seq
		}
		seq = meta.Sequence.Stream + 1
	}
}

// nudge tells who looks at the session that there is something new. Who misses it finds it later.
func (b *bus) nudge(session string) { _ = b.nc.Publish(b.cfg.subject(nudge, session), nil) }

// nudges returns a channel that holds something once the session was nudged, and what ends it. It
// is nil where there is no connection.
func (b *bus) nudges(session string) (nudged <-chan struct{}, stop func()) {
	there := make(chan struct{}, 1)
	sub, err := b.nc.Subscribe(b.cfg.subject(nudge, session), func(*nats.Msg) {
		select {
		case there <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, func() {}
	}
	return there, func() { _ = sub.Unsubscribe() }
}
