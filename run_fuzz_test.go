package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
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

// TestRuns is the property test of a whole agent: random models, tools, hooks, listeners and
// aborts, each run in a bubble of its own, under the checker.
// See [property] for how many they are and how to repeat one.
func TestRuns(t *testing.T) {
	property(t, 500, func(t *testing.T, seed uint64) int {
		randomWorld(t, nil, seed)
		return 1
	})
}

// FuzzRun is TestRuns with the fuzzer's bytes as the dice.
func FuzzRun(f *testing.F) {
	f.Add([]byte{}, uint64(1))
	f.Add([]byte("some dice to begin with, enough for a whole run of the agent"), uint64(2))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) { randomWorld(t, data, seed) })
}

// dice draws from a fuzzer's bytes, then from a seeded generator.
type dice struct {
	data []byte
	rng  *rand.Rand
}

func (d *dice) n(n int) int {
	if len(d.data) == 0 || n > 256 {
		return d.rng.IntN(n)
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

func (d *dice) chance(percent int) bool { return d.n(100) < percent }

func (d *dice) upTo(longest time.Duration) time.Duration {
	return time.Duration(d.n(256)) * longest / 256
}

func pick[T any](d *dice, of ...T) T { return of[d.n(len(of))] }

// randomWorld plays one agent through a few runs.
func randomWorld(t *testing.T, data []byte, seed uint64) {
	w := &world{dice: &dice{data: data, rng: rand.New(rand.NewPCG(seed, 1))}}
	synctest.Test(t, w.play)
	if t.Failed() || w.problems != nil {
		t.Fatalf(seeded+" data=%q\n%s\n%s", seed, data, strings.Join(w.problems, "\n"), agenttest.Format(w.log))
	}
}

type world struct {
	*dice
	model *agenttest.Model
	agent *agentkernel.Agent

	checker  *agenttest.Checker
	mu       sync.Mutex
	problems []string
	log      []agentkernel.Event
	ended    []agentkernel.AgentMessage // of the current run, as MessageEnd brought them
	baseline []agentkernel.AgentMessage
	live     agentkernel.AgentState // the state before the first run, and the events since
	replayed agentkernel.AgentState // the events alone
	kept     []keptMessage
	runs     []*agentkernel.Run
	more     atomic.Int64 // runs that listeners may still start
}

// keptMessage is a snapshot and what it looked like when it came.
type keptMessage struct {
	message agentkernel.AgentMessage
	looked  string
}

func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) < 5 {
		w.problems = append(w.problems, fmt.Sprintf(format, args...))
	}
}

// play is a whole world, in its bubble.
func (w *world) play(t *testing.T) {
	cfg := w.config()
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		w.problem("NewAgent: %v", err)
		return
	}
	w.agent, w.checker = agent, agenttest.NewChecker()
	w.checker.StartFrom(nil)
	// A world in which nothing else would end a stall.
	defer time.AfterFunc(2*time.Hour, w.model.Release).Stop()

	agent.Subscribe(w.checker.Listen)
	agent.Subscribe(w.listen)
	for range w.n(4) {
		w.addListener()
	}
	if w.chance(30) {
		if err := agent.SetMessages(w.history()...); err != nil {
			w.problem("SetMessages: %v", err)
		}
	}
	w.more.Store(int64(w.n(3)))
	w.live, w.baseline = agent.State(), agent.Messages()
	for range 1 + w.n(3) {
		w.oneRun()
	}
	w.waitForAll()
	n := len(w.log)
	w.model.Release()
	time.Sleep(time.Hour) // until all that was left behind has come back
	if len(w.log) != n {
		w.problem("%d events came after the end", len(w.log)-n)
	}
	w.checkEnd()
}

