package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// scratch is a folder that goes with the tests.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "session"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

func offline(string) string { return "" }

// ran is what a run of the program came to.
type ran struct {
	code           int
	stdout, stderr string
}

func runProgram(ctx context.Context, getenv func(string) string, args ...string) ran {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, getenv, &stdout, &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// TestOffline: the program prints what expected.txt says, by line.
func TestOffline(t *testing.T) {
	args, err := os.ReadFile("ci-args")
	require.NoError(t, err)
	got := runProgram(t.Context(), offline, strings.Fields(string(args))...)
	require.Equal(t, ran{0, got.stdout, ""}, got)
	patterns, err := os.ReadFile("expected.txt")
	require.NoError(t, err)
	want, lines := strings.Split(string(patterns), "\n"), strings.Split(got.stdout, "\n")
	for i := range min(len(want), len(lines)) {
		require.Regexp(t, regexp.MustCompile("^"+want[i]+"$"), lines[i])
	}
	require.Len(t, lines, len(want))
}

// TestListAndResume: sessions are listed with the last used first, and the last one is resumed
// where none is named.
func TestListAndResume(t *testing.T) {
	db := filepath.Join(t.TempDir(), "s.db")
	program := func(args ...string) ran {
		t.Helper()
		return runProgram(t.Context(), offline, append([]string{"-db", db, "-pace", "0"}, args...)...)
	}
	require.Equal(t, ran{exitFailed, "", "session: there is no session to resume\n"}, program("-resume"))
	require.Equal(t, ran{}, program("-list"))
	require.Zero(t, program("-session", "one").code)
	got := program("-session", "two", "-prompt", "My name is Bob.", "-goal", "ship it")
	require.Zero(t, got.code)
	require.Contains(t, got.stdout, `goal_updated active "ship it"`)

	got = program("-list")
	require.Regexp(t, `^two  .*  2 messages  "My name is Bob\."\none  .*  6 messages  "My name is Ada\..*"\n$`, got.stdout)
	got = program("-resume")
	require.Contains(t, got.stdout, "nothing was interrupted")
	require.Contains(t, got.stdout, "\nsession two ")
	got = program("-resume", "-session", "one", "-prompt", "From 2026-01-01 to 2026-01-03?")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "It is 2 days, Ada.")
	require.Contains(t, got.stdout, "stored at 12")
}

// TestInterrupt: an interrupt aborts the run; what it said is stored, and -resume goes on.
func TestInterrupt(t *testing.T) {
	endpoint := newEndpoint(t)
	getenv := func(key string) string { return map[string]string{"OPENAI_BASE_URL": endpoint.url}[key] }
	db := filepath.Join(t.TempDir(), "s.db")
	ctx, interrupt := context.WithCancel(t.Context())
	endpoint.arrived = interrupt
	got := runProgram(ctx, getenv, "-db", db, "-session", "one", "-prompt", "hold")
	require.Equal(t, exitAborted, got.code, got.stderr)
	require.Equal(t, "session: interrupted\n", got.stderr)
	require.Contains(t, got.stdout, "agent_end aborted")
	got = runProgram(t.Context(), offline, "-db", db, "-pace", "0", "-resume")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "agent_end stop")
}

// TestBadStart: what makes no sense is told, and nothing else is printed.
func TestBadStart(t *testing.T) {
	db := filepath.Join(t.TempDir(), "s.db")
	for _, tt := range []struct {
		name string
		args []string
		base string
		code int
	}{
		{"flag", []string{"-nope"}, "", exitUsage},
		{"argument", []string{"what?"}, "", exitUsage},
		{"id", []string{"-session", "a/b"}, "", exitFailed},
		{"file", []string{"-db", filepath.Join(db, "none")}, "", exitFailed},
		{"endpoint", nil, "::", exitFailed},
	} {
		getenv := func(key string) string { return map[string]string{"OPENAI_BASE_URL": tt.base}[key] }
		got := runProgram(t.Context(), getenv, append([]string{"-db", db}, tt.args...)...)
		require.Equal(t, ran{tt.code, "", got.stderr}, got, tt.name)
		require.NotEmpty(t, got.stderr, tt.name)
	}
	require.Zero(t, runProgram(t.Context(), offline, "-help").code)
}
