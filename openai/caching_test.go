package openai

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// keptTexts are the texts of the parts, in their order, that carry cache_control.
func keptTexts(t *testing.T, req agentkernel.ModelRequest) []string {
	t.Helper()
	var kept []string
	for _, m := range decoded(t, Config{Compat: PresetOpenRouter()}, req)["messages"].([]any) {
		parts, _ := m.(map[string]any)["content"].([]any)
		for _, p := range parts {
			part := p.(map[string]any)
			if mark, ok := part["cache_control"]; ok {
				require.Equal(t, map[string]any{"type": "ephemeral"}, mark)
				text, _ := part["text"].(string)
				kept = append(kept, text)
			}
		}
	}
	return kept
}

func systemOf(t *testing.T, compat *Compat, req agentkernel.ModelRequest) any {
	t.Helper()
	req.Messages = []agentkernel.Message{user("hi")}
	first := decoded(t, Config{Compat: compat}, req)["messages"].([]any)[0].(map[string]any)
	if first["role"] != "system" {
		return nil
	}
	return first["content"]
}

func TestSystemBlocks(t *testing.T) {
	blocks := func(texts ...any) (out []agentkernel.SystemBlock) {
		for _, text := range texts {
			switch text := text.(type) {
			case string:
				out = append(out, agentkernel.SystemBlock{Text: text})
			case bool:
				out[len(out)-1].Cache = text
			}
		}
		return out
	}
	text := func(text string) map[string]any { return map[string]any{"type": "text", "text": text} }
	kept := func(s string) map[string]any {
		return join(text(s), map[string]any{"cache_control": map[string]any{"type": "ephemeral"}})
	}
	for _, c := range []struct {
		system string
		blocks []agentkernel.SystemBlock
		plain  any // without, and with, a switch for cache_control
		marked any
	}{
		{"", nil, nil, nil},
		{"whole", nil, "whole", "whole"},
		{"", blocks("a", "b"), "a\n\nb", "a\n\nb"},
		{"whole", blocks("a", "b"), "whole", "whole"},
		{"whole", blocks("a", true, "b"), "whole", []any{kept("a"), text("b")}},
		{"whole", blocks("a", true, "b", true), "whole", []any{kept("a"), kept("b")}},
		{"whole", blocks("a", "", true, "b"), "whole", []any{kept("a"), text("b")}},
		{"", blocks("", true), nil, nil},
		{
			"whole", blocks("a", true, "b", true, "c", true, "d", true, "e", true, "f"), "whole",
			[]any{text("a"), kept("b"), kept("c"), kept("d"), kept("e"), text("f")},
		},
	} {
		req := agentkernel.ModelRequest{System: c.system, SystemBlocks: c.blocks}
		require.Equal(t, c.plain, systemOf(t, PresetGeneric(), req), "%v", c.blocks)
		require.Equal(t, c.marked, systemOf(t, PresetOpenRouter(), req), "%v", c.blocks)
	}
}

// A breakpoint is a mark on the last part of its message, or on the last part before it that
// can carry one; the last four count.
func TestCacheBreakpoints(t *testing.T) {
	req := agentkernel.ModelRequest{Messages: []agentkernel.Message{
		user("0"),
		assistant(thought("hm", "", ""), toolCall("c1", "f", "{}")),
		toolResult("c1", "f", "2a", "2b"),
		blocks(agentkernel.RoleUser, "3", agentkernel.Image{Data: onePixel}),
		assistant("4"),
		user("5"),
	}}
	for _, c := range []struct {
		at   []int
		want []string
	}{
		{nil, nil},
		{[]int{-1, 6, 1 << 40}, nil},
		{[]int{0}, []string{"0"}},
		{[]int{1}, []string{"0"}},
		{[]int{2}, []string{"2b"}},
		{[]int{3}, []string{""}}, // the image
		{[]int{5, 2, 5, 0}, []string{"0", "2b", "5"}},
		{[]int{0, 1, 2, 3, 4, 5}, []string{"2b", "", "4", "5"}},
	} {
		req.CacheBreakpoints = c.at
		require.Equal(t, c.want, keptTexts(t, req), "%v", c.at)
	}

	req.SystemBlocks = []agentkernel.SystemBlock{{Text: "s1", Cache: true}, {Text: "s2", Cache: true}}
	require.Equal(t, []string{"s1", "s2", "4", "5"}, keptTexts(t, req), "four marks in all")

	plain := agentkernel.ModelRequest{Messages: req.Messages, System: "s"}
	withMarks := plain
	withMarks.CacheBreakpoints = []int{0, 2}
	require.Equal(t, string(encoded(t, Config{Compat: PresetOpenAI()}, plain)),
		string(encoded(t, Config{Compat: PresetOpenAI()}, withMarks)), "an endpoint that cannot be told")
}

// The mark of a request wins over one that the part's opaque data holds.
func TestCacheControlIsWrittenOnce(t *testing.T) {
	extra := agentkernel.ContentBlock{
		Type: agentkernel.ContentText, Text: "x", Extra: []byte(`{"cache_control":{"type":"other"},"a":1}`),
	}
	req := agentkernel.ModelRequest{
		Messages: []agentkernel.Message{blocks(agentkernel.RoleUser, extra)}, CacheBreakpoints: []int{0},
	}
	require.Contains(t, string(encoded(t, Config{Compat: PresetOpenRouter()}, req)),
		`[{"type":"text","text":"x","cache_control":{"type":"ephemeral"},"a":1}]`)
}

// What a request asks for wins over the Config, and ExtraBody over both.
func TestRequestWinsOverConfig(t *testing.T) {
	cfg, req := askedOfTheRequest(PresetGeneric())
	body := decoded(t, cfg, req)
	require.Equal(t, 0.25, body["temperature"])
	require.Equal(t, "cache-of-the-request", body["prompt_cache_key"])
	require.Equal(t, "low", body["reasoning_effort"])

	cfg.ExtraBody = map[string]any{"temperature": 0.5, "prompt_cache_key": "extra", "reasoning_effort": "extra"}
	body = decoded(t, cfg, req)
	require.Equal(t, []any{0.5, "extra", "extra"}, []any{body["temperature"], body["prompt_cache_key"], body["reasoning_effort"]})

	body = decoded(t, Config{Compat: PresetMistral()}, req)
	require.NotContains(t, body, "prompt_cache_key", "an endpoint that refuses it")
}
