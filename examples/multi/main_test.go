package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/internal/demotest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var runID = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)

// golden compares what was shown with a file, but for the ids of the runs.
func golden(t *testing.T, name, shown string) {
	t.Helper()
	agenttest.Golden(t, filepath.Join("testdata", name), runID.ReplaceAllString(shown, "ID"))
}

func TestOffline(t *testing.T) {
	demotest.InBubble(t, "default", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false)
		got.Want(t, 0, "")
		demotest.MatchFile(t, "expected.txt", got.Stdout)
		golden(t, "default.txt", got.Stdout)
	})
	demotest.InBubble(t, "call that fails", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false, "-prompt", "From 2024-02-31 to 2024-03-01?")
		got.Want(t, 0, "")
		demotest.Contains(t, got.Stdout, "planner      │ ! from: ", "planner      │ I cannot plan that: from: ")
	})
	demotest.InBubble(t, "prompt that a terminal would obey", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false, "-prompt", "\x1b[2Ja\n\n\x1b]0;x\ab")
		got.Want(t, 0, "")
		assert.NotContains(t, got.Stdout, "\x1b")
		demotest.Contains(t, got.Stdout, "you          │ [2Ja ]0;xb\n")
	})
}

// TestColor: the lines are those without color, each in the color of its run.
func TestColor(t *testing.T) {
	line := regexp.MustCompile(`^(\x1b\[\d+m)?(?:├─ |└─ )?(\w+) (.*?)(\x1b\[0m)?$`)
	demotest.InBubble(t, "", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, false, "-color")
		got.Want(t, 0, "")
		golden(t, "default.txt", regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(got.Stdout, ""))
		colors := map[string]string{}
		for shown := range strings.Lines(got.Stdout) {
			if shown = strings.TrimSuffix(shown, "\n"); shown == "" {
				continue
			}
			parts := line.FindStringSubmatch(shown)
			require.NotNil(t, parts, "%q", shown)
			if color, known := colors[parts[2]]; known {
				assert.Equal(t, color, parts[1], "%q", shown)
			}
			assert.Equal(t, parts[1] == "", parts[4] == "", "%q", shown)
			colors[parts[2]] = parts[1]
		}
		assert.Empty(t, colors["you"])
		different := map[string]bool{}
		for _, color := range colors {
			different[color] = true
		}
		assert.Len(t, different, 5, "you and four runs")
	})
	demotest.InBubble(t, "of a terminal", func(t *testing.T) {
		got := demotest.Run(t.Context(), run, nil, true)
		assert.Contains(t, got.Stdout, "\x1b[36morchestrator")
		got = demotest.Run(t.Context(), run, nil, true, "-color=false")
		assert.NotContains(t, got.Stdout, "\x1b")
	})
}

// TestInterrupt interrupts the offline run at many moments: every run that began ends, and is
// in the tree.
func TestInterrupt(t *testing.T) {
	starts := regexp.MustCompile(`(?m)^(?:├─ |└─ |)([\w ]+?) +(\w+): \d+ turns?, .*\(ID\)$`)
	for at := 1; at < 1550; at += 31 {
		demotest.InBubble(t, fmt.Sprint(at), func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(at)*time.Millisecond+time.Microsecond, interrupt)
			got := demotest.Run(ctx, run, nil, false)
			if got.Code == 0 {
				assert.Greater(t, at, 1000)
				return
			}
			got.Want(t, 130, "multi: interrupted\n")
			_, tree, found := strings.Cut(runID.ReplaceAllString(got.Stdout, "ID"), "\n\n")
			require.True(t, found, got.Stdout)
			runs := starts.FindAllStringSubmatch(tree, -1)
			require.Len(t, runs, strings.Count(tree, "\n"), "%s", tree)
			assert.Equal(t, "orchestrator", runs[0][1])
			assert.Equal(t, "aborted", runs[0][2])
			assert.Contains(t, []int{1, 4}, len(runs), "%s", tree)
			assert.Equal(t, len(runs), strings.Count(got.Stdout, "│ ends: "), got.Stdout)
		})
	}
	demotest.InBubble(t, "golden", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond+time.Microsecond, interrupt)
		got := demotest.Run(ctx, run, nil, false)
		got.Want(t, 130, "multi: interrupted\n")
		_, tree, _ := strings.Cut(got.Stdout, "\n\n")
		golden(t, "interrupted.txt", tree)
	})
}

func TestBadInput(t *testing.T) {
	demotest.Refuses(t, run, map[string]demotest.Bad{
		"flag":     {Args: []string{"-nope"}, Code: 2, Want: "-nope"},
		"argument": {Args: []string{"When?"}, Code: 2, Want: "When?"},
		"color":    {Args: []string{"-color=red"}, Code: 2, Want: "red"},
		"help":     {Args: []string{"-h"}, Want: "-prompt"},
		"endpoint": {Base: "::", Code: 1, Want: "multi: openai config: invalid_request"},
	})
}

