package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

func TestFault01AbortLeavesCallsUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Calls("read", "bash", "read"), agenttest.Text("ok"))
		agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("read"), waiter("bash")}})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		run.Abort(nil)
		record, _ := run.Wait(t.Context())
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
		require.Equal(t, []string{"read ok", "bash interrupted", "read not_started"}, causes(agent.events()))
		require.Equal(t, agentkernel.EventAgentEnd, final(agent.events()).Type)
		require.Empty(t, agent.State().PendingToolCalls)
		_, err = agent.Run(t.Context(), "go on")
		require.NoError(t, err)
		asked := model.Requests()[1].Messages
		require.Len(t, asked, 6)
		for i, id := range []string{"call_1", "call_2", "call_3"} {
			require.Equal(t, id, asked[2+i].ToolCallID)
		}
	})
}

func TestFault12AbortInToolsStillCallsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steering := new(agentkernel.Queue)
		model := agenttest.Script(agenttest.Calls("sleep"), agenttest.Text("never"))
		agent := watch(t, agentkernel.Config{Model: model, Steering: steering, Tools: []agentkernel.Tool{waiter("sleep")}})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, steering.Push(agentkernel.UserMessage("second")))
		run.Abort(nil)
		record, _ := run.Wait(t.Context())
		require.Len(t, model.Requests(), 1)
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
		require.Len(t, ofType(agent.events(), agentkernel.EventAgentEnd), 1)
		require.Len(t, record.NewMessages, 3)
		require.Len(t, steering.Items(), 1)
	})
}

func TestFault13ToolPanicKillsProcess(t *testing.T) {
	var nothing map[string]int
	release := make(chan struct{})
	slow := safe(tool("a", func(context.Context) (agentkernel.ToolResult, error) {
		<-release
		return agentkernel.TextResult("a is done"), nil
	}))
	bad := safe(tool("b", func(context.Context) (agentkernel.ToolResult, error) {
		defer close(release)
		nothing["x"] = 1
		return agentkernel.ToolResult{}, nil
	}))
	model := agenttest.Script(agenttest.Calls("a", "b"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{slow, bad}})
	got := told(model, 2)
	require.Equal(t, "a is done", got[0])
	require.Contains(t, got[1], "nil map")
	require.NotContains(t, got[1], "goroutine")
	require.Contains(t, results(log)["b"].Stack, "tool_faults_test.go")
}

func TestFault15ToolErrorTriggersStepRetry(t *testing.T) {
	for name, err := range map[string]error{
		"net.Error":   &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
		"path error":  &os.PathError{Op: "open", Path: "x", Err: os.ErrNotExist},
		"wrapped 429": errors.Join(errors.New("fetch"), &agentkernel.Error{Kind: agentkernel.KindRateLimit, Status: 429, Retryable: true}),
	} {
		t.Run(name, func(t *testing.T) {
			written := 0
			write := tool("write", func(context.Context) (agentkernel.ToolResult, error) {
				written++
				return agentkernel.TextResult("written"), nil
			})
			fetch := tool("fetch", func(context.Context) (agentkernel.ToolResult, error) { return agentkernel.ToolResult{}, err })
			model := agenttest.Script(agenttest.Calls("write", "fetch"), agenttest.Text("ok"))
			log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{write, fetch}})
			require.Equal(t, 1, written)
			require.Equal(t, []string{"write ok", "fetch failed"}, causes(log))
			require.Len(t, model.Requests(), 2)
			require.Len(t, told(model, 2), 2)
			require.Empty(t, ofType(log, agentkernel.EventRetry))
			require.Equal(t, agentkernel.EndStop, endReason(log))
		})
	}
}

func TestFault36ToolIgnoresCancel(t *testing.T) {
	for name, late := range lates {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				deaf := tool("deaf", func(ctx context.Context) (agentkernel.ToolResult, error) {
					<-release
					report(ctx, agentkernel.ProgressSummary, "late")
					late()
					return agentkernel.TextResult("late"), nil
				})
				agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("deaf"), agenttest.Text("ok")),
					StopTimeout: time.Second, Tools: []agentkernel.Tool{deaf}})
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				began := time.Now()
				run.Abort(nil)
				record, _ := run.Wait(t.Context())
				require.Equal(t, time.Second, time.Since(began))
				require.Equal(t, 1, record.Summary.Abandoned)
				require.Contains(t, results(agent.events())["deaf"].Content[0].Text, "may still be running")
				_, err = agent.Run(t.Context(), "again")
				require.NoError(t, err)
				n, state := len(agent.events()), agent.State()
				close(release)
				synctest.Wait()
				require.Len(t, agent.events(), n)
				require.Equal(t, state, agent.State())
			})
		})
	}
}

