package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestAsyncRuns is the property test of asynchronous consumers: whatever a random agent does,
// and however slow they are, what they show is at each edge what a synchronous one shows.
//
// AGENTKERNEL_ASYNC_RUNS is how many worlds (200), AGENTKERNEL_ASYNC_SEED repeats one of them.
func TestAsyncRuns(t *testing.T) {
	first, worlds := rand.Uint64(), uint64(200)
	if s := os.Getenv("AGENTKERNEL_ASYNC_RUNS"); s != "" {
		var err error
		worlds, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	if s := os.Getenv("AGENTKERNEL_ASYNC_SEED"); s != "" {
		var err error
		first, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		worlds = 1
	}
	merged := 0
	for seed := first; seed < first+worlds && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			problems, n := asyncWorld(seed)
			merged += n
			if len(problems) > 0 {
				t.Errorf("AGENTKERNEL_ASYNC_SEED=%d\n%s", seed, strings.Join(problems, "\n"))
			}
		})
	}
	if worlds > 50 {
		require.NotZero(t, merged)
	}
}

// asyncWorld plays one agent under a few consumers. It tells what went wrong, and how many
// updates were merged.
func asyncWorld(seed uint64) (problems []string, merged int) {
	w := &world{dice: &dice{rng: rand.New(rand.NewPCG(seed, 1))}, checker: agenttest.NewChecker()}
	cfg := w.config()
	cfg.OnListenerPanic = func(any, []byte, agentkernel.Event) {}
	cfg.Tools = append(cfg.Tools, w.reporter())
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		return []string{err.Error()}, 0
	}
	w.agent = agent
	defer time.AfterFunc(2*time.Hour, w.model.Release).Stop()

	want := newScreen()
	agent.Subscribe(want.show)
	screens := make([]*screen, 1+w.n(3))
	for i := range screens {
		screens[i] = w.asyncScreen(rand.New(rand.NewPCG(seed, uint64(2+i))))
	}
	for range 1 + w.n(3) {
		w.oneRun()
	}
	w.waitForAll()
	for i, s := range screens {
		if err := s.sub.Drain(context.Background()); err != nil {
			w.problem("Drain: %v", err)
		}
		if err := s.checker.Finish(); err != nil {
			w.problem("%v", err)
		}
		for _, diff := range s.differs(want) {
			w.problem("consumer %d: %s", i, diff)
		}
		merged += s.merged
	}
	w.model.Release()
	time.Sleep(time.Hour) // until all that was left behind has come back
	return w.problems, merged
}

// reporter is a tool that reports a lot, of every kind of kinds.
func (w *world) reporter() agentkernel.Tool {
	n, pause := w.n(50), w.upTo(20*time.Millisecond)
	t := tool("reed", func(ctx context.Context) (agentkernel.ToolResult, error) {
		for i := range n {
			kind := []agentkernel.ProgressKind{agentkernel.ProgressToolDelta, agentkernel.ProgressSummary, agentkernel.ProgressThinking}[i%7%3]
			agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: kind, Tool: strconv.Itoa(i % 2), Text: strconv.Itoa(i)})
			time.Sleep(pause)
		}
		return agentkernel.TextResult("reported"), nil
	})
	t.ConcurrencySafe = func(json.RawMessage) bool { return true }
	return t
}

// asyncScreen subscribes a screen that is slow, fails and is drained at random.
func (w *world) asyncScreen(rng *rand.Rand) *screen {
	s := newScreen()
	s.checker = &agenttest.Checker{AllowCoalesced: true}
	slow := pick(w.dice, 0, time.Millisecond, 50*time.Millisecond, time.Second)
	fails := w.chance(20)
	s.sub = w.agent.SubscribeAsync(func(ev agentkernel.Event) {
		if slow > 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(slow))))
		}
		s.checker.Listen(ev)
		s.show(ev)
		switch {
		case !fails:
		case rng.IntN(10) == 0:
			panic("a listener")
		case rng.IntN(10) == 0:
			runtime.Goexit()
		}
	}, agentkernel.AsyncOptions{
		MaxPending: pick(w.dice, 0, -1, 1, 3, 20),
		MaxRate:    pick(w.dice, 0, 0, 2, 60, 1000.0),
	})
	for range w.n(3) {
		after, patience := w.upTo(2*time.Second), w.upTo(time.Second)
		time.AfterFunc(after, func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_ = s.sub.Drain(ctx)
		})
	}
	return s
}

