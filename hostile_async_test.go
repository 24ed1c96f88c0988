package agentkernel_test

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// hostileWorld is an agent with a listener that does something to its own subscription.
type hostileWorld struct {
	agent, other *watched
	sub          *agentkernel.Subscription // of both
	unfollow     func()                    // ends that of other
	gate         chan struct{}             // closed at the end
	heard        int                       // events of agent's first run
}

// hostileAct is what the listener does at the third event.
type hostileAct struct {
	act   func(t *testing.T, w *hostileWorld)
	heard int // events of the first run that it hears; 0 for all
}

var hostileActs = map[string]hostileAct{
	"blocks":            {func(t *testing.T, w *hostileWorld) { <-w.gate }, 3},
	"panics":            {func(*testing.T, *hostileWorld) { panic("boom") }, 0},
	"exits":             {func(*testing.T, *hostileWorld) { runtime.Goexit() }, 0},
	"closes":            {func(t *testing.T, w *hostileWorld) { w.sub.Close() }, 3},
	"closes and panics": {func(t *testing.T, w *hostileWorld) { w.sub.Close(); panic("boom") }, 3},
	"closes and exits":  {func(t *testing.T, w *hostileWorld) { w.sub.Close(); runtime.Goexit() }, 3},
	"closes and blocks": {func(t *testing.T, w *hostileWorld) { w.sub.Close(); <-w.gate }, 3},
	"closes and drains": {func(t *testing.T, w *hostileWorld) {
		w.sub.Close()
		wantErr(t, w.sub.Drain, agentkernel.ErrSubscriptionClosed)
	}, 3},
	"drains": {func(t *testing.T, w *hostileWorld) { wantErr(t, w.sub.Drain, agentkernel.ErrInListener) }, 0},
	"drains while it exits": {func(t *testing.T, w *hostileWorld) {
		defer wantErr(t, w.sub.Drain, agentkernel.ErrInListener)
		runtime.Goexit()
	}, 0},
	"drains while it panics": {func(t *testing.T, w *hostileWorld) {
		defer wantErr(t, w.sub.Drain, agentkernel.ErrInListener)
		panic("boom")
	}, 0},
	"unfollows another":     {func(t *testing.T, w *hostileWorld) { w.unfollow() }, 0},
	"unfollows and exits":   {func(t *testing.T, w *hostileWorld) { w.unfollow(); runtime.Goexit() }, 0},
	"follows its own agent": {func(t *testing.T, w *hostileWorld) { w.sub.Follow(w.agent.Agent) }, 0},
	"runs another agent":    {func(t *testing.T, w *hostileWorld) { _, _ = w.other.Run(context.Background(), "from inside") }, 0},
	"subscribes another": {func(t *testing.T, w *hostileWorld) {
		w.agent.SubscribeAsync(func(agentkernel.Event) { panic("boom") }, agentkernel.AsyncOptions{})
	}, 0},
	"aborts the run":          {func(t *testing.T, w *hostileWorld) { w.agent.Abort(errors.New("enough")) }, 0},
	"closes from another one": {func(t *testing.T, w *hostileWorld) { var g sync.WaitGroup; g.Go(w.sub.Close); g.Wait() }, 3},
}

// TestHostileAsyncListener: whatever fn does to its own subscription, the run ends, the others
// hear all of it, and nothing is left behind when the bubble ends.
func TestHostileAsyncListener(t *testing.T) {
	for name, tc := range hostileActs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newHostileWorld(t, tc.act)
				neighbour := read(t, w.agent.Agent, agentkernel.AsyncOptions{}, nil)
				run, err := w.agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				_, err = run.Wait(t.Context())
				if name != "aborts the run" {
					require.NoError(t, err)
				}
				require.Equal(t, w.agent.events(), neighbour.drain(t))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				switch err := w.sub.Drain(ctx); {
				case name == "blocks":
					require.ErrorContains(t, err, "subscriber the hostile one has not taken ")
					require.ErrorIs(t, err, context.DeadlineExceeded)
				case tc.heard > 0:
					require.ErrorIs(t, err, agentkernel.ErrSubscriptionClosed)
					require.ErrorContains(t, err, "the hostile one")
				default:
					require.NoError(t, err)
				}
				synctest.Wait()
				require.Equal(t, cmp.Or(tc.heard, len(w.agent.events())), w.heard)
				w.sub.Close()
				close(w.gate)
			})
		})
	}
}

