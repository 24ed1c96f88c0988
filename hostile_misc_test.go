package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestHostileSteering: steering that brings nothing, or was taken back, skips no call.
func TestHostileSteering(t *testing.T) {
	for name, steer := range map[string]func(t *testing.T, agent *watched, q *agentkernel.Queue){
		"nothing": func(t *testing.T, agent *watched, _ *agentkernel.Queue) { require.NoError(t, agent.Steer()) },
		"taken back": func(t *testing.T, _ *watched, q *agentkernel.Queue) {
			require.NoError(t, q.Push(agentkernel.UserMessage("no")))
			require.Len(t, q.Clear(), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, entered, leave := new(agentkernel.Queue), make(chan struct{}), make(chan struct{})
				agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("wait", "echo"), agenttest.Text("ok")), Steering: q,
					Tools: []agentkernel.Tool{tool("wait", func(context.Context) (agentkernel.ToolResult, error) {
						close(entered)
						<-leave
						return agentkernel.TextResult("x"), nil
					}), echo("echo")}})
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				<-entered
				steer(t, agent, q)
				close(leave)
				_, err = run.Wait(t.Context())
				require.NoError(t, err)
				got := causes(agent.events())
				if name == "taken back" && got[1] != "echo ok" { // the run looked in between
					got[1] = strings.Replace(got[1], "skipped", "ok", 1)
				}
				require.Equal(t, []string{"wait ok", "echo ok"}, got)
			})
		})
	}
}

// TestHostileMiddlewareTimeLimit: a middleware that gives up on a sub-agent leaves no child run open.
func TestHostileMiddlewareTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := agents(t, agentkernel.ForwardEvents, map[string]agentkernel.Config{"c": {Model: agenttest.Script(agenttest.Text("x").Stall())}})
		limit := func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
				back := make(chan agentkernel.ToolResult, 1)
				go func() {
					result, _ := next(ctx, call)
					back <- result
				}()
				select {
				case result := <-back:
					return result, nil
				case <-time.After(time.Second):
					return agentkernel.ErrorResult("too slow"), nil
				}
			}
		}
		log := play(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("c1", ask.Name, askArgs("parallel", "c: p")), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{ask}, Middleware: []agentkernel.Middleware{limit},
		})
		require.Equal(t, agentkernel.EndStop, endReason(log))
	})
}

// oddContext is a context of another make, with an error of its own.
type oddContext struct {
	context.Context
	done chan struct{}
	err  error
}

func (c oddContext) Done() <-chan struct{} { return c.done }

func (c oddContext) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// TestHostileContexts: a context that ends with any error stops the run.
func TestHostileContexts(t *testing.T) {
	for name, end := range map[string]error{"custom": errHostile, "wrapped deadline": fmt.Errorf("x: %w", context.DeadlineExceeded)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := oddContext{t.Context(), make(chan struct{}), end}
				agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("x").Stall()), StopTimeout: time.Second})
				time.AfterFunc(time.Minute, func() { close(ctx.done) })
				began := time.Now()
				record, err := agent.Run(ctx, "hi")
				require.Error(t, err)
				require.LessOrEqual(t, time.Since(began), time.Minute+time.Second)
				require.Contains(t, []agentkernel.EndReason{agentkernel.EndAborted, agentkernel.EndTimeout}, record.EndReason)
			})
		})
	}
}

// TestHostileToolWaitsForItsRun: Wait and HoldRuns with a call's own context are refused.
func TestHostileToolWaitsForItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agent *watched
		var run *agentkernel.Run
		started := make(chan struct{})
		agent = watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("w"), agenttest.Text("ok")), Tools: []agentkernel.Tool{
			tool("w", func(ctx context.Context) (agentkernel.ToolResult, error) {
				<-started
				_, waited := run.Wait(ctx)
				_, held := agent.HoldRuns(ctx)
				return agentkernel.TextResult("x"), errors.Join(
					is(waited, agentkernel.ErrInListener), is(held, agentkernel.ErrInListener))
			})}})
		var err error
		run, err = agent.Prompt(t.Context(), "x")
		require.NoError(t, err)
		close(started)
		_, err = waitIn(t, run, time.Minute)
		require.NoError(t, err)
		require.Equal(t, []string{"w ok"}, causes(agent.events()))
	})
}

// is is nil where got is what was wanted.
func is(got, want error) error {
	if errors.Is(got, want) {
		return nil
	}
	return fmt.Errorf("got %v, want %w", got, want)
}

// TestHostileInjectWhileStartIsRefused: what is injected while another start fails is said.
func TestHostileInjectWhileStartIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"), agenttest.Text("ok"))})
		var slow atomic.Bool
		require.NoError(t, agent.SetMessages(agentkernel.UserMessage("x"), &mean{role: agentkernel.RoleAssistant, ask: func() {
			if slow.Load() {
				time.Sleep(time.Second)
			}
		}}))
		slow.Store(true)
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			_, _ = agent.Continue(context.Background())
		}()
		time.Sleep(time.Millisecond)
		_, err := agent.Inject(context.Background(), agentkernel.UserMessage("important"))
		require.NoError(t, err)
		slow.Store(false)
		time.Sleep(time.Minute)
		<-refused // or it has taken the message
		require.Contains(t, said(agent.Messages()), "user: important")
	})
}

// TestHostileReportsForEver: endless reports neither hold up the run nor come after its end.
func TestHostileReportsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		kinds := []agentkernel.ProgressKind{agentkernel.ProgressToolDelta, agentkernel.ProgressCustom}
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok")), Tools: []agentkernel.Tool{
			tool("t", func(ctx context.Context) (agentkernel.ToolResult, error) {
				for i := range 4 {
					go func() {
						for {
							select {
							case <-stop:
								return
							case <-time.After(time.Millisecond):
							}
							for range 20 {
								report(context.WithoutCancel(ctx), kinds[i%2], "0123456789")
							}
						}
					}()
				}
				time.Sleep(300 * time.Millisecond)
				return agentkernel.TextResult("x"), nil
			})}})
		agent.Subscribe(func(agentkernel.Event) { time.Sleep(time.Millisecond) })
		began := time.Now()
		_, err := agent.Run(t.Context(), "x")
		require.NoError(t, err)
		require.Less(t, time.Since(began), 10*time.Second)
		n := len(agent.events())
		time.Sleep(time.Second)
		require.Len(t, agent.events(), n)
		close(stop)
		synctest.Wait()
	})
}

// TestHostileGatePreview: a gate that writes into the preview does not change what is shown.
func TestHostileGatePreview(t *testing.T) {
	shown := echo("a")
	shown.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
		return agentkernel.ProgressPayload{Text: "diff", Data: json.RawMessage(`{"x":1}`)}, nil
	}
	var seen []string
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("a"), agenttest.Text("ok")), Tools: []agentkernel.Tool{shown},
		Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			copy(req.Preview.Data, `{"y":2}`)
			return agentkernel.GateDecision{Allow: true}, nil
		}})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	for _, ev := range agent.events() {
		if ev.UpdateKind == agentkernel.ToolExecUpdatePreview {
			seen = append(seen, string(ev.Progress.Data))
		}
	}
	require.Equal(t, []string{`{"x":1}`}, seen)
}

// TestHostileContextListener: a listener that changes a Context event changes no history.
func TestHostileContextListener(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("keep")))
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Context != nil {
			ev.Context.Messages[0] = agentkernel.UserMessage("CHANGED")
		}
	})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, []string{"user: keep", "user: hi", "assistant: ok"}, said(agent.Messages()))
}
