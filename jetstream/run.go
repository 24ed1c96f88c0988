package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/agentkernel-go/agentkernel"
	broker "github.com/nats-io/nats.go/jetstream"
)

// taken is a request that was delivered to the worker.
type taken struct {
	session, request string
	prompts          []agentkernel.AgentMessage
	meta             *broker.MsgMetadata
}

// serve brings a request to its end. An error means that it is to be put back.
func (w *Worker) serve(ctx context.Context, req *taken) error {
	t, err := w.load(ctx, req.session, 0)
	if err != nil {
		return err
	}
	p := t.request(req.request)
	if p.outcome != nil {
		return nil // answered by a worker that could not say so any more
	}
	for earlier, err := range w.records(ctx, streamWork, w.bus.cfg.subject(streamWork, req.session), 1) {
		if err != nil {
			return err
		}
		if earlier.Sequence >= req.meta.Sequence.Stream {
			break
		}
		if t.request(earlier.Header.Get(headerRequest)).outcome == nil {
			return errBusy
		}
	}
	r := &run{Worker: w, taken: req, truth: t, progress: *p, last: t.last}
	if err := r.claim(ctx); err != nil {
		return err
	}
	if p.crashes >= w.cfg.MaxAttempts {
		return r.end(ctx, Outcome{Reason: agentkernel.EndError, Kind: agentkernel.KindLimit,
			Error: fmt.Sprintf("%d workers began with the request and none came to an end", p.crashes)})
	}
	err = r.work(ctx)
	if errors.Is(err, errHandOver) || errors.Is(err, ErrFull) || errors.Is(err, ErrUnavailable) {
		r.release(ctx)
	}
	return err
}

// run is a request while this worker has it.
type run struct {
	*Worker
	*taken
	truth    *truth
	progress progress // as it was when the worker came

	controls *controls
	hand     context.Context // ends when the worker stops

	mu     sync.Mutex
	epoch  uint64 // the place of the claim
	last   uint64 // of the session's last record
	n      int    // records since the claim
	failed error  // why a message was not taken
}

// claim fences off every worker before.
func (r *run) claim(ctx context.Context) error {
	attempt := r.progress.claims + 1
	data, err := json.Marshal(claim{Worker: r.Worker.cfg.Name, Attempt: attempt})
	if err != nil {
		return err
	}
	// Two workers that got the request write different ids, so that one of them is refused.
	id := fmt.Sprintf("%s.%d.%s.%d", token(r.session), r.last, r.Worker.cfg.Name, r.meta.NumDelivered)
	msg := message(r.bus.cfg.subject(streamSessions, r.session), data, headerKind, kindClaim, headerRequest, r.request)
	r.last, err = r.publish(ctx, streamSessions, msg, id, r.last)
	r.epoch = r.last
	return err
}

// release notes, if it can, that the request had no part in why it is put back.
func (r *run) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()
	_ = r.append(ctx, nil, headerKind, kindRelease)
}

// append writes the next record of the session.
func (r *run) append(ctx context.Context, data []byte, headers ...string) error {
	r.mu.Lock()
	last, id := r.last, fmt.Sprintf("%s.%d.%d", token(r.session), r.epoch, r.n)
	r.mu.Unlock()
	headers = append(headers, headerRequest, r.request)
	at, err := r.publish(ctx, streamSessions, message(r.bus.cfg.subject(streamSessions, r.session), data, headers...), id, last)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++ // also where it failed: it may have been taken after all
	if err != nil {
		r.failed = err
		return err
	}
	r.last = at
	return nil
}

// commit is Config.Commit of the run.
func (r *run) commit(ctx context.Context, m agentkernel.AgentMessage) error {
	if r.hand.Err() != nil {
		return errHandOver
	}
	headers := []string{headerKind, kindMessage}
	var from uint64
	role := m.GetRole()
	switch said := role != agentkernel.RoleAssistant && role != agentkernel.RoleTool; {
	case said && r.progress.prompts < len(r.prompts): // before anything else is said
		r.progress.prompts++
		headers = append(headers, headerPrompt, "1")
	case said:
		if from = r.controls.origin(m); from != 0 {
			headers = append(headers, headerControl, place(from))
		}
	}
	r.mu.Lock()
	n := r.n
	r.mu.Unlock()
	data, err := messageData(r.request, uint64(n+1), m)
	if err != nil {
		return err
	}
	if err := r.append(ctx, data, headers...); err != nil {
		return err
	}
	if from != 0 {
		r.controls.said(from)
	}
	return nil
}

// work runs what is left of the request.
func (r *run) work(hand context.Context) error {
	cfg, err := r.config(hand)
	if err != nil {
		return err
	}
	if cfg.Resume, err = r.resumption(hand); err != nil {
		return err
	}
	ctx, abort := context.WithCancelCause(context.WithValue(context.WithoutCancel(hand), runKey{}, r))
	defer abort(nil)
	defer context.AfterFunc(hand, func() { abort(errHandOver) })()
	r.hand = hand
	r.controls = &controls{bus: r.bus, session: r.session, since: r.meta.Timestamp, abort: abort,
		taken: r.truth.taken, reading: make(chan struct{}, 1), steering: cfg.Steering, followUps: cfg.FollowUps}
	r.controls.reading <- struct{}{}
	if err := r.controls.read(hand); err != nil {
		return err
	}
	events := newPump(r.bus, r.session, r.epoch, r.truth, r.progress.claims > 0, r.Worker.cfg.EventInterval)
	var others sync.WaitGroup // the goroutines that write events and read controls; stop ends both
	defer others.Wait()
	ctxOthers, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	others.Go(func() { events.run(ctxOthers) })
	if reason, finished := r.finished(ctx); finished {
		events.rest()
		events.close()
		return r.end(hand, Outcome{Reason: reason})
	}
	if cfg.Resume != nil { // whoever takes over from here on must know
		if err := r.append(hand, nil, headerKind, kindBegun); err != nil {
			events.close()
			return err
		}
	}
	others.Go(func() { r.controls.watch(ctxOthers) })
	last := r.loop(ctx, cfg, events)
	events.close()
	stop()
	return r.close(hand, last)
}

