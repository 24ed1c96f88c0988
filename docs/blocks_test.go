package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel/internal/surface"
)

const module = "github.com/agentkernel-go/agentkernel"

// given are the variables that the blocks of these pages talk of without declaring them.
const given = `
var (
	ctx    context.Context
	cfg    agentkernel.Config
	agent  *agentkernel.Agent
	model  agentkernel.ChatModel
	ev     agentkernel.Event
	mux    *http.ServeMux
	server *http.Server
	j      *journal.Journal
	screen interface{ Draw(agentkernel.Event) }
)
`

// imports are the packages that blocks use without importing them, by their names.
var imports = map[string]string{
	"agentkernel": module, "agenttest": module + "/agenttest", "journal": module + "/journal",
	"openai": module + "/openai", "sse": module + "/sse",
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "httptest": "net/http/httptest", "json": "encoding/json",
	"log": "log", "os": "os", "slog": "log/slog", "strings": "strings", "sync": "sync", "testing": "testing", "time": "time",
	"iter": "iter", "require": "github.com/stretchr/testify/require", "synctest": "testing/synctest",
}

// elsewhere are the first lines of blocks that need another module, where a test of that
// module compiles them.
var elsewhere = []string{
	"observer, err := otel.New(", // otel
}

var fence = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestCodeBlocksCompile type-checks every Go block of these pages and the README.
func TestCodeBlocksCompile(t *testing.T) {
	check := newChecker(t)
	blocks := 0
	for _, page := range pages(t) {
		text := read(t, page)
		for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
			block := text[at[2]:at[3]]
			if slices.ContainsFunc(elsewhere, func(first string) bool { return strings.HasPrefix(block, first) }) {
				continue
			}
			blocks++
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(page), 1+strings.Count(text[:at[2]], "\n")), func(t *testing.T) {
				require.NoError(t, check(block))
			})
		}
	}
	require.Greater(t, blocks, 15)
}

// TestCheckerOfBlocksFindsMistakes proves that the test above can fail.
func TestCheckerOfBlocksFindsMistakes(t *testing.T) {
	check := newChecker(t)
	for _, block := range []string{
		"agent.Subscribe(3)", "func f() { agent.NoSuchMethod() }", "package main\n\nfunc main() { x := 1 }", "for {",
	} {
		require.Error(t, check(block), block)
	}
}

// pages are the Markdown files that hold blocks.
func pages(t *testing.T) []string {
	found, err := filepath.Glob("*.md")
	require.NoError(t, err)
	more, err := filepath.Glob("../*.md")
	require.NoError(t, err)
	return append(found, more...)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// newChecker returns a function that type-checks a block: a file, declarations, or statements.
func newChecker(t *testing.T) func(block string) error {
	importer := newImporter(t)
	return func(block string) error {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "block.go", asFile(block), parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var found []error
		conf := types.Config{
			Importer: importer(fset),
			Error:    func(err error) { found = append(found, err) },
		}
		_, _ = conf.Check("block", fset, []*ast.File{file}, nil)
		whole := strings.HasPrefix(block, "package ")
		return errors.Join(slices.DeleteFunc(found, func(err error) bool {
			return !whole && strings.Contains(err.Error(), "declared and not used")
		})...)
	}
}

var (
	declaration = regexp.MustCompile(`(?m)^(func|type) `)
	qualifier   = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
)

// asFile makes a Go file of a block.
func asFile(block string) string {
	if strings.HasPrefix(block, "package ") {
		return block
	}
	if !declaration.MatchString(block) {
		block = "func _() error {\n" + block + "\nreturn nil\n}\n"
	}
	block += given
	var b strings.Builder
	b.WriteString("package block\n")
	var done []string
	for _, m := range qualifier.FindAllStringSubmatch(block, -1) {
		if name := m[1]; imports[name] != "" && !slices.Contains(done, name) {
			done = append(done, name)
			fmt.Fprintf(&b, "import %q\n", imports[name])
		}
	}
	return b.String() + block
}

// newImporter returns a function that imports the packages which a block may use.
func newImporter(t *testing.T) func(*token.FileSet) types.Importer {
	t.Helper()
	exports, err := surface.Find(append(slices.Collect(maps.Values(imports)), module+"/...")...)
	require.NoError(t, err)
	return exports.Importer
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// TestLinksLeadSomewhere follows every relative link of these pages.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			_, err := os.Stat(path.Join(path.Dir(page), m[1]))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}
