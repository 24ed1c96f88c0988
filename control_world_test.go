package agentkernel_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

func (w *control) configure() {
	var script []agenttest.Reply
	for range 2 + w.n(8) {
		script = append(script, w.reply())
	}
	w.model = agenttest.Script(script...)
	mode := func() agentkernel.QueueMode { return pick(w.dice, agentkernel.QueueAll, agentkernel.QueueOneAtATime) }
	w.cfg = agentkernel.Config{
		Model: w.model, Tools: w.controlTools(),
		Steering: &agentkernel.Queue{Mode: mode()}, FollowUps: &agentkernel.Queue{Mode: mode()},
		SteerPolicy:         pick(w.dice, agentkernel.SteerSkip, agentkernel.SteerFinish),
		MaxTurns:            pick(w.dice, 12, 12, 2, 1),
		EventBuffer:         pick(w.dice, 0, 2, 3),
		RunTimeout:          pick(w.dice, 0, 0, 0, time.Second, time.Hour),
		StreamIdleTimeout:   pick(w.dice, 0, -1, 100*time.Millisecond, time.Second),
		StopTimeout:         pick(w.dice, 0, time.Millisecond, time.Second),
		Budget:              pick(w.dice, agentkernel.Budget{}, agentkernel.Budget{}, agentkernel.Budget{Tokens: 150}, agentkernel.Budget{Cost: 1}),
		MaxLengthRecoveries: pick(w.dice, 0, 1, -1),
		MaxEmptyRetries:     pick(w.dice, 0, 2, -1),
		AbortMarker:         pick(w.dice, "", "(aborted)"),
		RunOpenCalls:        w.chance(50),
		Retry: agentkernel.RetryPolicy{
			MaxRetries: pick(w.dice, 0, 1, -1), BaseDelay: pick(w.dice, 0, -1, time.Millisecond), Jitter: pick(w.dice, 0, -1, 1.0),
		},
	}
	if w.chance(30) {
		w.cfg.Fallbacks = []agentkernel.ChatModel{w.model}
	}
	w.cfg.Commit = w.commit()
	if w.chance(50) {
		w.cfg.Gate = w.suspends()
	}
	if w.chance(40) {
		w.cfg.Prepare = w.prepare()
	}
	if w.chance(40) {
		w.cfg.StopGuard = w.stopGuard()
	}
	if w.chance(50) {
		w.cfg.ContextManager = w.contextManager()
	}
	for range w.n(4) {
		w.push()
	}
}

func (w *control) push() {
	q := pick(w.dice, w.cfg.Steering, w.cfg.FollowUps)
	if err := q.Push(w.message()); err != nil {
		w.problem("Push: %v", err)
	}
}

func (w *control) reply() agenttest.Reply {
	r := agenttest.Reply{}
	if w.chance(20) {
		r = r.Thinking("hm")
	}
	if w.chance(70) {
		r = r.Text(pick(w.dice, "yes", "well, let me see", strings.Repeat("long ", 50)))
	}
	if w.chance(40) {
		r = r.Calls(slices.Repeat([]string{pick(w.dice, "ok", "slow", "deaf", "push", "stop")}, 1+w.n(3))...)
	}
	r = r.Chunks(1 + w.n(9))
	if w.chance(50) {
		n := w.n(100)
		r = r.Usage(agentkernel.Usage{Input: n, Total: n, Cost: new(float64(n) / 128)})
	}
	if w.chance(40) {
		r = r.Delay(w.upTo(150 * time.Millisecond))
	}
	if w.chance(20) {
		r = r.Stop(pick(w.dice, agentkernel.StopReasonLength, agentkernel.StopReasonRefusal))
	}
	if w.chance(10) {
		r = r.IgnoringContext()
	}
	switch w.n(14) {
	case 0:
		return r.Fail(failure(agentkernel.KindServer, true))
	case 1:
		return r.Fail(&agentkernel.Error{Kind: agentkernel.KindRateLimit, Retryable: true, RetryAfter: w.upTo(2 * time.Minute)})
	case 2:
		return r.Fail(failure(agentkernel.KindContextOverflow, false))
	case 3:
		return r.EndsWithoutDone()
	case 4:
		return r.Stall()
	case 5:
		return r.Fail(failure(agentkernel.KindAuth, false))
	}
	return r
}

