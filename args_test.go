package agentkernel_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// callOf is the call that a model makes whose argument text comes in pieces.
func callOf(t testing.TB, stop agentkernel.StopReason, pieces ...string) agentkernel.ToolCall {
	t.Helper()
	model := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: "1", Name: "t"}, nil)
			for _, piece := range pieces {
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: "1", Delta: piece}, nil)
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: stop}, nil)
		}
	})
	m, err := agentkernel.Generate(t.Context(), model, agentkernel.ModelRequest{})
	require.NoError(t, err)
	require.Len(t, m.ToolCalls(), 1)
	return m.ToolCalls()[0]
}

func TestArguments(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	for name, c := range map[string]struct {
		pieces []string
		want   string // "" for an error
		err    string
	}{
		"absent":                     {nil, `{}`, ""},
		"empty":                      {[]string{""}, `{}`, ""},
		"blank":                      {[]string{" \n", "\t"}, `{}`, ""},
		"null":                       {[]string{"null"}, `{}`, ""},
		"null twice":                 {[]string{"null", "null"}, `{}`, ""},
		"object":                     {[]string{`{"a":`, `1}`}, `{"a":1}`, ""},
		"spaces":                     {[]string{` { "a" : [ 1 , 2 ] } `}, `{"a":[1,2]}`, ""},
		"as encoding/json writes it": {[]string{`{"a":"<&>` + "\u2028" + `"}`}, `{"a":"\u003c\u0026\u003e\u2028"}`, ""},
		"order and numbers stay":     {[]string{`{"b":1.0,"a":12345678901234567890}`}, `{"b":1.0,"a":12345678901234567890}`, ""},
		"invalid UTF-8":              {[]string{"{\"a\":\"\xff\"}"}, "{\"a\":\"\uFFFD\"}", ""},
		"a rune in two":              {[]string{"{\"a\":\"\xc3", "\xbc\"}"}, `{"a":"ü"}`, ""},
		"placeholder":                {[]string{`{}`, `{"a"`, `:1}`}, `{"a":1}`, ""},
		"placeholder in one piece":   {[]string{`{}{"a":1}`}, `{"a":1}`, ""},
		"placeholder, then null":     {[]string{`{}`, `null`}, `{}`, ""},
		"placeholder only":           {[]string{`{}`}, `{}`, ""},
		"placeholder twice":          {[]string{`{}`, `{}`}, `{}`, ""},
		"sent twice":                 {[]string{`{"a":1}`, `{"a":1}`}, `{"a":1}`, ""},
		"sent thrice":                {[]string{`{"a":1}`, `{"a":1}`, `{"a":1}`}, `{"a":1}`, ""},
		"pieces, then the whole":     {[]string{`{"a"`, `:1}`, `{"a":1}`}, `{"a":1}`, ""},
		"cumulative":                 {[]string{`{"a"`, `{"a":1`, `{"a":1}`}, `{"a":1}`, ""},
		"cumulative behind a {}":     {[]string{`{}`, `{"a"`, `{"a":1}`}, `{"a":1}`, ""},
		"cumulative, in long pieces": {[]string{`{"a":"` + long, `{"a":"` + long + long, `{"a":"` + long + long + `"}`}, `{"a":"` + long + long + `"}`, ""},
		"long, behind a {}":          {[]string{`{}`, `{"a":"` + long, `{"a":"` + long + `"}`}, `{"a":"` + long + `"}`, ""},
		"two objects":                {[]string{`{"a":1}`, `{"b":2}`}, "", "no JSON"},
		"an array":                   {[]string{`[1]`}, "", "no object"},
		"a string":                   {[]string{`"{}"`}, "", "no object"},
		"a number":                   {[]string{`1`}, "", "no object"},
		"unfinished":                 {[]string{`{"a":`}, "", "offset 5 of 5"},
		"words":                      {[]string{`{"p": a}`}, "", "offset 7 of 8"},
		"trailing words":             {[]string{`{"a":1} ok`}, "", "no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			call := callOf(t, "", c.pieces...)
			if c.err == "" {
				require.Equal(t, c.want, string(call.Args))
				require.Empty(t, call.RawArgs)
				require.Empty(t, call.ArgsError)
				return
			}
			require.Equal(t, `{}`, string(call.Args))
			require.Equal(t, strings.Join(c.pieces, ""), call.RawArgs)
			require.Contains(t, call.ArgsError, c.err)
		})
	}
}

