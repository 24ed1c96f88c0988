package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	d := open(t, "a.txt", "hello\n")
	assert.Equal(t, "hello\n", d.ok("run", args{"command": "cat a.txt"}), "it begins in the folder")
	assert.Equal(t, "out\nerr\n", d.ok("run", args{"command": "echo out; echo err >&2"}))
	assert.Equal(t, "(no output)", d.ok("run", args{"command": "true"}))
	assert.Equal(t, "0\n", strings.TrimLeft(d.ok("run", args{"command": "wc -c"}), " "), "there is no input")
	d.fails("run", args{"command": "echo so; exit 3"}, "so\n(exit status 3)")
	d.fails("run", args{"command": " "}, "empty")
	assert.Contains(t, d.ok("run", args{"command": "printf '\\377'"}), "\uFFFD")
}

func TestRunEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-x")
	t.Setenv("some_token", "t-x")
	t.Setenv("HARMLESS", "h-x")
	env := open(t).ok("run", args{"command": "env"})
	assert.NotContains(t, env, "sk-x")
	assert.NotContains(t, env, "t-x")
	assert.Contains(t, env, "h-x")
}

// TestRunOutput: of much output the beginning and the end are kept.
func TestRunOutput(t *testing.T) {
	text := open(t).ok("run", args{"command": "echo first; head -c 300000 /dev/zero | tr '\\0' x; echo last"})
	assert.Less(t, len(text), 40<<10)
	assert.True(t, strings.HasPrefix(text, "first\nxxx"))
	assert.True(t, strings.HasSuffix(text, "xlast\n"))
	assert.Contains(t, text, "bytes left out)")
}

// TestRunTimeout: the time is bounded, also where the command's children hold the output open,
// and nothing of the group is left.
func TestRunTimeout(t *testing.T) {
	d := open(t)
	start := time.Now()
	d.fails("run", args{"command": "echo on its way; sleep 300 & sleep 300", "timeout": 1}, "on its way\n(killed: it took longer than 1s)")
	assert.Less(t, time.Since(start), 60*time.Second)
}

// TestRunLeftBehind: what a command leaves behind in its group ends with it.
func TestRunLeftBehind(t *testing.T) {
	d := open(t)
	d.ok("run", args{"command": "sleep 300 >/dev/null 2>&1 & echo $! >pid"})
	pid := strings.TrimSpace(d.content("pid"))
	require.Eventually(t, func() bool { return gone(pid) }, 30*time.Second, 10*time.Millisecond, "process %s lives on", pid)
}

// TestRunAbort: an abort kills the whole group, and the result says why.
func TestRunAbort(t *testing.T) {
	d := open(t)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for { // until the command has begun
			if _, err := os.Stat(d.dir + "/pid"); err == nil || t.Context().Err() != nil {
				cancel(cause)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	raw, _ := json.Marshal(args{"command": "echo began; sh -c 'echo $$ >tmp && mv tmp pid; sleep 300'; true"})
	result, err := d.tools["run"].Execute(ctx, raw)
	require.ErrorIs(t, err, cause)
	assert.Equal(t, "began\n", result.TextContent())
	pid := strings.TrimSpace(d.content("pid"))
	require.Eventually(t, func() bool { return gone(pid) }, 30*time.Second, 10*time.Millisecond, "process %s lives on", pid)
}

// gone tells whether a process has ended; one that nobody has waited for yet has.
func gone(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

// TestRunReports: the output shows while the command runs, on the stream of the agent's run.
func TestRunReports(t *testing.T) {
	d := open(t)
	var shown strings.Builder
	model := scripted(agentkernel.ToolCall{ID: "1", Name: "run", Args: json.RawMessage(`{"command":"echo one; echo two"}`)})
	for ev := range agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: model, Tools: []agentkernel.Tool{d.tools["run"]}},
		nil, agentkernel.UserMessage("hi")) {
		if e, ok := ev.Payload().(agentkernel.ToolProgressed); ok {
			shown.WriteString(e.Progress.Text)
		}
	}
	assert.Equal(t, "one\ntwo\n", shown.String())
}

// scripted is a model that makes one call and then says ok.
func scripted(call agentkernel.ToolCall) agentkernel.ChatModel {
	return agenttest.Script(agenttest.Call(call.ID, call.Name, string(call.Args)), agenttest.Text("ok"))
}
