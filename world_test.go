package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// config is a random one. Whatever is drawn is drawn here, so that a seed repeats a world.
func (w *world) config() agentkernel.Config {
	var script []agenttest.Reply
	for range 1 + w.n(6) {
		script = append(script, w.reply())
	}
	w.model = agenttest.Script(script...)
	cfg := agentkernel.Config{
		Model:        w.model,
		SystemPrompt: "be random",
		Tools:        w.tools(),
		MaxTurns:     pick(w.dice, -1, 0, 1, 2, 3),
		EventBuffer:  pick(w.dice, 1, 0, 2, 5),

		MaxEmptyRetries:     pick(w.dice, -1, 0, 2),
		MaxLengthRecoveries: pick(w.dice, -1, 0, 1),
		StreamIdleTimeout:   pick(w.dice, 0, -1, 50*time.Millisecond, time.Second),
		RunTimeout:          pick(w.dice, 0, 0, time.Second, time.Minute),
		AbortMarker:         pick(w.dice, "", "the user stopped you"),
		SteerPolicy:         pick(w.dice, agentkernel.SteerSkip, agentkernel.SteerFinish),
		MaxParallelTools:    pick(w.dice, 0, 1, 2, -1),
		MaxToolCallsPerTurn: pick(w.dice, 0, 0, 2),
		MaxToolResultBytes:  pick(w.dice, 0, 0, 3),
		MaxToolErrors:       pick(w.dice, 0, 2),
		MaxRepeatedCalls:    pick(w.dice, 0, 2),
		ToolTimeout:         pick(w.dice, 0, 0, 300*time.Millisecond),
		StopTimeout:         pick(w.dice, time.Millisecond, time.Second, 0, -1),
		Retry: agentkernel.RetryPolicy{
			MaxRetries: pick(w.dice, -1, 0, 1, 2),
			BaseDelay:  pick(w.dice, -1, time.Millisecond, time.Second),
		},
		RunOpenCalls:    w.chance(50),
		ConvertToLLM:    w.convert(),
		OnListenerPanic: func(any, []byte, agentkernel.Event) {},
		Gate:            w.gate(),
		Commit:          w.commit(),
		StopGuard:       w.guard(),
	}
	if w.chance(20) {
		cfg.OnListenerPanic = func(any, []byte, agentkernel.Event) { panic("told of a panic") }
	}
	return cfg
}

var words = []string{
	"a", "hello ", "Grüße", "世界", "🙂🙂", "{}", "\x00", "\xff\xfe", "line\nline", strings.Repeat("long ", 20), "e\u0301",
}

var argTexts = []string{
	"", "{}", "null", " ", `{"a":1}`, `{"a": [1, 2, {"b": "ü🙂"}]}`, `{}{"a":1}`, `{"a":1}{"a":1}`, `{"a"`, `[1,2]`, `"x"`, `{"p": a}`,
	`{"s":"<&>"}`, "{\"s\":\"\xff\"}",
}

// cut cuts s into pieces anywhere, within runes too.
func (w *world) cut(s string) []string {
	pieces := []string{}
	for s != "" && len(pieces) < 6 {
		n := 1 + w.n(min(len(s), 9))
		pieces = append(pieces, s[:n])
		s = s[n:]
	}
	return append(pieces, s)
}

// part is the increments of one part of an answer.
func (w *world) part(i int) []agentkernel.StreamEvent {
	var out []agentkernel.StreamEvent
	switch kind := w.n(10); {
	case kind < 4:
		of := pick(w.dice, agentkernel.StreamEventTextDelta, agentkernel.StreamEventTextDelta, agentkernel.StreamEventThinkingDelta)
		for _, piece := range w.cut(pick(w.dice, words...) + pick(w.dice, words...)) {
			out = append(out, agentkernel.StreamEvent{Type: of, Delta: piece})
		}
		if w.chance(20) {
			out = append(out, agentkernel.StreamEvent{Type: of, Signature: pick(w.dice, words...), Extra: json.RawMessage(`{ "x": [1] }`)})
		}
	case kind < 8:
		ev := agentkernel.StreamEvent{
			Type: agentkernel.StreamEventToolCallDelta,
			Key:  pick(w.dice, "", strconv.Itoa(i), strconv.Itoa(i)),
			ID:   pick(w.dice, "", "null", "dup", "id"+strconv.Itoa(i), "id"+strconv.Itoa(w.n(1000)), "\xffx"),
			Name: pick(w.dice, "ok", "ok", "fail", "panic", "exit", "slow", "deaf", "stop", "talk", "reed", ""),
		}
		always := w.chance(30)
		for n, piece := range w.cut(pick(w.dice, argTexts...)) {
			ev.Delta = piece
			out = append(out, ev)
			if n == 0 && !always {
				ev.ID, ev.Name = "", ""
			}
		}
	default:
		u := agentkernel.Usage{Input: w.n(100), Output: w.n(100), Total: w.n(200)}
		if w.chance(50) {
			u.Cost = new(float64(w.n(100)) / 64)
		}
		out = append(out, agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Usage: &u})
	}
	return out
}

