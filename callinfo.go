package agentkernel

import (
	"context"
	"time"
)

// callKey is the context key of a callEnv.
type callKey struct{}

// callEnv is the context of a call, with what it knows of the call.
type callEnv struct {
	context.Context
	*callRun
	relay    chan<- relayed
	runID    string
	stop     time.Duration
	depth    int
	maxDepth int
}

// Value implements [context.Context].
func (env *callEnv) Value(key any) any {
	if key == (callKey{}) {
		return env
	}
	return env.Context.Value(key)
}

// CallInfo is the call that a context belongs to.
type CallInfo struct {
	RunID  string
	ToolID string
	Tool   string
}

// CallFrom returns the call whose tool, gate, preview or middleware was given ctx.
func CallFrom(ctx context.Context) (CallInfo, bool) {
	env, ok := ctx.Value(callKey{}).(*callEnv)
	if !ok {
		return CallInfo{}, false
	}
	return CallInfo{RunID: env.runID, ToolID: env.call.ID, Tool: env.call.Name}, true
}

// inCallOf tells whether ctx is that of a call of the run, which cannot wait for its own end.
func inCallOf(ctx context.Context, runID string) bool {
	env, ok := ctx.Value(callKey{}).(*callEnv)
	return ok && env.runID == runID
}

// forward puts an event of a run that the call made on the stream. It reports false once
// the call is over.
func (env *callEnv) forward(ev Event) bool {
	select {
	case env.relay <- relayed{env.callRun, ev}:
		return true
	case <-env.gone:
		return false
	}
}
