package openai

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestScannerReadsStrings(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`""`, ""},
		{`"plain"`, "plain"},
		{`"a\"b\\c\/d\b\f\n\r\t"`, "a\"b\\c/d\b\f\n\r\t"},
		{`"\u00e9\u4e16"`, "é世"},
		{`"\ud83d\ude80"`, "🚀"},
		{`"\ud83d"`, "\uFFFD"},
		{`"\ud83dx"`, "\uFFFDx"},
		{`"\ud83d\u0041"`, "\uFFFDA"},
		{`"\ude80\ud83d"`, "\uFFFD\uFFFD"},
		{`"杭州 🦀"`, "杭州 🦀"},
	} {
		var s scanner
		s.reset([]byte(c.json))
		got := string(s.text())
		s.finish()
		require.NoError(t, s.err, c.json)
		require.Equal(t, c.want, got, c.json)
	}
}

func TestScannerKeepsEarlierStrings(t *testing.T) {
	var s scanner
	s.reset([]byte(`["a\n","b\n","c\n"]`))
	require.True(t, s.open('['))
	var got [][]byte
	for s.element() {
		got = append(got, s.text())
	}
	require.Equal(t, [][]byte{[]byte("a\n"), []byte("b\n"), []byte("c\n")}, got)
}

func TestScannerTellsIncompleteFromWrong(t *testing.T) {
	const whole = `{"a":[1,-2.5e+3,true,false,null,"x\u00e9\n"],"b":{"c":{}}}`
	for i := range len(whole) {
		require.ErrorIs(t, scanAll([]byte(whole[:i])), errIncomplete, whole[:i])
	}
	for _, wrong := range []string{`{"a":1}x`, `{"a":1,}`, `[1,]`, `{a:1}`, `{"a" 1}`, `01`, `[01]`, "\"\n\"", `nul1`, `"\x"`, `-a`, `}`} {
		require.ErrorIs(t, scanAll([]byte(wrong)), errNotJSON, wrong)
	}
}

func scanAll(data []byte) error {
	var s scanner
	s.reset(data)
	s.skip()
	s.finish()
	return s.err
}

// FuzzScanner compares the scanner with encoding/json.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e-3,"x\u00e9"],"b":null}`, `"\ud83d\ude80"`, `[[],{}]`, `-0.0`, `{"a":1,"a":2}`, ` true `, `"\u12`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := scanAll(data)
		if errors.Is(err, errTooDeep) {
			return
		}
		require.Equal(t, json.Valid(data), err == nil, "%q: %v", data, err)
		if err != nil || !utf8.Valid(data) {
			return
		}
		var s scanner
		s.reset(data)
		var want string
		if s.peek() == '"' && json.Unmarshal(data, &want) == nil {
			require.Equal(t, want, string(s.text()))
		}
	})
}
