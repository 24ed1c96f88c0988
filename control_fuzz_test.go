package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestControlledRuns is the property test of run control: random queues, steering, follow-ups,
// retries, silent models, hooks that fail or stay away, context managers, stop guards, gates that
// suspend and are answered, aborts, holds and injections, in loop and agent, each world in a bubble of its own.
// See [property] for how many they are and how to repeat one.
func TestControlledRuns(t *testing.T) {
	var suspensions atomic.Int64
	t.Cleanup(func() { t.Logf("%d of them suspended", suspensions.Load()) })
	property(t, 300, func(t *testing.T, seed uint64) int {
		runs, waiting := controlledWorld(t, nil, seed)
		suspensions.Add(int64(waiting))
		return runs
	})
}

// FuzzControlledRun is TestControlledRuns with the fuzzer's bytes as the dice.
func FuzzControlledRun(f *testing.F) {
	f.Add([]byte{}, uint64(1))
	f.Add([]byte("some dice to begin with, enough for a whole run of the agent"), uint64(2))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) { controlledWorld(t, data, seed) })
}

// control is a world in which runs are controlled in random ways.
type control struct {
	*dice
	cfg   agentkernel.Config
	model *agenttest.Model
	agent *agentkernel.Agent

	mu       sync.Mutex
	problems []string
	logs     [][]agentkernel.Event // of one run each
	pushed   int                   // messages that went into a queue or were injected
	lost     map[string]bool       // those that a failing Commit may lose
	commits  []agentkernel.AgentMessage
	refused  bool // a Commit failed
	runs     int
	begun    map[string]int             // executions of each call
	history  []agentkernel.AgentMessage // in the end
	open     []agentkernel.Suspension
}

// controlledWorld plays one world and returns how many runs there were, and how many of them
// ended as suspended.
func controlledWorld(t *testing.T, data []byte, seed uint64) (runs, waiting int) {
	w := &control{dice: &dice{data: data, rng: rand.New(rand.NewPCG(seed, 4))}, lost: map[string]bool{}, begun: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		w.configure()
		defer time.AfterFunc(200*time.Hour, w.model.Release).Stop()
		if w.chance(30) {
			w.playLoops()
		} else {
			w.playAgent()
		}
		w.model.Release()
		time.Sleep(100 * time.Hour) // until all that was left behind has come back
		synctest.Wait()
		w.account()
	})
	if t.Failed() || w.problems != nil {
		var all strings.Builder
		for _, log := range w.logs {
			all.WriteString(agenttest.Format(log))
		}
		t.Fatalf(seeded+" data=%q\n%s\n%s", seed, data, strings.Join(w.problems, "\n"), all.String())
	}
	for _, log := range w.logs {
		if endReason(log) == agentkernel.EndSuspended {
			waiting++
		}
	}
	return w.runs, waiting
}

func (w *control) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) < 5 {
		w.problems = append(w.problems, fmt.Sprintf(format, args...))
	}
}

// message is one that must be said exactly once, or still wait.
func (w *control) message() agentkernel.AgentMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pushed++
	text := fmt.Sprint("#", w.pushed)
	if w.pushed%3 == 0 {
		return mark(text)
	}
	return agentkernel.UserMessage(text)
}