// screen shows messages in two ways, by their newest state and by adding up deltas, and the
// progress of calls. It keeps what it showed at each edge.
type screen struct {
	sub     *agentkernel.Subscription
	checker *agenttest.Checker

	mu       sync.Mutex
	drawn    map[string][]string          // by run: the text of each block
	written  map[string][]string          // by run: the sum of the deltas of each block
	progress map[string]map[string]string // by run and call: text by kind
	edges    []agentkernel.Event
	shown    []string // at each edge
	count    map[string]uint64
	last     map[string]uint64
	merged   int
}

func newScreen() *screen {
	return &screen{
		drawn: make(map[string][]string), written: make(map[string][]string),
		progress: make(map[string]map[string]string),
		count:    make(map[string]uint64), last: make(map[string]uint64),
	}
}

func (s *screen) show(ev agentkernel.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[ev.RunID] += 1 + uint64(ev.Coalesced)
	s.last[ev.RunID] = ev.Seq
	s.merged += ev.Coalesced
	switch {
	case ev.Type == agentkernel.EventMessageUpdate:
		s.write(ev)
		s.drawn[ev.RunID] = blockTexts(ev.Message)
	case ev.Type == agentkernel.EventToolExecUpdate && ev.UpdateKind == agentkernel.ToolExecUpdateProgress:
		s.tell(ev)
	default:
		s.edge(ev)
	}
}

func (s *screen) write(ev agentkernel.Event) {
	lines := s.written[ev.RunID]
	for len(lines) <= ev.ContentIndex {
		lines = append(lines, "")
	}
	lines[ev.ContentIndex] += ev.Delta
	s.written[ev.RunID] = lines
}

func (s *screen) tell(ev agentkernel.Event) {
	call := ev.RunID + " " + ev.ToolID
	if s.progress[call] == nil {
		s.progress[call] = make(map[string]string)
	}
	kind := string(ev.Progress.Kind) + " of " + ev.Progress.Tool
	if ev.Progress.Kind == agentkernel.ProgressToolDelta || ev.Progress.Kind == agentkernel.ProgressThinking {
		s.progress[call][kind] += ev.Progress.Text
	} else {
		s.progress[call][kind] = ev.Progress.Text
	}
}

func (s *screen) edge(ev agentkernel.Event) {
	s.edges = append(s.edges, ev)
	calls := s.progress[ev.RunID+" "+ev.ToolID]
	s.shown = append(s.shown, fmt.Sprintf("%s: %q, %q, %v", ev.Type, s.drawn[ev.RunID], s.written[ev.RunID], calls))
	switch ev.Type {
	case agentkernel.EventMessageStart:
		s.drawn[ev.RunID], s.written[ev.RunID] = blockTexts(ev.Message), nil
	case agentkernel.EventMessageEnd, agentkernel.EventMessageDiscard:
		delete(s.drawn, ev.RunID)
		delete(s.written, ev.RunID)
	}
}

// blockTexts is what deltas add up to, block by block.
func blockTexts(m agentkernel.AgentMessage) []string {
	var out []string
	own, _ := m.(agentkernel.Message)
	for _, b := range own.Content {
		text := b.Text + b.Thinking
		if b.ToolCall != nil {
			text = b.ToolCall.RawArgs
		}
		out = append(out, text)
	}
	return out
}

// differs tells in what s was not want.
func (s *screen) differs(want *screen) (out []string) {
	if !reflect.DeepEqual(s.edges, want.edges) {
		out = append(out, fmt.Sprintf("the edges are %v, want %v", typesOf(s.edges), typesOf(want.edges)))
	}
	for i := range min(len(s.shown), len(want.shown)) {
		if s.shown[i] != want.shown[i] {
			return append(out, fmt.Sprintf("at edge %d it shows\n%s, want\n%s", i, s.shown[i], want.shown[i]))
		}
	}
	for _, run := range slices.Sorted(maps.Keys(want.last)) {
		if s.count[run] != want.last[run] || s.last[run] != want.last[run] {
			out = append(out, fmt.Sprintf("%d events and seq %d of %d", s.count[run], s.last[run], want.last[run]))
		}
	}
	return out
}
