package openai

import "encoding/json"

// The types of a [ResponseFormat].
const (
	FormatText       = "text"
	FormatJSONObject = "json_object"
	FormatJSONSchema = "json_schema"
)

// ResponseFormat is the form of the answer.
type ResponseFormat struct {
	// Type is FormatText, FormatJSONObject or FormatJSONSchema. Required.
	Type string
	// Name and Schema belong to FormatJSONSchema, which needs both. Schema is anything that
	// encoding/json turns into a JSON object.
	Name   string
	Schema any
	// Description tells the model what the format is for.
	Description string
	// Strict makes the endpoint hold the answer to the schema.
	Strict bool
}

// check says what makes no sense in f, which may be nil.
func (f *ResponseFormat) check() error {
	const name = "ResponseFormat"
	switch {
	case f == nil:
		return nil
	case f.Type == FormatText || f.Type == FormatJSONObject:
		if f.Name != "" || f.Schema != nil || f.Description != "" || f.Strict {
			return badField(name, "type %q takes no name, schema, description or strict", f.Type)
		}
		return nil
	case f.Type != FormatJSONSchema:
		return badField(name, "there is no type %q", f.Type)
	case f.Name == "":
		return badField(name, "a schema needs a name")
	}
	schema, err := json.Marshal(f.Schema)
	if err != nil {
		return badField(name, "schema: %w", err)
	}
	if objectOf(schema) == nil {
		return badField(name, "its schema is no JSON object")
	}
	return nil
}

// value returns f as the endpoint reads it.
func (f *ResponseFormat) value() any {
	type schema struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Schema      any    `json:"schema"`
		Strict      bool   `json:"strict,omitempty"`
	}
	out := struct {
		Type       string  `json:"type"`
		JSONSchema *schema `json:"json_schema,omitempty"`
	}{Type: f.Type}
	if f.Type == FormatJSONSchema {
		out.JSONSchema = &schema{f.Name, f.Description, f.Schema, f.Strict}
	}
	return out
}