// inject injects a message. One that starts a run is that run's prompt, which is not said
// where Commit does not take it, or an abort comes while calls are answered that were open.
func (w *control) inject() {
	m := w.message()
	got, err := w.agent.Inject(context.Background(), m)
	w.expect("Inject", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[m.TextContent()] = got.Run != nil
}

// playLoops runs bare loops, one after the other, each on what the one before left.
func (w *control) playLoops() {
	var history []agentkernel.AgentMessage
	var open []agentkernel.Suspension
	for range 1 + w.n(4) {
		ctx, cancel := context.WithCancelCause(context.Background())
		prompts := list()
		if w.chance(60) {
			prompts = list(agentkernel.UserMessage("hi"))
		}
		abort := -1
		if w.chance(50) {
			abort = w.n(40)
		}
		slow := time.Duration(0)
		if w.chance(20) {
			slow = w.upTo(200 * time.Millisecond)
		}
		stop := time.AfterFunc(10*time.Hour, func() { cancel(errors.New("it stalls")) })
		checker := agenttest.NewChecker()
		checker.StartFrom(history)
		var log []agentkernel.Event
		cfg := w.cfg
		if len(open) > 0 {
			cfg.Resume = &agentkernel.Resumption{Suspended: open, Answers: w.answers(open)}
		}
		for ev := range agentkernel.AgentLoop(ctx, cfg, history, prompts...) {
			checker.Listen(ev)
			if log = append(log, ev); len(log) == abort {
				cancel(errors.New("at a random event"))
			}
			time.Sleep(slow)
		}
		stop.Stop()
		cancel(nil)
		w.logs = append(w.logs, log)
		w.runs++
		if err := checker.Finish(); err != nil {
			w.problem("%v", err)
			return
		}
		for _, ev := range log {
			switch ev.Type {
			case agentkernel.EventContext:
				history = slices.Clone(ev.Context.Messages)
			case agentkernel.EventMessageEnd:
				history = append(history, ev.Message)
			}
		}
		open = final(log).Summary.Suspended
	}
	w.history, w.open = history, open
}

// playAgent starts runs and disturbs them from listeners and timers.
func (w *control) playAgent() {
	agent, err := agentkernel.NewAgent(w.cfg)
	if err != nil {
		w.problem("NewAgent: %v", err)
		return
	}
	w.agent = agent
	checker := agenttest.NewChecker()
	checker.StartFrom(nil)
	agent.Subscribe(checker.Listen)
	agent.Subscribe(w.record)
	live := agent.State()
	agent.Subscribe(func(ev agentkernel.Event) {
		live = agentkernel.Reduce(live, ev)
		if diff := differ(live, agent.State()); diff != "" {
			w.problem("seq %d %s: reduced and live state differ in %s", ev.Seq, ev.Type, diff)
		}
	})
	if w.chance(20) {
		slow := w.upTo(200 * time.Millisecond)
		agent.Subscribe(func(agentkernel.Event) { time.Sleep(slow) })
	}
	for range w.n(5) {
		w.disturb()
	}
	for range 1 + w.n(4) {
		w.start()
		stop := time.AfterFunc(10*time.Hour, func() { agent.Abort(errors.New("it stalls")) })
		release, err := agent.HoldRuns(context.Background())
		stop.Stop()
		if err != nil {
			w.problem("HoldRuns: %v", err)
			return
		}
		if w.chance(20) {
			if w.idle() {
				checker.StartFrom(agent.Messages()) // nothing is announced, not even what waited for that
			}
			live = agent.State()
		}
		release()
	}
	release, err := agent.HoldRuns(context.Background()) // what listeners started too
	if err != nil {
		w.problem("HoldRuns: %v", err)
		return
	}
	if state := agent.State(); state.IsRunning || state.StreamMessage != nil || len(state.PendingToolCalls) > 0 {
		w.problem("the idle agent's state is %+v", state)
	}
	if err := checker.Finish(); err != nil {
		w.problem("%v", err)
	}
	w.history, w.open = agent.Messages(), agent.State().Suspended
	defer release()
}

func (w *control) record(ev agentkernel.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ev.Type == agentkernel.EventAgentStart {
		w.logs = append(w.logs, nil)
		w.runs++
	}
	last := len(w.logs) - 1
	w.logs[last] = append(w.logs[last], ev)
}

// start starts a run in one of the ways there are.
func (w *control) start() {
	ctx := context.Background()
	var err error
	switch w.n(6) {
	case 0:
		_, err = w.agent.Continue(ctx)
	case 2, 3:
		_, err = w.agent.Resume(ctx, w.answers(w.agent.State().Suspended))
		// A listener or a timer may have started a run since the answers were drawn.
		w.expect("Resume", err, agentkernel.ErrAlreadyRunning, agentkernel.ErrRunsHeld, agentkernel.ErrNotSuspended, agentkernel.KindInvalidRequest)
		return
	case 1:
		w.inject()
	default:
		_, err = w.agent.Prompt(ctx, "hi")
	}
	w.expect("start", err, agentkernel.ErrAlreadyRunning, agentkernel.ErrRunsHeld, agentkernel.ErrNoMessages, agentkernel.ErrBadContinuation)
}

func (w *control) expect(what string, err error, allowed ...error) {
	if err != nil && !slices.ContainsFunc(allowed, func(a error) bool { return errors.Is(err, a) }) {
		w.problem("%s: %v", what, err)
	}
}

// idle is what is done to an agent while its runs are held. It reports whether that is to
// restore it.
func (w *control) idle() (restored bool) {
	switch w.n(4) {
	case 3:
		w.restart()
		return true
	case 0:
		w.expect("Reset", w.agent.Reset())
	case 1:
		w.expect("SetMessages", w.agent.SetMessages(w.agent.Messages()...))
	case 2:
		_, err := w.agent.Compact(context.Background(), "tidy")
		if w.cfg.ContextManager == nil {
			w.expect("Compact", err, agentkernel.KindInvalidRequest)
		}
	}
	return false
}

// disturb does one thing at one random event of all runs, or at one random time.
func (w *control) disturb() {
	act := w.intervention()
	if w.chance(30) {
		after := w.upTo(3 * time.Second)
		time.AfterFunc(after, func() { act(false) })
		return
	}
	at := int64(1 + w.n(60))
	var seen atomic.Int64
	w.agent.Subscribe(func(agentkernel.Event) {
		if seen.Add(1) == at {
			act(true)
		}
	})
}

func (w *control) intervention() func(inListener bool) {
	ctx := context.Background()
	switch w.n(6) {
	case 0:
		return func(bool) { w.agent.Abort(errors.New("at a random moment")) }
	case 1:
		return func(bool) { w.expect("Steer", w.agent.Steer(w.message(), w.message())) }
	case 2:
		return func(bool) { w.expect("FollowUp", w.agent.FollowUp(w.message())) }
	case 3:
		return func(bool) {
			w.inject()
		}
	case 4:
		return func(inListener bool) {
			release, err := w.agent.HoldRuns(ctx)
			if inListener {
				w.expect("HoldRuns in a listener", err, agentkernel.ErrInListener)
				return
			}
			w.expect("HoldRuns", err)
			release()
		}
	}
	return func(bool) {
		_, err := w.agent.Prompt(ctx, "again")
		w.expect("Prompt", err, agentkernel.ErrAlreadyRunning, agentkernel.ErrRunsHeld)
	}
}

// account proves that every message is in one place, that Commit saw what was said, and that
// what was written needs no mending.
func (w *control) account() {
	seen := map[string]int{}
	var ended []agentkernel.AgentMessage
	for _, log := range w.logs {
		if len(log) == 0 || final(log).Type != agentkernel.EventAgentEnd {
			w.problem("a run did not end")
			return
		}
		ended = append(ended, final(log).NewMessages...)
		w.refused = w.refused || errors.Is(final(log).Err, agentkernel.KindCommit)
		w.checkRun(log)
	}
	w.answeredOnce(w.history, w.open)
	for _, m := range ended {
		seen[m.TextContent()]++
	}
	for _, q := range []*agentkernel.Queue{w.cfg.Steering, w.cfg.FollowUps} {
		for _, m := range q.Items() {
			seen[m.TextContent()]++
		}
		if len(q.Clear()) > 0 && len(q.Items()) > 0 {
			w.problem("an idle queue has leased items")
		}
	}
	for i := range w.pushed {
		text := fmt.Sprint("#", i+1)
		if want := 1; seen[text] != want && !(w.lost[text] && (w.refused || w.waited()) && seen[text] == 0) {
			w.problem("%s is in %d places, want 1", text, seen[text])
		}
	}
	if !w.refused && w.cfg.StopTimeout == 0 && !reflect.DeepEqual(ended, w.commits) && len(ended)+len(w.commits) > 0 {
		w.problem("committed %v, ended %v", said(w.commits), said(ended))
	}
}

// checkRun checks what a run's log says of its limits.
func (w *control) checkRun(log []agentkernel.Event) {
	end := final(log)
	calls := 0
	for _, ev := range ofType(log, agentkernel.EventModelRequest) {
		if ev.Attempt == 1 {
			calls++
		}
		if err := sound(ev.Request.Messages); err != nil {
			w.problem("seq %d: the model is asked with %v", ev.Seq, err)
		}
	}
	if w.cfg.MaxTurns > 0 && calls > w.cfg.MaxTurns {
		w.problem("%d model calls of %d", calls, w.cfg.MaxTurns)
	}
	if !errors.Is(end.Err, agentkernel.KindCommit) && log[0].RunID != "" {
		if problems := w.unsound(w.written(log)); len(problems) > len(end.Summary.Suspended) {
			w.problem("the run wrote a history that needs mending: %v", problems)
		}
	}
}

// written is the history that a run left, as far as the run wrote it.
func (w *control) written(log []agentkernel.Event) []agentkernel.AgentMessage {
	var history []agentkernel.AgentMessage
	for _, ev := range log {
		switch ev.Type {
		case agentkernel.EventContext:
			history = slices.Clone(ev.Context.Messages)
		case agentkernel.EventMessageEnd:
			if ev.Message.GetRole() == agentkernel.RoleTool && len(history) == 0 {
				continue // answers a call of the run before
			}
			history = append(history, ev.Message)
		}
	}
	return history
}
