// Package session is a product layer on the kernel's stream: a conversation that is stored as
// it happens, goes on after the death of its process, and knows things that the kernel does
// not: names, goals, memories, skills, costs of each model call.
//
// It shows how such a layer is built. A [Session] is the first listener of its agent. It wraps
// each event unchanged in a [SessionEvent], adds its own, and keeps what it must in a [Store]:
// each message through the kernel's Commit hook, before anyone sees it end.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// Config is what a session needs to know.
type Config struct {
	// Agent configures the runs. Model, Commit and ContextManager are the session's and must
	// not be set; SystemPrompt or SystemBlocks come first, then what the session remembers.
	Agent agentkernel.Config
	// Store keeps the session. Required. The session does not close it.
	Store Store
	// ID is the session to open, which is a new one where the store has none of that id: 1 to 64
	// letters, digits, "-" and "_". Empty means a new session with an id of its own.
	ID string
	// Models are the models by the names that users know. Model is the one to begin with;
	// a session that was given another one keeps it. Required.
	Models map[string]agentkernel.ChatModel
	Model  string
	// Compactor keeps the history within the model's window. Nil leaves it as it is.
	Compactor *agentkernel.Compactor
	// Extractor finds memories. Nil means [Rules].
	Extractor Extractor
	// Skills are what the model may ask for. Names are unique.
	Skills []Skill
	// Hooks are called at the end of each run.
	Hooks []Hook
	// Timeout bounds each write to the store during a run, each extraction and each hook. Zero
	// means 10 s.
	Timeout time.Duration
}

const defaultTimeout = 10 * time.Second

// Errors of misuse.
var (
	// ErrClosed: the session was closed.
	ErrClosed = errors.New("session: it is closed")
	// ErrUnknownModel: Config.Models has none of that name.
	ErrUnknownModel = errors.New("session: there is no model of that name")
	// ErrQueued: messages wait in the queues, which another session must not get.
	ErrQueued = errors.New("session: messages wait to be said")
)

// Session is a stored conversation that is open, and the agent that leads it. Its methods may
// be called from any goroutine, and in subscribers except where they say otherwise.
type Session struct {
	cfg    Config
	store  Store
	agent  *agentkernel.Agent
	feed   feed
	skills skills
	// settling is taken by who changes a setting, so that store and memory agree. Capacity 1.
	settling chan struct{}

	mu        sync.Mutex
	id        string
	unlock    func() error
	name      string
	model     string
	thinking  agentkernel.ThinkingLevel
	goal      Goal
	memory    []Memory
	running   bool // from the start of a run until its end is stored
	closed    bool
	committed int   // the place of the last message that the store took
	broken    error // why the store is not trusted for the rest of this run

	// What belongs to the goroutine that delivers the agent's events, and to who opens a
	// session while none does.
	ended    int // the place of the last message that ended
	unread   []Ended
	calls    callLog
	retrying *Retry
}

// Open opens a session, as its only holder until Close. What the store has of it becomes the
// agent's state; [Session.Continue] goes on with a run that did not come to its end.
//
// Errors: a Config that makes no sense, [ErrInUse], and the store's.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, store: cfg.Store, settling: make(chan struct{}, 1), skills: skills{all: cfg.Skills}}
	agent := cfg.Agent
	agent.Model, agent.Commit = cfg.Models[cfg.Model], s.commit
	if cfg.Compactor != nil {
		agent.ContextManager = newCompaction(s, *cfg.Compactor)
	}
	if len(cfg.Skills) > 0 {
		agent.Tools = append(agent.Tools[:len(agent.Tools):len(agent.Tools)], s.skills.tool())
	}
	var err error
	if s.agent, err = agentkernel.NewAgent(agent); err != nil {
		return nil, err
	}
	s.agent.Subscribe(s.listen) // the first: nobody else has the agent
	saved, unlock, err := s.load(ctx, cmp.Or(cfg.ID, newID()))
	if err != nil {
		return nil, err
	}
	state := saved.state()
	if err := s.agent.Restore(state); err != nil {
		return nil, errors.Join(err, unlock())
	}
	s.adopt(saved, unlock)
	return s, nil
}

func newID() string { return strings.ToLower(rand.Text()) }

var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check fills in defaults, or says what makes no sense.
func (cfg *Config) check() error {
	cfg.Extractor = cmp.Or[Extractor](cfg.Extractor, Rules{})
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Agent.Steering = cmp.Or(cfg.Agent.Steering, new(agentkernel.Queue))
	cfg.Agent.FollowUps = cmp.Or(cfg.Agent.FollowUps, new(agentkernel.Queue))
	switch {
	case cfg.Store == nil:
		return errors.New("session: Config.Store is nil")
	case cfg.Agent.Model != nil || cfg.Agent.Commit != nil || cfg.Agent.ContextManager != nil:
		return errors.New("session: Model, Commit and ContextManager of Config.Agent are the session's")
	case cfg.Models[cfg.Model] == nil:
		return fmt.Errorf("%w: Config.Model is %q", ErrUnknownModel, cfg.Model)
	case cfg.Compactor != nil && cfg.Compactor.Window <= 0:
		return errors.New("session: Config.Compactor.Window is not set")
	case cfg.Timeout < 0:
		return errors.New("session: Config.Timeout is negative")
	}
	names := make(map[string]bool)
	for _, skill := range cfg.Skills {
		if skill.Name == "" || names[skill.Name] {
			return fmt.Errorf("session: the name of skill %q is empty or taken", skill.Name)
		}
		names[skill.Name] = true
	}
	for _, h := range cfg.Hooks {
		if h.Run == nil {
			return fmt.Errorf("session: hook %q does nothing", h.Name)
		}
	}
	return nil
}