// config is what the run is made with.
func (r *run) config(ctx context.Context) (cfg agentkernel.Config, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("jetstream: WorkerConfig.Agent panicked: %v", v)
		}
	}()
	cfg, err = r.Worker.cfg.Agent(ctx, r.session)
	if err != nil {
		return cfg, fmt.Errorf("jetstream: WorkerConfig.Agent: %w", err)
	}
	if cfg.Commit != nil {
		return cfg, errors.New("jetstream: Commit is set, which is the worker's")
	}
	cfg.Commit = r.commit
	cfg.Middleware = append([]agentkernel.Middleware{named(r.session)}, cfg.Middleware...)
	if cfg.Steering == nil {
		cfg.Steering = new(agentkernel.Queue)
	}
	if cfg.FollowUps == nil {
		cfg.FollowUps = new(agentkernel.Queue)
	}
	return cfg, nil
}

// left are the prompts that were not said.
func (r *run) left() []agentkernel.AgentMessage {
	return r.prompts[min(r.progress.prompts, len(r.prompts)):]
}

// finished tells whether there is nothing to run: a worker before said the last word and died
// before it wrote so, or the request was aborted before this one began.
func (r *run) finished(ctx context.Context) (agentkernel.EndReason, bool) {
	settled := answered(r.truth.messages)
	switch {
	case r.progress.claims == 0 && len(r.truth.suspended) == 0 && len(r.prompts) == 0 && strings.HasPrefix(r.request, resumePrefix) && settled:
		return agentkernel.EndStop, true // the calls were answered with another one
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errHandOver):
		return agentkernel.EndAborted, settled
	case r.progress.claims == 0 || len(r.left()) > 0 || !settled || len(r.truth.messages) == 0,
		r.controls.waits():
		return "", false
	}
	last, ok := r.truth.messages[len(r.truth.messages)-1].(agentkernel.Message)
	return agentkernel.EndStop, ok && last.Role == agentkernel.RoleAssistant && last.StopReason == agentkernel.StopReasonStop
}

// loop runs, tells the events to those who look on, and returns the last one. A run that stops
// while something was said to it, which it did not see, is followed by another one.
func (r *run) loop(ctx context.Context, cfg agentkernel.Config, events *pump) (last agentkernel.Event) {
	history, prompts := r.truth.messages, r.left()
	for {
		for ev := range agentkernel.AgentLoop(ctx, cfg, history, prompts...) {
			events.add(ctx, ev)
			last = ev
		}
		cfg.Resume = nil
		if last.Err != nil || last.Summary.EndReason == agentkernel.EndTerminated ||
			last.Summary.EndReason == agentkernel.EndSuspended || r.controls.read(ctx) != nil || !r.controls.waits() {
			return last
		}
		history, prompts = events.enc.State().Messages, nil
	}
}

// close writes how the run ended, where it came to an end of its own.
func (r *run) close(hand context.Context, last agentkernel.Event) error {
	r.mu.Lock()
	failed := r.failed
	r.mu.Unlock()
	ctx := context.WithoutCancel(hand)
	r.controls.clear(ctx)
	kind, _ := errors.AsType[*agentkernel.Error](last.Err)
	switch {
	case hand.Err() != nil && kind != nil:
		return errHandOver
	case errors.Is(last.Err, agentkernel.KindCommit) && errors.Is(failed, ErrTooLarge): // it will not fit next time
	case errors.Is(last.Err, agentkernel.KindCommit):
		return last.Err
	}
	o := Outcome{RunID: last.RunID, Reason: last.Summary.EndReason, Summary: last.Summary}
	if kind != nil {
		o.Kind, o.Error = kind.Kind, kind.Error()
	}
	if err := r.suspend(ctx, last.Summary.Suspended); err != nil {
		return err
	}
	r.withdrawOthers(ctx, last.Summary.Suspended)
	return r.end(ctx, o)
}

// end writes the outcome.
func (r *run) end(ctx context.Context, o Outcome) error {
	o.Request, o.Attempts = r.request, r.progress.claims+1
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var forgotten map[string]uint64
	if r.progress.claims > 0 { // before the end: behind it others ask
		waiting := r.truth.suspended
		if o.Summary != nil {
			waiting = o.Summary.Suspended
		}
		forgotten = r.forgotten(ctx, waiting)
	}
	if err := r.append(ctx, data, headerKind, kindEnd); err != nil {
		return err
	}
	for subject, at := range forgotten {
		r.withdraw(ctx, subject, at) // refused where something follows
	}
	return nil
}
