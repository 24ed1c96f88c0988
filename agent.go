package agentkernel

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/agentkernel-go/agentkernel/internal/goid"
)

// Agent is a conversation: it starts runs of [AgentLoop] one after the other, drains their
// events, folds each into its state and hands it to its listeners. All its methods may be
// called from any goroutine, and inside listeners except where they say otherwise. An idle
// agent has no goroutine and needs no closing.
type Agent struct {
	cfg Config
	// deliverer is the id of the goroutine that calls listeners, 0 where none does.
	deliverer atomic.Int64

	mu        sync.Mutex
	settings  settings      // for the next turn
	state     AgentState    // the fold of the events delivered so far
	head      *ContextInfo  // a replacement of the history that the next run announces
	active    *Run          // from its start until its AgentEnd is in the state
	delivered chan struct{} // closed when the last run's AgentEnd was delivered
	holds     int           // holders of HoldRuns
	listeners []*listener   // replaced, never changed
}

// NewAgent returns an agent with an empty history, or the field of cfg that makes no sense.
func NewAgent(cfg Config) (*Agent, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Resume != nil {
		return nil, invalid("config", "Resume is for a bare loop: see Agent.Resume")
	}
	if cfg.Steering == nil {
		cfg.Steering = new(Queue)
	}
	if cfg.FollowUps == nil {
		cfg.FollowUps = new(Queue)
	}
	now, err := cfg.settings()
	if err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, settings: now}, nil
}

// Run is a run of an agent, in flight or ended.
type Run struct {
	id     string
	agent  *Agent
	cancel context.CancelCauseFunc
	done   chan struct{}
	queued ledger
	// closing: the run takes no more steering. Guarded by the agent's mu.
	closing bool
	told    chan struct{} // closed when AgentStart was delivered to all listeners
	ended   chan struct{} // closed when AgentEnd is in the state
	record  RunRecord     // complete when done is closed
}

// ID returns the run's id, which is on all its events.
func (run *Run) ID() string { return run.id }

// Done returns a channel that is closed when every listener has returned from AgentEnd.
func (run *Run) Done() <-chan struct{} { return run.done }

// Wait returns when every listener has returned from AgentEnd, with the run's record and
// the error of AgentEnd; or when ctx ends, with its cause. Inside a listener of the agent,
// and with the context of one of the run's own calls, it returns ErrInListener.
func (run *Run) Wait(ctx context.Context) (RunRecord, error) {
	if run.agent.inListener() || inCallOf(ctx, run.id) {
		return RunRecord{}, ErrInListener
	}
	select {
	case <-run.done:
	case <-ctx.Done():
		select {
		case <-run.done: // an ended run's record is at hand
		default:
			return RunRecord{}, context.Cause(ctx)
		}
	}
	return run.record, run.record.Err
}

// Abort stops the run: model, tools and hooks get their context cancelled with cause, which
// AgentEnd then carries. It does not wait, and changes nothing once the run has ended.
func (run *Run) Abort(cause error) { run.cancel(cause) }

// Prompt starts a run with one user message and returns at once. The run lives under ctx.
//
// A run that first answers calls which the history left open, and is aborted meanwhile, may
// end without having said the message: RunRecord.NewMessages tells.
//
// Errors: ErrAlreadyRunning, ErrRunsHeld, ErrNoModel, and kind "invalid_request".
func (a *Agent) Prompt(ctx context.Context, text string) (*Run, error) {
	return a.start(ctx, order{prompts: []AgentMessage{UserMessage(text)}}, nil)
}

// PromptMessages starts a run with messages: the kernel's of role user or system, or the
// harness's own. Errors are those of Prompt, and ErrNoMessages where there are none.
func (a *Agent) PromptMessages(ctx context.Context, messages ...AgentMessage) (*Run, error) {
	if len(messages) == 0 {
		return nil, ErrNoMessages
	}
	return a.start(ctx, order{prompts: messages}, nil)
}

// Continue starts a run on the history as it is: to answer its last message, or to go on
// with an answer that was aborted or cut by the output limit. In that case the run begins with
// a user message that enters the history, Config.LengthPrompt. Errors are those of Prompt,
// ErrNoMessages for an empty history and ErrBadContinuation for one that ends with a finished
// answer.
func (a *Agent) Continue(ctx context.Context) (*Run, error) {
	return a.start(ctx, order{}, nil)
}

