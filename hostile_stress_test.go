package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// endless is a model that answers at random for ever: text, calls of these tools, failures,
// waits. It complains of requests that a provider would refuse.
func endless(t *testing.T, tools ...string) agentkernel.ChatModel {
	return modelOf(func(ctx context.Context, req agentkernel.ModelRequest, yield yieldFunc) {
		if err := accepted(req.Messages); err != nil {
			t.Error(err)
		}
		if !yield(textDelta("hello"), nil) {
			return
		}
		switch rand.IntN(6) {
		case 0:
			yield(agentkernel.StreamEvent{}, failure(agentkernel.KindServer, true))
			return
		case 1, 2, 3:
			for i := range 3 {
				if !yield(callDelta(strconv.Itoa(i), "", tools[rand.IntN(len(tools))], fmt.Sprintf(`{"n":%d}`, rand.Int())), nil) {
					return
				}
			}
		case 4:
			select {
			case <-ctx.Done():
				yield(agentkernel.StreamEvent{}, ctx.Err())
				return
			case <-time.After(time.Millisecond):
			}
		}
		yield(done(""), nil)
	})
}

// tally counts what is said.
type tally struct {
	mu   sync.Mutex
	said map[string]int
}

func (c *tally) listen(ev agentkernel.Event) {
	if ev.Type == agentkernel.EventMessageEnd {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said[ev.Message.TextContent()]++
	}
}

func (c *tally) requireOnce(t *testing.T, name string, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range n {
		require.Equal(t, 1, c.said[fmt.Sprint(name, i)], "%s%d", name, i)
	}
}

// TestHostileSharedQueues: what waits in queues that agents share is said once, by one of them.
func TestHostileSharedQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		steering, followUps := new(agentkernel.Queue), &agentkernel.Queue{Mode: agentkernel.QueueOneAtATime}
		count := &tally{said: map[string]int{}}
		pushed := make(chan struct{})
		var all sync.WaitGroup
		for i := range 3 {
			agent := watch(t, agentkernel.Config{Model: endless(t, "a", "s"), MaxTurns: 4, Steering: steering, FollowUps: followUps, EventBuffer: 2 + i,
				StopTimeout: 10 * time.Millisecond, Retry: unwaited, Tools: []agentkernel.Tool{safe(echo("a")), echo("s")}})
			agent.Subscribe(count.listen)
			all.Go(func() {
				for {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(5000))*time.Microsecond)
					_, _ = agent.Run(ctx, "go")
					cancel()
					time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
					select {
					case <-pushed:
						if len(steering.Items())+len(followUps.Items()) == 0 {
							return
						}
					default:
					}
					if err := agent.Reset(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range n {
			require.NoError(t, steering.Push(agentkernel.UserMessage(fmt.Sprint("s", i))))
			require.NoError(t, followUps.Push(agentkernel.UserMessage(fmt.Sprint("f", i))))
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		}
		close(pushed)
		all.Wait()
		count.requireOnce(t, "s", n)
		count.requireOnce(t, "f", n)
	})
}

// meddler is a tool that uses the agent that runs it.
func meddler(t *testing.T, agent func() *watched) agentkernel.Tool {
	refused := func(what string, err error) {
		if !errors.Is(err, agentkernel.ErrAlreadyRunning) {
			t.Errorf("%s in a tool: %v", what, err)
		}
	}
	return tool("meddle", func(ctx context.Context) (agentkernel.ToolResult, error) {
		switch rand.IntN(5) {
		case 0:
			_, err := agent().Prompt(ctx, "x")
			refused("Prompt", err)
		case 1:
			agent().Abort(errHostile)
		case 2:
			return agentkernel.ToolResult{}, agent().Steer(agentkernel.UserMessage("from a tool"))
		case 3:
			_ = agent().State()
		case 4:
			refused("Reset", agent().Reset())
		}
		return agentkernel.TextResult("ok"), nil
	})
}