func (w *world) oneRun() {
	ctx, cancel := context.WithTimeout(context.Background(), pick(w.dice, time.Second, time.Minute, time.Hour))
	defer cancel()
	var abort *time.Timer
	if w.chance(40) {
		abort = time.AfterFunc(w.upTo(2*time.Second), func() { w.agent.Abort(errors.New("at a random moment")) })
		defer abort.Stop()
	}
	if w.chance(25) {
		queue := pick(w.dice, w.agent.Steer, w.agent.FollowUp)
		queued := time.AfterFunc(w.upTo(time.Second), func() {
			if err := queue(agentkernel.UserMessage("queued"), mark("queued")); err != nil {
				w.problem("queue: %v", err)
			}
		})
		defer queued.Stop()
	}
	var run *agentkernel.Run
	var err error
	switch w.n(4) {
	case 0:
		run, err = w.agent.Continue(ctx)
	case 1:
		run, err = w.agent.PromptMessages(ctx, mark("status"), agentkernel.UserMessage("go"), mark("status"))
	case 2:
		w.stream(ctx)
		w.waitForAll()
		return
	default:
		run, err = w.agent.Prompt(ctx, "hi")
	}
	switch {
	case errors.Is(err, agentkernel.ErrNoMessages), errors.Is(err, agentkernel.ErrBadContinuation):
		return
	case errors.Is(err, agentkernel.ErrAlreadyRunning) && w.more.Load() >= 0:
		// A listener was faster; waitForAll made that impossible.
		w.problem("start: %v", err)
		return
	case err != nil:
		w.problem("start: %v", err)
		return
	}
	w.track(run)
	w.waitForAll()
}

func (w *world) stream(ctx context.Context) {
	leave := -1
	if w.chance(30) {
		leave = w.n(20)
	}
	var seq uint64
	for ev, err := range w.agent.Stream(ctx, agentkernel.UserMessage("stream")) {
		if err != nil {
			w.problem("Stream: %v", err)
			return
		}
		if seq++; ev.Seq != seq {
			w.problem("Stream yields seq %d, want %d", ev.Seq, seq)
		}
		if int(seq) == leave {
			break
		}
	}
	// Its run has no handle, but can be waited for.
	release, err := w.agent.HoldRuns(context.Background())
	if err != nil {
		w.problem("HoldRuns: %v", err)
		return
	}
	release()
}

func (w *world) track(run *agentkernel.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, run)
}

// waitForAll waits until no run is left, those that listeners started included.
func (w *world) waitForAll() {
	for {
		w.mu.Lock()
		runs := w.runs
		w.runs = nil
		w.mu.Unlock()
		if len(runs) == 0 {
			return
		}
		for _, run := range runs {
			record, err := run.Wait(context.Background())
			if record.ID != run.ID() || record.Err != err || record.Status == agentkernel.StatusRunning {
				w.problem("Wait of run %q gives the record %+v and %v", run.ID(), record, err)
			}
		}
	}
}

// listen keeps the stream and compares what can be known of each event with the agent.
func (w *world) listen(ev agentkernel.Event) {
	state := w.agent.State()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, ev)
	w.live = agentkernel.Reduce(w.live, ev)
	w.replayed = agentkernel.Reduce(w.replayed, ev)
	note := func(format string, args ...any) {
		if len(w.problems) < 5 {
			w.problems = append(w.problems, fmt.Sprintf("seq %d %s: ", ev.Seq, ev.Type)+fmt.Sprintf(format, args...))
		}
	}
	if diff := differ(w.live, state); diff != "" {
		note("reduced and live state differ in %s", diff)
	}
	if ev.Message != nil && len(w.kept) < 60 {
		w.kept = append(w.kept, keptMessage{ev.Message, look(ev.Message)})
	}
	switch ev.Type {
	case agentkernel.EventAgentStart:
		w.ended = nil
	case agentkernel.EventContext:
		w.baseline = ev.Context.Messages
	case agentkernel.EventMessageEnd:
		w.ended = append(w.ended, ev.Message)
	case agentkernel.EventError:
		if state.StreamMessage != nil {
			note("a half-made message is in the state")
		}
	case agentkernel.EventAgentEnd:
		w.baseline = slices.Concat(w.baseline, w.ended)
		if len(ev.NewMessages) != len(w.ended) || len(w.ended) > 0 && !reflect.DeepEqual(ev.NewMessages, w.ended) {
			note("NewMessages are not the ended messages")
		}
		if len(state.Messages) != len(w.baseline) || len(w.baseline) > 0 && !reflect.DeepEqual(state.Messages, w.baseline) {
			note("Messages() is not the baseline plus the ended messages: %v, want %v", said(state.Messages), said(w.baseline))
		}
		if diff := differ(w.replayed, state); diff != "" {
			note("replayed and live state differ in %s", diff)
		}
	}
}

