package compact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// texts are JSON, and what looks like it.
var texts = []string{
	``, ` `, `{}`, ` { } `, `[]`, "\t[\r\n]", `{"a":1}`, `{"a": "b c", "d": [1, 2 , 3]}`, `[1,]`, `[,1]`, `{"a":1,}`, `{,}`,
	`{"a" 1}`, `{"a":}`, `{a:1}`, `{"a":1`, `{"a`, `"`, `"\`, `"\"`, `"\u12`, `"\u12G4"`, `"\u12aF"`, `"\x"`, `"\"\\\/\b\f\n\r\t"`,
	"\"\x00\"", "\"1234567\n\"", "\"12345678\x1f\"", "\"\x7f\x80\xff\"", `"grüße, 世界 🙂"`, `"12345678"`, `"1234567\"8"`, `"12345678\\"`,
	`{"a":1,"a":2}`, `{"":{"":""}}`, `"\ud83d\ude42"`, `"\ud800"`, `"\udc00\ud800x"`, "\"\xed\xa0\x80\u2028<&>\"", "{\"\xff\" : 1}", `1e99999`, `-0.0E-0`,
	strings.Repeat("9", 400), " \t\r\n{} \t\r\n", "{}\n{}", "\f1", "1\x00",
	`0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5`, `1e`, `1e5`, `1E+5`, `1e-`, `1.5e-5`, `+1`, `12 34`, `--1`, `1.e5`,
	`true`, `false`, `null`, `tru`, `True`, `truefalse`, `nul`, `[true,false,null]`, `[true false]`, `{"a":[{"b":[]}]} x`, `]`, `}`, `{]`, `[}`,
	`{"a":{"a":{"a":[[[{}]]]}}}`, "\ufeff{}", "{}\x00", "\v{}", "[1\u00a0]", strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
	strings.Repeat("[", 20_000), strings.Repeat(`{"a": `, 100) + "1" + strings.Repeat("}", 100), `{"text":"` + strings.Repeat("abcdefg\\n", 1000) + `"}`,
}

func TestJSON(t *testing.T) {
	for _, text := range texts {
		same(t, []byte(text))
		for i := range min(len(text), 100) { // cut, and with each byte another one
			same(t, []byte(text[:i]))
			for _, c := range "\"\\ {}[],:0e\x1f" {
				same(t, []byte(text[:i]+string(c)+text[i+1:]))
			}
		}
	}
}

// TestQuickIsUsed: what providers send takes the short way.
func TestQuickIsUsed(t *testing.T) {
	out, ok := quick([]byte(`{"path": "a/b.go", "lines": [1, 20], "text": "\tif x < 1 {\n"}`))
	require.True(t, ok)
	require.Equal(t, `{"path":"a/b.go","lines":[1,20],"text":"\tif x < 1 {\n"}`, string(out))
}

// TestOwnMemory: what comes back can be kept while the source is written over.
func TestOwnMemory(t *testing.T) {
	src := []byte(`{"a":1}`)
	out, ok := JSON(src)
	require.True(t, ok)
	clear(src)
	require.Equal(t, `{"a":1}`, string(out))
}

func FuzzJSON(f *testing.F) {
	for _, text := range texts {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) { same(t, src) })
}

// same requires what encoding/json says.
func same(t *testing.T, src []byte) {
	t.Helper()
	var want bytes.Buffer
	wrong := json.Compact(&want, src)
	got, ok := quick(src)
	require.True(t, !ok || wrong == nil, "it is no JSON: %.100q", src)
	require.True(t, ok || wrong != nil || deep(src), "it is JSON: %.100q", src)
	if ok {
		require.Equal(t, want.String(), string(got))
	}
	out, ok := JSON(src)
	require.Equal(t, wrong == nil, ok)
	if ok {
		require.Equal(t, want.String(), string(out))
	}
}

func deep(src []byte) bool {
	return bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{")) > maxDepth
}

func BenchmarkJSON(b *testing.B) {
	src := []byte(`{"text": "` + strings.Repeat("abcdefgh", 10_000) + `"}`)
	b.Run("here", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			_, _ = JSON(src)
		}
	})
	b.Run("encoding", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			var buf bytes.Buffer
			_ = json.Compact(&buf, src)
		}
	})
}