// TestHostileMethods: all methods at once, in tools too, fail as documented and lose nothing.
func TestHostileMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, rounds = 8, 40
		var agent *watched
		cfg := agentkernel.Config{Model: endless(t, "a", "s", "meddle"), MaxTurns: 6, StopTimeout: 50 * time.Millisecond, EventBuffer: 2,
			AbortMarker: "stopped", Retry: unwaited, ContextManager: &manager{project: shortened}}
		cfg.Tools = []agentkernel.Tool{safe(echo("a")), slowDeaf("s", time.Millisecond), meddler(t, func() *watched { return agent })}
		agent = watch(t, cfg)
		count := &tally{said: map[string]int{}}
		agent.Subscribe(count.listen)
		var folded agentkernel.AgentState
		agent.Subscribe(func(ev agentkernel.Event) {
			folded = agentkernel.Reduce(folded, ev)
			if len(folded.Messages) > 40 && rand.IntN(50) > 0 { // which takes its time
				return
			}
			if ev.Type == agentkernel.EventAgentStart || ev.Type == agentkernel.EventAgentEnd {
				return
			}
			if d := differ(folded, agent.State()); d != "" {
				t.Errorf("at %s the state differs: %s", ev.Type, d)
			}
		})
		m := &methods{t: t, agent: agent, cfg: cfg}
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for range rounds {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
					m.any(ctx)
					cancel()
					time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
				}
			})
		}
		all.Wait()
		next := agenttest.Text("z")
		for range 200 { // what waits is taken, however often a run fails
			require.NoError(t, agent.SetModel(agenttest.Script(next, next, next, next, next, next)))
			if _, err := agent.Run(t.Context(), "end"); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		count.requireOnce(t, "handed", m.handed)
		require.Positive(t, m.handed)
	})
}

// methods calls those of an agent at random and tells which errors are not documented.
type methods struct {
	t     *testing.T
	agent *watched
	cfg   agentkernel.Config

	mu     sync.Mutex
	handed int
}

func (m *methods) expect(what string, err error) {
	if err == nil {
		return
	}
	for _, known := range []error{agentkernel.ErrAlreadyRunning, agentkernel.ErrRunsHeld, agentkernel.ErrNoMessages, agentkernel.ErrBadContinuation,
		agentkernel.KindCanceled, agentkernel.KindTimeout, agentkernel.KindMaxTurns, agentkernel.KindServer, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return
		}
	}
	m.t.Errorf("%s: an error that is not documented: %v", what, err)
}

// next is a message that must be said once.
func (m *methods) next() agentkernel.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handed++
	return agentkernel.UserMessage(fmt.Sprint("handed", m.handed-1))
}

func (m *methods) any(ctx context.Context) {
	var err error
	what := rand.IntN(16)
	switch what {
	case 0:
		_, err = m.agent.Run(ctx, "run")
	case 1:
		_, err = m.agent.Prompt(m.t.Context(), "prompt")
	case 2:
		_, err = m.agent.Continue(ctx)
	case 3, 4:
		_, err = m.agent.Inject(m.t.Context(), m.next())
	case 5:
		err = m.agent.Steer(m.next())
	case 6:
		err = m.agent.FollowUp(m.next())
	case 7:
		m.agent.Abort(errHostile)
	case 8:
		err = m.hold(ctx)
	case 9:
		err = m.agent.Reset()
	case 10:
		err = m.agent.SetMessages(agentkernel.UserMessage("set"))
	case 11:
		err = errors.Join(m.agent.SetTools(m.cfg.Tools...), m.agent.SetModel(m.cfg.Model))
	case 12:
		remove := m.agent.Subscribe(func(agentkernel.Event) {})
		time.Sleep(time.Millisecond)
		remove()
	case 13:
		err = m.stream(ctx)
	case 14:
		_, err = m.agent.Compact(ctx, "")
	case 15:
		_, err = json.Marshal(m.agent.Messages())
	}
	m.expect(fmt.Sprint("method ", what), err)
}

func (m *methods) hold(ctx context.Context) error {
	release, err := m.agent.HoldRuns(ctx)
	if err != nil {
		return err
	}
	if m.agent.State().IsRunning {
		m.t.Error("runs though held")
	}
	release()
	release()
	return nil
}

func (m *methods) stream(ctx context.Context) error {
	for _, err := range m.agent.Stream(ctx, agentkernel.UserMessage("stream")) {
		if err != nil || rand.IntN(30) == 0 {
			return err
		}
	}
	return nil
}
