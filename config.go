package agentkernel

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Config is all that a run needs to know: one for [AgentLoop] and for [NewAgent]. The zero
// value of a field is its documented default; a negative number is none or unbounded, and
// where that makes no sense it is refused.
//
// A Config is read, never changed, and may be used for many runs.
type Config struct {
	// Model answers. Required; an Agent may be given it later, by SetModel.
	Model ChatModel
	// Fallbacks get a model call that Model has failed: where its retries are used up, or
	// where the failure is one that only another endpoint can cure. Each has retries of its
	// own. The next model call begins with Model again.
	Fallbacks []ChatModel
	// SystemPrompt is what the model is told before the conversation. Empty is none.
	SystemPrompt string
	// SystemBlocks are the system prompt in blocks, instead of SystemPrompt.
	SystemBlocks []SystemBlock
	// ThinkingLevel is how much the model should think.
	ThinkingLevel ThinkingLevel
	// CacheKey tells the provider which requests begin alike.
	CacheKey string
	// Tools are what the model may call. Names are unique.
	Tools []Tool

	// Steering holds messages for a running run, which takes them at its next chance: behind
	// its prompts, after the calls of a turn, or instead of stopping. FollowUps holds those that
	// it takes only where it would stop otherwise. An Agent makes its own queues where these are nil.
	Steering  *Queue
	FollowUps *Queue
	// SteerPolicy is what steering does to the calls of the turn in which it arrives.
	SteerPolicy SteerPolicy

	// Prepare may change each model call: what the model sees, which one it is, its tools. It
	// is asked before the first attempt, and again where the history was replaced after one.
	// An error ends the run with kind "hook".
	Prepare func(ctx context.Context, req PrepareRequest) (PrepareResult, error)
	// ContextManager keeps the history within the model's window. Nil leaves it as it is.
	ContextManager ContextManager
	// StopGuard is asked whenever the run would end normally: stop, terminated, empty,
	// refusal, length. It cannot prevent aborts and limits. An error ends the run with kind
	// "hook".
	StopGuard func(ctx context.Context, req StopRequest) (StopDecision, error)
	// Commit is told each message before it ends, once and in the order of the history: a
	// whole message before its MessageStart, an assistant's before its MessageEnd and before
	// any of its calls starts. A run that goes on waits for it as long as it takes. Its error
	// ends the run with kind "commit", and so does its staying away for twice StopTimeout after
	// the run was stopped, when its context ends: that message is not ended, and calls without
	// a committed result stay open for the next run.
	Commit func(ctx context.Context, m AgentMessage) error

	// RunTimeout bounds a run; it ends with kind "timeout". Zero or negative is no bound.
	RunTimeout time.Duration
	// StreamIdleTimeout bounds the silence of a model, before and between the events of its
	// stream; the attempt fails with kind "stream_idle". A model that ignores its context
	// after that is left behind StopTimeout later. Zero means 5 min; negative is no bound.
	StreamIdleTimeout time.Duration
	// Budget bounds what a run may use up. It is asked before each model call and each call.
	Budget Budget
	// MaxLengthRecoveries bounds how often in a row the model is asked to go on with an
	// answer that the output limit cut. Zero means 3; negative means never.
	MaxLengthRecoveries int
	// MaxEmptyRetries bounds how often a model call is tried again whose answer holds neither
	// text nor calls. Zero means 1; negative means never.
	MaxEmptyRetries int
	// AbortMarker is a user message that tells the model of an abort: said at the end of a
	// run whose context ended. Empty is none.
	AbortMarker string

	// MaxTurns bounds the model calls of one run; attempts that failed do not count. Zero
	// means 100; negative means no bound.
	MaxTurns int
	// Retry is what happens when a model call fails in a way that may pass.
	Retry RetryPolicy
	// RunOpenCalls makes a run whose history ends in calls without results execute them.
	// By default they get an error result of cause "interrupted", since whoever wrote the
	// history may have begun them.
	RunOpenCalls bool
	// Resume lets calls go on that an earlier run left open because a gate suspended it. It
	// is for a bare loop; an Agent is resumed by its method.
	Resume *Resumption
	// Gate decides about each call before it is executed. It may wait for a person's answer;
	// calls that are running go on meanwhile. It is asked about calls that may run side by side
	// at the same time, from several goroutines. An error or a panic denies. Nil allows all.
	// Where the answer will take long, [Suspend] ends the run instead.
	Gate func(ctx context.Context, req GateRequest) (GateDecision, error)
	// RepairToolCall is given each call whose arguments are no JSON object or break the
	// schema, and returns better ones, which are validated again. Nil, an error or arguments
	// that are no better mean that the model is told. Calls that were cut off are not repaired.
	RepairToolCall func(ctx context.Context, req RepairRequest) (json.RawMessage, error)
	// Middleware wraps the execution of calls, the outermost first.
	Middleware []Middleware
	// MaxParallelTools bounds the calls that run at once. Zero means 8; negative means no bound.
	MaxParallelTools int
	// MaxToolCallsPerTurn bounds the calls of one answer that are executed; the others get
	// a result of cause "limit". Zero or negative means no bound.
	MaxToolCallsPerTurn int
	// MaxToolResultBytes bounds the text that a model is shown of one result. The rest is
	// cut at a rune, saying so, and the whole is kept in Details. Zero means 1 MiB; negative
	// means no bound.
	MaxToolResultBytes int
	// MaxToolErrors disables a tool for the rest of the run after so many failures in a row.
	// Denials and skips do not count. Zero or negative means no bound.
	MaxToolErrors int
	// MaxRepeatedCalls answers a call with an error that says so, once the same call with
	// the same arguments was made so many times in a row. Zero or negative means no bound.
	MaxRepeatedCalls int
	// ToolTimeout bounds the execution of a call whose tool says nothing of it. Zero or
	// negative means no bound.
	ToolTimeout time.Duration
	// MaxDepth bounds how deep agents call agents ([AgentTool]). Zero means 5; negative
	// means no bound.
	MaxDepth int
	// LengthPrompt is the user message that asks a model to go on with an answer that was
	// cut. Empty means "Continue exactly where you left off."
	LengthPrompt string

	// ConvertToLLM turns the history into what the model sees, before each attempt. The
	// history is read-only. What it returns is mended as by [RepairHistory]. Nil means
	// [DefaultConvertToLLM]. An error ends the run with kind "hook".
	ConvertToLLM func(ctx context.Context, history []AgentMessage) ([]Message, error)

	// EventBuffer is how many events wait for a consumer before the loop does: so far may the
	// run and its hooks be ahead of what a listener has seen. Zero means 64; 1 means 2, which
	// Error and AgentEnd need. Negative or more than 2^20 is refused.
	EventBuffer int
	// StopTimeout is how long model, tools and hooks have, all together, to come back after
	// the run's context ended. Who does not is left behind: the run goes on without that
	// goroutine, and what it does later has no effect. Zero means 5 s; negative means that
	// the run waits for them for ever.
	StopTimeout time.Duration
	// DrainTimeout is how long a bare loop whose context ended waits for a consumer to
	// take an event before it counts the consumer as gone. Zero means 5 s; negative means
	// for ever. An Agent always takes its events.
	DrainTimeout time.Duration

	// OnListenerPanic is told of a listener that panicked or left its goroutine: the value,
	// the stack and the event. It runs on the goroutine that called the listener. Nil means
	// one log/slog record at level error.
	OnListenerPanic func(value any, stack []byte, ev Event)
}

