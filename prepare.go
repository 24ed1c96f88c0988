package agentkernel

import "slices"

// PrepareRequest is what a run is about to ask a model.
type PrepareRequest struct {
	RunID string
	Turn  int
	// History is what the run knows. It is read-only.
	History []AgentMessage
	// Request is what would be asked. It is read-only.
	Request ModelRequest
}

// PrepareResult changes one model call. A field that is zero changes nothing. Nothing of it
// is stored, and the next call is prepared anew.
type PrepareResult struct {
	// Messages is what the model sees instead of the history.
	Messages []AgentMessage
	Model    ChatModel
	// Tools are offered, and executed, in this turn.
	Tools         []Tool
	System        []SystemBlock
	ThinkingLevel ThinkingLevel
	Temperature   *float64
	// CacheBreakpoints are the places in Request.Messages behind which the provider should
	// keep what it has read.
	CacheBreakpoints []int
}

// prepare lets the harness change what the model is asked.
func (r *run) prepare() step {
	r.projection, r.breakpoints = nil, nil
	if model := r.settings.model; !r.call.prepared {
		r.call.prepared, r.call.unprepared = true, r.settings
	} else { // again, behind a recovery: nothing of the first time stays but the model in use
		r.settings = r.call.unprepared
		r.settings.model = model
		r.offerTools()
	}
	if r.cfg.Prepare == nil {
		return (*run).attempt
	}
	messages, err := r.view()
	if err != nil {
		return r.stopOr(hookError("ConvertToLLM", err))
	}
	ctx, req := r.ctx, PrepareRequest{RunID: r.runID, Turn: r.turn,
		History: r.history[:len(r.history):len(r.history)], Request: r.request(messages)}
	change, err := enclose(r.fence, func() (PrepareResult, error) {
		change, err := r.cfg.Prepare(ctx, req)
		if err == nil {
			err = checkMessages("Prepare", change.Messages)
		}
		return change, err
	})
	if err == nil {
		err = r.adopt(change)
	}
	if err != nil {
		return r.stopOr(hookError("Prepare", err))
	}
	return (*run).attempt
}

// stopOr ends the run because it was stopped, or else with err.
func (r *run) stopOr(err *Error) step {
	if r.stopped() {
		return (*run).stop
	}
	return r.fail(err)
}

// adopt makes the change hold for this turn.
func (r *run) adopt(change PrepareResult) error {
	if change.Model != nil && len(r.call.fallbacks) == len(r.cfg.Fallbacks) { // none of them is in use
		r.settings.model = change.Model
	}
	if change.Tools != nil {
		set, err := newToolset(change.Tools)
		if err != nil {
			return err
		}
		r.settings.tools = set
		r.offerTools()
	}
	if change.System != nil {
		r.settings.system, r.settings.blocks = "", ownSystem(change.System)
	}
	if change.ThinkingLevel != "" {
		r.settings.thinking = change.ThinkingLevel
	}
	if change.Temperature != nil {
		r.settings.temperature = change.Temperature
	}
	r.projection, r.breakpoints = change.Messages, change.CacheBreakpoints
	return nil
}

// request is what the model is asked with messages.
func (r *run) request(messages []Message) ModelRequest {
	s := &r.settings
	return ModelRequest{
		System:           s.systemText(),
		SystemBlocks:     s.blocks,
		Messages:         messages,
		Tools:            slices.Clone(r.specs),
		ThinkingLevel:    s.thinking,
		Temperature:      s.temperature,
		CacheKey:         r.cfg.CacheKey,
		CacheBreakpoints: r.breakpoints,
	}
}

// view is what the model sees of the history.
func (r *run) view() ([]Message, error) {
	history := r.sound()
	if r.projection != nil {
		history = r.projection
	}
	if r.cfg.ConvertToLLM != nil {
		return r.converted(history)
	}
	if r.projection != nil {
		return DefaultConvertToLLM(RepairHistory(r.projection)), nil
	}
	return r.convert.add(history), nil
}

// converted is the history as the harness converts it, and as a provider accepts it.
func (r *run) converted(history []AgentMessage) ([]Message, error) {
	history = history[:len(history):len(history)]
	ctx := r.ctx
	out, err := enclose(r.fence, func() ([]Message, error) { return r.cfg.ConvertToLLM(ctx, history) })
	if err != nil {
		return nil, err
	}
	boxed := make([]AgentMessage, len(out))
	for i, m := range out {
		boxed[i] = m
	}
	m := mend(boxed, false)
	if len(m.problems) == 0 {
		return out, nil
	}
	return DefaultConvertToLLM(m.out), nil
}
