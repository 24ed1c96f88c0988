package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel/examples/internal/demotest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	runID = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
	steps = regexp.MustCompile(`(?m)^Step (\d+) · `)
)

func TestOffline(t *testing.T) {
	demotest.InBubble(t, "default", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false)
		got.Want(t, 0, "")
		demotest.MatchFile(t, "expected.txt", got.Stdout)
	})
	demotest.InBubble(t, "calls that fail", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false, "-prompt", "Work out 1 / 0, 2 + and (1 + 2) ^ 3.")
		got.Want(t, 0, "")
		demotest.Contains(t, got.Stdout, `
Step 1 · model → calls calculator, calculator, calculator
Step 2 · tool → calculator({"expression":"1 / 0"}) fails: division by zero
Step 3 · tool → calculator({"expression":"2 +"}) fails: column 3: unexpected token EOF
Step 4 · tool → calculator({"expression":"(1 + 2) ^ 3"}) = 27
Step 5 · model → answers
1 / 0 cannot be worked out: division by zero. 2 + cannot be worked out: column 3: unexpected token EOF. (1 + 2) ^ 3 is 27.

Totals  2 turns, 6 messages, 5 steps, `)
	})
	demotest.InBubble(t, "no expression", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false, "-prompt", "")
		got.Want(t, 0, "")
		demotest.Contains(t, got.Stdout, "Step 1 · model → answers\nI am a script", "Totals  1 turn, 2 messages, 1 step, ")
	})
	demotest.InBubble(t, "prompt that a terminal would obey", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false, "-prompt", "\x1b[2J1\x1b[1m+\x1b]0;x\a1")
		got.Want(t, 0, "")
		assert.NotContains(t, got.Stdout, "\x1b")
		assert.NotContains(t, got.Stdout, "\a")
	})
}

// TestInterrupt interrupts the offline run at every moment of its 165 ms.
func TestInterrupt(t *testing.T) {
	for at := range 170 {
		demotest.InBubble(t, fmt.Sprint(at), func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(at)*time.Millisecond+time.Microsecond, interrupt)
			got := demotest.Run(ctx, run, nil, false)
			if at >= 165 {
				got.Want(t, 0, "")
				return
			}
			got.Want(t, 130, "cli: interrupted\n")
			assert.Regexp(t, `\n\nTotals  [12] turns?, [1-4] messages?, [1-3] steps?, \d+ ms\nStatus  aborted \(canceled\)\nTokens  .*\n$`, got.Stdout)
			for i, step := range steps.FindAllStringSubmatch(got.Stdout, -1) {
				assert.LessOrEqual(t, step[1], fmt.Sprint(i+1), got.Stdout)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	corrupt := filepath.Join(t.TempDir(), "corrupt.jsonl")
	require.NoError(t, os.WriteFile(corrupt, []byte("no journal\nat all\n"), 0o600))
	demotest.Refuses(t, run, map[string]demotest.Bad{
		"flag":                {Args: []string{"-nope"}, Code: 2, Want: "-nope"},
		"argument":            {Args: []string{"6*7"}, Code: 2, Want: "6*7"},
		"retries":             {Args: []string{"-retries", "many"}, Code: 2, Want: "many"},
		"help":                {Args: []string{"-h"}, Want: "-prompt"},
		"endpoint":            {Base: "::", Code: 1, Want: "cli: openai config: invalid_request"},
		"journal nowhere":     {Args: []string{"-journal", filepath.Join(corrupt, "j.jsonl")}, Code: 1, Want: "cli: journal: "},
		"journal that is not": {Args: []string{"-journal", corrupt}, Code: 1, Want: "cli: journal: "},
	})
}

// ask42 is how an endpoint asks for the calculator.
var ask42 = []string{
	`{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"calculator","arguments":""}}]}`,
	`{"tool_calls":[{"index":0,"function":{"arguments":"{\"expression\":"}}]}`,
	`{"tool_calls":[{"index":0,"function":{"arguments":"\"6*7\"}"}}]}`,
}

func TestEndpoint(t *testing.T) {
	var bodies []string
	env := demotest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if bodies = append(bodies, string(body)); len(bodies) == 1 {
			demotest.Stream(w, ask42...)
			demotest.Finish(w, "tool_calls", 10, 5)
			return
		}
		demotest.Stream(w, `{"content":"It is"}`, `{"content":" 42.\n"}`)
		demotest.Finish(w, "stop", 20, 3)
	})
	got := demotest.Run(t.Context(), run, env, false, "-prompt", "6 times 7?")
	got.Want(t, 0, "")
	demotest.Contains(t, got.Stdout, "Input   6 times 7?\n\n"+
		"Step 1 · model → calls calculator\nStep 2 · tool → calculator({\"expression\":\"6*7\"}) = 42\n"+
		"Step 3 · model → answers\nIt is 42.\n\nTotals  2 turns, 4 messages, 3 steps, ",
		" ms\nStatus  stop\nTokens  30 in, 8 out\n")
	require.Len(t, bodies, 2)
	assert.Contains(t, bodies[0], `"expression"`, "the schema")
	assert.Contains(t, bodies[1], `"42"`, "the result")
}

