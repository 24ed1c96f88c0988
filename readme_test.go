package agentkernel_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

func TestReadmeFitsOnItsPages(t *testing.T) {
	lines := strings.Count(readText(t, "README.md"), "\n")
	require.LessOrEqual(t, lines, 150)
}

// The first program of the README is the package's Example.
func TestReadmeProgramIsTheExample(t *testing.T) {
	program := strings.NewReplacer("package agentkernel_test\n", "package main\n", "func Example() {\n", "func main() {\n").
		Replace(readText(t, "example_test.go"))
	require.Contains(t, readText(t, "README.md"), "```go\n"+program+"```\n")
}

// The first program does on an endpoint what the README says.
func TestReadmeProgramRuns(t *testing.T) {
	bodies := []string{
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"clock","arguments":"{}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`,
		`data: {"choices":[{"index":0,"delta":{"content":"It is "}}]}

data: {"choices":[{"index":0,"delta":{"content":"noon."},"finish_reason":"stop"}]}

data: [DONE]

`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if len(bodies) == 0 {
			http.Error(w, "asked too often", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, bodies[0])
		bodies = bodies[1:]
	}))
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	t.Setenv("OPENAI_BASE_URL", server.URL)
	require.Equal(t, "It is noon.", printed(t, Example))
}

// printed returns what f, which prints little, writes to the standard output.
func printed(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	old := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = old }()
	f()
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(out)
}

var link = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)

// The pages link to files that exist.
func TestDocLinks(t *testing.T) {
	docs, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, page := range append(docs, "README.md", "CHANGELOG.md") {
		for _, m := range link.FindAllStringSubmatch(readText(t, page), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}
