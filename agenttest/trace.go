package agenttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentkernel-go/agentkernel"
)

// Run runs [agentkernel.AgentLoop] with cfg to its end and returns everything that it said.
// The test fails, and goes on, where the stream breaks its contract (see [CheckRun]).
func Run(t testing.TB, cfg agentkernel.Config, history []agentkernel.AgentMessage, prompts ...agentkernel.AgentMessage) []agentkernel.Event {
	t.Helper()
	var events []agentkernel.Event
	for ev := range agentkernel.AgentLoop(t.Context(), cfg, history, prompts...) {
		events = append(events, ev)
	}
	checker := Checker{AllowRepair: cfg.RepairToolCall != nil}
	checker.StartFrom(history)
	if err := checkAll(&checker, events); err != nil {
		t.Errorf("%v\n%s", err, Format(events))
	}
	return events
}

// Trace runs the prompt "hi" with model and tools on an empty history and returns the run
// as [Format] writes it. The test fails where the stream breaks its contract. Failed model
// calls are not retried, and tool calls run one after the other, so that the trace is the
// same each time; use [Run] with a Config for anything else.
func Trace(t testing.TB, model agentkernel.ChatModel, tools ...agentkernel.Tool) string {
	t.Helper()
	cfg := agentkernel.Config{Model: model, Tools: tools, MaxParallelTools: 1,
		Retry: agentkernel.RetryPolicy{MaxRetries: -1}}
	return Format(Run(t, cfg, nil, agentkernel.UserMessage("hi")))
}

// updateVariable names the environment variable that makes [Golden] write.
const updateVariable = "AGENTTEST_UPDATE"

// Golden fails the test where the file at path does not hold got, and shows the first line
// that differs. With AGENTTEST_UPDATE=1 in the environment it writes the file instead.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if os.Getenv(updateVariable) == "1" {
		if err := writeGolden(path, got); err != nil {
			t.Fatalf("agenttest.Golden: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("agenttest.Golden: %v (%s=1 writes it)", err, updateVariable)
	}
	if diff := firstDifference(got, strings.ReplaceAll(string(want), "\r\n", "\n")); diff != "" {
		t.Errorf("agenttest.Golden: %s differs (%s=1 rewrites it)\n%s\nall of it:\n%s", path, updateVariable, diff, got)
	}
}

func writeGolden(path, got string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(got), 0o666)
}
