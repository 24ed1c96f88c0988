package demotest

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// InBubble runs a subtest in a synctest bubble.
func InBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// Bad is arguments, or an endpoint, that a program refuses.
type Bad struct {
	Args []string
	Base string // OPENAI_BASE_URL
	Code int    // with which it exits
	Want string // what it says on stderr, among others
}

// Refuses runs the program main with what is bad, each by its name, of which it must tell
// without a word on stdout.
func Refuses(t *testing.T, main func(context.Context, demo.Env) int, bad map[string]Bad) {
	for name, tt := range bad {
		t.Run(name, func(t *testing.T) {
			got := Run(t.Context(), main, map[string]string{"OPENAI_BASE_URL": tt.Base}, false, tt.Args...)
			if got.Code != tt.Code || got.Stdout != "" {
				t.Errorf("got code %d and on stdout %q, want %d and nothing", got.Code, got.Stdout, tt.Code)
			}
			Contains(t, got.Stderr, tt.Want)
		})
	}
}

// Build builds the program of the package under test and returns its path.
func Build(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("neither interrupts between processes nor a shell")
	}
	binary := filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// Interrupt runs a binary with nothing but env, interrupts it as Ctrl-C does once what it has
// shown is far enough, and returns that and what it came to; Stdout is what it showed after.
func Interrupt(t *testing.T, binary string, env map[string]string, enough func(shown string) bool) (before string, got Outcome) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary)
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for one := make([]byte, 1); !enough(shown.String()); {
		if _, err := io.ReadFull(stdout, one); err != nil {
			t.Fatalf("%v; so far %q", err, shown.String())
		}
		shown.Write(one)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	return shown.String(), Outcome{cmd.ProcessState.ExitCode(), string(rest), stderr.String()}
}
