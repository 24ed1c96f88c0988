package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestControlledRuns is the property test of run control: random queues, steering, follow-ups,
// retries, silent models, hooks that fail or stay away, context managers, stop guards, gates that
// suspend and are answered, aborts, holds and injections, in loop and agent, each world in a bubble of its own.
//
// AGENTKERNEL_FUZZ_RUNS is how many runs (300), AGENTKERNEL_FUZZ_SEED repeats one world.
func TestControlledRuns(t *testing.T) {
	if s := os.Getenv("AGENTKERNEL_FUZZ_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		controlledWorld(t, nil, seed)
		return
	}
	runs := 300
	if s := os.Getenv("AGENTKERNEL_FUZZ_RUNS"); s != "" {
		var err error
		runs, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	first := rand.Uint64()
	var worlds, played, suspensions atomic.Int64
	began := time.Now()
	t.Cleanup(func() {
		t.Logf("%d runs, %d of them suspended, %.0f a second", played.Load(), suspensions.Load(), float64(played.Load())/time.Since(began).Seconds())
	})
	for shard := range runtime.GOMAXPROCS(0) {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			for !t.Failed() && played.Load() < int64(runs) {
				runs, waiting := controlledWorld(t, nil, first+uint64(worlds.Add(1)))
				played.Add(int64(runs))
				suspensions.Add(int64(waiting))
			}
		})
	}
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
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("AGENTKERNEL_FUZZ_SEED=%d: %v", seed, p))
		}
	}()
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
		t.Fatalf("AGENTKERNEL_FUZZ_SEED=%d data=%q\n%s\n%s", seed, data, strings.Join(w.problems, "\n"), all.String())
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

func (w *control) configure() {
	var script []agenttest.Reply
	for range 2 + w.n(8) {
		script = append(script, w.reply())
	}
	w.model = agenttest.Script(script...)
	mode := func() agentkernel.QueueMode { return pick(w.dice, agentkernel.QueueAll, agentkernel.QueueOneAtATime) }
	w.cfg = agentkernel.Config{
		Model: w.model, Tools: w.controlTools(),
		Steering: &agentkernel.Queue{Mode: mode()}, FollowUps: &agentkernel.Queue{Mode: mode()},
		SteerPolicy:         pick(w.dice, agentkernel.SteerSkip, agentkernel.SteerFinish),
		MaxTurns:            pick(w.dice, 12, 12, 2, 1),
		EventBuffer:         pick(w.dice, 0, 2, 3),
		RunTimeout:          pick(w.dice, 0, 0, 0, time.Second, time.Hour),
		StreamIdleTimeout:   pick(w.dice, 0, -1, 100*time.Millisecond, time.Second),
		StopTimeout:         pick(w.dice, 0, time.Millisecond, time.Second),
		Budget:              pick(w.dice, agentkernel.Budget{}, agentkernel.Budget{}, agentkernel.Budget{Tokens: 150}, agentkernel.Budget{Cost: 1}),
		MaxLengthRecoveries: pick(w.dice, 0, 1, -1),
		MaxEmptyRetries:     pick(w.dice, 0, 2, -1),
		AbortMarker:         pick(w.dice, "", "(aborted)"),
		RunOpenCalls:        w.chance(50),
		Retry: agentkernel.RetryPolicy{
			MaxRetries: pick(w.dice, 0, 1, -1), BaseDelay: pick(w.dice, 0, -1, time.Millisecond), Jitter: pick(w.dice, 0, -1, 1.0),
		},
	}
	if w.chance(30) {
		w.cfg.Fallbacks = []agentkernel.ChatModel{w.model}
	}
	w.cfg.Commit = w.commit()
	if w.chance(50) {
		w.cfg.Gate = w.suspends()
	}
	if w.chance(40) {
		w.cfg.Prepare = w.prepare()
	}
	if w.chance(40) {
		w.cfg.StopGuard = w.stopGuard()
	}
	if w.chance(50) {
		w.cfg.ContextManager = w.contextManager()
	}
	for range w.n(4) {
		w.push()
	}
}

func (w *control) push() {
	q := pick(w.dice, w.cfg.Steering, w.cfg.FollowUps)
	if err := q.Push(w.message()); err != nil {
		w.problem("Push: %v", err)
	}
}

