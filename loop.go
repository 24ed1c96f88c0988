package agentkernel

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// AgentLoop runs the model and its tools on history and prompts until the model answers
// without calls, and returns the stream of everything that happens.
//
// It keeps nothing between runs and changes nothing that it was given. Without prompts it
// continues from the history: see [ErrBadContinuation]. It returns at once; a Config or a
// history that makes no sense is an Error event of kind "invalid_request" and AgentEnd.
//
// The channel is closed after AgentEnd. While the run lives a full channel blocks the run:
// read it to the end, or cancel ctx, after which the run ends by itself (see
// Config.StopTimeout and Config.DrainTimeout). The run's events are made by one goroutine at
// a time.
func AgentLoop(ctx context.Context, cfg Config, history []AgentMessage, prompts ...AgentMessage) <-chan Event {
	ctx, cancel := context.WithCancelCause(ctx)
	return start(ctx, cancel, job{cfg: cfg, history: history, prompts: prompts}).events
}

// job is all that a run is told. The Agent tells more than AgentLoop.
type job struct {
	cfg     Config
	history []AgentMessage
	prompts []AgentMessage
	id      string
	// head is a replacement of the history that happened between runs, to be announced.
	head *ContextInfo
	// ringed: the events go into a ring.
	ringed bool
	// live returns the settings to use from the next turn on. Nil: those of cfg.
	live func() settings
	// queued is told by whom the events are taken that they were, if somebody takes them.
	queued  *ledger
	closing func(force bool) bool
	// replaced is the place in history before which usage is of another history.
	replaced int
	// parentID and depth place a run that a tool of another one started.
	parentID string
	depth    int
	// bound: a call of another run waits for this one.
	bound bool
	// told is closed when AgentStart was delivered to all listeners; nil where there are none.
	told <-chan struct{}
}

// settings is the part of a Config that may change between turns.
type settings struct {
	model       ChatModel
	system      string
	blocks      []SystemBlock
	tools       *toolset
	thinking    ThinkingLevel
	temperature *float64
}

func (cfg *Config) settings() (settings, error) {
	tools, err := newToolset(cfg.Tools)
	return settings{model: cfg.Model, system: validText(cfg.SystemPrompt), blocks: ownSystem(cfg.SystemBlocks), tools: tools,
		thinking: cfg.ThinkingLevel}, err
}

// ownSystem returns a copy of blocks as they go into a request.
func ownSystem(blocks []SystemBlock) []SystemBlock {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		blocks[i].Text = validText(blocks[i].Text)
	}
	return blocks
}

// systemText is the system prompt as one text.
func (s *settings) systemText() string {
	if s.blocks == nil {
		return s.system
	}
	parts := make([]string, len(s.blocks))
	for i, b := range s.blocks {
		parts[i] = b.Text
	}
	return strings.Join(parts, "\n\n")
}

// run is a run in flight. Everything in it belongs to the one goroutine that acts for the
// run: that of drive, or a visit of the fence while drive waits for it.
type run struct {
	emitter
	*fence
	cfg     Config
	live    func() settings
	closing func(force bool) bool

	// drained: somebody takes every event, and tells queued of it.
	drained bool
	queued  *ledger
	// misuse is why the run cannot begin.
	misuse  error
	head    *ContextInfo
	prompts []AgentMessage
	leased  []*queued // taken from a queue, not said yet

	history []AgentMessage // what the model is asked about: the baseline, then fresh
	fresh   []AgentMessage // the messages that ended in this run
	// replaced is the place in history before which usage is of another history.
	replaced int
	ids      map[string]struct{}
	convert  converter
	// mended is the history as a provider accepts it, where the baseline was not; else nil.
	mended      []AgentMessage
	projection  []AgentMessage // what the model sees instead, for one call; nil for the history
	breakpoints []int
	recoveries  int // of answers that were cut, in a row

	settings settings
	found    foundTools
	specs    []ToolSpec
	asked    int // model calls
	breaker  breaker
	depth    int
	bound    bool            // it cannot be suspended
	told     <-chan struct{} // closed when AgentStart was delivered

	call    modelCall
	written partial // that of call, empty while there is none
	answer  *answer // whose calls and ModelResponse are open
	lines   lines

	reason EndReason
	err    *Error
	// suspended are the calls that were left to a later run.
	suspended []Suspension
}

// step is one state of a run. It returns the next one, nil for the end.
type step func(*run) step

// errRunTimeout is the cause with which a run's context ends that took too long.
var errRunTimeout = errors.New("agentkernel: the run took longer than Config.RunTimeout")

