package openai

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
)

func secretConfigs() map[string]Config {
	azure := goopenai.DefaultAzureConfig("k-SECRET", "https://user:SECRET@azure.example.com/?key=SECRET")
	azure.OrgID = "org"
	return map[string]Config{
		"key and query": {
			Model: "m", APIKey: "k-SECRET", BaseURL: "https://user:SECRET@example.com/v1?key=SECRET#SECRET",
			Header:    http.Header{"Authorization": {"Bearer SECRET"}},
			ExtraBody: map[string]any{"token": "SECRET"},
		},
		"own client":  {Model: "m", Client: &azure},
		"no URL":      {Model: "m", BaseURL: "SECRET:SECRET@%zz"},
		"opaque":      {Model: "m", BaseURL: "mailto:SECRET"},
		"empty model": {APIKey: "k-SECRET"},
	}
}

// No verb, encoder or logger shows a key, a query string or a header.
func TestSecretsAreNotShown(t *testing.T) {
	type holder struct {
		Value any
		Cfg   Config
		Ptr   *Config
		M     *Model
	}
	for name, cfg := range secretConfigs() {
		t.Run(name, func(t *testing.T) {
			values := []any{cfg, &cfg, []Config{cfg}, map[string]*Config{"a": &cfg}, holder{Value: cfg, Cfg: cfg, Ptr: &cfg}}
			if m, err := New(cfg); err == nil {
				values = append(values, m, *m, m.cfg, holder{M: m, Value: *m}, struct{ m *Model }{m})
			}
			for _, v := range values {
				requireNoSecret(t, v)
			}
		})
	}
}

func requireNoSecret(t *testing.T, v any) {
	t.Helper()
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%10v"} {
		fmt.Fprintf(&shown, verb+"\n", v)
	}
	fmt.Fprintln(&shown, v)
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	shown.Write(raw)
	if raw, err := xml.Marshal(v); err == nil {
		shown.Write(raw)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("x", "value", v, slog.Group("g", "value", v))
	}
	require.NotContains(t, shown.String(), "SECRET")
	require.NotContains(t, shown.String(), fmt.Sprintf("%x", "SECRET"))
}

func TestWhatAConfigShows(t *testing.T) {
	cfg := Config{Model: "m", APIKey: "k-SECRET", BaseURL: "https://example.com/v1?key=SECRET", Compat: PresetVLLM()}
	require.Equal(t, `openai.Config{Model: "m", BaseURL: "https://example.com/v1", APIKey: [redacted], Compat: vllm}`, cfg.String())
	require.Equal(t, cfg.String(), fmt.Sprintf("%+v", &cfg))
	require.Equal(t, `openai.Config{Model: ""}`, Config{}.String())
	require.Equal(t, "<nil>", fmt.Sprint((*Config)(nil)))
	require.Equal(t, "<nil>", fmt.Sprint((*Model)(nil)))
	require.Equal(t, "openai.Model{}", fmt.Sprint(Model{}))
}

// TestModelsName: what stands in a RetryInfo is short, and tells endpoints apart.
func TestModelsName(t *testing.T) {
	own := goopenai.DefaultConfig("k-SECRET")
	local := own
	local.BaseURL = "http://user:SECRET@[::1]:8080/v1?key=SECRET"
	for want, cfg := range map[string]Config{
		"gpt-4o":             {Model: "gpt-4o", APIKey: "k-SECRET"},
		"gpt-4o-mini":        {Model: "gpt-4o-mini", Client: &own},
		"m (example.com)":    {Model: "m", APIKey: "k-SECRET", BaseURL: "https://u:SECRET@example.com/v1?key=SECRET", Compat: PresetVLLM()},
		"m ([::1]:8080)":     {Model: "m", Client: &local},
		`"a\nb" (localhost)`: {Model: "a\nb", BaseURL: "http://localhost/v1"},
	} {
		m := newModel(t, cfg)
		require.Equal(t, want, m.String())
		require.Equal(t, want, fmt.Sprintf("%+v", m))
	}
}

// What errors are cleaned of, also where only go-openai knows the key.
func TestSecretsOfAModel(t *testing.T) {
	azure := goopenai.DefaultAzureConfig("azure-key-1", "https://azure.example.com/")
	plain := goopenai.DefaultConfig("plain-key-1")
	require.Contains(t, newModel(t, Config{Client: &azure}).secrets, "azure-key-1")
	require.Contains(t, newModel(t, Config{Client: &plain}).secrets, "plain-key-1")

	m := newModel(t, Config{
		APIKey: "long-key-1", BaseURL: "https://u:password-1@example.com/v1?key=query-key-1&api-version=2024-06-01",
		Header: http.Header{"Authorization": {"Basic header-key-1"}, "X-Title": {"my title"}},
	})
	for _, secret := range []string{"long-key-1", "password-1", "query-key-1", "header-key-1"} {
		require.Contains(t, m.secrets, secret)
	}
	for _, text := range []string{"2024-06-01", "my title", ""} {
		require.NotContains(t, m.secrets, text)
	}
}
