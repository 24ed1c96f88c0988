package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
)

// WorkerConfig is how a Worker works.
type WorkerConfig struct {
	Config
	// Agent returns what a session's runs are made with. Required. It is called before each run,
	// from any goroutine. Commit is the worker's own and must be nil. Steering and FollowUps, where
	// they are set, belong to that one run. An error, or a panic, is tried again.
	Agent func(ctx context.Context, session string) (agentkernel.Config, error)
	// Name is what the claims of this worker are signed with. Empty means the host's name and
	// the process's id.
	Name string
	// MaxSessions bounds the sessions that the worker has at once. Zero means 16.
	MaxSessions int
	// MaxAttempts bounds how many workers a request may end: one that died with it, or whose Agent
	// failed. Then it is given up. Workers that stop, and brokers that are full or gone, do not count.
	// Zero means 10.
	MaxAttempts int
	// RetryWait is after what time a request whose session is busy with an earlier one is looked
	// at again. One that could not be worked on waits as long at first, then twice as long
	// each time, up to 128 times. Zero means 250 ms.
	RetryWait time.Duration
	// EventInterval is how long events of a session are gathered behind those that were written:
	// fewer and larger records for the broker, a later look for those who look on. The first event
	// behind a silence is written at once. Zero means 20 ms.
	EventInterval time.Duration
	// AskWait bounds how long [Ask] waits; behind it the call is denied. Zero is no bound.
	AskWait time.Duration
	// OnError is told why a request was put back; it is taken up again, here or elsewhere. It is
	// called from any goroutine. Nil means one log/slog record at level warn.
	OnError func(session, request string, err error)
}

// Worker takes up requests and runs them.
type Worker struct {
	*bus
	cfg WorkerConfig
}

// NewWorker returns a worker that works when Run is called. Setup must have made the streams.
func NewWorker(nc *nats.Conn, cfg WorkerConfig) (*Worker, error) {
	if cfg.Agent == nil {
		return nil, errors.New("jetstream: WorkerConfig.Agent is nil")
	}
	b, err := newBus(nc, cfg.Config)
	if err != nil {
		return nil, err
	}
	cfg.Name = cmp.Or(cfg.Name, processName())
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, 16)
	cfg.MaxAttempts = cmp.Or(cfg.MaxAttempts, 10)
	cfg.RetryWait = cmp.Or(cfg.RetryWait, 250*time.Millisecond)
	cfg.EventInterval = cmp.Or(cfg.EventInterval, 20*time.Millisecond)
	if cfg.MaxSessions < 0 || cfg.MaxAttempts < 0 || cfg.RetryWait < 0 || cfg.AskWait < 0 || cfg.EventInterval < 0 {
		return nil, fmt.Errorf("jetstream: MaxSessions is %d, MaxAttempts %d, RetryWait %v, AskWait %v, EventInterval %v",
			cfg.MaxSessions, cfg.MaxAttempts, cfg.RetryWait, cfg.AskWait, cfg.EventInterval)
	}
	if cfg.OnError == nil {
		cfg.OnError = func(session, request string, err error) {
			slog.Warn("agentkernel: a request was put back", "session", session, "request", request, "error", err)
		}
	}
	return &Worker{bus: b, cfg: cfg}, nil
}

// Why a request is put back.
var (
	errHandOver = errors.New("jetstream: the worker stops, and hands the session over")
	errBusy     = errors.New("jetstream: an earlier request of the session is not answered yet")
)

// Run works until ctx ends. Then the runs that live are handed over: they end without another
// message, and other workers go on with them at once, as after a crash. Run returns when they
// have ended, nil, or at once where the streams are not there. While no broker answers it waits.
func (w *Worker) Run(ctx context.Context) error {
	var c broker.Consumer
	err := w.retry(ctx, func(ctx context.Context) (err error) {
		c, err = w.js.Consumer(ctx, w.bus.cfg.stream(streamWork), workers)
		return err
	})
	if err != nil {
		return err
	}
	slots := make(chan struct{}, w.cfg.MaxSessions)
	var runs sync.WaitGroup
	defer runs.Wait()
	for ctx.Err() == nil {
		n := 0
		for n < min(w.cfg.MaxSessions, maxFetch) && acquire(ctx, slots, n == 0) {
			n++
		}
		if n == 0 {
			break
		}
		for msg := range w.fetch(ctx, c, n) {
			n--
			runs.Go(func() {
				defer func() { <-slots }()
				w.handle(ctx, msg)
			})
		}
		for range n {
			<-slots
		}
	}
	return nil
}

// maxFetch bounds the requests that are asked for at once.
const maxFetch = 8

// acquire takes a slot, and waits for one where it should.
func acquire(ctx context.Context, slots chan struct{}, wait bool) bool {
	if !wait {
		select {
		case slots <- struct{}{}:
			return true
		default:
			return false
		}
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// fetch yields at most n requests, and ends after a while without any.
func (w *Worker) fetch(ctx context.Context, c broker.Consumer, n int) func(yield func(broker.Msg) bool) {
	return func(yield func(broker.Msg) bool) {
		wait, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		batch, err := c.Fetch(n, broker.FetchContext(wait))
		if err == nil {
			for msg := range batch.Messages() {
				if !yield(msg) {
					return
				}
			}
			err = batch.Error()
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
			select { // no broker answers
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// handle works on one request, and tells the broker what became of it.
func (w *Worker) handle(ctx context.Context, msg broker.Msg) {
	session, ok := sessionOf(msg.Subject())
	id := msg.Headers().Get(headerRequest)
	prompts, err := readSaid(msg.Data())
	meta, metaErr := msg.Metadata()
	if !ok || id == "" || err != nil || metaErr != nil {
		_ = msg.TermWithReason("no request")
		w.cfg.OnError(session, id, errors.Join(errors.New("jetstream: dropped, it is no request"), err, metaErr))
		return
	}
	alive := make(chan struct{})
	var beat sync.WaitGroup // ends with alive, below
	beat.Go(func() { w.beat(msg, alive) })
	err = w.serve(ctx, &taken{session: session, request: id, prompts: prompts, meta: meta})
	close(alive)
	beat.Wait()
	switch {
	case err == nil:
		done, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
		defer cancel()
		_ = msg.DoubleAck(done) // where it is lost the request comes again, and is known as answered
	case errors.Is(err, errBusy):
		_ = msg.NakWithDelay(w.cfg.RetryWait)
	case errors.Is(err, errHandOver):
		_ = msg.Nak()
	default:
		w.cfg.OnError(session, id, err)
		_ = msg.NakWithDelay(w.cfg.RetryWait << min(meta.NumDelivered-1, 7))
	}
}

// beat tells the broker that the request is worked on, until alive is closed.
func (w *Worker) beat(msg broker.Msg, alive <-chan struct{}) {
	tick := time.NewTicker(w.bus.cfg.AckWait / 3)
	defer tick.Stop()
	for {
		select {
		case <-alive:
			return
		case <-tick.C:
			_ = msg.InProgress()
		}
	}
}
