package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestToolBatches is the property test of batches of calls: tools of every temper, gates,
// middleware, sub-agents, steering and aborts at random moments, slow consumers, each run in
// a bubble of its own, under the checker.
// See [property] for how many they are and how to repeat one.
func TestToolBatches(t *testing.T) {
	property(t, 400, func(t *testing.T, seed uint64) int {
		toolBatch(t, nil, seed)
		return 1
	})
}

// FuzzTools is TestToolBatches with the fuzzer's bytes as the dice.
func FuzzTools(f *testing.F) {
	f.Add([]byte("some dice to begin with"), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) { toolBatch(t, data, seed) })
}

func toolBatch(t *testing.T, data []byte, seed uint64) {
	d := &dice{data: data, rng: rand.New(rand.NewPCG(seed, 2))}
	var log []agentkernel.Event
	var problem error
	synctest.Test(t, func(t *testing.T) {
		problem = playBatch(d, &log)
		time.Sleep(24 * time.Hour) // until all that was left behind has come back
	})
	if problem != nil {
		t.Fatalf(seeded+" data=%q\n%v\n%s", seed, data, problem, agenttest.Format(log))
	}
}

var batchNames = []string{"ok", "fail", "panic", "exit", "slow", "wait", "deaf", "chatty", "stop", "huge", "typed", "ask", "nobody"}

func playBatch(d *dice, log *[]agentkernel.Event) error {
	cfg, stop := batchConfig(d), d.upTo(20*time.Second)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if d.chance(40) {
		defer time.AfterFunc(stop, func() { cancel(errors.New("at random")) }).Stop()
	}
	for range d.n(3) {
		defer time.AfterFunc(d.upTo(20*time.Second), func() { _ = cfg.Steering.Push(agentkernel.UserMessage("steer")) }).Stop()
	}
	cfg.DrainTimeout = -1
	checker := &agenttest.Checker{AllowRepair: true}
	checker.StartFrom(nil)
	pause, every := d.upTo(time.Second), 1+d.n(20)
	var stopped atomic.Pointer[time.Time]
	context.AfterFunc(ctx, func() { stopped.Store(new(time.Now())) })
	slow := time.Duration(0)
	for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
		*log = append(*log, ev)
		checker.Listen(ev)
		if len(*log)%every == 0 {
			time.Sleep(pause)
			slow += pause
		}
	}
	if err := checker.Finish(); err != nil {
		return err
	}
	if at := stopped.Load(); at != nil && cfg.StopTimeout > 0 && time.Since(*at) > cfg.StopTimeout*2+slow {
		return fmt.Errorf("the end came %v after the abort", time.Since(*at))
	}
	return alone(*log)
}

// alone checks that what is not safe ran beside nothing, by the updates that running tools
// made between the starts and ends of others.
func alone(log []agentkernel.Event) error {
	open := make(map[string]bool)
	for _, ev := range log {
		if ev.ParentRunID != "" {
			continue
		}
		switch ev.Type {
		case agentkernel.EventToolExecStart:
			open[ev.ToolID] = true
		case agentkernel.EventToolExecEnd:
			delete(open, ev.ToolID)
			cause := ev.Result.Cause
			ran := cause == agentkernel.ToolOK || cause == agentkernel.ToolFailed
			if ran && ev.ToolLabel == "unsafe" && len(open) > 0 {
				return fmt.Errorf("seq %d: %s ran beside %d others", ev.Seq, ev.Tool, len(open))
			}
		}
	}
	return nil
}

func batchConfig(d *dice) agentkernel.Config {
	var script []agenttest.Reply
	for range 1 + d.n(3) {
		reply := agenttest.Text("t")
		for i := range d.n(8) {
			name, args := pick(d, batchNames...), pick(d, "{}", `{"n":1}`, `{"n":"1"}`, `{"n":`, `{"x":{"y":[1]}}`)
			if name == "ask" {
				args = askArgs(pick(d, "single", "parallel", "chain"), slices.Repeat([]string{"sub: go"}, 1+d.n(3))...)
			}
			_ = i
			reply = reply.Call("", name, args)
		}
		script = append(script, reply.Delay(d.upTo(time.Second)))
	}
	cfg := agentkernel.Config{
		Model:               agenttest.Script(append(script, agenttest.Text("end"))...),
		Steering:            &agentkernel.Queue{Mode: pick(d, agentkernel.QueueAll, agentkernel.QueueOneAtATime)},
		SteerPolicy:         pick(d, agentkernel.SteerSkip, agentkernel.SteerFinish),
		StopTimeout:         pick(d, time.Second, 0, time.Millisecond),
		EventBuffer:         pick(d, 0, 2, 5),
		MaxParallelTools:    pick(d, 0, -1, 1, 2),
		MaxToolCallsPerTurn: pick(d, 0, 0, 3),
		MaxToolErrors:       pick(d, 0, 0, 2),
		MaxRepeatedCalls:    pick(d, 0, 0, 2),
		MaxToolResultBytes:  pick(d, 0, 10),
		ToolTimeout:         pick(d, 0, 0, 3*time.Second),
		Tools:               batchTools(d, 2),
		Retry:               agentkernel.RetryPolicy{MaxRetries: -1},
	}
	if d.chance(60) {
		cfg.Gate = batchGate(d)
	}
	if d.chance(30) {
		bad := d.chance(30)
		cfg.Middleware = []agentkernel.Middleware{func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
				if bad {
					call.Args = json.RawMessage(`[1]`)
				}
				return next(ctx, call)
			}
		}}
	}
	if d.chance(30) {
		better := pick(d, `{"n":2}`, `{}`, `no`)
		cfg.RepairToolCall = func(context.Context, agentkernel.RepairRequest) (json.RawMessage, error) {
			if better == "no" {
				panic("repair")
			}
			return json.RawMessage(better), nil
		}
	}
	return cfg
}

