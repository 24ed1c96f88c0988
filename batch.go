package agentkernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"
)

// ErrSteered is the cause with which the context of a running call ends whose tool asked to
// be cancelled when steering arrives.
var ErrSteered = errors.New("agentkernel: steering arrived")

// runTools answers every call of the open answer and puts the results into the history.
func (r *run) runTools() step {
	if len(r.answer.calls) > 0 {
		b := newBatch(r)
		for b.advance() {
			b.wait()
		}
		b.settle()
	}
	r.sayResults()
	return (*run).respond
}

// batch is the calls of one answer while they are worked on: each is started in its turn,
// runs on a goroutine of its own, and is closed once, by the run's goroutine.
type batch struct {
	r       *run
	calls   []*callRun
	next    int // the first that was not started
	running int
	alone   bool // what runs must run alone
	skip    bool // steering arrived: start no more
	// suspended: a gate has no answer now: start no more but what was answered before.
	suspended bool

	lines
	late    chan *callRun   // calls whose time is up; room for all that can come; nil where none can
	stop    <-chan struct{} // the end of the run's context; nil once seen
	overdue <-chan struct{} // the end of the time to stop; nil once seen
	steer   <-chan struct{} // steering arrived; nil once seen, and where it changes nothing
}

// lines are how calls reach the run's goroutine. A run keeps them from batch to batch.
type lines struct {
	back   chan outcome  // room for every call
	wake   chan struct{} // some mailbox holds something; capacity 1
	relay  chan relayed  // events of runs that calls made
	notify func()        // wakes
}

