package agentkernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// pipeline takes one call from its arguments to its result, on the call's goroutine. Any
// stage may answer early. What it finds out leaves it by the result and the mailbox.
type pipeline struct {
	*callRun
	late  chan<- *callRun // takes the call where it has a timeout and that has passed
	cfg   *Config
	runID string
	turn  int
	args  json.RawMessage // what would be executed
	// at is whose code is running, for the words of a crash; that of a tool goes without its name.
	at      string
	gating  bool
	preview *ProgressPayload
	// bound: nobody may be asked later, since another run waits for this one.
	bound  bool
	asking *pendingAsk // the gate has no answer now
}

// errToolTimeout is the cause with which a call's context ends that took too long.
var errToolTimeout = errors.New("agentkernel: the tool took longer than it may")

// run walks and hands back what that came to, or how it crashed.
func (p *pipeline) run(ctx context.Context, back chan<- outcome) {
	grow(0)
	guarded(
		func() (ToolResult, error) { return p.walk(ctx), nil },
		func(got returned[ToolResult]) {
			if crash, ok := errors.AsType[*PanicError](got.err); ok {
				got.value = p.crashed(crash)
			}
			back <- outcome{p.callRun, got.value, p.asking}
		})
}

// walk goes through the stages.
func (p *pipeline) walk(ctx context.Context) ToolResult {
	for _, stage := range []func(context.Context) *ToolResult{p.repair, p.validate, p.show, p.gate} {
		if answer := stage(ctx); answer != nil {
			return *answer
		}
		if ctx.Err() != nil {
			return p.stoppedEarly(ctx)
		}
	}
	return p.execute(ctx)
}

// repairing is what runs while the harness is asked for better arguments.
const repairing = "The repair of the call"

// crashed is the answer to a call whose pipeline panicked. A gate that panics denies.
func (p *pipeline) crashed(crash *PanicError) ToolResult {
	who := p.at
	if !p.gating && who != repairing {
		who = fmt.Sprintf("%s %q", who, p.tool.Name)
	}
	result := panicked(who, crash)
	if p.gating {
		result.Cause = ToolDenied
	}
	return result
}

// stoppedEarly is the answer to a call that was stopped before it was executed.
func (p *pipeline) stoppedEarly(ctx context.Context) ToolResult {
	if errors.Is(context.Cause(ctx), ErrSteered) {
		return skipped()
	}
	return notStarted()
}

// repair asks the harness for better arguments, where those of the model cannot be used.
func (p *pipeline) repair(ctx context.Context) *ToolResult {
	if p.answer != nil && p.resumed.Args != nil { // what was asked about is what was answered
		return p.rewrite(p.resumed.Args)
	}
	if p.problem == "" {
		return nil
	}
	p.at = repairing
	better, err := p.cfg.RepairToolCall(ctx, RepairRequest{Call: p.asked(), Problem: p.problem, Schema: p.tool.schema.JSON()})
	if err != nil {
		return new(unusable(p.problem))
	}
	return p.rewrite(better)
}

// rewrite takes other arguments, or answers that they cannot be used.
func (p *pipeline) rewrite(args json.RawMessage) *ToolResult {
	object, problem := p.tool.usable(args)
	if problem != "" {
		return new(unusable(problem))
	}
	p.args = object
	p.box.setArgs(object)
	return nil
}

// asked is the call with arguments of its own.
func (p *pipeline) asked() ToolCall {
	call := p.call
	call.Args = bytes.Clone(p.args)
	return call
}

// validate lets the tool check what its schema cannot say.
func (p *pipeline) validate(ctx context.Context) *ToolResult {
	if p.tool.Validate == nil {
		return nil
	}
	p.at = "The validation of the tool"
	if err := p.tool.Validate(ctx, bytes.Clone(p.args)); err != nil {
		return new(unusable(errorText(err)))
	}
	return nil
}

