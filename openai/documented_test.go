package openai

import (
	"bytes"
	"encoding/json"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// checkDocumented holds a body to what the Chat Completions reference demands of any.
func checkDocumented(t testing.TB, body []byte, compat *Compat) {
	t.Helper()
	var doc struct {
		Model  *string `json:"model"`
		Stream bool    `json:"stream"`
		Tools  []struct {
			Type     string `json:"type"`
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
				Strict     *bool           `json:"strict"`
			} `json:"function"`
		} `json:"tools"`
		ToolChoice json.RawMessage `json:"tool_choice"`
		Messages   []struct {
			Role       string           `json:"role"`
			Content    *json.RawMessage `json:"content"`
			ToolCallID string           `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(body, &doc))
	var raw struct{ Messages []map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(body, &raw))
	require.NotNil(t, doc.Model)
	require.True(t, doc.Stream)
	require.NotEmpty(t, doc.Messages)
	require.False(t, len(doc.Tools) == 0 && doc.ToolChoice != nil, "a tool choice without tools")
	for _, tool := range doc.Tools {
		require.Equal(t, "function", tool.Type)
		require.NotEmpty(t, tool.Function.Name)
		require.NotNil(t, objectOf(tool.Function.Parameters))
		require.False(t, compat.NoStrict && tool.Function.Strict != nil, "a mark of a strict tool")
	}
	marks := bytes.Count(body, []byte(`"cache_control":{"type":"ephemeral"}`))
	require.LessOrEqual(t, marks, 4)
	require.True(t, compat.CacheControl || marks == 0, "a mark of a place to keep")

	for i, m := range doc.Messages {
		content, has := raw.Messages[i]["content"]
		require.True(t, has, "message %d has no content key", i)
		if string(content) == "null" || string(content) == `""` {
			require.Equal(t, "assistant", m.Role)
			require.NotEmpty(t, m.ToolCalls, "message %d has neither content nor calls", i)
			require.Equal(t, compat.NullContent, string(content) == "null")
		}
		require.Equal(t, m.Role == "tool", m.ToolCallID != "", "tool_call_id is for tool messages")
		for _, call := range m.ToolCalls {
			require.Equal(t, "function", call.Type)
			require.NotNil(t, objectOf(json.RawMessage(call.Function.Arguments)), "arguments %q", call.Function.Arguments)
		}
	}
}

// The body for OpenAI holds nothing that the client's types of its API do not know.
func TestBodiesForOpenAIAreOfItsAPI(t *testing.T) {
	cfg := with(everyParameter(), PresetOpenAI())
	cfg.ExtraBody, cfg.PromptCacheKey = nil, ""
	decoder := json.NewDecoder(bytes.NewReader(encoded(t, cfg, conversationWithTools())))
	decoder.DisallowUnknownFields()
	var req goopenai.ChatCompletionRequest
	require.NoError(t, decoder.Decode(&req))
	require.Equal(t, "m-test", req.Model)
	require.True(t, req.Stream && req.StreamOptions.IncludeUsage)
	require.Equal(t, 100, req.MaxCompletionTokens)
	require.Equal(t, []string{"END"}, req.Stop)
	require.Equal(t, 7, *req.Seed)
	require.Equal(t, "low", req.ReasoningEffort)
	require.Equal(t, "answer", req.ResponseFormat.JSONSchema.Name)
	require.Equal(t, []string{"weather", "clock"}, []string{req.Tools[0].Function.Name, req.Tools[1].Function.Name})
	require.Len(t, req.Messages, 6+1)
	require.Equal(t, goopenai.FunctionCall{Name: "weather", Arguments: `{"city":"Rome"}`}, req.Messages[2].ToolCalls[0].Function)
	require.Equal(t, goopenai.ChatCompletionMessage{Role: "tool", ToolCallID: "call_1", Content: "sunny <25°C>"}, req.Messages[3])
}

// FuzzEncodeRequest: whatever the history holds, the body is one that the reference allows.
func FuzzEncodeRequest(f *testing.F) {
	seed, err := json.Marshal(conversationWithTools().Messages)
	require.NoError(f, err)
	f.Add(seed, "sys", uint8(0))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"tool_call","tool_call":{"id":"a","name":"f"},"extra":{"id":1,"x":2}}]}]`), "", uint8(5))
	f.Add([]byte(`[{"role":"user","content":[{"type":"image","image":{"data":"AAAA"},"extra":[1]}]}]`), "", uint8(2))
	f.Fuzz(func(t *testing.T, history []byte, system string, preset uint8) {
		var messages []agentkernel.Message
		if json.Unmarshal(history, &messages) != nil {
			return
		}
		presets := allPresets()
		compat := presets[int(preset)%len(presets)]
		m := newModel(t, Config{Compat: compat})
		body, err := m.encodeRequest(agentkernel.ModelRequest{System: system, Messages: messages, Tools: []agentkernel.ToolSpec{clock}})
		if err != nil {
			require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
			return
		}
		for _, m := range messages {
			if m.Role == agentkernel.RoleTool && m.ToolCallID == "" {
				return // the kernel gives every result its id
			}
		}
		checkDocumented(t, body, compat)
	})
}
