package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

type gateFunc = func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error)

// person is a gate that waits for an answer on a channel, or for its context.
func person(answers <-chan agentkernel.GateDecision) gateFunc {
	return func(ctx context.Context, _ agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		select {
		case d := <-answers:
			return d, nil
		case <-ctx.Done():
			return agentkernel.GateDecision{}, context.Cause(ctx)
		}
	}
}

// safe makes a tool run beside others.
func safe(tool agentkernel.Tool) agentkernel.Tool {
	tool.ConcurrencySafe = func(json.RawMessage) bool { return true }
	return tool
}

// TestGate: what it may answer, and what the stream, the tool and the model see of that.
func TestGate(t *testing.T) {
	typed := echo("t")
	typed.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	typed.Validate = func(_ context.Context, args json.RawMessage) error {
		if string(args) == `{"n":13}` {
			return errors.New("13 brings bad luck")
		}
		return nil
	}
	allow := agentkernel.GateDecision{Allow: true}
	rewrite := func(args string) agentkernel.GateDecision {
		return agentkernel.GateDecision{Allow: true, Reason: "better so", Args: json.RawMessage(args)}
	}
	for name, tt := range map[string]struct {
		decision agentkernel.GateDecision
		err      error
		cause    agentkernel.ToolCause
		told     string
		args     string // on the end
		update   string // text and data of the gate's update
	}{
		"allow":                    {allow, nil, agentkernel.ToolOK, `{"n":1}`, `{"n":1}`, ` {"allow":true}`},
		"deny with a reason":       {agentkernel.GateDecision{Reason: "not today"}, nil, agentkernel.ToolDenied, "The call was denied and not run. Reason: not today", `{"n":1}`, `not today {"allow":false}`},
		"deny":                     {agentkernel.GateDecision{}, nil, agentkernel.ToolDenied, "The call was denied and not run.", `{"n":1}`, ` {"allow":false}`},
		"deny beats arguments":     {agentkernel.GateDecision{Args: json.RawMessage(`{"n":2}`)}, nil, agentkernel.ToolDenied, "The call was denied and not run.", `{"n":1}`, ` {"allow":false}`},
		"an error denies":          {allow, errors.New("nobody is there"), agentkernel.ToolDenied, "The call was denied and not run. Reason: nobody is there", `{"n":1}`, `nobody is there {"allow":false}`},
		"rewrite":                  {rewrite(`{ "n": 2 }`), nil, agentkernel.ToolOK, `{"n":2}`, `{"n":2}`, `better so {"allow":true}`},
		"rewrite against schema":   {rewrite(`{"n":"2"}`), nil, agentkernel.ToolInvalid, "/n: expected an integer", `{"n":1}`, `better so {"allow":true}`},
		"rewrite that is no JSON":  {rewrite(`{"n":`), nil, agentkernel.ToolInvalid, "arguments are no JSON", `{"n":1}`, `better so {"allow":true}`},
		"rewrite against Validate": {rewrite(`{"n":13}`), nil, agentkernel.ToolInvalid, "bad luck", `{"n":13}`, `better so {"allow":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				require.Equal(t, `{"n":1}`, string(req.Call.Args))
				require.Equal(t, "a", req.Call.ID)
				req.Call.Args[1] = '!' // the gate's own copy
				return tt.decision, tt.err
			}
			log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{typed}, Gate: ask}, "t", `{"n":1}`)
			require.Equal(t, tt.cause, got.Cause)
			require.Contains(t, got.Content[0].Text, tt.told)
			require.Equal(t, `{"n":1}`, string(ofType(log, agentkernel.EventToolExecStart)[0].Args))
			require.Equal(t, tt.args, string(ofType(log, agentkernel.EventToolExecEnd)[0].Args))
			updates := ofType(log, agentkernel.EventToolExecUpdate)
			require.Len(t, updates, 1)
			require.Equal(t, agentkernel.ToolExecUpdateGate, updates[0].UpdateKind)
			require.Equal(t, tt.update, updates[0].Progress.Text+" "+string(updates[0].Progress.Data))
			require.Equal(t, tt.args, string(updates[0].Args))
		})
	}
}

// TestGateThatCrashes denies, and the stack is on the event only.
func TestGateThatCrashes(t *testing.T) {
	for name, crash := range map[string]func(){"panics": func() { panic("gate gone") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			ran := false
			cfg := agentkernel.Config{Tools: []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
				ran = true
				return agentkernel.ToolResult{}, nil
			})}, Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				crash()
				return agentkernel.GateDecision{Allow: true}, nil
			}}
			log, got := once(t, cfg, "t", "{}")
			require.False(t, ran)
			require.Equal(t, agentkernel.ToolDenied, got.Cause)
			require.Contains(t, got.Stack, "goroutine")
			require.Equal(t, agentkernel.EndStop, endReason(log))
			if name == "panics" {
				require.Contains(t, got.Content[0].Text, "gate gone")
			}
		})
	}
}

// TestGateWaitsWhileOthersGoOn: a person who takes a day holds up that one call only.
func TestGateWaitsWhileOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan agentkernel.GateDecision)
		ask := person(answers)
		cfg := agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("slow", "asked", "slow"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{safe(echo("asked")), safe(tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
				time.Sleep(time.Minute)
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressSummary, Text: "half"})
				time.Sleep(time.Minute)
				return agentkernel.TextResult("done"), nil
			}))},
			Gate: func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				if req.Call.Name == "asked" {
					return ask(ctx, req)
				}
				return agentkernel.GateDecision{Allow: true}, nil
			},
		}
		time.AfterFunc(24*time.Hour, func() { answers <- agentkernel.GateDecision{Allow: true} })
		log := play(t, cfg)
		require.Equal(t, []string{"slow ok", "slow ok", "asked ok"}, ended(log))
		ends := ofType(log, agentkernel.EventToolExecEnd)
		require.Equal(t, 2*time.Minute, ends[0].Duration)
		require.Equal(t, 24*time.Hour, ends[2].Duration)
		require.Len(t, ofType(log, agentkernel.EventToolExecUpdate), 5) // three answers, two reports
	})
}

// TestGateOnAbort: a call that waits for a person was not started; the others were.
func TestGateOnAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := person(nil)
		agent := watch(t, agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("slow", "asked", "later"), agenttest.Text("never")),
			Tools: []agentkernel.Tool{safe(waiter("slow")), safe(echo("asked")), echo("later")},
			Gate: func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				if req.Call.Name == "asked" {
					return ask(ctx, req)
				}
				return agentkernel.GateDecision{Allow: true}, nil
			},
		})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		run.Abort(nil)
		record, err := run.Wait(t.Context())
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
		got := results(agent.events())
		require.Equal(t, agentkernel.ToolInterrupted, got["slow"].Cause)
		require.Equal(t, agentkernel.ToolNotStarted, got["asked"].Cause)
		require.Equal(t, agentkernel.ToolNotStarted, got["later"].Cause)
	})
}

// TestGateOnSteering: a call that waits for a person is skipped, those that run go on.
func TestGateOnSteering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steering := new(agentkernel.Queue)
		ask := person(nil)
		cfg := agentkernel.Config{
			Model:    agenttest.Script(agenttest.Calls("slow", "asked"), agenttest.Text("ok")),
			Steering: steering,
			Tools: []agentkernel.Tool{safe(echo("asked")), safe(tool("slow", func(context.Context) (agentkernel.ToolResult, error) {
				time.Sleep(time.Hour)
				return agentkernel.TextResult("done"), nil
			}))},
			Gate: func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
				if req.Call.Name == "asked" {
					return ask(ctx, req)
				}
				return agentkernel.GateDecision{Allow: true}, nil
			},
		}
		time.AfterFunc(time.Minute, func() { _ = steering.Push(agentkernel.UserMessage("no")) })
		log := play(t, cfg)
		require.Equal(t, []string{"asked skipped", "slow ok"}, ended(log))
		require.Equal(t, time.Minute, ofType(log, agentkernel.EventToolExecEnd)[0].Duration)
	})
}

// TestDeafGate: one that ignores its context is left behind. Its call was not run, and will
// not be when the gate comes back.
func TestDeafGate(t *testing.T) {
	for name, tt := range map[string]struct {
		stop func(*agentkernel.Run, *agentkernel.Queue)
		want agentkernel.ToolCause
	}{
		"abort":    {func(run *agentkernel.Run, _ *agentkernel.Queue) { run.Abort(nil) }, agentkernel.ToolNotStarted},
		"steering": {func(_ *agentkernel.Run, q *agentkernel.Queue) { _ = q.Push(agentkernel.UserMessage("no")) }, agentkernel.ToolSkipped},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				ran := false
				steering := new(agentkernel.Queue)
				agent := watch(t, agentkernel.Config{
					Model:    agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok")),
					Steering: steering,
					Tools: []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
						ran = true
						return agentkernel.ToolResult{}, nil
					})},
					Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
						<-release
						return agentkernel.GateDecision{Allow: true}, nil
					},
				})
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				began := time.Now()
				tt.stop(run, steering)
				record, _ := run.Wait(t.Context())
				require.Equal(t, 5*time.Second, time.Since(began))
				require.Equal(t, 1, record.Summary.Abandoned)
				require.Equal(t, tt.want, results(agent.events())["t"].Cause)
				close(release)
				synctest.Wait()
				require.False(t, ran)
			})
		})
	}
}

// TestProgressBeforeExecution is without effect: only what is executed reports.
func TestProgressBeforeExecution(t *testing.T) {
	noisy := echo("t")
	report := func(ctx context.Context) {
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressSummary, Text: "early"})
	}
	noisy.Validate = func(ctx context.Context, _ json.RawMessage) error { report(ctx); return nil }
	noisy.Preview = func(ctx context.Context, _ json.RawMessage) (agentkernel.ProgressPayload, error) {
		report(ctx)
		return agentkernel.ProgressPayload{Text: "preview"}, nil
	}
	log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{noisy}, Gate: func(ctx context.Context, _ agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		report(ctx)
		return agentkernel.GateDecision{Allow: true}, nil
	}}, "t", "{}")
	require.Equal(t, agentkernel.ToolOK, got.Cause)
	for _, ev := range ofType(log, agentkernel.EventToolExecUpdate) {
		require.NotEqual(t, agentkernel.ToolExecUpdateProgress, ev.UpdateKind)
	}
}

func ExampleConfig_gate() {
	model := agenttest.Script(
		agenttest.Call("a", "delete", `{"path":"notes.txt"}`).Call("b", "delete", `{"path":"/"}`),
		agenttest.Text("Done."),
	)
	remove := agentkernel.Tool{
		Name: "delete",
		Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			return agentkernel.TextResult("deleted " + string(args)), nil
		},
	}
	cfg := agentkernel.Config{
		Model: model,
		Tools: []agentkernel.Tool{remove},
		Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			var args struct{ Path string }
			if err := json.Unmarshal(req.Call.Args, &args); err != nil {
				return agentkernel.GateDecision{}, err
			}
			if args.Path == "/" {
				return agentkernel.GateDecision{Reason: "not the root"}, nil
			}
			return agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{"path":"trash/` + args.Path + `"}`)}, nil
		},
	}
	for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("Tidy up.")) {
		if ev.Type == agentkernel.EventToolExecEnd {
			fmt.Println(ev.Result.Cause, ev.Result.Content[0].Text)
		}
	}
	// Output:
	// ok deleted {"path":"trash/notes.txt"}
	// denied The call was denied and not run. Reason: not the root
}
