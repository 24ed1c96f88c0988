package openai

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// requestBody is a request's body while its fields are written.
type requestBody struct {
	*jsonWriter
	cfg *Config
}

// encodeRequest returns the whole body of the request: one JSON object, its messages last.
// The same request is the same bytes.
func (m *Model) encodeRequest(req agentkernel.ModelRequest) ([]byte, error) {
	cfg := &m.cfg
	messages := cfg.Compat.convert(req)
	if len(messages) == 0 {
		return nil, badRequest(errors.New("no message to send"))
	}
	wish, err := cfg.wish(req.ThinkingLevel)
	if err != nil {
		return nil, err
	}
	b := requestBody{newJSONWriter(), cfg}
	b.open('{')
	b.put("model", cfg.Model)
	b.put("stream", true)
	if !cfg.Compat.NoStreamOptions {
		b.put("stream_options", map[string]bool{"include_usage": true})
	}
	b.sampling(&req)
	b.thinking(wish)
	if err := b.tools(req.Tools); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.ExtraBody)) {
		b.member(name, cfg.ExtraBody[name])
	}
	if b.takes("messages") {
		b.messages(messages)
	}
	b.close('}')
	if b.err != nil {
		return nil, badRequest(b.err)
	}
	return b.buf.Bytes(), nil
}

func badRequest(err error) *agentkernel.Error {
	return &agentkernel.Error{Kind: agentkernel.KindInvalidRequest, Op: "openai request", Err: err}
}

// takes tells whether the field is ours to write: the endpoint takes it, and ExtraBody does
// not set it.
func (b requestBody) takes(name string) bool {
	_, extra := b.cfg.ExtraBody[name]
	return !extra && !slices.Contains(b.cfg.Compat.Omit, name)
}

// put writes a field that the endpoint takes.
func (b requestBody) put(name string, value any) {
	if b.takes(name) {
		b.member(name, value)
	}
}

// sampling writes what steers the answer. What the request asks for wins over the Config.
func (b requestBody) sampling(req *agentkernel.ModelRequest) {
	cfg := b.cfg
	if cfg.MaxTokens > 0 {
		b.put(cmp.Or(cfg.Compat.MaxTokensField, "max_tokens"), cfg.MaxTokens)
	}
	if t := cmp.Or(req.Temperature, cfg.Temperature); t != nil {
		b.put("temperature", *t)
	}
	if cfg.TopP != nil {
		b.put("top_p", *cfg.TopP)
	}
	if len(cfg.Stop) > 0 {
		b.put("stop", cfg.Stop)
	}
	if cfg.Seed != nil {
		b.put(cmp.Or(cfg.Compat.SeedField, "seed"), *cfg.Seed)
	}
	if cfg.ResponseFormat != nil {
		b.put("response_format", cfg.ResponseFormat.value())
	}
	if key := cmp.Or(req.CacheKey, cfg.PromptCacheKey); key != "" {
		b.put("prompt_cache_key", key)
	}
	if cfg.User != "" {
		b.put("user", cfg.User)
	}
}

// tools writes the tools, and what may be sent only with them.
func (b requestBody) tools(specs []agentkernel.ToolSpec) error {
	if len(specs) == 0 {
		return nil
	}
	if b.takes("tools") {
		b.key("tools")
		b.open('[')
		for _, spec := range specs {
			b.tool(spec, spec.Strict && !b.cfg.Compat.NoStrict)
		}
		b.close(']')
	}
	if b.cfg.ToolChoice != "" {
		choice, err := toolChoice(b.cfg.ToolChoice, specs)
		if err != nil {
			return err
		}
		b.put("tool_choice", choice)
	}
	if b.cfg.ParallelToolCalls != nil {
		b.put("parallel_tool_calls", *b.cfg.ParallelToolCalls)
	}
	return nil
}

func (b requestBody) messages(messages []sentMessage) {
	b.key("messages")
	b.open('[')
	for i := range messages {
		b.message(&messages[i], b.cfg.Compat)
	}
	b.close(']')
}