// Resume starts a run without prompts in which the calls go on that the last run left open
// because a gate suspended it ([Suspend], AgentState.Suspended). A call that answers has is
// dealt with as decided, without its gate being asked: executed, with other arguments where
// the decision has them, which are validated again, or denied. Of the others the gate is
// asked, which may suspend them again; Continue asks all. A Prompt instead, since the person
// said something else, answers them with a result of cause "skipped".
//
// AgentStart has been delivered to all listeners before a call is executed, so that whoever
// keeps the stream knows that the calls may have begun: they are executed at most once, also
// where the process dies. A call is bound to its id, name and arguments as they stand in the
// history.
//
// Errors are those of Continue, ErrNotSuspended, and kind "invalid_request" for an answer to
// a call that is not suspended. Nothing has changed then.
func (a *Agent) Resume(ctx context.Context, answers map[string]GateDecision) (*Run, error) {
	return a.start(ctx, order{resume: true, answers: answers}, nil)
}

// Run starts a run like Prompt and waits for it. When ctx ends the run is aborted, and Run
// returns its record and an error of kind "canceled" or "timeout". Other errors are those of
// Prompt and of AgentEnd. Inside a listener it returns ErrInListener and starts nothing.
func (a *Agent) Run(ctx context.Context, text string) (RunRecord, error) {
	if a.inListener() {
		return RunRecord{}, ErrInListener
	}
	run, err := a.Prompt(ctx, text)
	if err != nil {
		return RunRecord{}, err
	}
	<-run.done
	return run.record, run.record.Err
}

// order is what a run is started for.
type order struct {
	prompts []AgentMessage
	resume  bool // only where something is suspended
	answers map[string]GateDecision
}

// start claims the agent for a run and begins it. Events go to p too, if there is one.
func (a *Agent) start(ctx context.Context, o order, p *pipe) (*Run, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	run := &Run{id: rand.Text(), agent: a, cancel: cancel, done: make(chan struct{}),
		told: make(chan struct{}), ended: make(chan struct{})}
	job, err := a.claim(run, o)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	admitted := false
	defer func() {
		if !admitted { // also where a message's own method panicked
			cancel(nil)
			a.release(run)
		}
	}()
	if err := a.admits(job); err != nil {
		return nil, err
	}
	admitted = true
	d := &delivery{agent: a, run: run, pipe: p, before: a.succeed(run), events: start(ctx, cancel, job).ring}
	// Ends after AgentEnd was delivered; Wait waits for it.
	go d.loop()
	return run, nil
}

// admits says why the job cannot be begun. What waits in a queue makes any history continuable.
func (a *Agent) admits(j job) error {
	_, err := admit(j.live().model, a.cfg.LengthPrompt, j.history, j.prompts)
	if err == nil && j.cfg.Resume != nil {
		return j.cfg.Resume.check(mend(j.history, true).result())
	}
	queued := a.cfg.Steering.waiting() || a.cfg.FollowUps.waiting()
	if queued && (errors.Is(err, ErrNoMessages) || errors.Is(err, ErrBadContinuation)) {
		return nil
	}
	return err
}

// Steer queues messages for the running run, or for the next one: see Config.Steering.
func (a *Agent) Steer(messages ...AgentMessage) error { return a.cfg.Steering.Push(messages...) }

// FollowUp queues messages for when the run would stop, or for the next one: see Config.FollowUps.
func (a *Agent) FollowUp(messages ...AgentMessage) error { return a.cfg.FollowUps.Push(messages...) }

// Queues returns the queues to which Steer and FollowUp push: those of the Config, or the
// agent's own where it had none. They are the same for the agent's whole life.
func (a *Agent) Queues() (steering, followUps *Queue) { return a.cfg.Steering, a.cfg.FollowUps }

