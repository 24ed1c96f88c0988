package agentkernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Compactor is a [ContextManager] for most purposes: where the history comes near the
// model's window it drops old tool results, and where that is not enough it has a model
// summarise the old turns. It never parts a call from its result and never touches the
// newest messages, unless the model refused them. Where no summary can be had, the old
// turns stay.
type Compactor struct {
	// Window is the model's window in tokens. Required.
	Window int
	// Reserve is kept free for the answer, in tokens. Zero means an eighth of Window.
	Reserve int
	// KeepRecent is how much of the newest messages stays as it is, in tokens. Zero means a
	// quarter of Window.
	KeepRecent int
	// Model writes the summary. Nil means that old turns are left out, with a note.
	Model ChatModel
	// Prompt asks for the summary. Empty means a general one.
	Prompt string
}

const (
	defaultSummaryPrompt = "Summarise the conversation below for the assistant who will continue it without seeing it. " +
		"Keep goals, decisions, facts, file names, open questions and what was done with which result. Be brief."
	droppedResult = "[an old result, left out to save space]"
	// smallResult is the size up to which dropping a tool result saves nothing to speak of, in tokens.
	smallResult = 64
)

// Project implements [ContextManager]: where the history leaves less than Reserve it brings
// it down to half of Window.
func (c *Compactor) Project(ctx context.Context, req ContextRequest) (ContextResult, error) {
	if err := c.check(); err != nil {
		return ContextResult{}, err
	}
	if req.Tokens <= c.Window-c.reserve() {
		return ContextResult{}, nil
	}
	s := newShrinking(req.History)
	// What the provider counts and what is estimated here may differ by any factor.
	scaled := func(tokens int) int { return int(float64(tokens) * float64(s.before) / float64(max(req.Tokens, 1))) }
	s.target, s.keep = scaled(c.Window/2), scaled(c.keep())
	return c.shrink(ctx, s)
}

// Recover implements [ContextManager]: it halves the history, by the newest results too
// where nothing else does it.
func (c *Compactor) Recover(ctx context.Context, req ContextRequest) (ContextResult, error) {
	if err := c.check(); err != nil {
		return ContextResult{}, err
	}
	s := newShrinking(req.History)
	s.target = s.before / 2
	s.keep = min(c.keep(), s.target/2)
	s.all = true
	return c.shrink(ctx, s)
}

func (c *Compactor) check() error {
	if c.Window <= 0 {
		return errors.New("Compactor.Window is not set")
	}
	return nil
}

func (c *Compactor) reserve() int {
	if c.Reserve > 0 {
		return c.Reserve
	}
	return c.Window / 8
}

func (c *Compactor) keep() int {
	if c.KeepRecent > 0 {
		return c.KeepRecent
	}
	return c.Window / 4
}

// shrinking is a history that is to become smaller. Sizes are estimates.
type shrinking struct {
	history              []AgentMessage
	before, target, keep int
	// all: the newest results may be dropped too.
	all bool
}

func newShrinking(history []AgentMessage) shrinking {
	return shrinking{history: history, before: EstimateTokens(history)}
}

// shrink brings a history below its target, by the mildest means that does it.
func (c *Compactor) shrink(ctx context.Context, s shrinking) (ContextResult, error) {
	cut := recentFrom(s.history, s.keep)
	old, recent := s.history[:cut], s.history[cut:]
	lean := withoutResults(old, EstimateTokens(recent), s.target)
	out := slices.Concat(lean, recent)
	if EstimateTokens(out) > s.target && len(old) > 0 {
		summary, err := c.summarise(ctx, lean)
		switch {
		case ctx.Err() != nil:
			return ContextResult{}, err
		case err == nil:
			out = slices.Concat([]AgentMessage{UserMessage(summary)}, recent)
		}
	}
	if s.all {
		out = withoutResults(out, 0, s.target)
	}
	return ContextResult{Messages: out, TokensBefore: s.before, TokensAfter: EstimateTokens(out)}, nil
}

// recentFrom returns where the newest messages of at most keep tokens begin, one of them at
// least: never at a tool's message, so that no result is parted from its call.
func recentFrom(history []AgentMessage, keep int) int {
	cut, size := len(history), 0
	for i := len(history) - 1; i >= 0; i-- {
		if size += estimate(history[i]); size > keep && cut < len(history) {
			break
		}
		if history[i].GetRole() != RoleTool {
			cut = i
		}
	}
	return cut
}

// withoutResults drops the contents of tool results, the oldest first, until history and
// rest are below target.
func withoutResults(history []AgentMessage, rest, target int) []AgentMessage {
	size := EstimateTokens(history) + rest
	out := make([]AgentMessage, len(history))
	for i, m := range history {
		out[i] = m
		own, ok := ownMessage(m)
		if !ok || own.Role != RoleTool || size <= target {
			continue
		}
		if saved := estimate(m); saved > smallResult {
			own.Content = []ContentBlock{TextBlock(droppedResult)}
			out[i] = own
			size -= saved - estimate(own)
		}
	}
	return out
}

// summarise returns what stands for old.
func (c *Compactor) summarise(ctx context.Context, old []AgentMessage) (string, error) {
	if c.Model == nil {
		return fmt.Sprintf("[%d earlier messages are left out to save space]", len(old)), nil
	}
	prompt := c.Prompt
	if prompt == "" {
		prompt = defaultSummaryPrompt
	}
	answer, err := Generate(ctx, c.Model, ModelRequest{System: prompt, Messages: []Message{UserMessage(transcript(old))}})
	if err != nil {
		return "", err
	}
	text := answer.TextContent()
	if text == "" {
		return "", errEmpty
	}
	return "Summary of the conversation so far:\n" + text, nil
}

// transcript is messages as text.
func transcript(messages []AgentMessage) string {
	var b strings.Builder
	for _, m := range DefaultConvertToLLM(messages) {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.TextContent())
		for _, call := range m.ToolCalls() {
			fmt.Fprintf(&b, "%s calls %s(%s)\n", m.Role, call.Name, call.Args)
		}
	}
	return b.String()
}