// TestArgumentsAtTheOutputLimit: only a complete object is not cut off.
func TestArgumentsAtTheOutputLimit(t *testing.T) {
	for args, whole := range map[string]bool{`{"a":1}`: true, `{}`: true, ``: false, ` `: false, `null`: false, `{"a"`: false, `[1]`: false, `{}{"a":1}`: false, `{"a":1}{"a":1}`: false} {
		call := callOf(t, agentkernel.StopReasonLength, args)
		require.Equal(t, whole, call.ArgsError == "", "%q", args)
		if !whole {
			require.Equal(t, args, call.RawArgs)
			require.Equal(t, `{}`, string(call.Args))
		}
	}
}

// hostile are argument texts that cost a careless reader quadratic time.
func hostile(n int) map[string][]string {
	piece := func(s string) []string { return []string{s} }
	return map[string][]string{
		"{} repeated":            piece(strings.Repeat("{}", n/2)),
		"open brackets":          piece(strings.Repeat("[", n)),
		"nested objects":         piece(strings.Repeat(`{"a":`, n/5)),
		"closed brackets":        piece(strings.Repeat("[", n/2) + strings.Repeat("]", n/2)),
		"an object repeated":     piece(strings.Repeat(`{"a":1}`, n/7)),
		"null repeated":          piece(strings.Repeat("null", n/4)),
		"blanks":                 piece(strings.Repeat(" ", n)),
		"quotes":                 piece(strings.Repeat(`"`, n)),
		"backslashes":            piece(`{"a":"` + strings.Repeat(`\`, n)),
		"one object, then words": piece(`{"a":1}` + strings.Repeat("x", n)),
		"pieces of {}":           strings.SplitAfter(strings.Repeat("{}", n/2), "}"),
		"pieces that almost repeat": func() []string {
			var out []string
			for range n / 100 {
				out = append(out, strings.Repeat("x", 100))
			}
			return out
		}(),
	}
}

// TestHostileArguments are read in linear time: 1 MiB of anything in a moment.
func TestHostileArguments(t *testing.T) {
	for name, pieces := range hostile(1 << 20) {
		began := time.Now()
		call := callOf(t, "", pieces...)
		require.Less(t, time.Since(began), 5*time.Second, name)
		require.True(t, json.Valid(call.Args), name)
		require.EqualValues(t, '{', call.Args[0], name)
	}
}

// FuzzArgs: whatever comes, Args is one valid, compacted JSON object, and what cannot be
// used stays to be read.
func FuzzArgs(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":1}`, `{}{"a":1}`, `{"a":1}{"a":1}`, "null", "[1]", `{"a"`, "{\"a\":\"\xff\"}", `nullnull`, `{}null`, `"\ud800"`} {
		f.Add(s, uint8(0), false)
		f.Add(s, uint8(2), true)
	}
	f.Fuzz(func(t *testing.T, raw string, cut uint8, length bool) {
		pieces := []string{raw}
		if n := int(cut); n < len(raw) {
			pieces = []string{raw[:n], raw[n:]}
		}
		stop := agentkernel.StopReasonToolUse
		if length {
			stop = agentkernel.StopReasonLength
		}
		call := callOf(t, stop, pieces...)
		again, err := json.Marshal(call.Args)
		require.NoError(t, err)
		require.Equal(t, string(again), string(call.Args), "compacted")
		var object map[string]any
		require.NoError(t, json.Unmarshal(call.Args, &object))
		require.NotNil(t, object)
		if call.ArgsError == "" {
			require.Empty(t, call.RawArgs)
		}
		if call.ArgsError != "" {
			require.Equal(t, readable(raw), readable(call.RawArgs))
			require.Equal(t, `{}`, string(call.Args))
		}
		wire, err := json.Marshal(call)
		require.NoError(t, err)
		var back agentkernel.ToolCall
		require.NoError(t, json.Unmarshal(wire, &back))
		require.Equal(t, call, back)
	})
}

// readable is s without what is not valid UTF-8, or stands for it.
func readable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\uFFFD", "")
}