func start(ctx context.Context, cancel context.CancelCauseFunc, j job) outlet {
	cfg, misuse := j.cfg.withDefaults()
	cfg.Resume = cfg.Resume.own()
	buffer := cfg.EventBuffer
	if misuse != nil {
		buffer = leastEventBuffer
	}
	r := &run{cfg: cfg, misuse: misuse, head: j.head, live: j.live,
		depth: j.depth, bound: j.bound, told: j.told, closing: j.closing, replaced: j.replaced}
	if r.live == nil {
		fixed, err := cfg.settings()
		if misuse == nil {
			r.misuse = err
		}
		r.live = func() settings { return fixed }
	}
	r.emitter = emitter{
		ctx:   ctx,
		drain: cfg.DrainTimeout,
		clock: clock{began: time.Now()},
		runID: j.id, parentID: j.parentID,
	}
	if j.ringed {
		r.ring = newRing(buffer)
	} else {
		r.events, r.drafted = make(chan Event, buffer), new(Event)
	}
	if r.drained = j.queued != nil; r.drained {
		r.queued, r.drain = j.queued, -1
	} else {
		r.queued = new(ledger)
	}
	if r.runID == "" {
		r.runID = rand.Text()
	}
	if cfg.RunTimeout > 0 {
		outer := cancel
		limited, stop := context.WithTimeoutCause(ctx, cfg.RunTimeout, errRunTimeout)
		r.ctx, cancel = limited, func(cause error) { outer(cause); stop() }
	}
	r.history = slices.Clone(j.history)
	r.prompts = slices.Clone(j.prompts)
	// Ends after AgentEnd; whoever reads the events waits for it, and the end of ctx stops it.
	go r.drive(cancel)
	return r.outlet
}

// drive walks through the steps. Whatever happens in them, the run is ended here.
func (r *run) drive(cancel context.CancelCauseFunc) {
	var lift func()
	r.fence, lift = newFence(r.ctx, r.cfg.StopTimeout)
	done := false
	defer func() {
		if !done {
			p := newPanicError(recover())
			r.fail(&Error{Kind: KindPanic, Op: "run", Err: p})
		}
		r.end()
		lift()
		cancel(nil)
		r.close()
	}()
	for next := step((*run).begin); next != nil; {
		next = next(r)
	}
	done = true
}

// begin opens the run and decides what comes first.
func (r *run) begin() step {
	r.emit(Event{Type: EventAgentStart})
	if r.head != nil {
		r.emit(Event{Type: EventContext, Context: r.head})
	}
	if r.misuse == nil {
		r.prompts, r.misuse = admit(r.live().model, r.cfg.LengthPrompt, r.history, r.prompts)
	}
	if errors.Is(r.misuse, ErrNoMessages) || errors.Is(r.misuse, ErrBadContinuation) {
		if r.leaseQueued() {
			r.misuse = nil
		}
	}
	if r.misuse != nil {
		return r.fail(misuse(r.misuse))
	}
	r.ids = callIDs(r.history)
	r.mend()
	maps.Copy(r.ids, callIDs(r.sound()))
	if err := r.cfg.Resume.check(r.sound()); err != nil {
		return r.fail(misuse(err))
	}
	if openCalls(r.sound()) != nil {
		return (*run).answerOpenCalls
	}
	return (*run).nextTurn
}

// mend finds out what a provider accepts of the history, up to its open calls.
func (r *run) mend() {
	r.mended, r.convert = nil, converter{}
	if m := mend(r.history, true); len(m.problems) > 0 {
		r.mended = m.out
	}
}

// sound is the history as a provider accepts it.
func (r *run) sound() []AgentMessage {
	if r.mended != nil {
		return r.mended
	}
	return r.history
}

// answerOpenCalls is a turn without a model call: it gives the calls that the history left
// open their results.
func (r *run) answerOpenCalls() step {
	if r.cfg.Resume != nil && r.told != nil {
		// Whoever keeps the stream must know that this run has begun before a call is
		// executed that was known not to have: should the process die, it may have begun.
		select {
		case <-r.told:
		case <-r.ctx.Done():
		}
	}
	r.startTurn()
	open := openCalls(r.sound())
	r.answer = openAnswer(&open.message, open.calls, time.Now())
	r.answer.old, r.answer.terminated = true, r.cfg.Resume.terminates()
	return (*run).runTools
}

// nextTurn opens a turn with what is waiting to be said.
func (r *run) nextTurn() step {
	if r.cfg.MaxTurns > 0 && r.asked >= r.cfg.MaxTurns {
		return r.fail(&Error{Kind: KindMaxTurns, Op: "run",
			Err: fmt.Errorf("%d model calls were made and the model wants more", r.asked)})
	}
	r.startTurn()
	for len(r.prompts) > 0 {
		if !r.say(r.prompts[0]) {
			return nil
		}
		r.prompts = r.prompts[1:]
	}
	if len(r.leased) == 0 && !r.stopped() {
		r.leased = r.cfg.Steering.lease()
	}
	for len(r.leased) > 0 && !r.stopped() {
		if !r.sayQueued(r.leased[0]) {
			return nil
		}
		r.leased = r.leased[1:]
	}
	return (*run).askModel
}

