package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// RunName is the name of the tool that runs commands: the one that the workspace does not
// confine.
const RunName = "run"

const (
	runTimeout    = time.Minute
	maxRunTimeout = 10 * time.Minute
	// runGrace is how long a command's output is waited for once its group was killed: what
	// left the group may hold it open.
	runGrace = time.Second
	// maxOutput bounds the output that is kept, of its beginning and of its end each.
	maxOutput = 16 << 10
)

type runArgs struct {
	Command string `json:"command" jsonschema:"a command line for sh"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds, at most 600; 60 by default"`
}

func (w *Workspace) runTool() agentkernel.Tool {
	tool := agentkernel.MustTool(RunName, "Runs a command in the workspace with sh, without input, and returns its output. A person is asked first.", w.run)
	tool.Activity = says(func(in runArgs) string { return "run " + in.Command })
	tool.Timeout = -1 // its own
	return tool
}

// run runs a command to its end, or kills it, and all of its process group, when the time is
// over or ctx ends. Its output is reported as it comes.
func (w *Workspace) run(ctx context.Context, in runArgs) (agentkernel.ToolResult, error) {
	if strings.TrimSpace(in.Command) == "" {
		return agentkernel.ToolResult{}, errors.New("the command is empty")
	}
	limit := min(cmp.Or(time.Duration(max(in.Timeout, 0))*time.Second, runTimeout), maxRunTimeout)
	timed, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	out := &output{report: func(text string) {
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressToolDelta, Text: text})
	}}
	cmd := exec.CommandContext(timed, "sh", "-c", in.Command)
	cmd.Dir = w.dir
	cmd.Env = harmless(os.Environ())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = runGrace
	ownGroup(cmd)
	err := cmd.Run()
	killGroup(cmd) // what the command left behind in it
	text := out.String()
	switch exit, failed := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return agentkernel.TextResult(text), context.Cause(ctx)
	case timed.Err() != nil:
		return agentkernel.ErrorResult(text + "(killed: " + context.Cause(timed).Error() + ")"), nil
	case failed:
		return agentkernel.ErrorResult(fmt.Sprintf("%s(%v)", text, exit)), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return agentkernel.TextResult(text), err
	case text == "":
		text = "(no output)"
	}
	return agentkernel.TextResult(text), nil
}

// harmless is an environment without what looks like a secret.
func harmless(environ []string) []string {
	var out []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		name = strings.ToUpper(name)
		secret := false
		for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"} {
			secret = secret || strings.Contains(name, word)
		}
		if !secret {
			out = append(out, entry)
		}
	}
	return out
}
