package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

type unit string

func (unit) Enum() []any { return []any{unit("celsius"), "fahrenheit"} }

type level int

func (*level) Enum() []any { return []any{1, 2} }

// schemaOf returns the schema of a tool whose arguments are In.
func schemaOf[In any](t *testing.T) string {
	t.Helper()
	tool, err := agentkernel.NewTool("t", "", func(context.Context, In) (string, error) { return "", nil })
	require.NoError(t, err)
	require.IsType(t, &jsonschema.Schema{}, tool.Schema)
	raw, err := json.Marshal(tool.Schema)
	require.NoError(t, err)
	return string(raw)
}

func TestNewToolInfersTheSchema(t *testing.T) {
	type place struct {
		City string `json:"city" jsonschema:"the city's name"`
		Zip  string `json:"zip,omitempty"`
	}
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["city"],
		"properties":{"city":{"type":"string","description":"the city's name"},"zip":{"type":"string"}}}`,
		schemaOf[place](t))
	require.Equal(t, `{"type":"object","properties":{},"additionalProperties":false}`, schemaOf[struct{}](t))
	require.JSONEq(t, `{"type":"object","additionalProperties":{"type":"integer"}}`, schemaOf[map[string]int](t))

	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["at","addr","data","raw"],
		"properties":{"at":{"type":"string"},"addr":{"type":"string"},"raw":true,"any":true,
			"data":{"type":["null","string"],"contentEncoding":"base64"}}}`,
		schemaOf[struct {
			At   time.Time       `json:"at"`
			Addr netip.Addr      `json:"addr"`
			Data []byte          `json:"data"`
			Raw  json.RawMessage `json:"raw"`
			Any  any             `json:"any,omitzero"`
		}](t))
}

func TestNewToolMakesEnumsOfTypes(t *testing.T) {
	type nested struct {
		U unit `json:"u"`
	}
	enum := `"enum":["celsius","fahrenheit"]`
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["one","many","by","p","in","l"],"properties":{
		"one":{"type":"string",`+enum+`},
		"many":{"type":["null","array"],"items":{"type":"string",`+enum+`}},
		"by":{"type":"object","additionalProperties":{"type":"string",`+enum+`}},
		"p":{"type":["null","string"],"enum":["celsius","fahrenheit",null]},
		"in":{"type":["null","object"],"additionalProperties":false,"required":["u"],"properties":{"u":{"type":"string",`+enum+`}}},
		"l":{"type":"integer","enum":[1,2]}}}`,
		schemaOf[struct {
			One  unit            `json:"one"`
			Many []unit          `json:"many"`
			By   map[string]unit `json:"by"`
			P    *unit           `json:"p"`
			In   *nested         `json:"in"`
			L    level           `json:"l"`
		}](t))
}

type (
	cyclic     struct{ Next *cyclic }
	emptyEnum  string
	wrongEnum  int
	panicking  string
	embeddable struct{ A int }
)

func (emptyEnum) Enum() []any { return nil }
func (wrongEnum) Enum() []any { return []any{"x"} }
func (panicking) Enum() []any { panic("oh") }

func refusal[In any]() error {
	_, err := agentkernel.NewTool("look", "", func(context.Context, In) (string, error) { return "", nil })
	return err
}

func TestNewToolNamesTheToolThatItRefuses(t *testing.T) {
	_, err := agentkernel.NewTool("", "", func(context.Context, struct{}) (string, error) { return "", nil })
	require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
	require.ErrorContains(t, err, "needs a name")
	_, err = agentkernel.NewTool[struct{}, string]("look", "", nil)
	require.ErrorContains(t, err, `tool "look" has no function`)

	for _, tt := range []struct {
		err  error
		want string
	}{
		{refusal[cyclic](), "cycle"},
		{refusal[struct{ C chan int }](), "chan int"},
		{refusal[struct{ F func() }](), "func()"},
		{refusal[struct{ R error }](), "interface with methods"},
		{refusal[struct{ R *json.RawMessage }](), "not a pointer"},
		{refusal[string](), "neither a struct nor a map"},
		{refusal[[]string](), "neither a struct nor a map"},
		{refusal[*struct{}](), "neither a struct nor a map"},
		{refusal[map[int]string](), "neither a struct nor a map"},
		{refusal[any](), "neither a struct nor a map"},
		{refusal[struct{ E emptyEnum }](), "emptyEnum.Enum returned no values"},
		{refusal[struct{ E []wrongEnum }](), "wrongEnum.Enum returned x"},
		{refusal[struct{ E panicking }](), "panicking.Enum panicked: oh"},
		{refusal[struct {
			N int `json:"n,string"`
		}](), `JSON option "string"`},
		{refusal[struct {
			embeddable `json:"base"`
		}](), "embedded and has a JSON name"},
		{refusal[struct {
			N int `jsonschema:"min=3"`
		}](), "WORD="},
	} {
		require.ErrorIs(t, tt.err, agentkernel.KindInvalidRequest)
		require.ErrorContains(t, tt.err, `schema of tool "look"`)
		require.ErrorContains(t, tt.err, tt.want)
	}
	require.Panics(t, func() {
		agentkernel.MustTool("", "", func(context.Context, struct{}) (string, error) { return "", nil })
	})
}

func TestTypedToolDecodesItsArguments(t *testing.T) {
	type in struct {
		N    int                 `json:"n"`
		Deep []struct{ U uint8 } `json:"deep"`
	}
	tool := agentkernel.MustTool("t", "", func(_ context.Context, in in) (string, error) { return fmt.Sprint(in), nil })
	for _, tt := range []struct {
		args, want string
		isError    bool
	}{
		{`{"n":3,"deep":[{"U":1}]}`, "{3 [{1}]}", false},
		{``, "{0 []}", false},
		{`{"n":1.0}`, `The call was not run: in the argument "n", at byte 8, the JSON number 1.0 cannot be read as Go's int.`, true},
		{`{"n":1,"deep":[{"U":300}]}`, `The call was not run: in the argument "deep.U", at byte 23, the JSON number 300 cannot be read as Go's uint8.`, true},
		{`{"n":`, "The call was not run: the arguments cannot be read: unexpected end of JSON input.", true},
	} {
		result, err := tool.Execute(t.Context(), json.RawMessage(tt.args))
		require.NoError(t, err)
		require.Equal(t, tt.isError, result.IsError)
		require.Equal(t, tt.want, result.Content[0].Text)
	}
}

