package agentkernel_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

type yieldFunc = func(agentkernel.StreamEvent, error) bool

// modelOf is a model of one function that yields as it likes.
func modelOf(stream func(ctx context.Context, req agentkernel.ModelRequest, yield yieldFunc)) agentkernel.ChatModel {
	return agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) { stream(ctx, req, yield) }
	})
}

// collect reads a bare loop to its end, for those who check the stream themselves.
func collect(events <-chan agentkernel.Event) (log []agentkernel.Event) {
	for ev := range events {
		log = append(log, ev)
	}
	return log
}

// TestHostileYieldAfterDone: what a model yields behind Done has no effect.
func TestHostileYieldAfterDone(t *testing.T) {
	log := play(t, agentkernel.Config{Model: modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
		yield(textDelta("hello"), nil)
		yield(done(""), nil)
		yield(usageOf(3), nil)
		yield(agentkernel.StreamEvent{}, errHostile)
	})})
	require.NoError(t, final(log).Err)
	require.Equal(t, []string{"user: hi", "assistant: hello"}, said(final(log).NewMessages))
}

// TestHostileYieldAfterError: what a model yields behind an error does not hide the error.
func TestHostileYieldAfterError(t *testing.T) {
	n := 0
	log := play(t, agentkernel.Config{Retry: unwaited, Model: modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
		if n++; n == 1 {
			yield(agentkernel.StreamEvent{}, failure(agentkernel.KindServer, true))
		}
		yield(textDelta("ok"), nil)
		yield(done(""), nil)
	})})
	require.NoError(t, final(log).Err)
	require.Equal(t, 2, n)
	require.ErrorIs(t, ofType(log, agentkernel.EventRetry)[0].Err, agentkernel.KindServer)
}

// TestHostileCleanupAfterDone: a finished answer survives the model's own end.
func TestHostileCleanupAfterDone(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("close") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
				defer end()
				yield(textDelta("hello"), nil)
				yield(done(""), nil)
			})})
			require.NoError(t, final(log).Err)
			require.Equal(t, []string{"user: hi", "assistant: hello"}, said(final(log).NewMessages))
		})
	}
}

// hangsAfterDone is a model that answers and does not return until release is closed.
func hangsAfterDone(asked *int, release <-chan struct{}) agentkernel.ChatModel {
	return modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
		*asked++
		yield(textDelta("hello"), nil)
		yield(done(""), nil)
		<-release
	})
}

// TestHostileCleanupAfterDoneHangs: a model that stays after Done is left behind, and its answer stands.
func TestHostileCleanupAfterDoneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, release := 0, make(chan struct{})
		began := time.Now()
		log := play(t, agentkernel.Config{Model: hangsAfterDone(&asked, release), StopTimeout: 5 * time.Second})
		require.Equal(t, 5*time.Second, time.Since(began))
		require.NoError(t, final(log).Err)
		require.Equal(t, []string{"user: hi", "assistant: hello"}, said(final(log).NewMessages))
		require.Equal(t, 1, final(log).Summary.Abandoned)
		require.Equal(t, 1, asked)
		close(release)
		synctest.Wait()
	})
}

// TestHostileAbortInCleanupAfterDone: an abort while a model hangs after Done keeps the whole answer.
func TestHostileAbortInCleanupAfterDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, release := 0, make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		log := drain(t, nil, agentkernel.AgentLoop(ctx, agentkernel.Config{Model: hangsAfterDone(&asked, release)}, nil, agentkernel.UserMessage("hi")))
		messages := final(log).NewMessages
		require.Equal(t, []string{"user: hi", "assistant: hello"}, said(messages))
		require.Equal(t, agentkernel.StopReasonStop, messages[1].(agentkernel.Message).StopReason)
		close(release)
		synctest.Wait()
	})
}

// TestHostileYieldFromHelper: a yield from a goroutine that outlives the stream is refused.
func TestHostileYieldFromHelper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := make(chan struct{})
		agent := watch(t, agentkernel.Config{StopTimeout: 100 * time.Millisecond, Model: modelOf(func(ctx context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
			go func() {
				for yield(textDelta("x"), nil) {
					time.Sleep(10 * time.Millisecond)
				}
				close(refused)
			}()
			<-ctx.Done()
		})})
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Millisecond)
		defer cancel()
		record, err := agent.Run(ctx, "hi")
		require.ErrorIs(t, err, agentkernel.KindTimeout)
		require.Equal(t, agentkernel.EndTimeout, record.EndReason)
		<-refused
	})
}