func TestEndpointFails(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		stdout  string
		stderr  string
	}{
		{"unauthorized", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key:\n %s","type":"invalid_request_error"}}`, demotest.Key)
		}, "Status  error (auth)\nTokens  0 in, 0 out\n", "cli: openai: auth (status 401): "},
		{"down", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "down", http.StatusInternalServerError)
		}, "Status  error (server)\n", "cli: openai: server (status 500): "},
		{"ends in mid-answer", func(w http.ResponseWriter, r *http.Request) {
			demotest.Stream(w, `{"content":"It is"}`)
		}, "Step 1 · model → answers\nIt is\nStep 1 · model → fails: ", "stream_truncated"},
		{"breaks in mid-answer", func(w http.ResponseWriter, r *http.Request) {
			demotest.Stream(w, `{"content":"It is"}`)
			panic(http.ErrAbortHandler)
		}, "  (what it said is void)\n\nTotals  1 turn, 1 message, 1 step, ", "cli: "},
		{"breaks in mid-call", func(w http.ResponseWriter, r *http.Request) {
			demotest.Stream(w, ask42[:2]...)
		}, "\n\nStep 1 · model → fails: ", "stream_truncated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := demotest.Serve(t, tt.handler)
			got := demotest.Run(t.Context(), run, env, false, "-retries", "0")
			assert.Equal(t, 1, got.Code)
			demotest.Contains(t, got.Stdout, tt.stdout, "\nStatus  error (")
			demotest.Contains(t, got.Stderr, tt.stderr)
			assert.Equal(t, 1, strings.Count(got.Stderr, "\n"), got.Stderr)
			assert.NotContains(t, got.Stdout+got.Stderr, demotest.Key)
		})
	}
}

// TestBinaryInterrupt interrupts the built program in mid-answer, as Ctrl-C does.
func TestBinaryInterrupt(t *testing.T) {
	env := demotest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		demotest.Stream(w, `{"content":"It is"}`)
		<-r.Context().Done()
	})
	_, got := demotest.Interrupt(t, demotest.Build(t), env, func(shown string) bool {
		return strings.HasSuffix(shown, "answers\nIt is")
	})
	got.Want(t, 130, "cli: interrupted\n")
	assert.Regexp(t, `^\nStep 1 · model → is interrupted\n\nTotals  1 turn, 2 messages, 1 step, \d+ ms\nStatus  aborted \(canceled\)\n`, got.Stdout)
}

// TestBinaryJournalFull: a run whose journal is not kept is no success.
func TestBinaryJournalFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "full.jsonl")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 1 && exec "$0" -journal "$1"`, demotest.Build(t), path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	assert.Error(t, err)
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
	assert.Contains(t, string(stdout), "\nStatus  stop\n", "the run itself is well")
	assert.Contains(t, stderr.String(), "cli: journal: ")
}
