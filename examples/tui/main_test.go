package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asProgram makes the test binary be the program, for the tests that drive it in a terminal.
const asProgram = "AGENTKERNEL_TUI_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	// The clock of the highlighter of code stops by itself, a while after it was used.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

func offline(string) string { return "" }

func TestCheck(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-check", "-pace", "1ms"}, offline, nil, &stdout, &stderr)
	require.Equal(t, 0, code, stderr.String())
	assert.Empty(t, stderr.String())
	pattern, err := os.ReadFile("expected.txt")
	require.NoError(t, err)
	assert.Regexp(t, regexp.MustCompile(`^`+string(pattern)+`$`), stdout.String())
}

func TestCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, run(ctx, []string{"-check"}, offline, nil, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "canceled")
}

func TestBadStart(t *testing.T) {
	sessions := t.TempDir()
	for _, tt := range []struct {
		name string
		args []string
		base string
		code int
		says string
	}{
		{"flag", []string{"-nope"}, "", 2, "not defined"},
		{"argument", []string{"what?"}, "", 2, "what?"},
		{"workspace", []string{"-workspace", "there is none"}, "", 1, "no such file"},
		{"endpoint", nil, "::", 1, "BaseURL"},
		{"no terminal", []string{"-sessions", sessions}, "", 1, "-check"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			getenv := func(key string) string { return map[string]string{"OPENAI_BASE_URL": tt.base}[key] }
			assert.Equal(t, tt.code, run(t.Context(), tt.args, getenv, strings.NewReader(""), &stdout, &stderr))
			assert.Empty(t, stdout.String())
			assert.Contains(t, stderr.String(), tt.says)
		})
	}
	left, err := os.ReadDir(sessions)
	require.NoError(t, err)
	assert.Empty(t, left, "a start that failed leaves no session behind")
}