// claim makes run the active one, unless there is one.
func (a *Agent) claim(run *Run, o order) (job, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.active != nil:
		return job{}, ErrAlreadyRunning
	case a.holds > 0:
		return job{}, ErrRunsHeld
	case o.resume && len(a.state.Suspended) == 0:
		return job{}, ErrNotSuspended
	}
	a.active = run
	cfg := a.cfg
	if len(a.state.Suspended) > 0 {
		cfg.Resume = &Resumption{Suspended: a.state.Suspended, Answers: o.answers}
	}
	return job{
		cfg:     cfg,
		history: a.state.Messages,
		prompts: o.prompts,
		id:      run.id,
		head:    a.head,
		live:    a.liveSettings,
		queued:  &run.queued,
		told:    run.told,

		ringed:   true,
		replaced: a.state.replaced(),
		closing:  func(force bool) bool { return a.closeRun(run, force) },
	}, nil
}

// release gives up a claim whose run never began.
func (a *Agent) release(run *Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active == run {
		a.active = nil
		close(run.ended)
		close(run.done)
	}
}

// succeed makes run the last of the runs that are delivered one after the other, and returns
// what closes when the one before it is.
func (a *Agent) succeed(run *Run) (before <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, a.delivered, a.head = a.delivered, run.done, nil
	return before
}

func (a *Agent) liveSettings() settings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings
}

// Abort aborts the active run with cause; see [Run.Abort]. Without one it does nothing.
func (a *Agent) Abort(cause error) {
	a.mu.Lock()
	run := a.active
	a.mu.Unlock()
	if run != nil {
		run.Abort(cause)
	}
}

// State returns the agent's state: all events delivered so far, folded. It takes constant time.
func (a *Agent) State() AgentState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// Messages returns the history, shared and read-only.
func (a *Agent) Messages() []AgentMessage { return a.State().Messages }

// SetMessages replaces the history. It holds at once, and the next run announces it with a
// Context event. It returns ErrAlreadyRunning while a run is active.
func (a *Agent) SetMessages(messages ...AgentMessage) error {
	if err := checkMessages("history", messages); err != nil {
		return err
	}
	return a.replace(ContextInfo{Reason: ContextSetMessages, Messages: ownHistory(messages)})
}

// Reset empties the history and the usage. Listeners, queues and settings stay. It returns
// ErrAlreadyRunning while a run is active.
func (a *Agent) Reset() error { return a.replace(ContextInfo{Reason: ContextReset}) }

func (a *Agent) replace(c ContextInfo) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		return ErrAlreadyRunning
	}
	a.adoptHistory(c)
	return nil
}

// adoptHistory makes c the baseline, and the next run announce it.
func (a *Agent) adoptHistory(c ContextInfo) {
	if c.TokensBefore == 0 && a.state.ContextTokens != nil {
		c.TokensBefore = *a.state.ContextTokens
	}
	if a.head != nil { // not announced yet: this one is both
		c.TokensBefore = a.head.TokensBefore
		if a.head.Reason == ContextReset {
			c.Reason = ContextReset
		}
	}
	a.head = &c
	a.state.replace(c)
}

// SetModel changes the model from the next turn on, also of a running run.
func (a *Agent) SetModel(model ChatModel) error {
	if model == nil {
		return ErrNoModel
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings.model = model
	return nil
}

// SetTools changes the tools from the next turn on, also of a running run.
func (a *Agent) SetTools(tools ...Tool) error {
	set, err := newToolset(tools)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings.tools = set
	return nil
}

// SetSystemPrompt changes the system prompt from the next turn on, also of a running run.
func (a *Agent) SetSystemPrompt(text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings.system, a.settings.blocks = validText(text), nil
	return nil
}

// SetSystemBlocks changes the system prompt, in blocks, from the next turn on, also of a
// running run.
func (a *Agent) SetSystemBlocks(blocks ...SystemBlock) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings.system, a.settings.blocks = "", ownSystem(blocks)
	return nil
}

// SetThinkingLevel changes the thinking level from the next turn on, also of a running run.
func (a *Agent) SetThinkingLevel(level ThinkingLevel) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings.thinking = level
	return nil
}

// inListener tells whether the caller is the goroutine that delivers the agent's events.
func (a *Agent) inListener() bool {
	id := a.deliverer.Load()
	return id != 0 && id == goid.Current()
}
