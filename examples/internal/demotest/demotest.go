// Package demotest is the test that every example on package demo has to pass, and what tests
// of the others need: the program in a world of its own, and an endpoint.
package demotest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// Check runs the example of the package under test: offline, where it must print what the
// pattern file expected.txt beside it says, and against endpoints of its own.
func Check(t *testing.T, name string, example demo.Example) {
	p := program{name, func(ctx context.Context, env map[string]string, color bool, args ...string) Outcome {
		return Run(ctx, func(ctx context.Context, env demo.Env) int { return demo.Run(ctx, name, example, env) }, env, color, args...)
	}}
	for name, check := range map[string]func(*testing.T){
		"offline":             p.offline,
		"prompt":              p.prompts,
		"interrupt":           p.interrupt,
		"bad flag":            p.badFlag,
		"endpoint is not one": p.noEndpoint,
	} {
		InBubble(t, name, check)
	}
	// Without a bubble, since sockets never make one idle.
	t.Run("endpoint", p.endpoint)
	t.Run("endpoint refuses", p.refusal)
}

// program is an example under test.
type program struct {
	name string
	run  func(ctx context.Context, env map[string]string, color bool, args ...string) Outcome
}

func (p program) offline(t *testing.T) {
	got := p.run(t.Context(), nil, false)
	got.Want(t, 0, "")
	MatchFile(t, "expected.txt", got.Stdout)
	Contains(t, p.run(t.Context(), nil, true).Stdout, "\x1b[2mTwo \x1b[0m", "\x1b[34m< 298 days\x1b[0m")
}

func (p program) prompts(t *testing.T) {
	for prompt, want := range map[string][]string{
		"From 2024-02-01 to 2024-03-01?": {"It is 29 days from", "From 2024-02-01 to 2024-03-01?"},
		"From 2024-02-31 to 2024-03-01?": {"< from: ", "The tool says no: from: "},
		"hello":                          {"I am a script", "stop: 1 turn, 0 tool calls"},
	} {
		got := p.run(t.Context(), nil, false, "-prompt", prompt)
		got.Want(t, 0, "")
		Contains(t, got.Stdout, want...)
	}
}

func (p program) interrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, interrupt)
	got := p.run(ctx, nil, false)
	got.Want(t, 130, p.name+": interrupted\n")
	Contains(t, got.Stdout, "\naborted: 1 turn, 0 tool calls")
}

func (p program) badFlag(t *testing.T) {
	for _, arg := range []string{"-nope", "what?"} {
		if got := p.run(t.Context(), nil, false, arg); got.Code != 2 {
			t.Errorf("%s: got code %d, want 2", arg, got.Code)
		}
	}
}

func (p program) noEndpoint(t *testing.T) {
	got := p.run(t.Context(), map[string]string{"OPENAI_BASE_URL": "::"}, false)
	if got.Code != 1 || strings.Count(got.Stderr, "\n") != 1 {
		t.Errorf("got %+v, want code 1 and one line", got)
	}
}

func (p program) endpoint(t *testing.T) {
	requests := 0
	env := Serve(t, func(w http.ResponseWriter, req *http.Request) {
		requests++
		answer(t, w, req, requests)
	})
	got := p.run(t.Context(), env, false)
	got.Want(t, 0, "")
	Contains(t, got.Stdout, "\nI count.\n",
		"> days_between {\"from\":\"2026-01-01\",\"to\":\"2026-01-31\"}\n< 30 days\nThirty days.\n\n",
		"stop: 2 turns, 1 tool call, 32 tokens, ")
}

func (p program) refusal(t *testing.T) {
	env := Serve(t, func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "{\"error\":{\"message\":\"Incorrect API key:\n %s\",\"type\":\"invalid_request_error\"}}", Key)
	})
	got := p.run(t.Context(), env, false)
	if got.Code != 1 || strings.Contains(got.Stdout+got.Stderr, Key) || strings.Count(got.Stderr, "\n") != 1 {
		t.Errorf("got %+v, want code 1 and one line without the key", got)
	}
	Contains(t, got.Stderr, p.name+": ", "auth", "401")
}

