package openai

import (
	"testing"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
)

func allPresets() []*Compat {
	return []*Compat{
		PresetGeneric(), PresetOpenAI(), PresetAzure(), PresetOpenRouter(), PresetVercel(), PresetDeepSeek(),
		PresetGroq(), PresetCerebras(), PresetMistral(), PresetXAI(), PresetOllama(), PresetLlamaCpp(),
		PresetVLLM(), PresetGemini(), PresetAnthropic(), PresetZAI(), PresetMoonshot(), PresetDashScope(),
	}
}

func TestPresetsAreValidAndNamed(t *testing.T) {
	names := map[string]bool{}
	for _, compat := range allPresets() {
		require.NoError(t, compat.check())
		require.NotEmpty(t, compat.Name)
		require.False(t, names[compat.Name], "two presets are named %s", compat.Name)
		names[compat.Name] = true
	}
	for _, known := range hosts {
		require.True(t, names[known.preset().Name], "%s is not among the presets under test", known.preset().Name)
	}
}

func TestPresetsAreTheCallersToChange(t *testing.T) {
	PresetMistral().Omit[0] = "changed"
	require.Equal(t, "user", PresetMistral().Omit[0])
}

func TestGuessCompat(t *testing.T) {
	for address, want := range map[string]string{
		"":                                  "openai",
		"https://api.openai.com/v1":         "openai",
		"https://eu.api.openai.com/v1/":     "openai",
		"https://r.openai.azure.com/":       "azure",
		"https://openrouter.ai/api/v1":      "openrouter",
		"https://API.DeepSeek.com":          "deepseek",
		"https://api.groq.com/openai/v1":    "groq",
		"https://api.mistral.ai/v1":         "mistral",
		"https://codestral.mistral.ai/v1":   "mistral",
		"https://api.x.ai/v1":               "xai",
		"http://localhost:11434/v1":         "ollama",
		"http://192.168.1.7:11434/v1":       "ollama",
		"http://[::1]:11434/v1":             "ollama",
		"https://example.com:11434/v1":      "generic",
		"http://localhost:8080/v1":          "generic",
		"https://api.openai.com.evil.io/":   "generic",
		"https://notopenrouter.ai/":         "generic",
		"https://example.com/openrouter.ai": "generic",
		"::":                                "generic",
		"https://dashscope-intl.aliyuncs.com/compatible-mode/v1": "dashscope",
	} {
		require.Equal(t, want, GuessCompat(address).Name, "%s", address)
	}
}

func TestCompatOfAClientConfiguration(t *testing.T) {
	azure := goopenai.DefaultAzureConfig("k-secret", "https://proxy.example.com/")
	require.Equal(t, "azure", newModel(t, Config{Client: &azure}).cfg.Compat.Name)
	plain := goopenai.DefaultConfig("k-secret")
	plain.BaseURL = "https://api.groq.com/openai/v1"
	require.Equal(t, "groq", newModel(t, Config{Client: &plain}).cfg.Compat.Name)
	require.Equal(t, "vllm", newModel(t, Config{Client: &plain, Compat: PresetVLLM()}).cfg.Compat.Name)
}

func TestCallIDForms(t *testing.T) {
	long := "call_0123456789012345678901234567890123456789"
	for _, c := range []struct {
		form     CallIDForm
		id, want string
	}{
		{CallIDsAny, long, long},
		{CallIDsUpTo40, "call_1", "call_1"},
		{CallIDsUpTo40, long[:40], long[:40]},
		{CallIDsAlnum9, "aB3dE6gH9", "aB3dE6gH9"},
	} {
		require.Equal(t, c.want, c.form.fit(c.id))
	}
	require.Regexp(t, `^call_[0-9A-Za-z]{22}$`, CallIDsUpTo40.fit(long))
	for _, id := range []string{"", "call_1", "call_2", "aB3dE6gH-", long} {
		got := CallIDsAlnum9.fit(id)
		require.Regexp(t, `^[0-9A-Za-z]{9}$`, got)
		require.Equal(t, got, CallIDsAlnum9.fit(id), "the same id always becomes the same")
		require.Equal(t, got, CallIDsAlnum9.fit(got))
	}
	require.NotEqual(t, CallIDsAlnum9.fit("call_1"), CallIDsAlnum9.fit("call_2"))
}