func newHostileWorld(t *testing.T, act func(*testing.T, *hostileWorld)) *hostileWorld {
	reply := agenttest.Text("hello world").Chunks(3).Delay(time.Millisecond)
	w := &hostileWorld{agent: watchQuietly(t, reply, reply), other: watchQuietly(t, reply, reply), gate: make(chan struct{})}
	id := ""
	w.sub = w.agent.SubscribeAsync(func(ev agentkernel.Event) {
		id = cmp.Or(id, ev.RunID)
		if ev.RunID != id {
			return
		}
		if w.heard += 1 + ev.Coalesced; w.heard == 3 {
			act(t, w)
		}
	}, agentkernel.AsyncOptions{Name: "the hostile one"})
	w.unfollow = w.sub.Follow(w.other.Agent)
	return w
}

func wantErr(t *testing.T, drain func(context.Context) error, want error) {
	if err := drain(context.Background()); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// watchQuietly is watch without a word about listeners that panic.
func watchQuietly(t testing.TB, replies ...agenttest.Reply) *watched {
	return watch(t, agentkernel.Config{
		Model: agenttest.Script(replies...), OnListenerPanic: func(any, []byte, agentkernel.Event) {}, EventBuffer: 2,
	})
}

// TestDrainsAtOnce: each is told of the events that wait before it, and not of the other drains.
func TestDrainsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := chatty(t, 1)
		gate := make(chan struct{})
		sub := agent.SubscribeAsync(func(agentkernel.Event) { <-gate }, agentkernel.AsyncOptions{Name: "stuck"})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("patience is over"))
		defer cancel()
		const drains = 5
		errs := make([]error, drains)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() { errs[i] = sub.Drain(ctx) })
		}
		group.Wait()
		for _, err := range errs {
			require.EqualError(t, err, "agentkernel: subscriber stuck has not taken 10 events: patience is over")
		}
		close(gate)
		require.NoError(t, sub.Drain(t.Context()))
	})
}

// TestDrainStorm: many that drain at all times, a consumer that fails, and runs one after the
// other.
func TestDrainStorm(t *testing.T) {
	old := goleak.IgnoreCurrent()
	const runs = 50
	agent := watchQuietly(t, slices.Repeat(replies(agenttest.Text("hello world").Chunks(1)), runs)...)
	n := 0
	counted := make(map[string]int)
	sub := agent.SubscribeAsync(func(ev agentkernel.Event) {
		counted[ev.RunID] += 1 + ev.Coalesced
		switch n++; n % 10 {
		case 3:
			panic("boom")
		case 7:
			runtime.Goexit()
		}
	}, agentkernel.AsyncOptions{MaxPending: 3, MaxRate: 1})
	done := make(chan struct{})
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for {
				ctx, cancel := context.WithCancel(context.Background())
				if i%2 == 0 {
					cancel()
				}
				if err := sub.Drain(ctx); err != nil && i%2 == 1 {
					t.Errorf("Drain: %v", err)
				}
				cancel()
				select {
				case <-done:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	want := make(map[string]int)
	for range runs {
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		want[record.ID] = int(final(agent.events()).Seq)
	}
	require.NoError(t, sub.Drain(t.Context()))
	require.Equal(t, want, counted)
	close(done)
	group.Wait()
	goleak.VerifyNone(t, old)
}

// TestEventsOfManyRuns: loops that come and go see each run from where they came, and what
// they leave goes on.
func TestEventsOfManyRuns(t *testing.T) {
	old := goleak.IgnoreCurrent()
	const runs = 30
	agent := chatty(t, runs)
	ctx, cancel := context.WithCancel(t.Context())
	whole := agent.Events(ctx)
	var group sync.WaitGroup
	var got []agentkernel.Event
	group.Go(func() {
		for ev := range whole {
			got = append(got, ev)
		}
	})
	for i := range runs {
		events := agent.Events(ctx)
		group.Go(func() {
			n := 0
			for range events {
				if n++; n > i {
					return
				}
			}
		})
		seen := 0
		for _, err := range agent.Stream(t.Context(), agentkernel.UserMessage("hi")) {
			require.NoError(t, err)
			if seen++; seen > i {
				break // the run goes on
			}
		}
		release, err := agent.HoldRuns(t.Context()) // waits for it
		require.NoError(t, err)
		release()
	}
	require.Len(t, agent.Messages(), 2*runs)
	cancel()
	group.Wait()
	require.Equal(t, agent.events(), got)
	require.NoError(t, agenttest.CheckEvents(got))
	goleak.VerifyNone(t, old)
}
