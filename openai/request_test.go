package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// newModel returns the model of cfg, with a name where it has none.
func newModel(t testing.TB, cfg Config) *Model {
	t.Helper()
	if cfg.Model == "" {
		cfg.Model = "m-test"
	}
	m, err := New(cfg)
	require.NoError(t, err)
	return m
}

// encoded returns the body of req as bytes.
func encoded(t testing.TB, cfg Config, req agentkernel.ModelRequest) []byte {
	t.Helper()
	body, err := newModel(t, cfg).encodeRequest(req)
	require.NoError(t, err)
	require.True(t, json.Valid(body), "%s", body)
	return body
}

// decoded returns the body of req as JSON values.
func decoded(t testing.TB, cfg Config, req agentkernel.ModelRequest) map[string]any {
	t.Helper()
	var body map[string]any
	require.NoError(t, json.Unmarshal(encoded(t, cfg, req), &body))
	return body
}

// sentTo returns the messages of req as JSON values.
func sentTo(t testing.TB, compat *Compat, messages ...agentkernel.Message) []any {
	t.Helper()
	body := decoded(t, Config{Compat: compat}, agentkernel.ModelRequest{Messages: messages})
	return body["messages"].([]any)
}

func user(text string) agentkernel.Message { return blocks(agentkernel.RoleUser, text) }

func assistant(content ...any) agentkernel.Message {
	return blocks(agentkernel.RoleAssistant, content...)
}

func toolResult(id, name string, content ...any) agentkernel.Message {
	m := blocks(agentkernel.RoleTool, content...)
	m.ToolCallID, m.ToolName = id, name
	return m
}

// blocks makes a message of texts, calls, images and whole blocks.
func blocks(role agentkernel.Role, content ...any) agentkernel.Message {
	m := agentkernel.Message{Role: role}
	for _, c := range content {
		var b agentkernel.ContentBlock
		switch c := c.(type) {
		case string:
			b = agentkernel.TextBlock(c)
		case agentkernel.ToolCall:
			b = agentkernel.ContentBlock{Type: agentkernel.ContentToolCall, ToolCall: &c}
		case agentkernel.Image:
			b = agentkernel.ContentBlock{Type: agentkernel.ContentImage, Image: &c}
		case agentkernel.ContentBlock:
			b = c
		}
		m.Content = append(m.Content, b)
	}
	return m
}