// ID returns the id of the session that is open.
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Name returns what the session is called: the first line of its first prompt, shortened.
// Empty before that.
func (s *Session) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}

// State returns the state of the agent: see [agentkernel.Agent.State].
func (s *Session) State() agentkernel.AgentState { return s.agent.State() }

// Calls returns the model calls of the session, the failed attempts among them, from the store.
func (s *Session) Calls(ctx context.Context) ([]ModelCall, error) { return s.store.Calls(ctx, s.ID()) }

// Subscribe registers fn for every later event of the session, and returns its removal.
//
// Order: subscribers are called one after the other in registration order, each event to all of
// them before the next one, by rising Seq. What the session does because of an event of the
// kernel comes behind that event; only the AgentEnd is the last event of its run, and is shown
// when all of the run is stored. Goroutine: the kernel's events come on the goroutine that
// delivers them, so that a slow fn slows the run; the session's own come there, on that of the
// call which made them, or on one of their own. A panic in fn becomes a session_error.
//
// fn may call every method that does not wait for a run: not Close, not Switch, not Run.Wait.
// When unsubscribe has returned, no new call of fn begins. A nil fn panics.
func (s *Session) Subscribe(fn func(SessionEvent)) (unsubscribe func()) {
	if fn == nil {
		panic("session: Subscribe of a nil subscriber")
	}
	return s.feed.subscribe(fn)
}

// emit queues an event of the session's own. Who calls it sees to it that it is delivered.
func (s *Session) emit(ev SessionEvent) {
	if ev.SessionID == "" {
		ev.SessionID = s.ID()
	}
	s.feed.put(ev)
}

// trouble tells of a failure that no caller hears of. A store that failed ends the run: see commit.
func (s *Session) trouble(op string, err error) {
	if op == opStore {
		s.mu.Lock()
		s.broken = err
		s.mu.Unlock()
	}
	s.emit(SessionEvent{Type: EventError, Error: failure(op, err)})
}

// opStore is the operation of a session_error about the store.
const opStore = "store"

// Prompt starts a run with one message of the user, and returns at once. The run lives under
// ctx. Errors are those of [agentkernel.Agent.Prompt] and [ErrClosed]; a run is active until its
// end is stored.
func (s *Session) Prompt(ctx context.Context, text string) (*agentkernel.Run, error) {
	return s.start(func() (*agentkernel.Run, error) { return s.agent.Prompt(ctx, text) })
}

// Continue starts a run on the history as it is, to go on with one that was aborted, failed, or
// died with its process: see [agentkernel.Agent.Continue]. Calls without a result are
// answered as interrupted, or executed where Config.Agent.RunOpenCalls or their tool says so.
func (s *Session) Continue(ctx context.Context) (*agentkernel.Run, error) {
	return s.start(func() (*agentkernel.Run, error) { return s.agent.Continue(ctx) })
}

func (s *Session) start(begin func() (*agentkernel.Run, error)) (*agentkernel.Run, error) {
	if err := s.claim(); err != nil {
		return nil, err
	}
	run, err := begin()
	if err != nil {
		s.mu.Lock()
		s.running = false
		s.mu.Unlock()
	}
	return run, err
}

// claim makes the session one with a run.
func (s *Session) claim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.running:
		return agentkernel.ErrAlreadyRunning
	}
	s.running = true
	return nil
}

// Steer queues messages for the running run, or for the next one.
func (s *Session) Steer(messages ...agentkernel.AgentMessage) error {
	return s.agent.Steer(messages...)
}

// FollowUp queues messages for when the run would stop, or for the next one.
func (s *Session) FollowUp(messages ...agentkernel.AgentMessage) error {
	return s.agent.FollowUp(messages...)
}

// Abort stops the run that is active, if one is.
func (s *Session) Abort(cause error) { s.agent.Abort(cause) }

// Close waits for the run that is active, if one is, and gives the session up; nothing can be
// started any more. Abort first where the run should not come to its end. When ctx ends
// before that its cause is returned, and the session is open still.
func (s *Session) Close(ctx context.Context) error {
	release, err := s.agent.HoldRuns(ctx)
	if err != nil {
		return err
	}
	err = s.exclusively(ctx, func() error {
		s.mu.Lock()
		closed, unlock := s.closed, s.unlock
		s.closed = true
		s.mu.Unlock()
		if closed {
			return nil
		}
		return unlock()
	})
	if !s.isClosed() {
		release()
	}
	return err
}
