package openai

import (
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// What makes no sense is told by New, with the name of the field and without the secret.
func TestNewNamesTheFieldThatMakesNoSense(t *testing.T) {
	client := goopenai.DefaultConfig("k-SECRET")
	noURL := goopenai.DefaultConfig("k-SECRET")
	noURL.BaseURL = "SECRET"
	for _, c := range []struct {
		field string
		cfg   Config
	}{
		{"Model", Config{}},
		{"Model", Config{Model: " "}},
		{"BaseURL", Config{Model: "m", BaseURL: "SECRET"}},
		{"BaseURL", Config{Model: "m", BaseURL: "http://%zzSECRET"}},
		{"BaseURL", Config{Model: "m", BaseURL: "ftp://host/SECRET"}},
		{"BaseURL", Config{Model: "m", BaseURL: "https:///v1?key=SECRET"}},
		{"BaseURL", Config{Model: "m", BaseURL: "localhost:8080/v1"}},
		{"BaseURL", Config{Model: "m", BaseURL: "https://host/v1/chat/completions?key=SECRET"}},
		{"Client.BaseURL", Config{Model: "m", Client: &noURL}},
		{"APIKey", Config{Model: "m", APIKey: "SECRET\n"}},
		{"APIKey", Config{Model: "m", APIKey: "SECRET", Client: &client}},
		{"BaseURL", Config{Model: "m", BaseURL: "https://host?key=SECRET", Client: &client}},
		{"HTTPClient", Config{Model: "m", HTTPClient: http.DefaultClient, Client: &client}},
		{"Header", Config{Model: "m", Header: http.Header{"X-Key": {"SECRET\r\nX: y"}}}},
		{"Header", Config{Model: "m", Header: http.Header{"a b": {"SECRET"}}}},
		{"Header", Config{Model: "m", Header: http.Header{"x-key": {"SECRET"}}}},
		{"Temperature", Config{Model: "m", Temperature: new(-1.0)}},
		{"Temperature", Config{Model: "m", Temperature: new(math.NaN())}},
		{"TopP", Config{Model: "m", TopP: new(1.5)}},
		{"TopP", Config{Model: "m", TopP: new(math.Inf(1))}},
		{"Stop", Config{Model: "m", Stop: []string{"a", ""}}},
		{"ExtraBody", Config{Model: "m", ExtraBody: map[string]any{"f": func() {}}}},
		{"ExtraBody", Config{Model: "m", ExtraBody: map[string]any{"": 1}}},
		{"ReasoningEffort", Config{Model: "m", Thinking: new(false), ReasoningEffort: "high"}},
		{"ReasoningEffort", Config{Model: "m", Thinking: new(true), ReasoningEffort: "none"}},
		{"ThinkingBudget", Config{Model: "m", ThinkingBudget: 5, Compat: PresetOpenAI()}},
		{"ThinkingBudget", Config{Model: "m", ThinkingBudget: 5, ReasoningEffort: "low", Compat: PresetOpenRouter()}},
		{"ThinkingBudget", Config{Model: "m", ThinkingBudget: 5, Thinking: new(false), Compat: PresetOpenRouter()}},
		{"ResponseFormat", Config{Model: "m", ResponseFormat: &ResponseFormat{}}},
		{"ResponseFormat", Config{Model: "m", ResponseFormat: &ResponseFormat{Type: FormatJSONSchema, Schema: map[string]any{}}}},
		{"ResponseFormat", Config{Model: "m", ResponseFormat: &ResponseFormat{Type: FormatJSONSchema, Name: "n"}}},
		{"ResponseFormat", Config{Model: "m", ResponseFormat: &ResponseFormat{Type: FormatJSONSchema, Name: "n", Schema: 1}}},
		{"ResponseFormat", Config{Model: "m", ResponseFormat: &ResponseFormat{Type: FormatJSONObject, Strict: true}}},
		{"Compat.Images", Config{Model: "m", Compat: &Compat{Images: "x"}}},
		{"Compat.Thinking", Config{Model: "m", Compat: &Compat{Thinking: "x"}}},
		{"Compat.Replay", Config{Model: "m", Compat: &Compat{Replay: "x"}}},
		{"Compat.CallIDs", Config{Model: "m", Compat: &Compat{CallIDs: "x"}}},
		{"Compat.Efforts", Config{Model: "m", Compat: &Compat{Efforts: []string{"low", "x"}}}},
		{"Compat.SystemRole", Config{Model: "m", Compat: &Compat{SystemRole: "x"}}},
	} {
		m, err := New(c.cfg)
		require.Nil(t, m)
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest, "%s", c.field)
		require.ErrorContains(t, err, c.field+":")
		require.NotContains(t, err.Error(), "SECRET")
		for err := err; err != nil; err = errors.Unwrap(err) {
			require.NotContains(t, err.Error(), "SECRET")
		}
	}
}

func TestDefaults(t *testing.T) {
	cfg := newModel(t, Config{}).cfg
	require.Equal(t, "https://api.openai.com/v1", cfg.BaseURL)
	require.Equal(t, "openai", cfg.Compat.Name)
	require.Equal(t, []time.Duration{
		30 * time.Second, 2 * time.Minute, 2 * time.Minute, 5 * time.Minute, 5 * time.Second,
	}, []time.Duration{cfg.ConnectTimeout, cfg.HeaderTimeout, cfg.IdleTimeout, cfg.KeepAliveLimit, cfg.TailTimeout})
	require.Equal(t, 16<<20, cfg.MaxLineBytes)

	cfg = newModel(t, Config{IdleTimeout: -1, MaxLineBytes: -1, MaxTokens: -1, TailTimeout: 1}).cfg
	require.Equal(t, time.Duration(-1), cfg.IdleTimeout, "negative is no limit and stays")
	require.Equal(t, -1, cfg.MaxLineBytes)
	require.Equal(t, time.Duration(1), cfg.TailTimeout)
	require.NotContains(t, decoded(t, Config{MaxTokens: -1}, conversationWithTools()), "max_completion_tokens")
}

// A Config is read, never changed, and what becomes of it later does not reach the model.
func TestNewCopiesItsConfig(t *testing.T) {
	client := goopenai.DefaultConfig("k")
	cfg := Config{
		Model: "m", Client: &client, Compat: PresetMistral(),
		Header: http.Header{"X-A": {"1"}}, Stop: []string{"s"}, ExtraBody: map[string]any{"a": 1},
	}
	m := newModel(t, cfg)
	require.NotEqual(t, m.conf.HTTPClient, client.HTTPClient, "the caller's client configuration is untouched")
	before := encoded(t, cfg, conversationWithTools())
	cfg.Compat.Omit[0], cfg.Compat.SeedField = "model", "x"
	cfg.Header.Set("X-A", "2")
	cfg.Stop[0] = "t"
	cfg.ExtraBody["model"] = "x"
	after, err := m.encodeRequest(conversationWithTools())
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.Equal(t, "1", m.requestHeaders().Get("X-A"))
	m.requestHeaders().Set("X-A", "3")
	require.Equal(t, "1", m.requestHeaders().Get("X-A"))
}