// SteerPolicy is what becomes of a turn's calls when steering arrives.
type SteerPolicy string

// The policies.
const (
	// SteerSkip skips the calls that were not executed yet, also those that wait at the gate,
	// and cancels the running ones whose tool asked for it.
	SteerSkip SteerPolicy = ""
	// SteerFinish lets all calls of the turn come to their end first.
	SteerFinish SteerPolicy = "finish"
)

// RetryPolicy says how often and how long apart a failed model call is tried again. Only
// errors that are Retryable are.
type RetryPolicy struct {
	// MaxRetries bounds the attempts after the first of one model call. Zero means 3;
	// negative means none.
	MaxRetries int
	// BaseDelay is the wait before the first retry; it doubles with each. Zero means 1 s;
	// negative means no wait.
	BaseDelay time.Duration
	// MaxDelay caps the wait. A server that asks for a longer one is not asked again. Zero
	// means 60 s; negative means no cap.
	MaxDelay time.Duration
	// Jitter is the part of the wait, 0 to 1, that is taken at random. Zero means 0.2;
	// negative means none.
	Jitter float64
}

const (
	defaultMaxTurns     = 100
	defaultEventBuffer  = 64
	leastEventBuffer    = 2
	mostEventBuffer     = 1 << 20
	defaultStopTimeout  = 5 * time.Second
	defaultDrainTimeout = 5 * time.Second
	defaultStreamIdle   = 5 * time.Minute
	defaultRecoveries   = 3
	defaultEmptyRetries = 1
	defaultMaxParallel  = 8
	defaultResultBytes  = 1 << 20
	defaultMaxDepth     = 5
	defaultLengthPrompt = "Continue exactly where you left off."
)

