package openai

import (
	"fmt"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

const effortNone = "none"

// efforts are the words for how much to think that a [agentkernel.ThinkingLevel] may become,
// from the least on.
var efforts = []string{effortNone, "minimal", "low", "medium", "high"}

// levels are the thinking levels, with the place of their word in efforts and with the budget
// in tokens that stands for them where Compat.LevelBudgets says so.
var levels = map[agentkernel.ThinkingLevel]struct{ rank, budget int }{
	agentkernel.ThinkingOff:     {0, 0},
	agentkernel.ThinkingMinimal: {1, 1024}, // the least that endpoints take
	agentkernel.ThinkingLow:     {2, 2048},
	agentkernel.ThinkingMedium:  {3, 8192},
	agentkernel.ThinkingHigh:    {4, 16384},
}

// thinkingWish is how much to think: an effort, a switch or a budget, or none of them.
type thinkingWish struct {
	effort string
	on     *bool
	budget int
}

// wish is what the request asks for, else what the Config does.
func (cfg *Config) wish(level agentkernel.ThinkingLevel) (thinkingWish, error) {
	if level == "" {
		w := thinkingWish{cfg.ReasoningEffort, cfg.Thinking, max(cfg.ThinkingBudget, 0)}
		if w.on == nil && w.budget > 0 {
			w.on = new(true)
		}
		return w, nil
	}
	known, ok := levels[level]
	if !ok {
		return thinkingWish{}, badRequest(fmt.Errorf("there is no thinking level %q", level))
	}
	c := cfg.Compat
	w := thinkingWish{effort: c.effort(known.rank)}
	if c.Thinking.isSwitch() || level == agentkernel.ThinkingOff && w.effort == effortNone {
		w.on = new(level != agentkernel.ThinkingOff)
	}
	if w.on != nil && !*w.on {
		w.effort = ""
	}
	if c.LevelBudgets && c.Thinking.hasBudget() {
		w.effort, w.budget = "", cfg.roomFor(known.budget)
	}
	return w, nil
}

// roomFor is the budget, or half of the answer's bound where that is less: thinking counts
// against it.
func (cfg *Config) roomFor(budget int) int {
	if cfg.MaxTokens > 0 {
		budget = min(budget, max(cfg.MaxTokens/2, levels[agentkernel.ThinkingMinimal].budget))
	}
	return budget
}

// effort is the word that the endpoint knows next to that of rank, the smaller of two as
// near. A level that thinks never becomes none.
func (c *Compat) effort(rank int) string {
	known := c.Efforts
	if len(known) == 0 && !c.Thinking.isSwitch() {
		known = efforts
	}
	best, distance := "", len(efforts)
	for i, word := range efforts {
		if !slices.Contains(known, word) || word == effortNone && rank > 0 {
			continue
		}
		if d := max(i-rank, rank-i); d < distance {
			best, distance = word, d
		}
	}
	return best
}

// thinking writes how much to think, in the form that the endpoint takes.
func (b requestBody) thinking(w thinkingWish) {
	effort := w.effort
	switch b.cfg.Compat.Thinking {
	case ThinkingReasoning:
		if effort != "" || w.on != nil || w.budget > 0 {
			b.put("reasoning", reasoningOptions{w.on, effort, w.budget})
		}
		return
	case ThinkingObject:
		if w.on != nil {
			b.put("thinking", thinkingOptions{enabledWord(*w.on), w.budget})
		}
	case ThinkingEnable:
		if w.on != nil {
			b.put("enable_thinking", *w.on)
		}
		if w.budget > 0 {
			b.put("thinking_budget", w.budget)
		}
	case ThinkingTemplate:
		if w.on != nil {
			b.put("chat_template_kwargs", map[string]bool{"enable_thinking": *w.on})
		}
	default:
		if w.on != nil && !*w.on {
			effort = effortNone
		}
	}
	if effort != "" {
		b.put("reasoning_effort", effort)
	}
}

type reasoningOptions struct {
	Enabled   *bool  `json:"enabled,omitempty"`
	Effort    string `json:"effort,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
}

type thinkingOptions struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
}

func enabledWord(on bool) string {
	if on {
		return "enabled"
	}
	return "disabled"
}