func (w *control) reply() agenttest.Reply {
	r := agenttest.Reply{}
	if w.chance(20) {
		r = r.Thinking("hm")
	}
	if w.chance(70) {
		r = r.Text(pick(w.dice, "yes", "well, let me see", strings.Repeat("long ", 50)))
	}
	if w.chance(40) {
		r = r.Calls(slices.Repeat([]string{pick(w.dice, "ok", "slow", "deaf", "push", "stop")}, 1+w.n(3))...)
	}
	r = r.Chunks(1 + w.n(9))
	if w.chance(50) {
		n := w.n(100)
		r = r.Usage(agentkernel.Usage{Input: n, Total: n, Cost: new(float64(n) / 128)})
	}
	if w.chance(40) {
		r = r.Delay(w.upTo(150 * time.Millisecond))
	}
	if w.chance(20) {
		r = r.Stop(pick(w.dice, agentkernel.StopReasonLength, agentkernel.StopReasonRefusal))
	}
	if w.chance(10) {
		r = r.IgnoringContext()
	}
	switch w.n(14) {
	case 0:
		return r.Fail(failure(agentkernel.KindServer, true))
	case 1:
		return r.Fail(&agentkernel.Error{Kind: agentkernel.KindRateLimit, Retryable: true, RetryAfter: w.upTo(2 * time.Minute)})
	case 2:
		return r.Fail(failure(agentkernel.KindContextOverflow, false))
	case 3:
		return r.EndsWithoutDone()
	case 4:
		return r.Stall()
	case 5:
		return r.Fail(failure(agentkernel.KindAuth, false))
	}
	return r
}

func (w *control) controlTools() []agentkernel.Tool {
	slow, late := w.upTo(time.Second), w.upTo(20*time.Second)
	return w.counted(
		echo("ok"),
		tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
			select {
			case <-time.After(slow):
				return agentkernel.TextResult(strings.Repeat("slow ", 60)), nil
			case <-ctx.Done():
				return agentkernel.ToolResult{}, context.Cause(ctx)
			}
		}),
		tool("deaf", func(context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(late)
			return agentkernel.TextResult("late"), nil
		}),
		tool("push", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.TextResult("pushed"), w.cfg.Steering.Push(w.message())
		}),
		tool("stop", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{Terminate: true}, nil
		}),
	)
}

// misdeed is what a hook does at one of its calls: mostly nothing.
func (w *control) misdeed() func() error {
	if w.chance(70) {
		return func() error { return nil }
	}
	at, act, late := int64(1+w.n(5)), w.n(5), w.upTo(10*time.Second)
	var calls atomic.Int64
	return func() error {
		if calls.Add(1) != at {
			return nil
		}
		switch act {
		case 0:
			panic("hook")
		case 1:
			runtime.Goexit()
		case 2:
			return errors.New("hook")
		case 3:
			time.Sleep(late)
		case 4:
			_ = w.cfg.Steering.Push(w.message())
		}
		return nil
	}
}

func (w *control) commit() func(context.Context, agentkernel.AgentMessage) error {
	misbehave := w.misdeed()
	return func(ctx context.Context, m agentkernel.AgentMessage) (err error) {
		w.mu.Lock()
		w.commits = append(w.commits, m)
		w.mu.Unlock()
		failed := true
		defer func() {
			if failed {
				w.mu.Lock()
				w.refused = true
				w.mu.Unlock()
			}
		}()
		err = misbehave()
		failed = err != nil || ctx.Err() != nil // or the run did not wait for it any longer
		return err
	}
}

func (w *control) prepare() func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
	misbehave, project := w.misdeed(), w.chance(40)
	return func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
		if err := misbehave(); err != nil || !project {
			return agentkernel.PrepareResult{Temperature: new(0.5)}, err
		}
		return agentkernel.PrepareResult{Messages: req.History[len(req.History)/2:], CacheBreakpoints: []int{0}}, nil
	}
}

func (w *control) stopGuard() func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
	misbehave := w.misdeed()
	actions := []agentkernel.StopAction{pick(w.dice, "", agentkernel.StopGoOn), pick(w.dice, "", agentkernel.StopGoOn, agentkernel.StopEscalate)}
	var calls atomic.Int64
	return func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
		err := misbehave()
		n := calls.Add(1)
		if int(n) > len(actions) {
			return agentkernel.StopDecision{}, err
		}
		return agentkernel.StopDecision{Action: actions[n-1], Message: agentkernel.UserMessage("not yet"), Reason: "never"}, err
	}
}

func (w *control) contextManager() agentkernel.ContextManager {
	if w.chance(40) {
		return &agentkernel.Compactor{Window: 100 + w.n(200)}
	}
	misbehave := w.misdeed()
	cut := func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		if err := misbehave(); err != nil || len(req.History) < 4 {
			return agentkernel.ContextResult{}, err
		}
		return agentkernel.ContextResult{Messages: append(list(agentkernel.UserMessage("summary")), req.History[len(req.History)-2:]...)}, nil
	}
	every := w.chance(30)
	return &manager{recover: cut, project: func(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		if every || req.Tokens > 300 {
			return cut(ctx, req)
		}
		return agentkernel.ContextResult{}, nil
	}}
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
			w.idle()
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

// idle is what is done to an agent while its runs are held.
func (w *control) idle() {
	switch w.n(4) {
	case 3:
		w.restart()
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