// Key is that of Serve, and no key of anybody.
const Key = "sk-0123456789abcdef0123456789abcdef"

// Serve starts an endpoint and returns the environment that names it.
func Serve(t *testing.T, handler http.HandlerFunc) map[string]string {
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return map[string]string{
		"OPENAI_BASE_URL": server.URL + "/v1",
		"OPENAI_API_KEY":  Key,
		"OPENAI_MODEL":    "test-model",
	}
}

// answer streams a thought and a call, then what to say of its result.
func answer(t *testing.T, w http.ResponseWriter, req *http.Request, n int) {
	body, err := io.ReadAll(req.Body)
	var got struct {
		Model    string
		Stream   bool
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	if err == nil {
		err = json.Unmarshal(body, &got)
	}
	if err != nil {
		t.Errorf("request %s: %v", body, err)
	}
	if auth := req.Header.Get("Authorization"); auth != "Bearer "+Key {
		t.Errorf("got Authorization %q", auth)
	}
	if got.Model != "test-model" || !got.Stream || len(got.Tools) != 1 || got.Tools[0].Function.Name != "days_between" {
		t.Errorf("got request %s", body)
	}
	deltas := []string{
		`{"reasoning_content":"I "}`, `{"reasoning_content":"count."}`,
		`{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"days_between","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{\"from\":\"2026-01-01\","}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"\"to\":\"2026-01-31\"}"}}]}`,
	}
	finish := "tool_calls"
	if n > 1 {
		deltas, finish = []string{`{"content":"Thirty"}`, `{"content":" days."}`}, "stop"
		if last := got.Messages[len(got.Messages)-1]; last.Role != "tool" || last.Content != "30 days" {
			t.Errorf("got last message %+v", last)
		}
	}
	Stream(w, deltas...)
	Finish(w, finish, 10*n, 1)
}

// Stream sends the beginning of an answer on the wire: JSON objects, each a delta.
func Stream(w http.ResponseWriter, deltas ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, delta := range deltas {
		fmt.Fprintf(w, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		w.(http.Flusher).Flush()
	}
}

// Finish sends the end of an answer, with the tokens that it took.
func Finish(w http.ResponseWriter, reason string, input, output int) {
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", reason)
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n",
		input, output, input+output)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// Outcome is what an example came to.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Run runs the program main with the environment env.
func Run(ctx context.Context, main func(context.Context, demo.Env) int, env map[string]string, color bool, args ...string) Outcome {
	var stdout, stderr bytes.Buffer
	code := main(ctx, demo.Env{
		Args:   args,
		Getenv: func(key string) string { return env[key] },
		Stdout: &stdout,
		Stderr: &stderr,
		Color:  color,
	})
	return Outcome{code, stdout.String(), stderr.String()}
}

// Want checks the exit code and all of stderr.
func (got Outcome) Want(t *testing.T, code int, stderr string) {
	t.Helper()
	if got.Code != code || got.Stderr != stderr {
		t.Errorf("got code %d and on stderr %q, want %d and %q; on stdout:\n%s", got.Code, got.Stderr, code, stderr, got.Stdout)
	}
}

// Contains checks that text contains each of the parts.
func Contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got %q, want it to contain %q", text, part)
		}
	}
}

// MatchFile matches each line of text with its regular expression in the file at path.
func MatchFile(t *testing.T, path, text string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	patterns := strings.Split(string(raw), "\n")
	lines := strings.Split(text, "\n")
	if len(lines) != len(patterns) {
		t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(patterns), text)
	}
	for i, pattern := range patterns {
		if !regexp.MustCompile("^" + pattern + "$").MatchString(lines[i]) {
			t.Errorf("line %d: got %q, want %s", i+1, lines[i], pattern)
		}
	}
}