func (w *control) controlTools() []agentkernel.Tool {
	slow, late := w.upTo(time.Second), w.upTo(20*time.Second)
	return w.counted(
		echo("ok"),
		tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
			select {
			case <-time.After(slow):
				return agentkernel.TextResult(strings.Repeat("slow ", 60)), nil
			case <-ctx.Done():
				return agentkernel.ToolResult{}, context.Cause(ctx)
			}
		}),
		tool("deaf", func(context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(late)
			return agentkernel.TextResult("late"), nil
		}),
		tool("push", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.TextResult("pushed"), w.cfg.Steering.Push(w.message())
		}),
		tool("stop", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{Terminate: true}, nil
		}),
	)
}

// misdeed is what a hook does at one of its calls: mostly nothing.
func (w *control) misdeed() func() error {
	if w.chance(70) {
		return func() error { return nil }
	}
	at, act, late := int64(1+w.n(5)), w.n(5), w.upTo(10*time.Second)
	var calls atomic.Int64
	return func() error {
		if calls.Add(1) != at {
			return nil
		}
		switch act {
		case 0:
			panic("hook")
		case 1:
			runtime.Goexit()
		case 2:
			return errors.New("hook")
		case 3:
			time.Sleep(late)
		case 4:
			_ = w.cfg.Steering.Push(w.message())
		}
		return nil
	}
}

func (w *control) commit() func(context.Context, agentkernel.AgentMessage) error {
	misbehave := w.misdeed()
	return func(ctx context.Context, m agentkernel.AgentMessage) (err error) {
		w.mu.Lock()
		w.commits = append(w.commits, m)
		w.mu.Unlock()
		failed := true
		defer func() {
			if failed {
				w.mu.Lock()
				w.refused = true
				w.mu.Unlock()
			}
		}()
		err = misbehave()
		failed = err != nil || ctx.Err() != nil // or the run did not wait for it any longer
		return err
	}
}

func (w *control) prepare() func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
	misbehave, project := w.misdeed(), w.chance(40)
	return func(_ context.Context, req agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
		if err := misbehave(); err != nil || !project {
			return agentkernel.PrepareResult{Temperature: new(0.5)}, err
		}
		return agentkernel.PrepareResult{Messages: req.History[len(req.History)/2:], CacheBreakpoints: []int{0}}, nil
	}
}

func (w *control) stopGuard() func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
	misbehave := w.misdeed()
	actions := []agentkernel.StopAction{pick(w.dice, "", agentkernel.StopGoOn), pick(w.dice, "", agentkernel.StopGoOn, agentkernel.StopEscalate)}
	var calls atomic.Int64
	return func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
		err := misbehave()
		n := calls.Add(1)
		if int(n) > len(actions) {
			return agentkernel.StopDecision{}, err
		}
		return agentkernel.StopDecision{Action: actions[n-1], Message: agentkernel.UserMessage("not yet"), Reason: "never"}, err
	}
}

func (w *control) contextManager() agentkernel.ContextManager {
	if w.chance(40) {
		return &agentkernel.Compactor{Window: 100 + w.n(200)}
	}
	misbehave := w.misdeed()
	cut := func(_ context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		if err := misbehave(); err != nil || len(req.History) < 4 {
			return agentkernel.ContextResult{}, err
		}
		return agentkernel.ContextResult{Messages: append(list(agentkernel.UserMessage("summary")), req.History[len(req.History)-2:]...)}, nil
	}
	every := w.chance(30)
	return &manager{recover: cut, project: func(ctx context.Context, req agentkernel.ContextRequest) (agentkernel.ContextResult, error) {
		if every || req.Tokens > 300 {
			return cut(ctx, req)
		}
		return agentkernel.ContextResult{}, nil
	}}
}
