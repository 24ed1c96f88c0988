package jetstream

import (
	"context"

	"github.com/agentkernel-go/agentkernel"
)

type keyKey struct{}

// callKey is the call of a worker's run that a context belongs to.
type callKey struct {
	session string
	info    agentkernel.CallInfo
}

// IdempotencyKey returns a name for the call that ctx, the context of a tool's Execute, belongs
// to: the same one each time the call is run, by whatever worker, and no other call's. It is made of
// the session and the call's id. A call within a run that the tool made has a key of that run,
// which a later attempt does not make again. It is empty for a context of something else.
func IdempotencyKey(ctx context.Context) string {
	key, ok := ctx.Value(keyKey{}).(callKey)
	if !ok {
		return ""
	}
	name := token(key.session) + "/" + key.info.ToolID
	if inner, ok := agentkernel.CallFrom(ctx); ok && inner.RunID != key.info.RunID {
		name += "/" + inner.RunID + "/" + inner.ToolID
	}
	return name
}

// Session returns the session whose run ctx belongs to; empty where it is none of a worker's.
func Session(ctx context.Context) string {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.session
	}
	return ""
}

// runKey is the context key of a *run.
type runKey struct{}

// named is the middleware that gives calls their keys.
func named(session string) agentkernel.Middleware {
	return func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
		return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
			if info, ok := agentkernel.CallFrom(ctx); ok {
				ctx = context.WithValue(ctx, keyKey{}, callKey{session, info})
			}
			return next(ctx, call)
		}
	}
}
