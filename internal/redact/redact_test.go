package redact

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClean(t *testing.T) {
	const key = "sk-test-0123456789abcdef"
	for _, c := range []struct{ text, want string }{
		{"plain", "plain"},
		{"the key " + key + " is wrong", "the key [redacted] is wrong"},
		{"the key '" + key + "'.", "the key '[redacted]'."},
		{"the key sk-****cdef is wrong", "the key [redacted] is wrong"},
		{"the key sk-test-0123... is wrong", "the key [redacted] is wrong"},
		{"x=89abcdef&y=1", "x=[redacted]&y=1"},
		{"**bold** stays", "**bold** stays"},
		{"see https://user:pw@host:8080/a/b?key=SECRET#x.", "see https://host:8080/a/b."},
		{`Post "http://h/v1?a=b": refused`, `Post "http://h/v1": refused`},
		{"(wss://h?a) and http://h", "(wss://h) and http://h"},
	} {
		require.Equal(t, c.want, Clean(c.text, key, ""))
	}
}

func TestErrorKeepsItsCause(t *testing.T) {
	cause := &url.Error{Op: "Get", URL: "http://h/p?key=SECRET", Err: errors.New("refused")}
	err := Error(fmt.Errorf("call: %w", cause))
	require.Equal(t, `call: Get "http://h/p": refused`, err.Error())
	var got *url.Error
	require.ErrorAs(t, err, &got)
	require.Same(t, cause, got)

	clean := errors.New("clean")
	require.Same(t, clean, Error(clean, "secret"))
}

// No verb shows the error behind a cleaned one.
func TestCleanedErrorsArePrintedClean(t *testing.T) {
	err := With(secret("SECRET"), "clean")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(verb, err), "SECRET")
	}
}

type secret string

func (s secret) Error() string { return string(s) }
