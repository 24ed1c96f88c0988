package agentkernel_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestUnfollow: no new event of that agent is taken; those of the others are.
func TestUnfollow(t *testing.T) {
	first, second := chatty(t, 1), chatty(t, 1)
	r := read(t, first.Agent, agentkernel.AsyncOptions{}, nil)
	unfollow := r.sub.Follow(second.Agent)
	unfollow()
	unfollow() // more than once
	_, err := second.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Empty(t, r.drain(t))
	_, err = first.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Len(t, edges(r.drain(t)), len(edges(first.events())))
	r.sub.Close()
	r.sub.Follow(second.Agent)() // closed: it follows nobody
}

// TestUnfollowFreesTheRun that waits for room, at once; the others go on as they were.
func TestUnfollowFreesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := chatty(t, 1), chatty(t, 2)
		each, release := holdAt(agentkernel.EventAgentStart)
		r := readMany(first.Agent, agentkernel.AsyncOptions{MaxPending: 3}, each)
		unfollow := r.sub.Follow(second.Agent)
		leaves, err := second.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		stays, err := first.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, first.State().IsRunning)
		require.True(t, second.State().IsRunning)
		taken := len(second.events())

		began := time.Now()
		unfollow()
		_, err = leaves.Wait(t.Context())
		require.NoError(t, err)
		_, err = second.Run(t.Context(), "again")
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		synctest.Wait()
		require.True(t, first.State().IsRunning, "nobody made room for this one")

		release()
		_, err = stays.Wait(t.Context())
		require.NoError(t, err)
		got := byRun(r.drain(t))
		require.Equal(t, int(final(first.events()).Seq), accounted(got[stays.ID()]))
		require.Equal(t, taken-1, accounted(got[leaves.ID()]), "all but the event that waited for room")
		require.Len(t, got, 2)
	})
}

func byRun(log []agentkernel.Event) map[string][]agentkernel.Event {
	runs := make(map[string][]agentkernel.Event)
	for _, ev := range log {
		runs[ev.RunID] = append(runs[ev.RunID], ev)
	}
	return runs
}

// TestUnfollowLeavesNoGoroutine: an event whose delivery had begun does not wake the
// subscription for a run that it does not hear any more. (The bubble ends only when all of
// its goroutines have.)
func TestUnfollowLeavesNoGoroutine(t *testing.T) {
	for name, late := range map[string]func(unfollow, release func()){
		"the consumer is freed after it":  func(unfollow, release func()) { unfollow(); release() },
		"the consumer is freed before it": func(unfollow, release func()) { release(); unfollow() },
		"at the same time":                func(unfollow, release func()) { go unfollow(); release() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(agenttest.Text("hello world").Chunks(1).Delay(time.Second).Stall())
				agent := watch(t, agentkernel.Config{Model: model, EventBuffer: 2})
				each, release := holdAt(agentkernel.EventAgentStart)
				r := read(t, chatty(t, 0).Agent, agentkernel.AsyncOptions{MaxPending: 2}, each)
				unfollow := r.sub.Follow(agent.Agent)
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				late(unfollow, release)
				synctest.Wait()
				got := len(r.events())
				time.Sleep(time.Minute)
				require.Len(t, r.events(), got)
				before := inBubble()
				r.sub.Close() // it would end one that waits
				synctest.Wait()
				require.Equal(t, before, inBubble())
				run.Abort(nil)
				_, _ = run.Wait(t.Context())
			})
		})
	}
}

// TestCloseFreesAllRuns that wait for room, at once.
func TestCloseFreesAllRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []*watched{chatty(t, 1), chatty(t, 1), chatty(t, 1)}
		each, release := holdAt(agentkernel.EventAgentStart)
		r := readMany(agents[0].Agent, agentkernel.AsyncOptions{MaxPending: 1}, each)
		for _, agent := range agents[1:] {
			r.sub.Follow(agent.Agent)
		}
		var runs []*agentkernel.Run
		for _, agent := range agents {
			run, err := agent.Prompt(t.Context(), "hi")
			require.NoError(t, err)
			runs = append(runs, run)
		}
		synctest.Wait()
		r.sub.Close()
		for _, run := range runs {
			_, err := run.Wait(t.Context())
			require.NoError(t, err)
		}
		release()
		synctest.Wait()
		require.Len(t, r.events(), 1)
	})
}

// TestFollowTwice: an agent that is followed more than once is heard once, until all of them
// were given up.
func TestFollowTwice(t *testing.T) {
	first, second := chatty(t, 1), chatty(t, 5)
	r := read(t, first.Agent, agentkernel.AsyncOptions{}, nil)
	heard := func(agent *watched, want bool) {
		t.Helper()
		before := len(r.drain(t))
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		got := r.drain(t)[before:]
		if want {
			require.Equal(t, int(final(agent.events()).Seq), accounted(got))
			require.Equal(t, record.ID, final(got).RunID)
		} else {
			require.Empty(t, got)
		}
	}
	r.sub.Follow(first.Agent)() // that of SubscribeAsync is another one
	heard(first, true)
	one, two := r.sub.Follow(second.Agent), r.sub.Follow(second.Agent)
	heard(second, true)
	one()
	one() // gives up its own one only
	heard(second, true)
	two()
	heard(second, false)
	three := r.sub.Follow(second.Agent)
	heard(second, true)
	r.sub.Close()
	three()
	before := len(r.events())
	_, err := second.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Len(t, r.events(), before)
}

// TestFollowInAHurry: agents come and go from all sides while they run. No run is held up, no
// event comes twice, and nothing is left behind.
func TestFollowInAHurry(t *testing.T) {
	old := goleak.IgnoreCurrent()
	const agents, runs = 4, 20
	all := make([]*watched, agents)
	for i := range all {
		all[i] = chatty(t, runs)
	}
	seen := make(map[string]uint64) // by run: the last Seq
	sub := all[0].SubscribeAsync(func(ev agentkernel.Event) {
		if ev.Seq <= seen[ev.RunID] {
			t.Errorf("seq %d after %d of run %s", ev.Seq, seen[ev.RunID], ev.RunID)
		}
		seen[ev.RunID] = ev.Seq
	}, agentkernel.AsyncOptions{MaxPending: 1, MaxRate: 1e6})
	var group, busy sync.WaitGroup
	done := make(chan struct{})
	for _, agent := range all {
		group.Go(func() {
			for range runs {
				_, err := agent.Run(t.Context(), "hi")
				require.NoError(t, err)
			}
		})
		for range 2 {
			busy.Go(func() {
				for {
					unfollow := sub.Follow(agent.Agent)
					runtime.Gosched()
					unfollow()
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
	}
	group.Wait()
	close(done)
	busy.Wait()
	require.NoError(t, sub.Drain(t.Context()))
	goleak.VerifyNone(t, old)
}
