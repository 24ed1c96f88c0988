package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func compile(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(schema))
	require.NoError(t, err)
	return s
}

func said(violations []Violation) []string {
	var lines []string
	for _, v := range violations {
		lines = append(lines, v.String())
	}
	return lines
}

func TestWhatIsSaid(t *testing.T) {
	tests := []struct{ name, schema, args, want string }{
		{"valid", `{"type":"object"}`, `{"a":1}`, ``},
		{"all at once", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","minimum":3}},"required":["a","c"],"additionalProperties":false}`,
			`{"a":1,"b":2,"d":null}`,
			`/c: expected a value, which is required, got nothing (add "c")
			/a: expected a string, got number 1 (put it in quotes)
			/b: expected a number of at least 3, got number 2
			/d: expected one of the properties "a", "b", got an unknown property (leave it out)`},
		{"double encoded object", `{"properties":{"o":{"type":"object"}}}`, `{"o":"{\"x\":1}"}`,
			`/o: expected an object, got string "{\"x\":1}" (it is JSON inside a string; send the object itself)`},
		{"double encoded array", `{"properties":{"o":{"type":["null","array"]}}}`, `{"o":"[1]"}`,
			`/o: expected an array or null, got string "[1]" (it is JSON inside a string; send the array itself)`},
		{"number as string", `{"properties":{"n":{"type":"integer"},"f":{"type":"number"}}}`, `{"n":"42","f":"1.5"}`,
			`/f: expected a number, got string "1.5" (send the number without quotes)
			/n: expected an integer, got string "42" (send the number without quotes)`},
		{"fraction", `{"properties":{"n":{"type":"integer"}}}`, `{"n":1.5}`,
			`/n: expected an integer, got number 1.5 (send a whole number)`},
		{"bool as string", `{"properties":{"b":{"type":"boolean"}}}`, `{"b":"True"}`,
			`/b: expected a boolean, got string "True" (send true without quotes)`},
		{"null for an optional member", `{"properties":{"b":{"type":"boolean"}}}`, `{"b":null}`,
			`/b: expected a boolean, got null (leave it out instead of null)`},
		{"null for a required member", `{"properties":{"b":{"type":"boolean"}},"required":["b"]}`, `{"b":null}`,
			`/b: expected a boolean, got null`},
		{"near miss", `{"properties":{"file_path":{"type":"string"}},"required":["file_path"],"additionalProperties":false}`, `{"filePath":"x"}`,
			`/file_path: expected a string, which is required, got nothing (add "file_path")
			/filePath: expected one of the properties "file_path", got an unknown property (did you mean "file_path"?)`},
		{"near miss in an open object", `{"properties":{"path":{"type":"string"}},"required":["path"]}`, `{"paht":"x"}`,
			`/path: expected a string, which is required, got nothing (add "path"; is it what "paht" stands for?)`},
		{"no properties at all", `{"type":"object","additionalProperties":false}`, `{"a":1}`,
			`/a: expected no properties here, got an unknown property (leave it out)`},
		{"scalar for an array", `{"properties":{"l":{"type":"array"}}}`, `{"l":"a"}`,
			`/l: expected an array, got string "a" (put it in an array)`},
		{"object for an array", `{"properties":{"l":{"type":"array"}}}`, `{"l":{"a":1}}`,
			`/l: expected an array, got object {"a":1} (put it in an array)`},
		{"enum", `{"properties":{"u":{"enum":["celsius","fahrenheit",3]}}}`, `{"u":"Celsius"}`,
			`/u: expected one of "celsius", "fahrenheit", 3, got string "Celsius" (did you mean "celsius"?)`},
		{"enum in quotes", `{"properties":{"u":{"enum":[1,2]},"v":{"enum":["1"]}}}`, `{"u":"2","v":1}`,
			`/u: expected one of 1, 2, got string "2" (send 2 without quotes)
			/v: expected one of "1", got number 1 (put it in quotes)`},
		{"const", `{"properties":{"u":{"const":null}}}`, `{"u":1}`, `/u: expected exactly null, got number 1`},
		{"items", `{"properties":{"l":{"items":{"type":"string","maxLength":1}}}}`, `{"l":["a","bc",3]}`,
			`/l/1: expected a string of at most 1 character, got string "bc"
			/l/2: expected a string, got number 3 (put it in quotes)`},
		{"prefix items", `{"properties":{"l":{"prefixItems":[{"type":"string"}],"items":false}}}`, `{"l":[1,2]}`,
			`/l/0: expected a string, got number 1 (put it in quotes)
			/l/1: expected nothing here, got number 2 (leave it out)`},
		{"pattern properties", `{"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, `{"x1":"a","y":1}`,
			`/x1: expected an integer, got string "a"
			/y: expected a string, got number 1 (put it in quotes)`},
		{"references", `{"$ref":"#/$defs/In","$defs":{"In":{"type":"object","properties":{"p/q":{"$ref":"#p"}}},"P":{"$anchor":"p","type":"string"}}}`, `{"p/q":[]}`,
			`/p~1q: expected a string, got array []`},
		{"embedded resource", `{"$id":"http://x.test/root","properties":{"a":{"$ref":"item#/$defs/s"}},"$defs":{"i":{"$id":"item","$defs":{"s":{"type":"string"}}}}}`, `{"a":1}`,
			`/a: expected a string, got number 1 (put it in quotes)`},
		{"recursion", `{"properties":{"v":{"type":"integer"},"next":{"$ref":"#"}}}`, `{"next":{"next":{"v":"x"}}}`,
			`/next/next/v: expected an integer, got string "x"`},
		{"all of", `{"allOf":[{"properties":{"a":{"type":"string"}}},{"required":["b"]}]}`, `{"a":1}`,
			`/a: expected a string, got number 1 (put it in quotes)
			/b: expected a value, which is required, got nothing (add "b")`},
		{"nullable object", `{"properties":{"o":{"anyOf":[{"$ref":"#/$defs/o"},{"type":"null"}]}},"$defs":{"o":{"type":"object","properties":{"x":{"type":"integer"}}}}}`, `{"o":{"x":"1"}}`,
			`/o/x: expected an integer, got string "1" (send the number without quotes)`},
		{"any of types", `{"properties":{"o":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"o":"7"}`,
			`/o: expected an integer or null, got string "7" (send the number without quotes)`},
		{"tagged union", `{"properties":{"o":{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}}}`, `{"o":{"k":"a","n":"x"}}`,
			`/o/n: expected an integer, got string "x"`},
		{"no branch", `{"properties":{"o":{"anyOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]}}}`, `{"o":{}}`,
			`/o: expected a value that fits one of an object with "a"; an object with "b", got object {}`},
		{"two branches", `{"properties":{"o":{"oneOf":[{"type":"integer"},{"type":"number"}]}}}`, `{"o":1}`,
			`/o: expected a value that fits exactly one of an integer; a number, got number 1 (it fits more than one)`},
		{"condition", `{"if":{"properties":{"k":{"const":1}}},"then":{"required":["a"]},"else":{"required":["b"]}}`, `{"k":1}`,
			`/a: expected a value, which is required, got nothing (add "a")`},
		{"dependent", `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"required":["c"]}}}`, `{"a":1}`,
			`(root): expected an object that with "a" also has "b", got object {"a":1}
			/c: expected a value, which is required, got nothing (add "c")`},
		{"not", `{"not":{"required":["a"]}}`, `{"a":1}`,
			`(root): expected a value that the schema does not exclude, got object {"a":1}`},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`,
			`(root): expected no items or properties beyond those that the schema names, got object {"a":1,"b":2}`},
		{"counts", `{"minProperties":2,"properties":{"l":{"minItems":1,"uniqueItems":true,"contains":{"type":"string"}}}}`, `{"l":[1,1]}`,
			`(root): expected an object with at least 2 properties, got object {"l":[1,1]}
			/l: expected an array without equal items, got array [1,1]
			/l: expected an array with the right number of items like {"type":"string"}, got array [1,1]`},
		{"strings", `{"properties":{"s":{"minLength":3,"pattern":"^b"}}}`, `{"s":"a"}`,
			`/s: expected a string of at least 3 characters, got string "a"
			/s: expected a string that matches ^b, got string "a"`},
		{"property names", `{"propertyNames":{"maxLength":1}}`, `{"ab":1}`,
			`(root): expected an object whose property names fit {"maxLength":1}, got object {"ab":1}`},
		{"twice", `{}`, `{"a":{"b":1,"b":2}}`, `/a/b: expected one value, got the property twice (send each property once)`},
		{"dynamic reference", `{"$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"},"v":{"type":"string"}}}`, `{"c":{"v":1}}`,
			`(root): expected arguments that fit the schema, got object {"c":{"v":1}} (type: 1 has type "integer", want "string")`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s","minLength":9},"l":{"items":[{"type":"string"}],"additionalItems":false}},"dependencies":{"a":["b"]}}`, `{"a":1,"l":[1,2]}`,
			`(root): expected an object that with "a" also has "b", got object {"a":1,"l":[1,2]}
			/a: expected a string, got number 1 (put it in quotes)
			/l/0: expected a string, got number 1 (put it in quotes)
			/l/1: expected nothing here, got number 2 (leave it out)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for line := range strings.Lines(tt.want) {
				want = append(want, strings.TrimSpace(line))
			}
			require.Equal(t, want, said(compile(t, tt.schema).Check(json.RawMessage(tt.args))))
		})
	}
}

func TestBigNumbersAreNotFalselyRefused(t *testing.T) {
	const past = "9007199254740993" // 2^53+1, which no float is
	tests := []struct {
		schema, value string
		valid         bool
	}{
		{`{"type":"integer"}`, past, true},
		{`{"type":"integer"}`, "123456789012345678901234567890", true},
		{`{"type":"integer"}`, "1.0", true},
		{`{"type":"number"}`, "1e999", true},
		{`{"enum":[` + past + `]}`, past, true},
		{`{"enum":[` + past + `]}`, "9007199254740992", false},
		{`{"const":` + past + `}`, past, true},
		{`{"const":[{"a":` + past + `}]}`, `[{"a":` + past + `}]`, true},
		{`{"maximum":` + past + `}`, past, true},
		{`{"minimum":-` + past + `}`, "-" + past, true},
		{`{"maximum":9223372036854775807}`, "9223372036854775807", true},
		{`{"maximum":18446744073709551615}`, "18446744073709551615", true},
		{`{"uniqueItems":true}`, "[9007199254740992," + past + "]", true},
	}
	for _, tt := range tests {
		s := compile(t, `{"properties":{"n":`+tt.schema+`}}`)
		got := s.Check(json.RawMessage(`{"n":` + tt.value + `}`))
		require.Equal(t, tt.valid, got == nil, "%s under %s: %v", tt.value, tt.schema, got)
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct {
		schema any
		want   string
	}{
		{json.RawMessage(`[]`), "a schema is a JSON object, not []"},
		{json.RawMessage(`true`), "a schema is a JSON object, not true"},
		{json.RawMessage(nil), "a schema is a JSON object, not null"},
		{(*jsonschema.Schema)(nil), "a schema is a JSON object, not null"},
		{[]byte(`{`), "unexpected end of JSON input"},
		{[]byte{}, "unexpected end of JSON input"},
		{make(chan int), "json: unsupported type: chan int"},
		{map[string]any{"type": "array"}, `the root type is "array", not "object"`},
		{json.RawMessage(`{"type":["object","null"]}`), `the root type is "object" or "null", not "object"`},
		{json.RawMessage(`{"type":5}`), `invalid value for "type": "5"`},
		{json.RawMessage(`{"properties":{"a":{"type":"strnig"}}}`), `unknown type "strnig" at #/properties/a`},
		{json.RawMessage(`{"required":"a"}`), `keyword "required": a JSON string makes no sense here`},
		{json.RawMessage(`{"properties":[]}`), `keyword "properties": a JSON array makes no sense here`},
		{json.RawMessage(`{"properties":{"a":null}}`), `schema at /properties/a is nil`},
		{json.RawMessage(`{"$ref":"#/$defs/x"}`), `no key "x" in map`},
		{json.RawMessage(`{"$ref":"http://x.test/y"}`), `no loader`},
		{json.RawMessage(`{"$schema":"http://json-schema.org/draft-04/schema#"}`), `the dialect "http://json-schema.org/draft-04/schema#" is not supported`},
		{json.RawMessage(`{"properties":{"a":{"pattern":"("}}}`), `missing closing )`},
		{json.RawMessage(`{"$ref":"#"}`), `# refers to itself for the same value`},
		{json.RawMessage(`{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"}]}}}`), `#/properties/a refers to itself for the same value`},
		{json.RawMessage(`{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`), `# refers to itself for the same value`},
	}
	for _, tt := range tests {
		_, err := Compile(tt.schema)
		require.ErrorContains(t, err, tt.want, "%s", tt.schema)
	}
}

func TestJSONIsCompactAndInOrder(t *testing.T) {
	for _, tt := range []struct {
		schema any
		want   string
	}{
		{nil, `{"type":"object"}`},
		{[]byte("{ \"z\": 1,\n \"a\": 2 }"), `{"z":1,"a":2}`},
		{map[string]any{"type": "object"}, `{"type":"object"}`},
		{&jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {}, "b": {}}, PropertyOrder: []string{"b", "a"}},
			`{"type":"object","properties":{"b":true,"a":true}}`},
	} {
		s, err := Compile(tt.schema)
		require.NoError(t, err)
		require.Equal(t, tt.want, string(s.JSON()))
	}
}

func TestManyViolationsAreCounted(t *testing.T) {
	s := compile(t, `{"additionalProperties":{"items":{"type":"string"}}}`)
	got := s.Check(json.RawMessage(`{"a":[` + strings.Repeat("1,", 29) + `1]}`))
	require.Len(t, got, MaxViolations+1)
	require.Equal(t, "and 10 more", got[MaxViolations].String())
	got = s.Check(json.RawMessage(`{"a":[` + strings.Repeat("1,", 5000) + `1]}`))
	require.Equal(t, "and at least 980 more", got[MaxViolations].String())
}

func TestExcerptsAreShortAndWhole(t *testing.T) {
	long := strings.Repeat("ä€", 1000)
	s := compile(t, `{"additionalProperties":{"type":"object","additionalProperties":{"type":"integer"}}}`)
	for _, args := range []string{
		`{"a":{"` + long + `":"` + long + `"}}`,
		`{"a":"x` + long + `"}`, `{"a":["` + long + `",{"` + long + `":1}]}`,
	} {
		for _, v := range s.Check(json.RawMessage(args)) {
			require.LessOrEqual(t, len(v.Got), maxGot)
			require.LessOrEqual(t, len(v.Path), maxPath)
			require.True(t, utf8.ValidString(v.String()), v.String())
		}
	}
}

// hostile are arguments of about mega bytes, or deep, under schemas that make much of them.
func hostile(mega int) map[string][2]string {
	nest := func(open, inner, close string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
	}
	anyJSON := `{"$defs":{"v":{"anyOf":[{"type":"null"},{"type":"string","maxLength":10},{"type":"number"},{"type":"array","items":{"$ref":"#/$defs/v"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/v"}}]}},"additionalProperties":{"$ref":"#/$defs/v"}}`
	list := `{"properties":{"a":{"$ref":"#"},"v":{"type":"string"}}}`
	twin := `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}],"properties":{"v":{"type":"string"}}}`
	return map[string][2]string{
		"deep under any object":    {`{"type":"object"}`, nest(`{"a":`, "1", "}", 9000)},
		"deep and valid":           {list, nest(`{"a":`, "{}", "}", 9000)},
		"deep and invalid":         {list, nest(`{"a":`, `{"v":1}`, "}", 9000)},
		"1,000 deep and invalid":   {list, nest(`{"a":`, `{"v":1}`, "}", 1000)},
		"deep under any JSON":      {anyJSON, `{"a":` + nest("[", "true", "]", 9000) + `}`},
		"some under any JSON":      {anyJSON, `{"a":` + nest("[", "true", "]", min(mega>>11, 500)) + `}`},
		"more under any JSON":      {anyJSON, `{"a":` + nest("[", "true", "]", min(mega>>8, 1200)) + `}`},
		"deep around a long text":  {anyJSON, `{"a":` + nest("[", `"`+strings.Repeat("x", mega)+`"`, "]", min(mega>>9, 1000)) + `}`},
		"doubling with the depth":  {twin, nest(`{"a":`, `{"v":1}`, "}", 60)},
		"doubling a little":        {twin, nest(`{"a":`, `{"v":1}`, "}", 16)},
		"megabytes of numbers":     {`{"properties":{"a":{"items":{"type":"integer","minimum":0}}}}`, `{"a":[` + strings.Repeat("1,", mega/2) + `1]}`},
		"megabytes of wrong texts": {`{"properties":{"a":{"items":{"type":"string"}}}}`, `{"a":[` + strings.Repeat(`"somewhat longer",`, mega/18) + `1]}`},
		"megabytes of any JSON":    {anyJSON, `{"a":[` + strings.Repeat("1,", mega/2) + `true]}`},
		"megabytes of one text":    {`{"properties":{"a":{"type":"integer"}}}`, `{"a":"` + strings.Repeat("ä", mega/2) + `"}`},
		"megabytes of names":       {`{"additionalProperties":false}`, `{` + names(mega/16) + `}`},
	}
}

func names(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"name%d":1`, i)
	}
	return b.String()
}

// TestHostileArgumentsAreCheckedInTime: the work does not grow beyond measure with the size
// or the depth. SCHEMA_HOSTILE=1 checks arguments of 10 MB instead of 8 KB.
func TestHostileArgumentsAreCheckedInTime(t *testing.T) {
	size := 8 << 10
	if os.Getenv("SCHEMA_HOSTILE") != "" {
		size = 10 << 20
	}
	for name, tt := range hostile(size) {
		t.Run(name, func(t *testing.T) {
			s := compile(t, tt[0])
			began := time.Now()
			got := s.Check(json.RawMessage(tt[1]))
			took := time.Since(began)
			t.Logf("%v, %d violations", took.Round(time.Millisecond), len(got))
			if len(got) > 0 {
				t.Log(got[0])
			}
			require.Less(t, took, time.Minute) // not a matter of the exact number: the unbounded work is hours
			for _, v := range got {
				require.Less(t, len(v.String()), 1000)
			}
		})
	}
}

func TestChecksMayRunAtOnce(t *testing.T) {
	s := compile(t, `{"properties":{"a":{"anyOf":[{"type":"string"},{"$ref":"#"}]}},"required":["b"]}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { s.Check(json.RawMessage(`{"a":{"a":5}}`)) })
	}
	wg.Wait()
}
