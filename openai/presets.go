package openai

import (
	"net"
	"net/url"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"
)

const maxCompletionTokens = "max_completion_tokens"

// PresetGeneric is for a server of which nothing is known but that it is compatible.
func PresetGeneric() *Compat { return &Compat{Name: "generic"} }

// PresetOpenAI is for api.openai.com: it refuses max_tokens for models that think, fields of
// a message that it does not know, and ids of more than 40 bytes.
func PresetOpenAI() *Compat {
	return &Compat{
		Name:           "openai",
		MaxTokensField: maxCompletionTokens,
		NullContent:    true,
		NoExtras:       true,
		Replay:         ReplayNone,
		CallIDs:        CallIDsUpTo40,
	}
}

// PresetAzure is for models of OpenAI on Azure.
func PresetAzure() *Compat {
	compat := PresetOpenAI()
	compat.Name = "azure"
	return compat
}

// PresetOpenRouter is for openrouter.ai, which wants the details of the thinking back.
func PresetOpenRouter() *Compat {
	return &Compat{
		Name:         "openrouter",
		NullContent:  true,
		Thinking:     ThinkingReasoning,
		Replay:       ReplayDetails,
		CacheControl: true,
	}
}

// PresetVercel is for the gateway of Vercel, which speaks of thinking as OpenRouter does.
func PresetVercel() *Compat {
	compat := PresetOpenRouter()
	compat.Name = "vercel"
	return compat
}

// PresetDeepSeek is for api.deepseek.com. While it thinks it refuses a history whose
// assistant messages have no reasoning_content; strict tools are for its beta address alone.
func PresetDeepSeek() *Compat {
	return &Compat{
		Name:         "deepseek",
		NoStrict:     true,
		Thinking:     ThinkingObject,
		Replay:       ReplayReasoningContent,
		ReplayAlways: true,
	}
}

// PresetGroq is for api.groq.com, which refuses fields that it does not know.
func PresetGroq() *Compat {
	return &Compat{
		Name:           "groq",
		MaxTokensField: maxCompletionTokens,
		NoExtras:       true,
		Replay:         ReplayReasoning,
		Efforts:        []string{effortNone, "low", "medium", "high"},
		Omit:           []string{"prompt_cache_key"},
	}
}

// PresetCerebras is for api.cerebras.ai.
func PresetCerebras() *Compat {
	return &Compat{
		Name:           "cerebras",
		MaxTokensField: maxCompletionTokens,
		Replay:         ReplayReasoning,
		Efforts:        []string{effortNone, "low", "medium", "high"},
	}
}

// PresetMistral is for api.mistral.ai, which refuses every field that it does not know, a
// user message after a tool result, and call ids of another form than its own. It sends the
// usage without being asked.
func PresetMistral() *Compat {
	return &Compat{
		Name:               "mistral",
		SeedField:          "random_seed",
		NoStreamOptions:    true,
		NoExtras:           true,
		Replay:             ReplayParts,
		Efforts:            []string{effortNone, "high"},
		CallIDs:            CallIDsAlnum9,
		AssistantAfterTool: true,
		Omit:               []string{"user", "prompt_cache_key"},
	}
}

// PresetXAI is for api.x.ai.
func PresetXAI() *Compat {
	return &Compat{
		Name:           "xai",
		MaxTokensField: maxCompletionTokens,
		Replay:         ReplayNone,
		Efforts:        []string{"low", "high"},
	}
}

// PresetOllama is for Ollama, local or its cloud.
func PresetOllama() *Compat {
	return &Compat{Name: "ollama", Replay: ReplayReasoning, Efforts: []string{effortNone, "low", "medium", "high"}}
}

// PresetLlamaCpp is for the server of llama.cpp.
func PresetLlamaCpp() *Compat {
	return &Compat{Name: "llamacpp", Thinking: ThinkingTemplate, Replay: ReplayReasoningContent}
}

