package agenttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

func tool(name string, do func(json.RawMessage) (agentkernel.ToolResult, error)) agentkernel.Tool {
	return agentkernel.Tool{Name: name, Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		return do(args)
	}}
}

func echo(name string) agentkernel.Tool {
	return tool(name, func(args json.RawMessage) (agentkernel.ToolResult, error) {
		return agentkernel.TextResult(name + string(args)), nil
	})
}

func TestTrace(t *testing.T) {
	m := agenttest.Script(
		agenttest.Thinking("Hm.").Text("I look.").Calls("a", "b").Chunks(4).Usage(agentkernel.Usage{Input: 5, Output: 4, Total: 9}),
		agenttest.Text("ok"))
	failing := tool("b", func(json.RawMessage) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{}, errors.New("no luck")
	})
	agenttest.Golden(t, "testdata/tools.txt", agenttest.Trace(t, m, echo("a"), failing))
}

func TestTraceIsStable(t *testing.T) {
	script := func() *agenttest.Model {
		return agenttest.Script(agenttest.Call("", "a", "{}").Call("", "b", "{}"), agenttest.Text("ok"))
	}
	one := agenttest.Trace(t, script(), echo("a"), echo("b"))
	require.Equal(t, one, agenttest.Trace(t, script(), echo("a"), echo("b")), "minted ids must not show")
	require.Contains(t, one, "tool_exec_start #2 b {}")
}

func TestTraceDoesNotRetry(t *testing.T) {
	m := agenttest.Script(agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true}))
	require.Contains(t, agenttest.Trace(t, m), "agent_end error turns=1")
	require.Len(t, m.Requests(), 1)
}

// fakeT records what a helper reports.
type fakeT struct {
	testing.TB
	said []string
}

func (f *fakeT) Helper()                  {}
func (f *fakeT) Context() context.Context { return context.Background() }
func (f *fakeT) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *fakeT) Fatalf(format string, args ...any) { f.Errorf(format, args...); runtime.Goexit() }

// said is what a helper reports on a test of its own.
func said(helper func(t testing.TB)) string {
	f := new(fakeT)
	done := make(chan struct{})
	go func() { // ends with helper, and is waited for
		defer close(done)
		helper(f)
	}()
	<-done
	return strings.Join(f.said, "\n")
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "file.txt")
	t.Setenv("AGENTTEST_UPDATE", "")
	require.Contains(t, said(func(t testing.TB) { agenttest.Golden(t, path, "x\n") }), "AGENTTEST_UPDATE=1 writes it")

	t.Setenv("AGENTTEST_UPDATE", "1")
	require.Empty(t, said(func(t testing.TB) { agenttest.Golden(t, path, "one\ntwo\n") }))
	t.Setenv("AGENTTEST_UPDATE", "")
	require.Empty(t, said(func(t testing.TB) { agenttest.Golden(t, path, "one\ntwo\n") }))
	got := said(func(t testing.TB) { agenttest.Golden(t, path, "one\n2\n") })
	require.Contains(t, got, "line 2\n  got:  2\n  want: two")
	require.Contains(t, said(func(t testing.TB) { agenttest.Golden(t, path, "one\ntwo") }), "differs")

	require.NoError(t, os.WriteFile(path, []byte("one\r\ntwo\r\n"), 0o600))
	require.Empty(t, said(func(t testing.TB) { agenttest.Golden(t, path, "one\ntwo\n") }))
}

func TestRunReportsABreach(t *testing.T) {
	// The kernel keeps its contract; a history that is not the one told shows what a breach looks like.
	events := agenttest.Run(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("a"), agenttest.Text("ok")), Tools: []agentkernel.Tool{echo("a")}}, nil, agentkernel.UserMessage("hi"))
	taken := agentkernel.Message{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{
		{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "call_1", Name: "a", Args: json.RawMessage(`{}`)}},
	}}
	answered := agentkernel.Message{Role: agentkernel.RoleTool, ToolCallID: "call_1"}
	require.NoError(t, agenttest.CheckRun(nil, events))
	err := agenttest.CheckRun([]agentkernel.AgentMessage{taken, answered}, events)
	require.ErrorContains(t, err, `rule calls broken at seq 7 (message_update`)
	require.ErrorContains(t, err, `"call_1" is taken`)
}
