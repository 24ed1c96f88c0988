package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is a whole program of a page and, indented behind "prints", what it says.
var program = regexp.MustCompile("(?ms)^```go\n(package main.*?)^```.*?prints$\n\n((?:^    .*?\n)+)")

// TestProgramsPrintWhatThePageSays runs the programs of getting-started.md.
func TestProgramsPrintWhatThePageSays(t *testing.T) {
	programs := program.FindAllStringSubmatch(read(t, "getting-started.md"), -1)
	require.Len(t, programs, 2)
	for _, p := range programs {
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte(p[1]), 0o600))
		out, err := exec.Command("go", "run", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, regexp.MustCompile("(?m)^    ").ReplaceAllString(p[2], ""), strings.TrimRight(string(out), "\n")+"\n")
	}
}
