package openai

import (
	"encoding/json"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// tool writes spec as a function that the model may call.
func (w *jsonWriter) tool(spec agentkernel.ToolSpec, strict bool) {
	w.open('{')
	w.member("type", "function")
	w.key("function")
	w.open('{')
	w.member("name", spec.Name)
	if spec.Description != "" {
		w.member("description", spec.Description)
	}
	w.member("parameters", parameters(spec.Schema))
	if strict {
		w.member("strict", true)
	}
	w.close('}')
	w.close('}')
}

// parameters returns a tool's schema with what servers demand of an object: that it says it
// is one, and that it has properties, be it none.
func parameters(schema json.RawMessage) json.RawMessage {
	members := objectOf(schema)
	if len(members) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if _, has := members["properties"]; has || string(members["type"]) != `"object"` {
		return schema
	}
	end := len(schema) - 1
	for schema[end] != '}' {
		end--
	}
	return slices.Concat(schema[:end], json.RawMessage(`,"properties":{}}`))
}

// toolChoice returns the choice as the endpoint reads it. A name must be that of a tool.
func toolChoice(choice string, tools []agentkernel.ToolSpec) (any, error) {
	switch choice {
	case "auto", "none", "required":
		return choice, nil
	}
	if !slices.ContainsFunc(tools, func(t agentkernel.ToolSpec) bool { return t.Name == choice }) {
		return nil, badField("ToolChoice", "no tool of the request is named %q", choice)
	}
	type function struct {
		Name string `json:"name"`
	}
	return struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{choice}}, nil
}