// reply is a random answer.
func (w *world) reply() agenttest.Reply {
	if w.chance(3) {
		return agenttest.NilStream()
	}
	var events []agentkernel.StreamEvent
	for i := range w.n(6) {
		part := w.part(i)
		if at := len(events); at > 0 && w.chance(30) { // between those that came before
			at = w.n(at)
			events = slices.Insert(events, at, part...)
			continue
		}
		events = append(events, part...)
	}
	if len(events) > 0 && w.chance(50) {
		events[0].Model = "m-1"
	}
	r := agenttest.Events(events...)
	if w.chance(40) {
		r = r.Stop(pick[agentkernel.StopReason](w.dice, "stop", "length", "tool_use", "refusal", "error", "aborted", "eos"))
	}
	if w.chance(40) {
		r = r.Delay(w.upTo(200 * time.Millisecond))
	}
	if w.chance(15) {
		r = r.IgnoringContext()
	}
	switch w.n(16) {
	case 0:
		return r.Fail(failure(agentkernel.KindServer, true))
	case 1:
		return r.Fail(failure(agentkernel.KindAuth, false))
	case 2:
		return r.EndsWithoutDone()
	case 3:
		return r.Panic("model")
	case 4:
		return r.Goexit()
	case 5, 6:
		return r.Stall()
	case 7:
		return r.Events(agentkernel.StreamEvent{Type: "odd"})
	}
	return r
}

func (w *world) tools() []agentkernel.Tool {
	slow, late := w.upTo(time.Second), w.upTo(20*time.Second)
	after := pick(w.dice, func() {}, func() { panic("late") }, runtime.Goexit)
	usage := &agentkernel.Usage{Input: 1, Total: 1}
	tools := []agentkernel.Tool{
		{Name: "ok", Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{JSON: args, Usage: usage, Details: 7}, nil
		}},
		tool("fail", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.TextResult("half\xff"), errors.New("no luck\xff")
		}),
		tool("panic", func(context.Context) (agentkernel.ToolResult, error) { panic("tool") }),
		tool("exit", func(context.Context) (agentkernel.ToolResult, error) { runtime.Goexit(); panic("never") }),
		tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
			select {
			case <-time.After(slow):
				return agentkernel.TextResult("slow"), nil
			case <-ctx.Done():
				return agentkernel.ToolResult{}, ctx.Err()
			}
		}),
		tool("deaf", func(context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(late)
			after()
			return agentkernel.TextResult("late"), nil
		}),
		tool("stop", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{Terminate: true}, nil
		}),
		tool("talk", func(ctx context.Context) (agentkernel.ToolResult, error) {
			report := func() {
				for i := range 5 {
					agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: "output_delta", Text: fmt.Sprint(i, "\xff")})
					time.Sleep(slow / 8)
				}
			}
			go report() // also after the call has ended
			report()
			return agentkernel.TextResult("said"), nil
		}),
	}
	for i := range tools {
		if w.chance(40) {
			tools[i].ConcurrencySafe = func(json.RawMessage) bool { return true }
		}
		if w.chance(20) {
			tools[i].Interrupt = agentkernel.InterruptCancel
		}
		if w.chance(20) {
			tools[i].Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
				return agentkernel.ProgressPayload{Kind: "diff", Text: "\xff"}, nil
			}
		}
	}
	return tools
}

// misbehave does one random thing at its n-th call, and tells whether it should fail.
func (w *world) misbehave() func() error {
	act, at, late := w.n(6), int64(1+w.n(4)), w.upTo(10*time.Second)
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
			time.Sleep(late)
			panic("hook")
		}
		return nil
	}
}

func (w *world) gate() func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
	if w.chance(60) {
		return nil
	}
	act, misbehave := w.n(3), w.misbehave()
	return func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		if err := misbehave(); err != nil {
			return agentkernel.GateDecision{}, err
		}
		switch act {
		case 0:
			return agentkernel.GateDecision{Reason: "no\xff"}, nil
		case 1:
			return agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{ "b": 2 }`)}, nil
		}
		return agentkernel.GateDecision{Allow: true}, nil
	}
}

func (w *world) commit() func(context.Context, agentkernel.AgentMessage) error {
	if w.chance(75) {
		return nil
	}
	misbehave := w.misbehave()
	return func(context.Context, agentkernel.AgentMessage) error { return misbehave() }
}

func (w *world) guard() func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
	if w.chance(70) {
		return nil
	}
	action, misbehave := pick(w.dice, agentkernel.StopAllow, agentkernel.StopGoOn, agentkernel.StopEscalate), w.misbehave()
	var calls atomic.Int64
	return func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
		if err := misbehave(); err != nil || calls.Add(1) > 3 {
			return agentkernel.StopDecision{}, err
		}
		return agentkernel.StopDecision{Action: action, Message: agentkernel.UserMessage("go on"), Reason: "enough"}, nil
	}
}

func (w *world) convert() func(context.Context, []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
	if w.chance(60) {
		return nil
	}
	misbehave := w.misbehave()
	return func(_ context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
		if err := misbehave(); err != nil {
			return nil, err
		}
		return agentkernel.DefaultConvertToLLM(history), nil
	}
}

func (w *world) history() []agentkernel.AgentMessage {
	out := list(agentkernel.UserMessage("before"))
	answer := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonToolUse, Content: []agentkernel.ContentBlock{
		{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "dup", Name: "ok", Args: json.RawMessage(`{"a": 1}`)}},
		{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "id1", Name: "stop", Args: json.RawMessage(`{}`)}},
	}}
	switch w.n(4) {
	case 0:
		out = append(out, answer)
	case 1:
		out = append(out, answer, agentkernel.Message{Role: agentkernel.RoleTool, ToolCallID: "dup", ToolName: "ok"})
	case 2:
		out = append(out, agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonAborted,
			Content: []agentkernel.ContentBlock{agentkernel.TextBlock("half")}}, mark("m"))
	}
	return out
}
