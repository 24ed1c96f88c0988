package openai

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzQuoted: any text comes back, and is as long as it was said to be.
func FuzzQuoted(f *testing.F) {
	for _, seed := range []string{"", "plain", "a \"quote\" and a \\", "\x00\n\t\x1f\x7f", "<é\u2028🦀>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := appendQuoted(nil, text)
		require.Len(t, quoted, quotedLen(text))
		if !utf8.ValidString(text) {
			return // the kernel makes it valid
		}
		var back string
		require.NoError(t, json.Unmarshal(quoted, &back))
		require.Equal(t, text, back)
	})
}
