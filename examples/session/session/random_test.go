package session_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// TestRandomSessions: whatever fails, is aborted, switched or opened again, the store has the
// messages that ended, each once and in their order, and a history that a provider accepts.
func TestRandomSessions(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			randomSession(t, rand.New(rand.NewPCG(seed, 7)))
		})
	}
}

func randomSession(t *testing.T, rng *rand.Rand) {
	inner := memoryStore(t)
	var mu sync.Mutex // writes may be late, and then are two at once
	fate := rand.New(rand.NewPCG(rng.Uint64(), 0))
	store := &faulty{inner, func(ctx context.Context, c session.Change) error {
		mu.Lock()
		dice := fate.IntN(30)
		mu.Unlock()
		switch dice {
		case 0:
			return syscall.ENOSPC
		case 1:
			panic("corrupt")
		case 2:
			time.Sleep(time.Minute) // deaf, and longer than anyone waits
		case 3:
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}}
	cfg := session.Config{ID: "s", Timeout: time.Second, Agent: agentkernel.Config{
		Retry: noJitter, StopTimeout: time.Second, Tools: []agentkernel.Tool{echo("a"), echo("b")},
	}}
	model := agenttest.Script(randomReplies(rng)...)
	o := open(t, store, model, cfg)
	for range 6 {
		randomRun(t, rng, o)
		time.Sleep(2 * time.Minute) // what is late comes to its end
		// A message that was being written when the run was given up may stand behind the others.
		saved := stored(t, inner, "s")
		live := texts(o.State().Messages)
		require.GreaterOrEqual(t, len(saved), len(live))
		require.LessOrEqual(t, len(saved), len(live)+1)
		require.Equal(t, live, saved[:len(live):len(live)])
		if rng.IntN(3) == 0 {
			o.close()
			o = open(t, store, model, cfg)
			require.Equal(t, saved, texts(o.State().Messages))
		}
	}
	require.Empty(t, agentkernel.ValidateHistory(o.answered(t)))
}

// answered is the history without the end that the next run has to answer.
func (o *opened) answered(t *testing.T) []agentkernel.AgentMessage {
	history := o.State().Messages
	for i := len(history) - 1; i >= 0; i-- {
		if own, ok := history[i].(agentkernel.Message); ok && own.Role == agentkernel.RoleAssistant {
			if len(own.ToolCalls()) > len(history)-1-i {
				return history[:i]
			}
			break
		}
	}
	return history
}

func randomReplies(rng *rand.Rand) (replies []agenttest.Reply) {
	for range 80 {
		switch rng.IntN(8) {
		case 0:
			replies = append(replies, agenttest.Fail(kernelError(agentkernel.KindServer, true)))
		case 1:
			replies = append(replies, agenttest.Text("half").Fail(kernelError(agentkernel.KindNetwork, true)).Delay(time.Second))
		case 2:
			replies = append(replies, agenttest.Fail(kernelError(agentkernel.KindQuota, false)))
		case 3, 4, 5:
			replies = append(replies, agenttest.Thinking("hm").Text("so").Calls("a", "b").Delay(time.Second))
		default:
			replies = append(replies, agenttest.Text("done").Delay(time.Second))
		}
	}
	return replies
}

// randomRun prompts or continues, and may abort.
func randomRun(t *testing.T, rng *rand.Rand, o *opened) {
	begin := func() (*agentkernel.Run, error) { return o.Prompt(t.Context(), "hi") }
	if rng.IntN(2) == 0 {
		begin = func() (*agentkernel.Run, error) { return o.Continue(t.Context()) }
	}
	run, err := begin()
	if errors.Is(err, agentkernel.ErrBadContinuation) || errors.Is(err, agentkernel.ErrNoMessages) {
		return
	}
	require.NoError(t, err)
	if rng.IntN(2) == 0 {
		time.Sleep(time.Duration(rng.IntN(10_000)) * time.Millisecond)
		run.Abort(errors.New("enough"))
	}
	_ = ended(run)
}