func toolCall(id, name, args string) agentkernel.ToolCall {
	return agentkernel.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

func thought(text, signature, extra string) agentkernel.ContentBlock {
	b := agentkernel.ContentBlock{Type: agentkernel.ContentThinking, Thinking: text, Signature: signature}
	if extra != "" {
		b.Extra = json.RawMessage(extra)
	}
	return b
}

var (
	weather = agentkernel.ToolSpec{
		Name:        "weather",
		Description: "Tells the weather.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}
	clock = agentkernel.ToolSpec{Name: "clock", Schema: json.RawMessage(`{"type":"object"}`)}

	onePixel = []byte("\x89PNG\r\n\x1a\n....")
)

// conversationWithTools is one question, two calls, their results, the answer and a next question.
func conversationWithTools() agentkernel.ModelRequest {
	return agentkernel.ModelRequest{
		System: "Be terse.",
		Messages: []agentkernel.Message{
			user("How is Rome, and what time is it?"),
			assistant(
				thought("Two tools.", "", `{"field":"reasoning_content"}`),
				toolCall("call_1", "weather", `{"city":"Rome"}`),
				toolCall("call_2", "clock", `{}`),
			),
			toolResult("call_1", "weather", "sunny <25°C>"),
			toolResult("call_2", "clock"),
			assistant("Sunny, & noon."),
			user("Thanks."),
		},
		Tools: []agentkernel.ToolSpec{weather, clock},
	}
}

func everyParameter() Config {
	return Config{
		Temperature:       new(0.0),
		TopP:              new(0.5),
		Stop:              []string{"END"},
		Seed:              new(7),
		MaxTokens:         100,
		ToolChoice:        "weather",
		ParallelToolCalls: new(false),
		ReasoningEffort:   "low",
		ResponseFormat: &ResponseFormat{
			Type: FormatJSONSchema, Name: "answer", Schema: json.RawMessage(`{"type":"object"}`), Strict: true,
		},
		PromptCacheKey: "cache-1",
		User:           "user-1",
		ExtraBody:      map[string]any{"service_tier": "flex", "top_k": 40, "logit_bias": nil},
	}
}

// askedOfTheRequest is tools with all that a request can ask for, against a Config that says
// something else.
func askedOfTheRequest(compat *Compat) (Config, agentkernel.ModelRequest) {
	req := conversationWithTools()
	req.System = "You are terse.\n\nThe manual."
	req.SystemBlocks = []agentkernel.SystemBlock{{Text: "You are terse."}, {Text: "The manual.", Cache: true}}
	req.ThinkingLevel = agentkernel.ThinkingLow
	req.Temperature = new(0.25)
	req.CacheKey = "cache-of-the-request"
	req.CacheBreakpoints = []int{1, 3, 4}
	req.Tools[1].Strict = true
	return Config{
		Compat: compat, Temperature: new(1.0), PromptCacheKey: "cache-of-the-config", ReasoningEffort: "high",
	}, req
}

func with(cfg Config, compat *Compat) Config {
	cfg.Compat = compat
	return cfg
}

// TestRequestBodies compares whole bodies with files written after the endpoints' documents.
func TestRequestBodies(t *testing.T) {
	hello := agentkernel.ModelRequest{Messages: []agentkernel.Message{user("Hello!")}}
	tools := conversationWithTools()
	pictures := agentkernel.ModelRequest{Messages: []agentkernel.Message{
		blocks(agentkernel.RoleUser, "What is this?",
			agentkernel.Image{URL: "https://example.com/a.png"}, agentkernel.Image{Data: onePixel}),
		assistant(toolCall("call_1", "shot", `{}`), toolCall("call_2", "clock", `{}`)),
		toolResult("call_1", "shot", "a window", agentkernel.Image{Data: onePixel, MIMEType: "image/webp"}),
		toolResult("call_2", "clock", "noon"),
		user("And now?"),
	}}
	type request struct {
		cfg Config
		req agentkernel.ModelRequest
	}
	requests := map[string]request{
		"generic_hello":           {Config{Compat: PresetGeneric()}, hello},
		"openai_tools":            {Config{Compat: PresetOpenAI()}, tools},
		"openai_every_parameter":  {with(everyParameter(), PresetOpenAI()), tools},
		"azure_every_parameter":   {with(everyParameter(), PresetAzure()), tools},
		"generic_every_parameter": {with(everyParameter(), PresetGeneric()), tools},
		"mistral_every_parameter": {with(everyParameter(), PresetMistral()), tools},
		"openrouter_thinking":     {Config{Compat: PresetOpenRouter(), ThinkingBudget: 2000}, tools},
		"deepseek_thinking":       {Config{Compat: PresetDeepSeek(), Thinking: new(true), ReasoningEffort: "high"}, tools},
		"groq_thinking":           {Config{Compat: PresetGroq(), ReasoningEffort: "high", MaxTokens: 50}, tools},
		"xai_tools":               {Config{Compat: PresetXAI(), ReasoningEffort: "low", MaxTokens: 50}, tools},
		"ollama_no_thinking":      {Config{Compat: PresetOllama(), Thinking: new(false), MaxTokens: 50}, tools},
		"llamacpp_no_thinking":    {Config{Compat: PresetLlamaCpp(), Thinking: new(false), MaxTokens: 50}, tools},
		"vllm_thinking":           {Config{Compat: PresetVLLM(), Thinking: new(true), MaxTokens: 50}, tools},
		"dashscope_thinking":      {Config{Compat: PresetDashScope(), ThinkingBudget: 2000}, tools},
		"anthropic_thinking":      {Config{Compat: PresetAnthropic(), ThinkingBudget: 2000, MaxTokens: 4000}, tools},
		"images_in_user":          {Config{Compat: PresetGeneric()}, pictures},
		"images_in_tools":         {Config{Compat: &Compat{Images: ImagesInTools}}, pictures},
		"images_none":             {Config{Compat: &Compat{Images: ImagesNone}}, pictures},
	}
	for _, compat := range []*Compat{
		PresetOpenAI(), PresetOpenRouter(), PresetDeepSeek(), PresetMistral(), PresetDashScope(), PresetVLLM(),
	} {
		cfg, req := askedOfTheRequest(compat)
		requests[compat.Name+"_asked_of_the_request"] = request{cfg, req}
	}
	for name, c := range requests {
		t.Run(name, func(t *testing.T) {
			body := encoded(t, c.cfg, c.req)
			checkDocumented(t, body, c.cfg.Compat)
			path := filepath.Join("testdata", "requests", name+".json")
			if os.Getenv("AGENTKERNEL_UPDATE") != "" {
				var pretty bytes.Buffer
				require.NoError(t, json.Indent(&pretty, body, "", "  "))
				pretty.WriteByte('\n')
				require.NoError(t, os.WriteFile(path, pretty.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			var compact bytes.Buffer
			require.NoError(t, json.Compact(&compact, want))
			require.Equal(t, compact.String(), string(body), "the order of the fields counts too")
		})
	}
}

// Fault 8: what was blank, absent or no JSON object goes back as "{}".
func TestArgumentsAreNeverEmpty(t *testing.T) {
	for name, call := range map[string]agentkernel.ToolCall{
		"absent":   {ID: "c1", Name: "f"},
		"null":     toolCall("c1", "f", "null"),
		"empty":    toolCall("c1", "f", ""),
		"an array": toolCall("c1", "f", "[1]"),
		"no JSON":  toolCall("c1", "f", `{"a":`),
		"an error": {ID: "c1", Name: "f", Args: json.RawMessage(`{"a":1}`), RawArgs: `{"a":1`, ArgsError: "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			sent := sentTo(t, PresetGeneric(), assistant(call))
			require.Equal(t, map[string]any{
				"role": "assistant", "content": "",
				"tool_calls": []any{map[string]any{
					"id": "c1", "type": "function", "function": map[string]any{"name": "f", "arguments": "{}"},
				}},
			}, sent[0])
		})
	}
}

// Fault 9: the content key is always there.
func TestContentKeyIsAlwaysSent(t *testing.T) {
	call := assistant(toolCall("c1", "f", "{}"))
	empty, blank := toolResult("c1", "f"), toolResult("c1", "f", "")
	for _, compat := range []*Compat{PresetGeneric(), PresetOpenAI()} {
		sent := sentTo(t, compat, call, empty, call, blank)
		want := any("")
		if compat.NullContent {
			want = nil
		}
		require.Equal(t, want, sent[0].(map[string]any)["content"])
		require.Contains(t, sent[0], "content")
		for _, i := range []int{1, 3} {
			require.Equal(t, map[string]any{"role": "tool", "tool_call_id": "c1", "content": "(no output)"}, sent[i])
		}
	}
}

// Fault 51: a message with neither content nor calls is left out, thinking alone included.
func TestEmptyMessagesAreNotSent(t *testing.T) {
	for _, compat := range []*Compat{PresetGeneric(), PresetDeepSeek(), PresetMistral()} {
		sent := sentTo(t, compat,
			user("one"),
			assistant(),
			assistant(""),
			assistant(thought("hm", "", `{"field":"reasoning_content"}`)),
			user(""),
			blocks(agentkernel.RoleUser, agentkernel.Image{}),
			agentkernel.Message{Role: "status", Content: []agentkernel.ContentBlock{agentkernel.TextBlock("x")}},
			user("two"),
		)
		require.Equal(t, []any{
			map[string]any{"role": "user", "content": "one"},
			map[string]any{"role": "user", "content": "two"},
		}, sent)
	}
	_, err := newModel(t, Config{}).encodeRequest(agentkernel.ModelRequest{Messages: []agentkernel.Message{assistant()}})
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
}

// Fault 60: the usage is asked for unless the switch says no.
func TestStreamOptionsIsASwitch(t *testing.T) {
	req := agentkernel.ModelRequest{Messages: []agentkernel.Message{user("hi")}}
	require.Equal(t, map[string]any{"include_usage": true}, decoded(t, Config{Compat: &Compat{}}, req)["stream_options"])
	require.NotContains(t, decoded(t, Config{Compat: &Compat{NoStreamOptions: true}}, req), "stream_options")
}

func TestTextsOfOneMessage(t *testing.T) {
	sent := sentTo(t, PresetGeneric(),
		blocks(agentkernel.RoleUser, "a", "b"),
		assistant("a", toolCall("c1", "f", "{}"), "b"),
		toolResult("c1", "f", "a", "b"),
	)
	contents := make([]any, len(sent))
	for i, m := range sent {
		contents[i] = m.(map[string]any)["content"]
	}
	require.Equal(t, []any{"a\nb", "ab", "a\nb"}, contents)
}

func TestExtraBodyWins(t *testing.T) {
	cfg := everyParameter()
	cfg.Compat = &Compat{Omit: []string{"user", "service_tier"}}
	cfg.ExtraBody = map[string]any{"temperature": 1.5, "stop": nil, "service_tier": "flex", "tools": []any{}}
	body := decoded(t, cfg, conversationWithTools())
	require.Equal(t, 1.5, body["temperature"])
	require.Contains(t, body, "stop")
	require.Nil(t, body["stop"])
	require.Equal(t, "flex", body["service_tier"], "what is omitted may still be extra")
	require.Equal(t, []any{}, body["tools"])
	require.NotContains(t, body, "user")
}

func TestNoToolParametersWithoutTools(t *testing.T) {
	body := decoded(t, everyParameter(), agentkernel.ModelRequest{Messages: []agentkernel.Message{user("hi")}})
	for _, name := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
		require.NotContains(t, body, name)
	}
}

func TestToolChoice(t *testing.T) {
	for choice, want := range map[string]any{
		"auto": "auto", "none": "none", "required": "required", "": nil,
		"clock": map[string]any{"type": "function", "function": map[string]any{"name": "clock"}},
	} {
		require.Equal(t, want, decoded(t, Config{ToolChoice: choice}, conversationWithTools())["tool_choice"], "%q", choice)
	}
	_, err := newModel(t, Config{ToolChoice: "nope"}).encodeRequest(conversationWithTools())
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	require.ErrorContains(t, err, "ToolChoice")
}

func TestSchemaOfATool(t *testing.T) {
	for schema, want := range map[string]string{
		``:                  `{"type":"object","properties":{}}`,
		`{}`:                `{"type":"object","properties":{}}`,
		`{"type":"object"}`: `{"type":"object","properties":{}}`,
		"{\"type\":\"object\",\"additionalProperties\":false}\n": `{"type":"object","additionalProperties":false,"properties":{}}`,
		`{"type":"object","properties":{"a":{}}}`:                `{"type":"object","properties":{"a":{}}}`,
		`{"anyOf":[{"type":"object"}]}`:                          `{"anyOf":[{"type":"object"}]}`,
	} {
		require.Equal(t, want, string(parameters(json.RawMessage(schema))), "%s", schema)
	}
}

func TestStrictTool(t *testing.T) {
	strict := clock
	strict.Strict = true
	req := agentkernel.ModelRequest{Messages: []agentkernel.Message{user("hi")}, Tools: []agentkernel.ToolSpec{strict, clock}}
	for _, noStrict := range []bool{false, true} {
		function := map[string]any{"name": "clock", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}
		loose := map[string]any{"type": "function", "function": maps.Clone(function)}
		if !noStrict {
			function["strict"] = true
		}
		require.Equal(t, []any{map[string]any{"type": "function", "function": function}, loose},
			decoded(t, Config{Compat: &Compat{NoStrict: noStrict}}, req)["tools"])
	}
}

func TestResponseFormats(t *testing.T) {
	for want, format := range map[string]*ResponseFormat{
		`{"type":"text"}`:        {Type: FormatText},
		`{"type":"json_object"}`: {Type: FormatJSONObject},
		`{"type":"json_schema","json_schema":{"name":"n","description":"d","schema":{"type":"object"},"strict":true}}`: {
			Type: FormatJSONSchema, Name: "n", Description: "d", Schema: map[string]any{"type": "object"}, Strict: true,
		},
	} {
		body := decoded(t, Config{ResponseFormat: format}, conversationWithTools())
		got, err := json.Marshal(body["response_format"])
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}

// What goes over the wire is the encoded body, with the headers and the query of the Config.
func TestStreamSendsTheEncodedBody(t *testing.T) {
	var asked *http.Request
	var body []byte
	address := serveModels(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	cfg := Config{Model: "gpt-5", APIKey: "k-1", BaseURL: address + "/v1?key=q", Header: http.Header{"X-Title": {"t"}}, MaxTokens: 9}
	cfg.Temperature = new(0.2) // which the client's own check would refuse for this model
	m := newModel(t, cfg)
	for _, err := range m.Stream(t.Context(), conversationWithTools()) {
		require.NoError(t, err)
	}
	require.Equal(t, string(encoded(t, cfg, conversationWithTools())), string(body))
	require.Equal(t, int64(len(body)), asked.ContentLength)
	require.Equal(t, "/v1/chat/completions?key=q", asked.URL.String())
	require.Equal(t, "Bearer k-1", asked.Header.Get("Authorization"))
	require.Equal(t, "t", asked.Header.Get("X-Title"))
	require.Equal(t, "application/json", asked.Header.Get("Content-Type"))
}

// The body of a turn is the beginning of the next turn's, up to the end of its messages.
func TestBodiesShareTheirPrefix(t *testing.T) {
	for _, compat := range allPresets() {
		req := conversationWithTools()
		req.Messages = append(req.Messages,
			assistant(toolCall("call_3", "shot", `{}`)),
			toolResult("call_3", "shot", agentkernel.Image{Data: onePixel}),
			assistant("A dot."), user("Right."))
		last := ""
		for n := 1; n <= len(req.Messages); n++ {
			part := req
			part.Messages = req.Messages[:n]
			part.System = "Be terse.\n\nThe manual."
			part.SystemBlocks = []agentkernel.SystemBlock{{Text: "Be terse."}, {Text: "The manual.", Cache: true}}
			part.ThinkingLevel, part.CacheKey = agentkernel.ThinkingMedium, "key"
			part.CacheBreakpoints = []int{0, 2}
			body := string(encoded(t, Config{Compat: compat}, part))
			require.Equal(t, body, string(encoded(t, Config{Compat: compat}, part)), "%s is not stable", compat.Name)
			require.True(t, strings.HasPrefix(body, last), "%s, message %d:\n%s\n%s", compat.Name, n, last, body)
			last = strings.TrimSuffix(body, "]}")
		}
	}
}

// TestAnswersOfAgentsAreSent on lines of their own, each below the agent's name.
func TestAnswersOfAgentsAreSent(t *testing.T) {
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Agents: []agentkernel.SubAgent{
		{Name: "a", Description: "a", Config: agentkernel.Config{Model: agenttest.Script(agenttest.Text("free."))}},
		{Name: "b", Description: "b", Config: agentkernel.Config{Model: agenttest.Script(agenttest.Text("never"))}}}})
	require.NoError(t, err)
	result, err := ask.Execute(t.Context(), json.RawMessage(`{"mode":"parallel","tasks":[{"agent":"a","prompt":"x"},{"agent":"b","prompt":"y"}]}`))
	require.NoError(t, err)
	m := agentkernel.Message{Role: agentkernel.RoleTool, ToolCallID: "c1", ToolName: "ask", Content: result.Content}
	require.Equal(t, "[1] a:\nfree.\n[2] b:\nnever", m.TextContent())
	sent := sentTo(t, PresetGeneric(), assistant(toolCall("c1", "ask", "{}")), m)
	require.Equal(t, "[1] a:\nfree.\n\n[2] b:\nnever", sent[1].(map[string]any)["content"])
}