// run executes a tool that returns out.
func run[Out any](t *testing.T, out Out, fail error) (agentkernel.ToolResult, error) {
	t.Helper()
	return agentkernel.MustTool("t", "", func(context.Context, struct{}) (Out, error) { return out, fail }).
		Execute(t.Context(), json.RawMessage(`{}`))
}

func TestTypedToolResults(t *testing.T) {
	ok := func(r agentkernel.ToolResult, err error) agentkernel.ToolResult {
		t.Helper()
		require.NoError(t, err)
		return r
	}
	jsonResult := func(s string) agentkernel.ToolResult { return agentkernel.ToolResult{JSON: json.RawMessage(s)} }
	whole := agentkernel.ToolResult{JSON: json.RawMessage(`1`), Details: 2, Terminate: true}
	block := agentkernel.ContentBlock{Type: agentkernel.ContentImage, Image: &agentkernel.Image{URL: "u"}}

	require.Equal(t, whole, ok(run(t, whole, nil)))
	require.Equal(t, agentkernel.TextResult("hi"), ok(run(t, "hi", nil)))
	require.Equal(t, agentkernel.TextResult("hi"), ok(run[any](t, "hi", nil)))
	require.Equal(t, agentkernel.ToolResult{Content: []agentkernel.ContentBlock{block}}, ok(run(t, block, nil)))
	require.Equal(t, agentkernel.ToolResult{Content: []agentkernel.ContentBlock{block}}, ok(run(t, []agentkernel.ContentBlock{block}, nil)))
	require.Equal(t, agentkernel.TextResult("ok"), ok(run(t, struct{}{}, nil)))
	require.Equal(t, jsonResult(`{"a":1}`), ok(run(t, json.RawMessage(`{ "a": 1 }`), nil)))
	require.Equal(t, jsonResult(`null`), ok(run(t, json.RawMessage(nil), nil)))
	require.Equal(t, jsonResult(`null`), ok(run[*int](t, nil, nil)))
	require.Equal(t, jsonResult(`null`), ok(run[any](t, nil, nil)))
	require.Equal(t, jsonResult(`[1]`), ok(run(t, []int{1}, nil)))

	_, err := run(t, make(chan int), nil)
	require.ErrorContains(t, err, "the tool's result is no JSON")
	_, err = run(t, json.RawMessage(`{`), nil)
	require.ErrorContains(t, err, "the tool's result is no JSON")

	fail := errors.New("no")
	got, err := run(t, "half", fail)
	require.Equal(t, fail, err)
	require.Equal(t, agentkernel.ToolResult{}, got)
	got, err = run(t, whole, fail)
	require.Equal(t, fail, err)
	require.Equal(t, whole, got)
}

// Unit is one of two values, which the model is told as an enum.
type Unit string

func (Unit) Enum() []any { return []any{"celsius", "fahrenheit"} }

func ExampleNewTool() {
	type query struct {
		City string `json:"city" jsonschema:"the city's name"`
		Unit Unit   `json:"unit,omitempty"`
	}
	type report struct {
		Degrees int `json:"degrees"`
	}
	weather, err := agentkernel.NewTool("weather", "Tells the weather in a city.",
		func(_ context.Context, q query) (report, error) {
			if q.City != "Kyiv" {
				return report{}, fmt.Errorf("no station in %s", q.City)
			}
			return report{Degrees: 21}, nil
		})
	if err != nil {
		panic(err)
	}
	schema, _ := json.Marshal(weather.Schema)
	fmt.Println(string(schema))
	result, err := weather.Execute(context.Background(), json.RawMessage(`{"city":"Kyiv"}`))
	fmt.Println(string(result.JSON), err)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"the city's name"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city"],"additionalProperties":false}
	// {"degrees":21} <nil>
}
