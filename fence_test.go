package agentkernel_test

import (
	"context"
	"encoding/json"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// deaf is user code that ignores its context: it blocks until release is closed, then does
// whatever it can to disturb the run.
type deaf struct {
	entered chan struct{}
	release chan struct{}
	late    func()
	left    atomic.Bool
}

func newDeaf(late func()) *deaf {
	return &deaf{entered: make(chan struct{}), release: make(chan struct{}), late: late}
}

func (d *deaf) block() {
	close(d.entered)
	<-d.release
	defer d.left.Store(true)
	d.late()
}

// lates are the ways in which user code comes back too late.
var lates = map[string]func(){
	"returns": func() {},
	"panics":  func() { panic("late") },
	"exits":   runtime.Goexit,
}

// deafRun is a run in which one piece of user code ignores its context.
type deafRun struct {
	cfg agentkernel.Config
	// said are the new messages, causes what became of the calls.
	said, causes []string
}

var deafRuns = map[string]func(*deaf) deafRun{
	"model before Stream returns": func(d *deaf) deafRun {
		return deafRun{cfg: agentkernel.Config{Model: agentkernel.ChatModelFunc(
			func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
				d.block()
				return agenttest.Script(agenttest.Text("late")).Stream(context.Background(), req)
			})}, said: []string{"user: hi"}}
	},
	"model before output": func(d *deaf) deafRun {
		return deafRun{cfg: agentkernel.Config{Model: deafModel(d, "", "late")}, said: []string{"user: hi"}}
	},
	"model during output": func(d *deaf) deafRun {
		return deafRun{cfg: agentkernel.Config{Model: deafModel(d, "early", "late")}, said: []string{"user: hi", "assistant: early"}}
	},
	"model after output": func(d *deaf) deafRun {
		return deafRun{cfg: agentkernel.Config{Model: deafModel(d, "early", "")}, said: []string{"user: hi", "assistant: early"}}
	},
	"model after Done": func(d *deaf) deafRun {
		return deafRun{cfg: agentkernel.Config{Model: agentkernel.ChatModelFunc(
			func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
				return func(yield func(agentkernel.StreamEvent, error) bool) {
					yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "early"}, nil)
					yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
					d.block()
				}
			})}, said: []string{"user: hi", "assistant: early"}}
	},
	"tool before output": func(d *deaf) deafRun { return deafTool(d, nil) },
	"tool during output": func(d *deaf) deafRun {
		return deafTool(d, func(ctx context.Context) { time.Sleep(time.Second) })
	},
	"tool after its context ended": func(d *deaf) deafRun {
		return deafTool(d, func(ctx context.Context) { context.AfterFunc(ctx, func() {}) })
	},
	"hook before output": func(d *deaf) deafRun {
		return deafRun{cfg: agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("never")),
			ConvertToLLM: func(context.Context, []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
				d.block()
				return nil, nil
			},
		}, said: []string{"user: hi"}}
	},
	"hook during the run": func(d *deaf) deafRun {
		n := 0
		return deafRun{cfg: agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("echo"), agenttest.Text("never")),
			Tools: []agentkernel.Tool{echo("echo")},
			ConvertToLLM: func(_ context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
				if n++; n == 2 {
					d.block()
				}
				return agentkernel.DefaultConvertToLLM(history), nil
			},
		}, said: []string{"user: hi", "assistant: ", "tool: {}"}, causes: []string{"echo ok"}}
	},
	"hook after a failed attempt": func(d *deaf) deafRun {
		n := 0
		return deafRun{cfg: agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("x").Fail(failure(agentkernel.KindServer, true)), agenttest.Text("never")),
			ConvertToLLM: func(_ context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
				if n++; n == 2 {
					d.block()
				}
				return agentkernel.DefaultConvertToLLM(history), nil
			},
		}, said: []string{"user: hi"}}
	},
}

func deafModel(d *deaf, before, after string) agentkernel.ChatModel {
	return agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: before}
			if before != "" && !yield(ev, nil) {
				return
			}
			defer func() {
				ev.Delta = after
				if !yield(ev, nil) {
					return
				}
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
			}()
			d.block()
		}
	})
}

func deafTool(d *deaf, first func(context.Context)) deafRun {
	return deafRun{
		cfg: agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("deaf", "echo"), agenttest.Text("again")),
			Tools: []agentkernel.Tool{echo("echo"), {Name: "deaf", Execute: func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
				if first != nil {
					first(ctx)
				}
				d.block()
				args[0] = 'X' // its own copy
				return agentkernel.TextResult("late"), nil
			}}},
		},
		said:   []string{"user: hi", "assistant: ", "tool: The call was interrupted. It may have had effects. Its last word: it did not stop in time and may still be running.", "tool: The run was stopped before this call began. It was not run."},
		causes: []string{"deaf interrupted", "echo not_started"},
	}
}