// show shows what the call would do.
func (p *pipeline) show(ctx context.Context) *ToolResult {
	if p.tool.Preview == nil {
		return nil
	}
	p.at = "The preview of the tool"
	payload, err := p.tool.Preview(ctx, bytes.Clone(p.args))
	if err != nil {
		if ctx.Err() != nil {
			return nil // walk says why
		}
		return new(unstarted(ToolDenied, "The call was not run, since its preview failed: "+errorText(err)))
	}
	payload.Kind = ProgressPreview
	payload.Text, payload.Data = validText(payload.Text), compactJSON(payload.Data)
	p.preview = &payload
	p.box.post(callUpdate{kind: ToolExecUpdatePreview, payload: payload})
	return nil
}

// gate asks the harness whether the call may be executed, or takes the answer that came
// since it was asked.
func (p *pipeline) gate(ctx context.Context) *ToolResult {
	switch {
	case p.answer != nil:
		return p.decided(ctx, *p.answer)
	case p.cfg.Gate == nil:
		return nil
	}
	p.at = "The tool"
	req := GateRequest{
		Call:     p.asked(),
		Label:    p.tool.label(p.args),
		ReadOnly: p.tool.readOnly(p.args),
		Preview:  p.preview.clone(),
		RunID:    p.runID,
		Turn:     p.turn,
	}
	p.at, p.gating = "The gate", true
	decision, err := p.cfg.Gate(ctx, req)
	suspended := asSuspend(err)
	p.gating = false
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // walk says why
	case suspended != nil:
		return p.suspend(suspended)
	case err != nil:
		decision = GateDecision{Reason: errorText(err)}
	}
	return p.decided(ctx, decision)
}

// decided does as the decision says: it answers, or lets the call go on.
func (p *pipeline) decided(ctx context.Context, decision GateDecision) *ToolResult {
	var answer *ToolResult
	rewritten := decision.Allow && len(decision.Args) > 0
	if rewritten {
		answer = p.rewrite(decision.Args)
	}
	p.showDecision(decision)
	switch {
	case !decision.Allow:
		return new(denied(decision.Reason))
	case rewritten && answer == nil:
		return p.validate(ctx)
	}
	return answer
}

func (p *pipeline) showDecision(d GateDecision) {
	data := json.RawMessage(`{"allow":false}`)
	if d.Allow {
		data = json.RawMessage(`{"allow":true}`)
	}
	p.box.post(callUpdate{
		kind:    ToolExecUpdateGate,
		payload: ProgressPayload{Kind: ProgressGate, Text: validText(d.Reason), Data: data},
	})
}

// execute runs the tool inside its middleware.
func (p *pipeline) execute(ctx context.Context) ToolResult {
	if !p.begin() {
		return p.stoppedEarly(ctx)
	}
	p.box.open()
	p.at = "The tool"
	ctx, done := p.limit(ctx)
	defer done()
	call := p.asked()
	call.RawArgs, call.ArgsError = "", ""
	if len(p.cfg.Middleware) == 0 {
		result, err := p.tool.Execute(ctx, call.Args)
		return judged(ctx, result, err)
	}
	handler := ToolHandler(p.handle)
	for i := len(p.cfg.Middleware) - 1; i >= 0; i-- {
		handler = p.cfg.Middleware[i](handler)
	}
	result, err := handler(ctx, call)
	return judged(ctx, result, err)
}

// handle is the handler behind all middleware, which keeps the call that it passed on.
func (p *pipeline) handle(ctx context.Context, call ToolCall) (ToolResult, error) {
	if !bytes.Equal(call.Args, p.args) {
		args, err := parseObject(string(call.Args))
		if err != nil {
			return unusable("a middleware changed its arguments, and " + err.Error()), nil
		}
		if isBlank(string(call.Args)) {
			call.Args = args
		}
		p.box.setArgs(args)
	}
	return p.tool.Execute(ctx, bytes.Clone(call.Args))
}

// limit bounds the execution by the tool's timeout.
func (p *pipeline) limit(ctx context.Context) (context.Context, func()) {
	d := p.tool.timeout(p.cfg)
	if d <= 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d, errToolTimeout)
	var timer *time.Timer
	if p.cfg.StopTimeout >= 0 {
		timer = time.AfterFunc(sum(d, p.cfg.StopTimeout), func() {
			p.box.setLate()
			p.late <- p.callRun // has room: once a call
		})
	}
	return ctx, func() {
		cancel()
		if timer != nil {
			timer.Stop()
		}
	}
}

// sum adds two durations that are not negative, as far as there are durations.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
