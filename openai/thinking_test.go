package openai

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// thinkingFields are the fields of a body that say how much to think.
func thinkingFields(t *testing.T, cfg Config, level agentkernel.ThinkingLevel) map[string]any {
	t.Helper()
	body := decoded(t, cfg, agentkernel.ModelRequest{
		Messages: []agentkernel.Message{user("hi")}, ThinkingLevel: level,
	})
	fields := map[string]any{}
	for _, name := range []string{
		"reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget", "chat_template_kwargs",
	} {
		if v, ok := body[name]; ok {
			fields[name] = v
		}
	}
	return fields
}

// A thinking level becomes the nearest that the endpoint knows, in the form that it takes.
func TestThinkingLevels(t *testing.T) {
	effort := func(words ...string) []map[string]any {
		var out []map[string]any
		for _, w := range words {
			out = append(out, map[string]any{"reasoning_effort": w})
		}
		return out
	}
	template := func(on bool) map[string]any {
		return map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": on}}
	}
	object := func(kind string) map[string]any {
		return map[string]any{"thinking": map[string]any{"type": kind}}
	}
	budget := func(n float64) map[string]any {
		return map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": n}}
	}
	qwen := func(n float64) map[string]any { return map[string]any{"enable_thinking": true, "thinking_budget": n} }
	reasoning := func(word string) map[string]any {
		return map[string]any{"reasoning": map[string]any{"effort": word}}
	}
	for _, c := range []struct {
		compat *Compat
		want   []map[string]any // off, minimal, low, medium, high
	}{
		{PresetGeneric(), effort("none", "minimal", "low", "medium", "high")},
		{PresetOpenAI(), effort("none", "minimal", "low", "medium", "high")},
		{PresetGemini(), effort("none", "minimal", "low", "medium", "high")},
		{PresetGroq(), effort("none", "low", "low", "medium", "high")},
		{PresetOllama(), effort("none", "low", "low", "medium", "high")},
		{PresetXAI(), effort("low", "low", "low", "low", "high")},
		{PresetMistral(), effort("none", "high", "high", "high", "high")},
		{&Compat{Efforts: []string{"minimal"}}, effort("minimal", "minimal", "minimal", "minimal", "minimal")},
		{PresetOpenRouter(), []map[string]any{
			{"reasoning": map[string]any{"enabled": false}},
			reasoning("minimal"), reasoning("low"), reasoning("medium"), reasoning("high"),
		}},
		{PresetDeepSeek(), []map[string]any{
			object("disabled"), object("enabled"), object("enabled"), object("enabled"), object("enabled"),
		}},
		{PresetAnthropic(), []map[string]any{object("disabled"), budget(1024), budget(2048), budget(8192), budget(16384)}},
		{PresetDashScope(), []map[string]any{{"enable_thinking": false}, qwen(1024), qwen(2048), qwen(8192), qwen(16384)}},
		{PresetVLLM(), []map[string]any{template(false), template(true), template(true), template(true), template(true)}},
		{
			&Compat{Name: "a switch with efforts", Thinking: ThinkingTemplate, Efforts: []string{"low", "high"}},
			[]map[string]any{
				template(false), join(template(true), effort("low")[0]), join(template(true), effort("low")[0]),
				join(template(true), effort("low")[0]), join(template(true), effort("high")[0]),
			},
		},
	} {
		for i, level := range []agentkernel.ThinkingLevel{
			agentkernel.ThinkingOff, agentkernel.ThinkingMinimal, agentkernel.ThinkingLow,
			agentkernel.ThinkingMedium, agentkernel.ThinkingHigh,
		} {
			require.Equal(t, c.want[i], thinkingFields(t, Config{Compat: c.compat}, level), "%s, level %s", c.compat.Name, level)
		}
		require.Empty(t, thinkingFields(t, Config{Compat: c.compat}, ""), "%s", c.compat.Name)
	}
}

func join(a, b map[string]any) map[string]any {
	maps.Copy(a, b)
	return a
}

// The level of a request wins over all that the Config says of thinking.
func TestThinkingLevelWins(t *testing.T) {
	require.Equal(t, map[string]any{"reasoning_effort": "low"},
		thinkingFields(t, Config{ReasoningEffort: "high", Thinking: new(true)}, agentkernel.ThinkingLow))
	require.Equal(t, map[string]any{"reasoning": map[string]any{"enabled": false}},
		thinkingFields(t, Config{Compat: PresetOpenRouter(), ThinkingBudget: 9000}, agentkernel.ThinkingOff))
	require.Equal(t, map[string]any{"reasoning_effort": "high"},
		thinkingFields(t, Config{ReasoningEffort: "high"}, ""))
}

// A budget leaves half of the answer's bound to the answer, as far as the least budget allows.
func TestBudgetOfALevelLeavesRoom(t *testing.T) {
	for most, want := range map[int]float64{-1: 16384, 0: 16384, 40_000: 16384, 10_000: 5000, 1500: 1024} {
		fields := thinkingFields(t, Config{Compat: PresetAnthropic(), MaxTokens: most}, agentkernel.ThinkingHigh)
		require.Equal(t, map[string]any{"type": "enabled", "budget_tokens": want}, fields["thinking"], "MaxTokens %d", most)
	}
}

func TestUnknownThinkingLevel(t *testing.T) {
	req := agentkernel.ModelRequest{Messages: []agentkernel.Message{user("hi")}, ThinkingLevel: "hard"}
	_, err := newModel(t, Config{}).encodeRequest(req)
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	require.ErrorContains(t, err, `"hard"`)
}