// differ names the field in which two states differ.
func differ(a, b agentkernel.AgentState) string {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		f := x.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		p, q := x.Field(i), y.Field(i)
		if p.Kind() == reflect.Slice && p.Len() == 0 && q.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(p.Interface(), q.Interface()) {
			return fmt.Sprintf("%s: %v and %v", f.Name, p.Interface(), q.Interface())
		}
	}
	return ""
}

// look is all of a message, in memory of its own.
func look(m agentkernel.AgentMessage) string {
	raw, err := json.Marshal(m)
	return fmt.Sprint(string(raw), err)
}

func (w *world) checkEnd() {
	if err := w.checker.Finish(); err != nil {
		w.problem("%v", err)
	}
	state := w.agent.State()
	if state.IsRunning || state.StreamMessage != nil || len(state.PendingToolCalls) > 0 {
		w.problem("the idle agent's state is %+v", state)
	}
	for _, k := range w.kept {
		if got := look(k.message); got != k.looked {
			w.problem("a kept message was %s and is %s", k.looked, got)
		}
	}
}

// addListener subscribes a listener that does one random thing at one random event.
func (w *world) addListener() {
	at, end := int64(1+w.n(40)), w.chance(30)
	slow := time.Duration(0)
	if w.chance(20) {
		slow = w.upTo(100 * time.Millisecond)
	}
	act := w.act()
	var seen atomic.Int64
	var unsubscribe func()
	unsubscribe = w.agent.Subscribe(func(ev agentkernel.Event) {
		time.Sleep(slow)
		if n := seen.Add(1); n == at || end && ev.Type == agentkernel.EventAgentEnd {
			act(ev, unsubscribe)
		}
	})
}

func (w *world) act() func(agentkernel.Event, func()) {
	other := w.agent.Subscribe(func(agentkernel.Event) {})
	switch w.n(9) {
	case 0:
		return func(agentkernel.Event, func()) { panic("listener") }
	case 1:
		return func(agentkernel.Event, func()) { runtime.Goexit() }
	case 2:
		return func(_ agentkernel.Event, self func()) { self() }
	case 3:
		return func(agentkernel.Event, func()) { other() }
	case 4:
		return func(agentkernel.Event, func()) { w.agent.Abort(errors.New("by a listener")) }
	case 5:
		return func(agentkernel.Event, func()) {
			w.agent.Subscribe(func(agentkernel.Event) { _ = w.agent.State() })
		}
	case 6:
		return func(_ agentkernel.Event, self func()) {
			_, err := w.agent.Run(context.Background(), "no")
			if err != agentkernel.ErrInListener {
				w.problem("Run in a listener: %v", err)
			}
			if _, err := w.agent.HoldRuns(context.Background()); err != agentkernel.ErrInListener {
				w.problem("HoldRuns in a listener: %v", err)
			}
			self()
		}
	case 7:
		tools := w.tools()
		return func(agentkernel.Event, func()) {
			err := errors.Join(w.agent.SetTools(tools[:2]...), w.agent.SetSystemPrompt("other"), w.agent.SetModel(w.model))
			if err != nil {
				w.problem("a setter in a listener: %v", err)
			}
		}
	}
	return w.promptAgain
}

// promptAgain starts the next run from AgentEnd, and is refused before it.
func (w *world) promptAgain(ev agentkernel.Event, _ func()) {
	if ev.Type == agentkernel.EventAgentEnd && w.more.Add(-1) < 0 {
		return
	}
	run, err := w.agent.Prompt(context.Background(), "again")
	switch {
	case err == nil && ev.Type == agentkernel.EventAgentEnd:
		// What stalls in it must end too.
		time.AfterFunc(time.Hour, func() { run.Abort(nil) })
		w.track(run)
		if _, err := run.Wait(context.Background()); err != agentkernel.ErrInListener {
			w.problem("Wait in a listener: %v", err)
		}
	case err == nil:
		w.problem("Prompt at %s started a run", ev.Type)
	case !errors.Is(err, agentkernel.ErrAlreadyRunning) && !errors.Is(err, agentkernel.ErrRunsHeld):
		w.problem("Prompt at %s: %v", ev.Type, err)
	}
}