func TestFault37LateToolUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pusher := tool("push", func(ctx context.Context) (agentkernel.ToolResult, error) {
			go func() {
				for range 55 {
					time.Sleep(time.Millisecond)
					report(ctx, agentkernel.ProgressSummary, "tick")
				}
			}()
			time.Sleep(5*time.Millisecond + time.Nanosecond)
			return agentkernel.ToolResult{}, nil
		})
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("push"), agenttest.Text("ok").Delay(10*time.Millisecond)),
			Tools: []agentkernel.Tool{pusher}})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Len(t, progressOf(agent.events()), 5)
		require.Equal(t, agentkernel.EventAgentEnd, final(agent.events()).Type)
	})
}

func TestFault38SendOnClosedEventChannel(t *testing.T) {
	runs := 200
	if os.Getenv("AGENTKERNEL_LONG") != "" {
		runs = 1000
	}
	before := runtime.NumGoroutine()
	noisy := safe(tool("noisy", func(ctx context.Context) (agentkernel.ToolResult, error) {
		for ctx.Err() == nil {
			report(ctx, agentkernel.ProgressToolDelta, "x")
			report(ctx, agentkernel.ProgressSummary, "x")
			runtime.Gosched()
		}
		return agentkernel.ToolResult{}, ctx.Err()
	}))
	for range runs {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Calls("noisy", "noisy", "noisy", "noisy", "noisy", "noisy", "noisy", "noisy")),
			Tools: []agentkernel.Tool{noisy}}
		var log []agentkernel.Event
		for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
			log = append(log, ev)
			if ev.Type == agentkernel.EventToolExecUpdate {
				cancel()
			}
		}
		cancel()
		require.NoError(t, agenttest.CheckRun(nil, log))
		require.Equal(t, agentkernel.EndAborted, endReason(log))
	}
	for i := 0; runtime.NumGoroutine() > before && i < 1000; i++ {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestFault41SharedPartialMutated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spoiler := echo("t")
		agent, err := agentkernel.NewAgent(agentkernel.Config{
			Model: agenttest.Script(agenttest.Call("a", "t", `{"x":[1,2,3]}`).Chunks(1), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{spoiler},
			Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				time.Sleep(time.Second) // the listener is there before the call is executed
				return agentkernel.GateDecision{Allow: true}, nil
			},
		})
		require.NoError(t, err)
		agent.Subscribe(func(ev agentkernel.Event) { // it harms nobody but itself
			clear(ev.Args)
			if ev.Result != nil {
				clear(ev.Result.Content)
			}
			if m, ok := ev.Message.(agentkernel.Message); ok {
				for _, call := range m.ToolCalls() {
					clear(call.Args)
				}
				clear(m.Content)
			}
			for i := range ev.ToolResults {
				clear(ev.ToolResults[i].Content)
			}
		})
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.Equal(t, `{"x":[1,2,3]}`, agent.Messages()[2].TextContent())
		require.Equal(t, `{"x":[1,2,3]}`, string(agent.Messages()[1].(agentkernel.Message).ToolCalls()[0].Args))
	})
}

func TestFault42ReentrantListenerInTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steering := new(agentkernel.Queue)
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("wait"), agenttest.Text("never")), Steering: steering,
			Tools: []agentkernel.Tool{waiter("wait")}})
		agent.Subscribe(func(ev agentkernel.Event) {
			_ = agent.State()
			if ev.Type == agentkernel.EventToolExecStart {
				require.Equal(t, []string{"call_1"}, agent.State().PendingToolCalls)
				_ = steering.Push(agentkernel.UserMessage("x"))
				agent.Abort(nil)
			}
		})
		record, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
	})
}