// PresetVLLM is for vLLM, whose field for thinking depends on its version.
func PresetVLLM() *Compat {
	return &Compat{Name: "vllm", Thinking: ThinkingTemplate}
}

// PresetGemini is for the compatible address of the Gemini API, which refuses fields that it
// does not know.
func PresetGemini() *Compat {
	return &Compat{Name: "gemini", Replay: ReplayNone, Omit: []string{"prompt_cache_key"}}
}

// PresetAnthropic is for the compatible address of the Claude API. It has a budget of thinking
// in place of efforts, and does not know cache_control, unlike the API that is its own.
func PresetAnthropic() *Compat {
	return &Compat{Name: "anthropic", Thinking: ThinkingObject, LevelBudgets: true, Replay: ReplayNone}
}

// PresetZAI is for Z.ai (GLM).
func PresetZAI() *Compat {
	return &Compat{Name: "zai", Thinking: ThinkingObject, Replay: ReplayReasoningContent}
}

// PresetMoonshot is for Moonshot (Kimi).
func PresetMoonshot() *Compat {
	return &Compat{Name: "moonshot", Thinking: ThinkingObject, Replay: ReplayReasoningContent}
}

// PresetDashScope is for DashScope (Qwen).
func PresetDashScope() *Compat {
	return &Compat{
		Name:         "dashscope",
		Thinking:     ThinkingEnable,
		LevelBudgets: true,
		Replay:       ReplayReasoningContent,
		CacheControl: true,
	}
}

// hosts are the endpoints that are known by their host name or the end of it.
var hosts = []struct {
	suffix string
	preset func() *Compat
}{
	{"openai.azure.com", PresetAzure},
	{"services.ai.azure.com", PresetAzure},
	{"cognitiveservices.azure.com", PresetAzure},
	{"models.inference.ai.azure.com", PresetAzure},
	{"models.github.ai", PresetAzure},
	{"api.openai.com", PresetOpenAI},
	{"openrouter.ai", PresetOpenRouter},
	{"ai-gateway.vercel.sh", PresetVercel},
	{"api.deepseek.com", PresetDeepSeek},
	{"api.groq.com", PresetGroq},
	{"api.cerebras.ai", PresetCerebras},
	{"mistral.ai", PresetMistral},
	{"api.x.ai", PresetXAI},
	{"ollama.com", PresetOllama},
	{"generativelanguage.googleapis.com", PresetGemini},
	{"api.anthropic.com", PresetAnthropic},
	{"api.z.ai", PresetZAI},
	{"bigmodel.cn", PresetZAI},
	{"api.moonshot.ai", PresetMoonshot},
	{"api.moonshot.cn", PresetMoonshot},
	{"aliyuncs.com", PresetDashScope},
}

const ollamaPort = "11434"

// GuessCompat returns the preset for the endpoint at baseURL, by its host, or
// [PresetGeneric]. An empty address is OpenAI's.
func GuessCompat(baseURL string) *Compat {
	if baseURL == "" {
		return PresetOpenAI()
	}
	u, err := url.Parse(baseURL)
	if err != nil {
		return PresetGeneric()
	}
	host := strings.ToLower(u.Hostname())
	for _, known := range hosts {
		if host == known.suffix || strings.HasSuffix(host, "."+known.suffix) {
			return known.preset()
		}
	}
	if isLocal(host) && u.Port() == ollamaPort {
		return PresetOllama()
	}
	return PresetGeneric()
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsUnspecified())
}

// guess is [GuessCompat] of the address in use.
func guess(cfg Config) *Compat {
	if cfg.Client == nil {
		return GuessCompat(cfg.BaseURL)
	}
	switch cfg.Client.APIType {
	case goopenai.APITypeAzure, goopenai.APITypeAzureAD, goopenai.APITypeCloudflareAzure:
		return PresetAzure()
	}
	return GuessCompat(cfg.Client.BaseURL)
}
