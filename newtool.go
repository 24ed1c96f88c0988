package agentkernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/agentkernel-go/agentkernel/internal/redact"
	"github.com/agentkernel-go/agentkernel/internal/schema"
)

// NewTool makes a Tool of a typed function. The schema of its arguments is inferred from
// In, a struct or a map with string keys:
//
//   - a field is a property under its JSON name, described by its tag `jsonschema:"text"`;
//   - it is required unless its JSON tag says omitempty or omitzero;
//   - a pointer and a slice may be null;
//   - a type with a method Enum is one of those values, see [Enumer];
//   - a type that reads itself from text (encoding.TextUnmarshaler) is a string, []byte is
//     a string in base64, json.RawMessage and any are any value;
//   - a type with an UnmarshalJSON of its own has the schema of its Go fields all the same;
//   - properties that no field stands for are refused.
//
// The tool's Schema is a *jsonschema.Schema of its own, which may be amended before first
// use. Execute reads the arguments into an In with encoding/json and calls fn. Arguments
// that do not go into In although the schema allows them, such as 1.0 for an int, are an
// error result that says the place; fn is not called then.
//
// What fn returns as Out becomes the result so:
//
//   - [ToolResult]: as it is, also beside an error;
//   - string: text;
//   - [ContentBlock], []ContentBlock: content;
//   - struct{}: the text "ok";
//   - anything else: JSON by encoding/json, as which a nil pointer is null. A value that
//     encoding/json refuses is an error of the tool.
//
// An error of fn is the tool's error, and its Out is dropped unless it is a ToolResult.
//
// NewTool itself fails, with an error that names the tool, where there is no name or fn, or
// where In has no schema: it is neither struct nor map, refers to itself, holds a channel,
// a function or an interface with methods, or has JSON tags that the schema cannot follow.
func NewTool[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) (Tool, error) {
	switch {
	case name == "":
		return Tool{}, invalid("new tool", "a tool needs a name")
	case fn == nil:
		return Tool{}, invalid("new tool", "tool %q has no function", name)
	}
	args, err := inferSchema(reflect.TypeFor[In]())
	if err == nil {
		_, err = schema.Compile(args)
	}
	if err != nil {
		return Tool{}, invalid("new tool", "schema of tool %q: %w", name, err)
	}
	return Tool{
		Name:        name,
		Description: description,
		Schema:      args,
		Execute: func(ctx context.Context, raw json.RawMessage) (ToolResult, error) {
			var in In
			if problem := decodeArgs(raw, &in); problem != "" {
				return unusable(problem), nil
			}
			out, err := fn(ctx, in)
			return resultOf(out, err)
		},
	}, nil
}

// MustTool is [NewTool] for tools that are written into the program: it panics where NewTool
// fails.
func MustTool[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) Tool {
	tool, err := NewTool(name, description, fn)
	if err != nil {
		panic(err)
	}
	return tool
}

// decodeArgs reads arguments into in, a pointer, or tells the model why it cannot.
func decodeArgs(raw json.RawMessage, in any) (problem string) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage(`{}`)
	}
	err := json.Unmarshal(raw, in)
	if err == nil {
		return ""
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		place := "the arguments"
		if wrong.Field != "" {
			place = fmt.Sprintf("the argument %q", wrong.Field)
		}
		return fmt.Sprintf("in %s, at byte %d, the JSON %s cannot be read as Go's %s.", place, wrong.Offset, wrong.Value, wrong.Type)
	}
	return fmt.Sprintf("the arguments cannot be read: %s.", redact.Text(err))
}

// resultOf turns what a typed function returned into a result.
func resultOf(out any, err error) (ToolResult, error) {
	if result, ok := out.(ToolResult); ok {
		return result, err
	}
	if err != nil {
		return ToolResult{}, err
	}
	switch out := out.(type) {
	case string:
		return TextResult(out), nil
	case ContentBlock:
		return ToolResult{Content: []ContentBlock{out}}, nil
	case []ContentBlock:
		return ToolResult{Content: out}, nil
	case struct{}:
		return TextResult("ok"), nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return ToolResult{}, fmt.Errorf("the tool's result is no JSON: %w", err)
	}
	return ToolResult{JSON: raw}, nil
}