func TestFault44SteerSplitsCallResultPairs(t *testing.T) {
	for policy, want := range map[agentkernel.SteerPolicy][]string{
		agentkernel.SteerSkip:   {"a ok", "b skipped", "c skipped"},
		agentkernel.SteerFinish: {"a ok", "b ok", "c ok"},
	} {
		synctest.Test(t, func(t *testing.T) {
			steering := new(agentkernel.Queue)
			slow := tool("a", func(context.Context) (agentkernel.ToolResult, error) {
				time.Sleep(time.Second)
				_ = steering.Push(agentkernel.UserMessage("stop"))
				time.Sleep(time.Second)
				return agentkernel.TextResult("a"), nil
			})
			model := agenttest.Script(agenttest.Calls("a", "b", "c"), agenttest.Text("ok"))
			log := play(t, agentkernel.Config{Model: model, Steering: steering, SteerPolicy: policy,
				Tools: []agentkernel.Tool{slow, echo("b"), echo("c")}})
			require.Equal(t, want, causes(log))
			asked := model.Requests()[1].Messages
			require.Len(t, asked, 6)
			for i, id := range []string{"call_1", "call_2", "call_3"} {
				require.Equal(t, id, asked[2+i].ToolCallID)
			}
			require.Equal(t, "stop", asked[5].TextContent())
		})
	}
}

func TestFault52UnknownToolEndsRun(t *testing.T) {
	model := agenttest.Script(agenttest.Calls("reed"), agenttest.Calls("read"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("read"), echo("write")}})
	require.Equal(t, []string{"reed unknown", "read ok"}, causes(log))
	require.Equal(t, `There is no tool "reed". The tools are "read", "write".`, told(model, 2)[0])
	require.Equal(t, agentkernel.EndStop, endReason(log))
}

func TestFault53BadJSONArgumentsEndRun(t *testing.T) {
	typed := echo("t")
	typed.Schema = json.RawMessage(`{"type":"object","properties":{"p":{"type":"string"}}}`)
	for args, want := range map[string]string{
		`{"p": a}`: "invalid character 'a' looking for beginning of value at offset 7 of 8. The arguments were: {\"p\": a}",
		`[1,2]`:    "arguments are JSON but no object. The arguments were: [1,2]",
		`{"p":1}`:  "/p: expected a string, got number 1",
	} {
		model := agenttest.Script(agenttest.Call("a", "t", args), agenttest.Text("ok"))
		log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{typed}})
		require.Equal(t, []string{"t invalid"}, causes(log))
		require.Contains(t, told(model, 2)[0], want)
		replayed := model.Requests()[1].Messages[1].ToolCalls()[0].Args
		require.True(t, json.Valid(replayed))
		require.Equal(t, byte('{'), replayed[0])
		require.Equal(t, agentkernel.EndStop, endReason(log))
	}
}

func TestFault71SecretsInErrorEventsOfTools(t *testing.T) {
	bad := &url.Error{Op: "Get", URL: "https://api.test/v1?key=SECRET", Err: errors.New("no route")}
	cfg := agentkernel.Config{Tools: []agentkernel.Tool{
		tool("fail", func(context.Context) (agentkernel.ToolResult, error) { return agentkernel.ToolResult{}, bad }),
		tool("panic", func(context.Context) (agentkernel.ToolResult, error) { panic(bad) }),
		agentkernel.MustTool("typed", "", func(context.Context, struct{}) (string, error) { return "", bad }),
	}}
	cfg.Model = agenttest.Script(agenttest.Calls("fail", "panic", "typed"), agenttest.Text("ok"))
	for _, ev := range play(t, cfg) {
		raw, err := json.Marshal([]any{ev.Message, ev.Result, ev.ToolResults, ev.NewMessages})
		require.NoError(t, err)
		require.NotContains(t, string(raw), "SECRET", ev.Type)
	}
}

func TestFault72InterruptedReportedAsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("denied", "write", "later")),
			Tools: []agentkernel.Tool{waiter("write"), echo("denied"), echo("later")},
			Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				return agentkernel.GateDecision{Allow: req.Call.Name != "denied"}, nil
			}})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		run.Abort(nil)
		_, _ = run.Wait(t.Context())
		got := results(agent.events())
		for name, want := range map[string]agentkernel.ToolCause{
			"denied": agentkernel.ToolDenied, "write": agentkernel.ToolInterrupted, "later": agentkernel.ToolNotStarted,
		} {
			require.Equal(t, want, got[name].Cause)
			text := got[name].Content[0].Text
			require.Equal(t, name == "write", strings.Contains(text, "may have had effects"), text)
			require.Equal(t, name != "write", strings.Contains(text, "not run"), text)
		}
	})
}