// TestHostileYieldConcurrently: yields of several goroutines all count, or end as a breach of
// protocol: none is lost in silence.
func TestHostileYieldConcurrently(t *testing.T) {
	// The few are done while another one still looks; the many race again and again.
	t.Run("few", func(t *testing.T) { yieldConcurrently(t, 3000, 2, 3) })
	t.Run("many", func(t *testing.T) { yieldConcurrently(t, 20, 4, 50) })
}

func yieldConcurrently(t *testing.T, runs, workers, each int) {
	for range runs {
		log := play(t, agentkernel.Config{Model: modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for range each {
						if !yield(textDelta("x"), nil) {
							return
						}
					}
				})
			}
			all.Wait()
			yield(done(""), nil)
		})})
		if err := final(log).Err; err != nil {
			require.ErrorIs(t, err, agentkernel.KindProtocol)
		} else {
			require.Equal(t, "assistant: "+strings.Repeat("x", workers*each), said(final(log).NewMessages)[1])
		}
	}
}

// TestHostileMendedIDReused: an id that the kernel gave an old call is not taken by a new one.
func TestHostileMendedIDReused(t *testing.T) {
	history := list(agentkernel.UserMessage("x"), askedFor(""))
	turn := 0
	cfg := agentkernel.Config{Tools: []agentkernel.Tool{echo("t")}, Model: modelOf(func(_ context.Context, req agentkernel.ModelRequest, yield yieldFunc) {
		turn++
		if err := sound(req.Messages); err != nil {
			t.Errorf("turn %d: %v", turn, err)
		}
		if turn > 1 {
			yield(textDelta("ok"), nil)
			yield(done(""), nil)
			return
		}
		for _, m := range req.Messages {
			for i, c := range m.ToolCalls() {
				yield(callDelta(fmt.Sprint(i), c.ID, "t", "{}"), nil)
			}
		}
		yield(done(""), nil)
	})}
	log := collect(agentkernel.AgentLoop(t.Context(), cfg, history, agentkernel.UserMessage("go")))
	require.NoError(t, agenttest.CheckEvents(log)) // the history's call has no id to compare with
	var ids []string
	for _, ev := range ofType(log, agentkernel.EventToolExecStart) {
		ids = append(ids, ev.ToolID)
	}
	slices.Sort(ids)
	require.Equal(t, slices.Compact(slices.Clone(ids)), ids)
	require.Equal(t, 2, turn)
}

// TestHostileCallNames: a call with an odd name or none is answered, and never sent back nameless.
func TestHostileCallNames(t *testing.T) {
	model := agenttest.Script(agenttest.Call("a", "", "{}"), agenttest.Call("b", "bad name\x00!", "{}"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo")}})
	require.Equal(t, agentkernel.EndStop, endReason(log))
	messages := model.Requests()[2].Messages
	require.NoError(t, sound(messages))
	for _, m := range messages {
		for _, c := range m.ToolCalls() {
			require.NotEmpty(t, c.Name)
		}
	}
}

// TestHostileModelSortsTools: a model that sorts and replaces its request's tools harms nobody.
func TestHostileModelSortsTools(t *testing.T) {
	var offered []string
	n := 0
	agent := watch(t, agentkernel.Config{Tools: []agentkernel.Tool{echo("b"), echo("a")}, Model: modelOf(func(_ context.Context, req agentkernel.ModelRequest, yield yieldFunc) {
		for _, spec := range req.Tools {
			offered = append(offered, spec.Name+spec.Description)
		}
		slices.Reverse(req.Tools)
		req.Tools[0].Description = "CHANGED"
		req.Tools[1] = agentkernel.ToolSpec{Name: "other"}
		if n++; n == 1 {
			yield(callDelta("0", "", "a", "{}"), nil)
		} else {
			yield(textDelta("ok"), nil)
		}
		yield(done(""), nil)
	})})
	for range 2 {
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"b", "a", "b", "a", "b", "a"}, offered)
	require.Equal(t, []string{"a ok"}, causes(agent.events()))
}