// withDefaults returns cfg with every default filled in, or says which field makes no sense.
func (cfg Config) withDefaults() (Config, error) {
	cfg.MaxTurns = cmp.Or(cfg.MaxTurns, defaultMaxTurns)
	cfg.EventBuffer = cmp.Or(cfg.EventBuffer, defaultEventBuffer)
	if cfg.EventBuffer < 0 || cfg.EventBuffer > mostEventBuffer {
		return cfg, invalid("config", "EventBuffer is %d, not from 0 to %d", cfg.EventBuffer, mostEventBuffer)
	}
	cfg.EventBuffer = max(cfg.EventBuffer, leastEventBuffer)
	cfg.StopTimeout = cmp.Or(cfg.StopTimeout, defaultStopTimeout)
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, defaultDrainTimeout)
	cfg.MaxParallelTools = cmp.Or(cfg.MaxParallelTools, defaultMaxParallel)
	cfg.MaxToolResultBytes = cmp.Or(cfg.MaxToolResultBytes, defaultResultBytes)
	cfg.MaxDepth = cmp.Or(cfg.MaxDepth, defaultMaxDepth)
	cfg.LengthPrompt = cmp.Or(cfg.LengthPrompt, defaultLengthPrompt)
	cfg.StreamIdleTimeout = cmp.Or(cfg.StreamIdleTimeout, defaultStreamIdle)
	cfg.MaxLengthRecoveries = cmp.Or(cfg.MaxLengthRecoveries, defaultRecoveries)
	cfg.MaxEmptyRetries = cmp.Or(cfg.MaxEmptyRetries, defaultEmptyRetries)
	cfg.Retry.MaxRetries = cmp.Or(cfg.Retry.MaxRetries, 3)
	cfg.Retry.BaseDelay = cmp.Or(cfg.Retry.BaseDelay, time.Second)
	cfg.Retry.MaxDelay = cmp.Or(cfg.Retry.MaxDelay, time.Minute)
	cfg.Retry.Jitter = cmp.Or(cfg.Retry.Jitter, 0.2)
	if cfg.Retry.Jitter > 1 {
		return cfg, invalid("config", "Retry.Jitter is %v, more than 1", cfg.Retry.Jitter)
	}
	if cfg.SteerPolicy != SteerSkip && cfg.SteerPolicy != SteerFinish {
		return cfg, invalid("config", "SteerPolicy %q is unknown", cfg.SteerPolicy)
	}
	if cfg.SystemPrompt != "" && cfg.SystemBlocks != nil {
		return cfg, invalid("config", "both SystemPrompt and SystemBlocks are set")
	}
	cfg.Fallbacks, cfg.Middleware = slices.Clone(cfg.Fallbacks), slices.Clone(cfg.Middleware)
	cfg.CacheKey = validText(cfg.CacheKey)
	for i, m := range cfg.Fallbacks {
		if m == nil {
			return cfg, invalid("config", "Fallbacks %d is nil", i)
		}
	}
	for i, m := range cfg.Middleware {
		if m == nil {
			return cfg, invalid("config", "Middleware %d is nil", i)
		}
	}
	return cfg, nil
}