func batchGate(d *dice) func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
	wait := d.upTo(5 * time.Second)
	decision := agentkernel.GateDecision{Allow: d.chance(80), Reason: pick(d, "", "why"), Args: json.RawMessage(pick(d, "", "", `{"n":3}`, `{"n":"x"}`))}
	deaf, crash := d.chance(20), d.chance(10)
	return func(ctx context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		report(ctx, agentkernel.ProgressSummary, "from the gate")
		answer := decision
		if req.Call.Name == "ask" {
			answer.Args = nil
		}
		done := ctx.Done()
		if deaf {
			done = nil
		}
		select {
		case <-time.After(wait):
		case <-done:
			return answer, ctx.Err()
		}
		if crash {
			runtime.Goexit()
		}
		return answer, nil
	}
}

// batchTools are one tool for each name, some of them safe.
func batchTools(d *dice, depth int) []agentkernel.Tool {
	text := agentkernel.TextResult
	short, long := d.upTo(3*time.Second), d.upTo(time.Minute)
	late := pick(d, func() {}, func() { panic("late") }, runtime.Goexit)
	run := map[string]func(ctx context.Context) (agentkernel.ToolResult, error){
		"ok":    func(context.Context) (agentkernel.ToolResult, error) { return text("ok"), nil },
		"fail":  func(context.Context) (agentkernel.ToolResult, error) { return text("half"), errors.New("no") },
		"panic": func(context.Context) (agentkernel.ToolResult, error) { panic("tool") },
		"exit":  func(context.Context) (agentkernel.ToolResult, error) { runtime.Goexit(); panic("never") },
		"slow":  func(context.Context) (agentkernel.ToolResult, error) { time.Sleep(short); return text("slow"), nil },
		"wait": func(ctx context.Context) (agentkernel.ToolResult, error) {
			select {
			case <-ctx.Done():
			case <-time.After(long):
			}
			return agentkernel.ToolResult{Usage: &agentkernel.Usage{Total: 1}}, ctx.Err()
		},
		"deaf": func(ctx context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(long)
			report(ctx, agentkernel.ProgressToolDelta, "late")
			late()
			return text("late"), nil
		},
		"chatty": func(ctx context.Context) (agentkernel.ToolResult, error) {
			for i := range 200 {
				report(ctx, pick(&dice{rng: rand.New(rand.NewPCG(uint64(i), 1))}, agentkernel.ProgressToolDelta, agentkernel.ProgressSummary, agentkernel.ProgressKind(fmt.Sprint(i))), "words")
				time.Sleep(short / 200)
			}
			return text("said"), nil
		},
		"stop": func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{Terminate: true}, nil
		},
		"huge": func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{JSON: json.RawMessage(`{"a":"` + string(make([]byte, 100)) + `"}`)}, nil
		},
	}
	var tools []agentkernel.Tool
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range run {
			if !yield(name) {
				return
			}
		}
	}) {
		tools = append(tools, tool(name, run[name]))
	}
	typed := agentkernel.MustTool("typed", "", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (int, error) {
		return in.N, nil
	})
	tools = append(tools, typed)
	for i := range tools {
		tools[i].Label = "unsafe"
		if d.chance(60) {
			tools[i].Label = "safe"
			tools[i] = safe(tools[i])
		}
		if d.chance(30) {
			tools[i].Interrupt = agentkernel.InterruptCancel
		}
		if d.chance(10) {
			tools[i].Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
				return agentkernel.ProgressPayload{Text: "preview"}, nil
			}
		}
		if d.chance(5) {
			tools[i].Validate = func(context.Context, json.RawMessage) error { panic("validate") }
		}
	}
	if depth == 0 {
		return tools
	}
	sub := agentkernel.SubAgent{Name: "sub", Config: agentkernel.Config{
		Model: agenttest.Script(slices.Repeat([]agenttest.Reply{
			agenttest.Text("sub").Calls(pick(d, batchNames...)).Delay(d.upTo(time.Second)), agenttest.Text("answer").Delay(d.upTo(time.Second)),
		}, 20)...),
		Tools:       batchTools(d, depth-1),
		StopTimeout: pick(d, 0, -1, time.Second),
		Retry:       agentkernel.RetryPolicy{MaxRetries: -1},
	}}
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Agents: []agentkernel.SubAgent{sub},
		Forward: pick(d, forwardModes...), MaxParallel: pick(d, 0, -1, 1)})
	if err != nil {
		panic(err)
	}
	if d.chance(30) {
		ask.Interrupt = agentkernel.InterruptCancel
	}
	return append(tools, ask)
}