// TestStopIsBounded: whoever ignores its context, the end comes exactly StopTimeout after
// the abort, and what is left behind has no effect.
func TestStopIsBounded(t *testing.T) {
	const timeout = 3 * time.Second
	for name, deafRun := range deafRuns {
		for how, late := range lates {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newDeaf(late)
					c := deafRun(d)
					c.cfg.StopTimeout = timeout
					agent := watch(t, c.cfg)
					run, err := agent.Prompt(t.Context(), "hi")
					require.NoError(t, err)
					<-d.entered
					aborted := time.Now()
					run.Abort(nil)
					record, err := run.Wait(t.Context())
					require.ErrorIs(t, err, agentkernel.KindCanceled)
					require.Equal(t, timeout, time.Since(aborted))
					require.Equal(t, 1, record.Summary.Abandoned)
					require.Equal(t, c.said, said(record.NewMessages))
					require.Equal(t, c.causes, causes(agent.events()))

					n, state := len(agent.events()), agent.State()
					close(d.release)
					synctest.Wait()
					require.True(t, d.left.Load())
					require.Len(t, agent.events(), n)
					require.Equal(t, state, agent.State())
				})
			})
		}
	}
}

// TestAgentGoesOnAfterAnAbandonedTool: what was left behind does not hold the next run.
func TestAgentGoesOnAfterAnAbandonedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeaf(func() {})
		agent := watch(t, deafTool(d, nil).cfg)
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		<-d.entered
		agent.Abort(nil)
		_, err = run.Wait(t.Context())
		require.ErrorIs(t, err, context.Canceled)
		record, err := agent.Run(t.Context(), "again")
		require.NoError(t, err)
		require.Equal(t, "again", record.Answer)
		require.Zero(t, record.Summary.Abandoned)
		close(d.release)
	})
}

// TestOneStopDeadlineForAll: model and tools share one deadline; a tool that uses it up
// leaves nothing for others.
func TestOneStopDeadlineForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeaf(func() {})
		c := deafTool(d, func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(4 * time.Second) // within the default of 5 s
		})
		agent := watch(t, c.cfg)
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		aborted := time.Now()
		run.Abort(nil)
		_, err = run.Wait(t.Context())
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, 5*time.Second, time.Since(aborted))
		close(d.release)
	})
}

// TestSlowStopWithinTheDeadline: user code that comes back in time is waited for.
func TestSlowStopWithinTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return agentkernel.TextResult("cleaned up"), nil
		})
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("slow")), Tools: []agentkernel.Tool{slow}})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		aborted := time.Now()
		run.Abort(nil)
		record, err := run.Wait(t.Context())
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, time.Second, time.Since(aborted))
		require.Zero(t, record.Summary.Abandoned)
		require.Equal(t, []string{"slow ok"}, causes(agent.events()))
		require.Equal(t, "tool: cleaned up", said(record.NewMessages)[2])
	})
}

// TestStopWhileTheModelActsForTheRun: a model that waits with an event for a slow listener
// when its time is up is waited for, so that one goroutine at a time makes events.
func TestStopWhileTheModelActsForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Text("abcdefgh").Chunks(1).IgnoringContext())
		agent := watch(t, agentkernel.Config{Model: model, EventBuffer: 2, StopTimeout: time.Second})
		agent.Subscribe(func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventMessageStart && ev.Message.GetRole() == agentkernel.RoleAssistant {
				agent.Abort(nil)
			}
			time.Sleep(time.Minute)
		})
		record, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
	})
}

// TestNegativeStopTimeoutWaits for ever.
func TestNegativeStopTimeoutWaits(t *testing.T) {
	for _, name := range []string{"model during output", "tool before output", "hook before output"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDeaf(func() {})
				c := deafRuns[name](d)
				c.cfg.StopTimeout = -1
				agent := watch(t, c.cfg)
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				<-d.entered
				run.Abort(nil)
				_, err = waitIn(t, run, 24*time.Hour)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.True(t, agent.State().IsRunning)
				close(d.release)
				record, err := run.Wait(t.Context())
				require.ErrorIs(t, err, agentkernel.KindCanceled)
				require.Zero(t, record.Summary.Abandoned)
			})
		})
	}
}

// TestAbandonedByADeadline: a deadline of the caller is bounded in the same way.
func TestAbandonedByADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeaf(func() {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		agent := watch(t, deafTool(d, nil).cfg)
		began := time.Now()
		record, err := agent.Run(ctx, "hi")
		require.ErrorIs(t, err, agentkernel.KindTimeout)
		require.Equal(t, time.Minute+5*time.Second, time.Since(began))
		require.Equal(t, 1, record.Summary.Abandoned)
		require.Equal(t, agentkernel.EndTimeout, record.EndReason)
		close(d.release)
	})
}

// TestPanicsStayInTheirCall: process, run and the other calls survive, and the model is told.
func TestPanicsStayInTheirCall(t *testing.T) {
	for how, late := range lates {
		if how == "returns" {
			continue
		}
		t.Run(how, func(t *testing.T) {
			model := agenttest.Script(agenttest.Calls("echo", "bad", "echo"), agenttest.Text("ok"))
			bad := tool("bad", func(context.Context) (agentkernel.ToolResult, error) {
				late()
				return agentkernel.ToolResult{}, nil
			})
			log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("echo"), bad}})
			require.Equal(t, agentkernel.EndStop, endReason(log))
			require.Equal(t, []string{"echo ok", "bad panic", "echo ok"}, causes(log))
			result := ofType(log, agentkernel.EventToolExecEnd)[1].Result
			require.NotEmpty(t, result.Stack)
			require.Len(t, model.Requests(), 2)
			told := model.Requests()[1].Messages
			require.Equal(t, "call_2", told[3].ToolCallID)
			require.NotContains(t, told[3].TextContent(), "goroutine ")
			require.Equal(t, "{}", told[4].TextContent())
		})
	}
}