// open makes the lines ready for n calls.
func (l *lines) open(n int) {
	if cap(l.back) < n {
		l.back = make(chan outcome, n)
	}
	if l.wake != nil {
		return
	}
	wake := make(chan struct{}, 1)
	l.wake, l.relay = wake, make(chan relayed)
	l.notify = func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// relayed is an event of a run that a call made.
type relayed struct {
	call *callRun
	ev   Event
}

// callRun is one call on its way through the pipeline. What stands below "private" belongs
// to the run's goroutine.
type callRun struct {
	call ToolCall
	// shown is the copy of the call's Args that events share.
	shown json.RawMessage
	tool  *compiledTool
	// problem is what is wrong with the arguments, for the repair hook.
	problem string
	box     *mailbox
	gone    chan struct{} // closed when the call is closed
	cancel  context.CancelCauseFunc
	// resumed is the call as an earlier run left it open, answer what was decided since.
	resumed *Suspension
	answer  *GateDecision
	// claimed tells what came first, the execution or steering: see begin and preempt.
	claimed atomic.Int32

	// private
	examined bool
	refusal  *ToolResult // known before the call begins
	safe     bool
	label    string
	began    time.Time
	timer    *time.Timer // until the call is late; nil where nothing is to end it
	state    callState
	result   ToolResult
	held     *outcome    // what it came back with while those runs had not ended
	children int         // runs that it made whose events are on the stream and that have not ended
	overdue  bool        // it is to be left behind once they have
	waits    *pendingAsk // it came back without an answer of its gate, and is open
	left     bool        // to a later run
	said     bool        // its result is in the history
}

const (
	executing = 1
	preempted = 2
)

// begin claims the call for its execution. It reports false where steering was first.
func (c *callRun) begin() bool { return c.claimed.CompareAndSwap(0, executing) }

// preempt takes the call away from an execution that has not begun. It reports whether the
// call will never be executed.
func (c *callRun) preempt() bool {
	return c.claimed.CompareAndSwap(0, preempted) || c.claimed.Load() == preempted
}

type callState int

const (
	callWaiting callState = iota
	callOpen
	callClosed
)

// outcome is how a call's goroutine came back.
type outcome struct {
	call   *callRun
	result ToolResult
	waits  *pendingAsk
}

func newBatch(r *run) *batch {
	n := len(r.answer.calls)
	r.lines.open(n)
	b := &batch{
		r:       r,
		calls:   make([]*callRun, n),
		lines:   r.lines,
		stop:    r.ctx.Done(),
		overdue: r.fence.overdue,
	}
	runs := make([]callRun, n)
	for i, call := range r.answer.calls {
		c := &runs[i]
		c.call, c.shown, c.tool = call, r.answer.args[i], r.settings.tools.byName[call.Name]
		if c.tool != nil {
			c.label = c.tool.Label
			if c.tool.timeout(&r.cfg) > 0 {
				b.expect()
			}
		}
		if r.answer.old {
			c.resumed, c.answer = r.cfg.Resume.find(call.ID)
		}
		b.calls[i] = c
	}
	r.answer.running = b.calls
	if r.cfg.SteerPolicy == SteerSkip && !r.answer.old {
		b.steer = r.cfg.Steering.arrived()
	}
	return b
}

// expect makes ready for calls that are late. What ends the time of one on another goroutine
// has been expected when the batch began.
func (b *batch) expect() chan<- *callRun {
	if b.late == nil {
		b.late = make(chan *callRun, 3*len(b.calls)) // a call can be late for three reasons, once each
	}
	return b.late
}

// advance starts what can be started. It reports whether there is anything to wait for.
func (b *batch) advance() bool {
	for b.next < len(b.calls) && b.startNext() {
	}
	return b.running > 0
}

// startNext starts the next call, or answers it at once. It reports false where the call
// has to wait for those that run.
func (b *batch) startNext() bool {
	select {
	case <-b.steer: // it may have arrived while the model was still writing
		b.interrupt()
	default:
	}
	if b.suspended && !b.skip && !b.r.stopped() && b.calls[b.next].answer == nil {
		b.next++ // see settle
		return true
	}
	if b.running > 0 && b.alone && !b.skip && !b.r.stopped() {
		return false // what will not start is answered at once, the others in their turn
	}
	c := b.calls[b.next]
	refusal := b.refuse(c)
	switch {
	case refusal != nil:
		b.next++
		b.r.openCall(c)
		b.r.closeCall(c, *refusal)
		return true
	case b.running > 0 && (!c.safe || b.full()):
		return false
	}
	b.next++
	b.running++
	b.alone = !c.safe
	b.r.openCall(c)
	b.launch(c)
	return true
}

func (b *batch) full() bool {
	return b.r.cfg.MaxParallelTools > 0 && b.running >= b.r.cfg.MaxParallelTools
}

// wait takes the next thing that happens.
func (b *batch) wait() {
	select {
	case o := <-b.back:
		if b.r.stopped() {
			b.advance() // what will not start is answered before what was stopped, always
		}
		b.finish(o)
	case <-b.wake:
		b.showUpdates()
	case m := <-b.relay:
		b.showUpdates() // what was reported before comes before
		b.pass(m)
	case c := <-b.late:
		b.takeBack()
		b.abandon(c)
	case <-b.stop:
		b.stop = nil
	case <-b.steer:
		b.interrupt()
	case <-b.overdue:
		b.overdue = nil
		b.takeBack()
		for _, c := range b.calls {
			b.abandon(c)
		}
	}
}

// takeBack finishes the calls that came back in the same instant.
func (b *batch) takeBack() {
	for {
		select {
		case o := <-b.back:
			b.finish(o)
		default:
			return
		}
	}
}

// finish closes a call that came back, once the runs that it made have ended too: a
// middleware may return before the tool does.
func (b *batch) finish(o outcome) {
	c := o.call
	switch {
	case c.state != callOpen: // it was left behind, and nobody listens
	case c.children > 0:
		c.held = new(o)
		c.cancel(nil)
	case o.waits != nil && !b.skip:
		b.running--
		b.suspended, c.waits = true, o.waits
	case o.waits != nil:
		b.running--
		b.r.closeCall(c, skipped())
	default:
		b.running--
		b.r.closeCall(c, o.result)
	}
}

// pass puts an event of a run that a call made on the stream, while that call is open and has not
// come back without an answer: what it still makes then, nobody waits for.
func (b *batch) pass(m relayed) {
	c := m.call
	if c.state != callOpen || c.waits != nil {
		return
	}
	b.r.pass(&m.ev)
	if m.ev.ParentRunID != b.r.runID {
		return // a run within that run
	}
	switch m.ev.Type {
	case EventAgentStart:
		c.children++
	case EventAgentEnd:
		c.children--
		switch {
		case c.children > 0:
		case c.held != nil:
			b.finish(*c.held)
		case c.overdue:
			late := b.expect()
			c.overdue = false                                           // until that moment, whatever else it runs
			time.AfterFunc(b.r.cfg.StopTimeout/4, func() { late <- c }) // has room: one at a time for a call
		}
	}
}

// errStillRunning is the last word of a call that was left behind.
var errStillRunning = errors.New("it did not stop in time and may still be running")

// abandon closes a call whose goroutine did not come back in time. Where events of runs that
// it made are on the stream, these come to their end first: they end in time by themselves,
// but their events may have waited for the consumer.
func (b *batch) abandon(c *callRun) {
	switch {
	case c.state != callOpen || c.waits != nil:
		return
	case c.children > 0:
		c.overdue = true
		c.cancel(errToolTimeout) // unless it was cancelled before
		return
	case c.held != nil:
		b.finish(*c.held)
		return
	}
	b.r.abandoned++
	b.r.lines.back = nil // it may still come back, and must find room
	var result ToolResult
	switch {
	case !c.preempt() && c.box.isLate() && !b.r.stopped():
		result = timedOut(ToolResult{}, errStillRunning)
	case !c.preempt():
		result = interrupted(ToolResult{}, errStillRunning)
	case b.r.stopped():
		result = notStarted()
	default:
		result = skipped()
	}
	b.finish(outcome{call: c, result: result})
}

func (b *batch) showUpdates() {
	for _, c := range b.calls {
		if c.state == callOpen {
			b.r.showUpdates(c, c.box.take())
		}
	}
}

// interrupt makes way for steering: what has not begun is skipped, and what asked for it is
// cancelled.
func (b *batch) interrupt() {
	if !b.r.cfg.Steering.waiting() { // it was taken back, or by another run
		b.steer = b.r.cfg.Steering.arrived()
		return
	}
	b.steer, b.skip = nil, true
	for _, c := range b.calls {
		if c.waits != nil && c.state == callOpen {
			b.r.closeCall(c, skipped())
		}
		if c.state == callOpen && (c.preempt() || c.tool.Interrupt == InterruptCancel) {
			c.cancel(ErrSteered)
			b.expire(c)
		}
	}
}

// expire makes the call late once the time has passed that user code has to stop.
func (b *batch) expire(c *callRun) {
	if b.r.cfg.StopTimeout < 0 {
		return
	}
	late := b.expect()
	c.timer = time.AfterFunc(b.r.cfg.StopTimeout, func() { late <- c }) // has room: once a call
}

// launched is what a call needs while it runs, in one piece of memory.
type launched struct {
	box      mailbox
	env      callEnv
	pipeline pipeline
}

// launch runs the call's pipeline on a goroutine of its own, which no other call will use: a
// tool may have done something to it, or to its thread.
func (b *batch) launch(c *callRun) {
	l := &launched{box: mailbox{args: c.call.Args, notify: b.notify}}
	c.gone, c.box = make(chan struct{}), &l.box
	ctx, cancel := context.WithCancelCause(b.r.ctx)
	c.cancel = cancel
	l.env = callEnv{Context: ctx, callRun: c, relay: b.relay, runID: b.r.runID, stop: b.r.cfg.StopTimeout,
		depth: b.r.depth, maxDepth: b.r.cfg.MaxDepth}
	l.pipeline = pipeline{late: b.late, cfg: &b.r.cfg, callRun: c, args: c.call.Args, runID: b.r.runID, turn: b.r.turn, bound: b.r.bound}
	// Ends with the pipeline; the batch waits for it, or leaves it behind.
	go l.pipeline.run(&l.env, b.back)
}

// openCall emits the start of a call.
func (r *run) openCall(c *callRun) {
	c.state, c.began = callOpen, time.Now()
	r.emit(Event{Type: EventToolExecStart, ToolID: c.call.ID, Tool: c.call.Name, ToolLabel: c.label, Args: c.shown})
}

// shownArgs is what events show of args: what the model asked, or what became of that.
func (c *callRun) shownArgs(args json.RawMessage) json.RawMessage {
	if bytes.Equal(args, c.call.Args) {
		return c.shown
	}
	return bytes.Clone(args)
}

// showUpdates emits what a call reported.
func (r *run) showUpdates(c *callRun, updates []callUpdate) {
	for i := range updates {
		u := &updates[i]
		r.emit(Event{Type: EventToolExecUpdate, ToolID: c.call.ID, Tool: c.call.Name, ToolLabel: c.label,
			Args: c.shownArgs(u.args), UpdateKind: u.kind, Progress: &u.payload})
	}
}

// closeCall records what a call came to: the only place that emits its end.
func (r *run) closeCall(c *callRun, result ToolResult) {
	args := c.call.Args
	if c.box != nil {
		var updates []callUpdate
		updates, args = c.box.close()
		r.showUpdates(c, updates)
		close(c.gone)
		c.cancel(nil)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.state = callClosed
	c.result = recorded(c.call, result, r.cfg.MaxToolResultBytes)
	r.breaker.count(c.call.Name, c.result.Cause)
	r.emit(Event{
		Type:      EventToolExecEnd,
		ToolID:    c.call.ID,
		Tool:      c.call.Name,
		ToolLabel: c.label,
		Args:      c.shownArgs(args),
		Result:    c.result.clone(),
		IsError:   c.result.IsError,
		Duration:  time.Since(c.began),
	})
}

// sayResults puts one message for each result into the history, in the order of the calls,
// as far as the harness takes them.
func (r *run) sayResults() {
	a := r.answer
	for _, c := range a.running {
		if c.left || c.said {
			continue
		}
		if r.uncommitted() || !r.say(c.result.message()) {
			return
		}
		c.said = true
		if a.results == nil { // and it stays nil where there are none
			a.results = make([]ToolResult, 0, len(a.running))
		}
		a.results = append(a.results, c.result)
	}
}

// closeCalls answers what the end of a run finds unanswered, and closes its model call.
func (r *run) closeCalls() {
	if r.answer == nil {
		return
	}
	running := r.answer.running
	b := newBatch(r)
	if running != nil {
		b.calls, r.answer.running = running, running
	}
	r.answer.suspended = nil // something else ended the run
	for _, c := range b.calls {
		c.left = false
		switch {
		case c.state == callWaiting && b.mayHaveBegun(c):
			r.openCall(c)
			r.closeCall(c, interrupted(ToolResult{}, nil))
		case c.state == callWaiting:
			r.openCall(c)
			r.closeCall(c, unstarted(ToolNotStarted, "The run ended before this call began. It was not run."))
		case c.state == callOpen && c.waits != nil:
			r.closeCall(c, notStarted())
		case c.state == callOpen:
			r.closeCall(c, interrupted(ToolResult{}, nil))
		}
	}
	r.sayResults()
	r.respond()
}
