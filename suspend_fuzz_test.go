package agentkernel_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// suspends is a gate that has no answer at random calls, and sometimes waits before it says so.
func (w *control) suspends() gateFunc {
	misbehave := w.misdeed()
	plan := make([]int, 8)
	for i := range plan {
		plan[i] = w.n(6)
	}
	late := w.upTo(500 * time.Millisecond)
	var calls atomic.Int64
	return func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		if err := misbehave(); err != nil {
			return yes, err
		}
		switch plan[int(calls.Add(1))%len(plan)] {
		case 0:
			time.Sleep(late)
			return yes, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "\xff" + req.Call.ID, Data: req.Call.Args})
		case 1, 2:
			return yes, agentkernel.Suspend(agentkernel.ProgressPayload{})
		case 3:
			return agentkernel.GateDecision{Reason: "no"}, nil
		}
		return yes, nil
	}
}

// answers are random ones for some of the calls.
func (w *control) answers(open []agentkernel.Suspension) answers {
	out := answers{}
	for _, s := range open {
		switch w.n(4) {
		case 0:
			out[s.Call.ID] = agentkernel.GateDecision{Reason: "no"}
		case 1:
			out[s.Call.ID] = agentkernel.GateDecision{Allow: true, Args: json.RawMessage(`{ "b": 2 }`)}
		case 2:
			out[s.Call.ID] = yes
		}
	}
	return out
}

// counted makes tools that count the executions of each call; some run beside others.
func (w *control) counted(tools ...agentkernel.Tool) []agentkernel.Tool {
	for i := range tools {
		execute := tools[i].Execute
		tools[i].Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			call, _ := agentkernel.CallFrom(ctx)
			w.mu.Lock()
			w.begun[call.ToolID]++
			w.mu.Unlock()
			return execute(ctx, args)
		}
		if w.chance(30) {
			tools[i] = safe(tools[i])
		}
	}
	return tools
}

// restart is what another process does: it has the state as it was written, and goes on.
func (w *control) restart() {
	raw, err := json.Marshal(w.agent.State())
	w.expect("write the state", err)
	var state agentkernel.AgentState
	w.expect("read the state", json.Unmarshal(raw, &state))
	before := w.agent.State().Suspended
	w.expect("Restore", w.agent.Restore(state))
	if after := w.agent.State().Suspended; !reflect.DeepEqual(before, after) {
		w.problem("restored %+v, want %+v", after, before)
	}
}

// unsound is what a history that runs wrote needs mended. Where one of them was suspended, the
// results of a turn stand in the order in which they came: that is none of it.
func (w *control) unsound(history []agentkernel.AgentMessage) []agentkernel.HistoryProblem {
	problems := agentkernel.ValidateHistory(history)
	if !w.waited() {
		return problems
	}
	return slices.DeleteFunc(problems, func(p agentkernel.HistoryProblem) bool {
		return strings.HasSuffix(p.Problem, "does not stand behind its call")
	})
}

// waited tells whether a run was suspended.
func (w *control) waited() bool {
	return slices.ContainsFunc(w.logs, func(log []agentkernel.Event) bool { return endReason(log) == agentkernel.EndSuspended })
}

// answeredOnce proves that no call was executed twice, and that each call of the history has
// one result, or is suspended. A result that Commit did not take leaves more open.
func (w *control) answeredOnce(history []agentkernel.AgentMessage, open []agentkernel.Suspension) {
	w.mu.Lock()
	begun, refused := w.begun, w.refused
	w.mu.Unlock()
	for id, n := range begun {
		if n > 1 && !(refused && w.cfg.RunOpenCalls) {
			w.problem("call %q was executed %d times", id, n)
		}
	}
	if refused || w.cfg.ContextManager != nil { // which may have cut calls and results apart
		return
	}
	results := map[string]int{}
	for _, m := range history {
		if own, ok := m.(agentkernel.Message); ok && own.Role == agentkernel.RoleTool {
			results[own.ToolCallID]++
		}
	}
	for _, s := range open {
		if results[s.Call.ID]++; begun[s.Call.ID] > 0 {
			w.problem("call %q is suspended and was executed", s.Call.ID)
		}
	}
	for _, m := range history {
		own, _ := m.(agentkernel.Message)
		for _, call := range own.ToolCalls() {
			if results[call.ID] != 1 {
				w.problem("call %q has %d results or suspensions, want 1", call.ID, results[call.ID])
			}
		}
	}
}
