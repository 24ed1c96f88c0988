package agentkernel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestEverythingAtOnce: every method from many goroutines, a thousand times, on one agent that
// nobody coordinates. Only documented errors come back, the stream keeps its contract, and
// every message that was pushed is said once or still waits.
func TestEverythingAtOnce(t *testing.T) {
	const workers, rounds = 8, 125
	script := slices.Repeat(replies(
		agenttest.Text("some words").Chunks(3), agenttest.Calls("t"), agenttest.Text("x").Fail(failure(agentkernel.KindServer, true)),
		agenttest.Reply{}, agenttest.Text("half").Delay(50*time.Microsecond), agenttest.Fail(failure(agentkernel.KindAuth, false)),
	), 3000)
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(script...), Tools: []agentkernel.Tool{echo("t")}, Retry: unwaited, EventBuffer: 2,
		Steering: &agentkernel.Queue{Mode: agentkernel.QueueOneAtATime}, FollowUps: new(agentkernel.Queue),
		AbortMarker: "stopped", ContextManager: &manager{recover: func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
			return agentkernel.ContextResult{Messages: list(agentkernel.UserMessage("compacted"))}, nil
		}},
	})
	var mu sync.Mutex
	ended := map[string]int{}
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageEnd && ev.Message.GetRole() == "mark" {
			mu.Lock()
			ended[ev.Message.TextContent()]++
			mu.Unlock()
		}
	})
	allowed := []error{
		nil, agentkernel.ErrAlreadyRunning, agentkernel.ErrRunsHeld, agentkernel.ErrNoMessages, agentkernel.ErrBadContinuation,
		agentkernel.KindCanceled, agentkernel.KindTimeout, agentkernel.KindAuth, agentkernel.KindProvider, context.DeadlineExceeded,
	}
	check := func(what string, err error) {
		if !slices.ContainsFunc(allowed, func(a error) bool { return errors.Is(err, a) }) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var pushed atomic.Int64
	next := func() agentkernel.AgentMessage { return mark(fmt.Sprint("m", pushed.Add(1))) }
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 5))
			for range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
				switch rng.IntN(13) {
				case 0, 1:
					check("Steer", agent.Steer(next()))
				case 2, 3:
					check("FollowUp", agent.FollowUp(next()))
				case 4:
					_, err := agent.Prompt(t.Context(), "hi")
					check("Prompt", err)
				case 5:
					_, err := agent.Run(ctx, "hi")
					check("Run", err)
				case 6:
					_, err := agent.Continue(t.Context())
					check("Continue", err)
				case 7:
					agent.Abort(errors.New("stress"))
				case 8:
					check("Reset", agent.Reset())
				case 9:
					if release, err := agent.HoldRuns(ctx); err == nil {
						release()
						release()
					} else {
						check("HoldRuns", err)
					}
				case 10:
					state := agent.State()
					_ = said(state.Messages)
				case 11:
					agent.Subscribe(func(agentkernel.Event) {})()
					_, err := agent.Compact(ctx, "stress")
					check("Compact", err)
				case 12:
					// The message of an Inject that gives up was not delivered.
					inject := mark(fmt.Sprint("i", rng.Uint64()))
					if got, err := agent.Inject(t.Context(), inject); err != nil {
						check("Inject", err)
					} else if got.Run != nil {
						_, err := got.Run.Wait(ctx)
						check("Wait", err)
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
	agent.Abort(nil)
	release, err := agent.HoldRuns(t.Context())
	require.NoError(t, err)
	release()
	require.False(t, agent.State().IsRunning)
	for range 200 { // what waits is taken, however often a run fails
		run, err := agent.Continue(t.Context())
		if err != nil {
			break
		}
		_, _ = run.Wait(t.Context())
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range pushed.Load() {
		require.Equal(t, 1, ended[fmt.Sprint("m", i+1)], "message %d", i+1)
	}
	for text, n := range ended {
		require.Equal(t, 1, n, text)
	}
	t.Logf("%d messages, %d events", len(ended), len(agent.events()))
}