// leaseQueued takes what the queues hold for a run that would stop. It reports whether they
// hold anything.
func (r *run) leaseQueued() bool {
	if r.leased = r.cfg.Steering.lease(); len(r.leased) == 0 {
		r.leased = r.cfg.FollowUps.lease()
	}
	return len(r.leased) > 0
}

func (r *run) startTurn() {
	r.settings = r.live()
	r.offerTools()
	r.turn++
	r.emit(Event{Type: EventTurnStart})
}

// offerTools decides which tools the model is told of.
func (r *run) offerTools() {
	if r.settings.tools.deferred {
		r.found.learn(r.history)
	}
	r.specs = r.settings.tools.offered(&r.found)
}

// say puts a whole message into the history. It reports false where the harness does not
// take it; then the run has failed.
func (r *run) say(m AgentMessage) bool { return r.sayAs(m, nil) }

// sayQueued says what a queue held. The item leaves its queue when MessageEnd is delivered.
func (r *run) sayQueued(item *queued) bool { return r.sayAs(item.message, item) }

func (r *run) sayAs(m AgentMessage, item *queued) bool {
	if !r.commit(m) {
		return false
	}
	r.emit(Event{Type: EventMessageStart, Message: cloneMessage(m)})
	r.queued.expect(r.seq+1, item)
	r.endMessage(Event{Message: cloneMessage(m)}, m)
	return true
}

// endMessage emits MessageEnd and keeps m, of which the event holds a copy of its own.
func (r *run) endMessage(ev Event, m AgentMessage) {
	ev.Type = EventMessageEnd
	r.history = append(r.history, m)
	if r.mended != nil {
		r.mended = append(r.mended, m)
	}
	r.fresh = append(r.fresh, m)
	r.emit(ev)
	if !r.drained {
		r.queued.delivered(r.seq)
	}
}

// respond closes the model call with what its tools came to, and decides how to go on.
func (r *run) respond() step {
	a := r.answer
	terminate := a.terminate() // before the event shows the results
	for i := range a.suspended {
		a.suspended[i].Terminate = terminate
	}
	r.answer, r.suspended = nil, a.suspended
	if a.message.StopReason != StopReasonLength {
		r.recoveries = 0
	}
	if a.old { // the results came behind those that were there
		r.mend()
	}
	r.emit(Event{
		Type:        EventModelResponse,
		Message:     a.shown,
		ToolResults: a.results,
		Duration:    time.Since(a.asked),
	})
	switch {
	case r.err != nil:
		return nil
	case len(a.suspended) > 0:
		return r.finish(EndSuspended)
	case r.stopped():
		return (*run).stop
	case terminate && len(r.prompts) == 0 && len(r.leased) == 0:
		return r.guard(*a.message, EndTerminated)
	case len(a.calls) > 0 || a.old:
		return (*run).nextTurn
	}
	return r.rest(*a.message)
}

// stopped tells whether the run's context has ended.
func (r *run) stopped() bool { return r.ctx.Err() != nil }

// finish ends the run as it should.
func (r *run) finish(reason EndReason) step {
	r.reason = reason
	return nil
}

// stop ends the run because its context ended.
func (r *run) stop() step { return r.fail(stopError(r.ctx)) }

// fail ends the run with err.
func (r *run) fail(err *Error) step {
	r.err, r.reason = err, EndError
	switch err.Kind {
	case KindCanceled:
		r.reason = EndAborted
	case KindTimeout, KindMaxTurns, KindLimit, KindStopGuard:
		r.reason = EndReason(err.Kind)
	}
	return nil
}

// end closes what is open and the run: the only place that emits Error and AgentEnd.
func (r *run) end() {
	if r.closing != nil {
		r.closing(true)
	}
	r.closeMessage()
	r.closeCalls()
	for _, item := range r.leased {
		item.giveBack()
	}
	r.markAbort()
	last := Event{Type: EventAgentEnd, NewMessages: slices.Clip(r.fresh), Duration: time.Since(r.clock.began)}
	if r.err != nil {
		last.Err = r.err
		if r.err.Kind != KindCanceled {
			r.emit(Event{Type: EventError, Err: r.err})
		}
	}
	summary := r.summary
	summary.Abandoned = r.abandoned
	if r.reason == EndSuspended || r.uncommitted() {
		summary.Suspended = r.suspended
	}
	summary.EndReason, summary.Duration = r.reason, last.Duration
	last.Summary = &summary
	r.emit(last)
}

// markAbort tells the model of the abort, where the harness wants that.
func (r *run) markAbort() {
	if r.cfg.AbortMarker == "" || r.err == nil || !r.stopped() ||
		r.reason != EndAborted && r.reason != EndTimeout || r.summary.TurnCount == 0 {
		return
	}
	err, reason := r.err, r.reason
	if !r.say(UserMessage(r.cfg.AbortMarker)) {
		r.err, r.reason = err, reason // the abort is what happened
	}
}

// misuse gives an error of admission its kind.
func misuse(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: KindInvalidRequest, Op: "run", Err: err}
}