// endpoint plays all roles over HTTP: the orchestrator asks the team, and says what it is told;
// others has the answer of a member.
func endpoint(t *testing.T, others map[string]http.HandlerFunc) map[string]string {
	return demotest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		body := string(raw)
		for _, member := range members {
			if strings.Contains(body, member.task) {
				others[member.name](w, r)
				return
			}
		}
		assert.Contains(t, body, lead.task)
		if strings.Contains(body, `"role":"tool"`) {
			demotest.Stream(w, `{"content":"So"}`, `{"content":" be it."}`)
			demotest.Finish(w, "stop", 20, 2)
			return
		}
		demotest.Stream(w,
			`{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"team","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"mode\":\"parallel\",\"tasks\":["}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"agent\":\"planner\",\"prompt\":\"p\"},{\"agent\":\"sceptic\",\"prompt\":\"s\"},"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"agent\":\"writer\",\"prompt\":\"w\"}]}"}}]}`)
		demotest.Finish(w, "tool_calls", 10, 5)
	})
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		demotest.Stream(w, fmt.Sprintf(`{"content":%q}`, text))
		demotest.Finish(w, "stop", 3, 1)
	}
}

func TestEndpoint(t *testing.T) {
	env := endpoint(t, map[string]http.HandlerFunc{
		"planner": says("Soon.\nOr later."), "sceptic": says("Never."), "writer": says("At last!"),
	})
	got := demotest.Run(t.Context(), run, env, false, "-prompt", "When?")
	got.Want(t, 0, "")
	demotest.Contains(t, got.Stdout, "you          │ When?\n",
		"\nplanner      │ Soon.\n", "\nplanner      │ Or later.\n", "\nsceptic      │ Never.\n", "\nwriter       │ At last!\n",
		"\norchestrator │ So be it.\norchestrator │ ends: stop\n\norchestrator     stop: 2 turns, 1 tool call, 49 tokens, ",
		"\n├─ planner       stop: 1 turn, 0 tool calls, 4 tokens, ", "\n└─ writer        stop: ")
}

// TestMembersFail: what becomes of two members is told to the orchestrator, who goes on.
func TestMembersFail(t *testing.T) {
	env := endpoint(t, map[string]http.HandlerFunc{
		"planner": says("Soon."),
		"sceptic": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"writer":  func(w http.ResponseWriter, r *http.Request) { demotest.Stream(w, `{"content":"At "}`) },
	})
	got := demotest.Run(t.Context(), run, env, false, "-retries", "0")
	got.Want(t, 0, "")
	demotest.Contains(t, got.Stdout,
		"\nplanner      │ Soon.\n", "\nsceptic      │ ends: error: ", "\nwriter       │ At \nwriter       │ (what it said is void)\n",
		"\norchestrator │ ! [1] planner: Soon. [2] sceptic: failed: ", "\norchestrator │ So be it.\n", "\norchestrator     stop: ",
		"\n├─ planner       stop: ", "\n├─ sceptic       error: ", "\n└─ writer        error: ")
}

func TestOrchestratorFails(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"unauthorized": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key: %s"}}`, demotest.Key)
		}, "auth (status 401)"},
		"ends in mid-answer": {func(w http.ResponseWriter, r *http.Request) {
			demotest.Stream(w, `{"content":"Let me"}`)
		}, "stream_truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			got := demotest.Run(t.Context(), run, demotest.Serve(t, tt.handler), false, "-retries", "0")
			assert.Equal(t, 1, got.Code)
			assert.Equal(t, 1, strings.Count(got.Stderr, "\n"), got.Stderr)
			demotest.Contains(t, got.Stderr, "multi: openai: ", tt.want)
			demotest.Contains(t, got.Stdout, "\norchestrator │ ends: error: openai: "+tt.want, "\n\norchestrator     error: 1 turn, ")
			assert.NotContains(t, got.Stdout+got.Stderr, demotest.Key)
		})
	}
}

// TestBinaryInterrupt interrupts the built program while all three members speak, as Ctrl-C does.
func TestBinaryInterrupt(t *testing.T) {
	begins := func(w http.ResponseWriter, r *http.Request) {
		demotest.Stream(w, `{"content":"I think\nthat"}`)
		<-r.Context().Done()
	}
	env := endpoint(t, map[string]http.HandlerFunc{"planner": begins, "sceptic": begins, "writer": begins})
	before, got := demotest.Interrupt(t, demotest.Build(t), env, func(shown string) bool {
		return strings.Count(shown, "│ I think\n") == 3
	})
	got.Want(t, 130, "multi: interrupted\n")
	assert.NotContains(t, before+got.Stdout, "\x1b", "a pipe is no terminal")
	assert.Equal(t, 3, strings.Count(got.Stdout, "│ that\n"), got.Stdout)
	assert.Equal(t, 4, strings.Count(got.Stdout, " aborted: 1 turn, "), got.Stdout)
}
