package workspace_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/tui/workspace"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// desk is a workspace in a folder that has a secret beside it.
type desk struct {
	t     *testing.T
	dir   string
	tools map[string]agentkernel.Tool
}

func open(t *testing.T, files ...string) desk {
	outside := t.TempDir()
	dir := filepath.Join(outside, "inside")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret\n"), 0o644))
	w, err := workspace.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	d := desk{t, dir, make(map[string]agentkernel.Tool)}
	for _, tool := range w.Tools() {
		d.tools[tool.Name] = tool
	}
	for i := 0; i+1 < len(files); i += 2 {
		d.put(files[i], files[i+1])
	}
	return d
}

// put writes a file behind the tools' back.
func (d desk) put(name, text string) {
	d.t.Helper()
	file := filepath.Join(d.dir, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(d.t, os.WriteFile(file, []byte(text), 0o644))
}

func (d desk) content(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	require.NoError(d.t, err)
	return string(data)
}

type args map[string]any

// do executes a call and returns what the model is told, and whether it failed.
func (d desk) do(tool string, in args) (text string, failed bool) {
	d.t.Helper()
	raw, err := json.Marshal(in)
	require.NoError(d.t, err)
	result, err := d.tools[tool].Execute(d.t.Context(), raw)
	if err != nil {
		return result.TextContent() + err.Error(), true
	}
	return result.TextContent(), result.IsError
}

func (d desk) ok(tool string, in args) string {
	d.t.Helper()
	text, failed := d.do(tool, in)
	require.False(d.t, failed, text)
	return text
}

func (d desk) fails(tool string, in args, why string) {
	d.t.Helper()
	text, failed := d.do(tool, in)
	require.True(d.t, failed, "%s %v: %s", tool, in, text)
	assert.Contains(d.t, text, why)
}

// preview returns what a person is shown before the call, or why it cannot be made.
func (d desk) preview(tool string, in args) (string, error) {
	d.t.Helper()
	raw, err := json.Marshal(in)
	require.NoError(d.t, err)
	p, err := d.tools[tool].Preview(d.t.Context(), raw)
	return p.Text, err
}

func TestRead(t *testing.T) {
	d := open(t, "a.txt", "one\ntwo\nthree\n", "empty", "", "bin", "a\x00b", "latin", "gr\xfc\xdfe", "big", strings.Repeat("x", 5<<20))
	assert.Equal(t, "one\ntwo\nthree\n", d.ok("read", args{"path": "a.txt"}))
	assert.Equal(t, "one\ntwo\nthree\n", d.ok("read", args{"path": "./x/../a.txt"}), "the name is cleaned")
	assert.Equal(t, "two\n(lines 2 to 2 of 3)\n", d.ok("read", args{"path": "a.txt", "first": 2, "lines": 1}))
	assert.Equal(t, "three\n(lines 3 to 3 of 3)\n", d.ok("read", args{"path": "a.txt", "first": 3, "lines": 9}))
	assert.Empty(t, d.ok("read", args{"path": "empty"}))
	d.fails("read", args{"path": "a.txt", "first": 4}, "there are 3 lines")
	d.fails("read", args{"path": "bin"}, "no text file")
	d.fails("read", args{"path": "latin"}, "no text file")
	d.fails("read", args{"path": "big"}, "larger than")
	d.fails("read", args{"path": "."}, "is a folder")
	d.fails("read", args{"path": "nope"}, "no such file")
}

func TestWrite(t *testing.T) {
	d := open(t, "old.txt", "one\ntwo\n")
	diff, err := d.preview("write", args{"path": "a/b/new.txt", "text": "hello\n"})
	require.NoError(t, err)
	assert.Equal(t, "--- a/a/b/new.txt\n+++ b/a/b/new.txt\n@@ -0,0 +1 @@\n+hello\n", diff)
	d.ok("write", args{"path": "a/b/new.txt", "text": "hello\n"})
	assert.Equal(t, "hello\n", d.content("a/b/new.txt"))
	d.ok("write", args{"path": "a/b/new.txt", "text": "again\n"}) // who wrote it knows what is in it

	d.fails("write", args{"path": "old.txt", "text": "x"}, "read it first")
	d.ok("read", args{"path": "old.txt"})
	diff, err = d.preview("write", args{"path": "old.txt", "text": "one\nTWO\n"})
	require.NoError(t, err)
	assert.Contains(t, diff, "-two\n+TWO\n")
	assert.Equal(t, "one\ntwo\n", d.content("old.txt"), "a preview changes nothing")
	d.ok("write", args{"path": "old.txt", "text": "one\nTWO\n"})
	assert.Equal(t, "one\nTWO\n", d.content("old.txt"))
	d.fails("write", args{"path": "old.txt", "text": strings.Repeat("x", 5<<20)}, "larger than")
	d.fails("write", args{"path": ".", "text": "x"}, "is a folder")
}

func TestEdit(t *testing.T) {
	d := open(t, "a.txt", "one\ntwo\none\n")
	edit := func(old, new string, all bool) args {
		return args{"path": "a.txt", "old": old, "new": new, "all": all}
	}
	d.fails("edit", edit("two", "2", false), "read it first")
	d.ok("read", args{"path": "a.txt"})
	diff, err := d.preview("edit", edit("two", "2", false))
	require.NoError(t, err)
	assert.Equal(t, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n one\n", diff)
	d.ok("edit", edit("two", "2", false))
	assert.Equal(t, "one\n2\none\n", d.content("a.txt"))
	d.fails("edit", edit("one", "1", false), "2 times")
	assert.Contains(t, d.ok("edit", edit("one", "1", true)), "2 places")
	assert.Equal(t, "1\n2\n1\n", d.content("a.txt"))
	d.fails("edit", edit("three", "3", false), "is not in")
	d.fails("edit", edit("", "3", false), "empty")
	d.fails("edit", edit("2", "2", false), "the old one")
	d.fails("edit", args{"path": "nope", "old": "a", "new": "b"}, "does not exist")
}

// TestChangedSince: what changed behind the back of who read it is not overwritten, neither
// between read and call nor between preview and call.
func TestChangedSince(t *testing.T) {
	d := open(t, "a.txt", "one\n")
	write, edit := args{"path": "a.txt", "text": "x"}, args{"path": "a.txt", "old": "one", "new": "x"}
	d.ok("read", args{"path": "a.txt"})
	_, err := d.preview("edit", edit)
	require.NoError(t, err)
	d.put("a.txt", "one, and more\n")
	for tool, in := range map[string]args{"write": write, "edit": edit} {
		d.fails(tool, in, "changed since")
		_, err := d.preview(tool, in)
		require.ErrorContains(t, err, "changed since")
	}
	assert.Equal(t, "one, and more\n", d.content("a.txt"))
	d.put("a.txt", "one\n") // as it was read
	d.ok("edit", edit)
	require.NoError(t, os.Remove(filepath.Join(d.dir, "a.txt")))
	d.ok("write", write) // there is nothing to lose
}

// TestConfined: no name and no link leads out of the folder, whatever the tool.
func TestConfined(t *testing.T) {
	d := open(t, "in.txt", "in\n", "sub/x.txt", "x\n")
	for link, target := range map[string]string{
		"file": "../secret", "folder": "..", "absolute": filepath.Dir(d.dir), "sub/up": "../..", "dangling": "../new",
		"loop": "loop", "inner": "sub/x.txt",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(d.dir, link)))
	}
	outside := []string{"../secret", "sub/../../secret", filepath.Join(filepath.Dir(d.dir), "secret"), "/etc/passwd",
		"file", "folder/secret", "absolute/secret", "sub/up/secret", "dangling", "loop", "folder/new", "../new/new"}
	for _, name := range outside {
		for tool, in := range map[string]args{
			"read":  {"path": name},
			"write": {"path": name, "text": "x"},
			"edit":  {"path": name, "old": "secret", "new": "x"},
		} {
			text, failed := d.do(tool, in)
			assert.True(t, failed, "%s %s: %s", tool, name, text)
			assert.NotContains(t, text, "secret\n", "%s %s", tool, name)
			if d.tools[tool].Preview != nil {
				shown, err := d.preview(tool, in)
				assert.NotContains(t, shown, "-secret", "%s %s", tool, name)
				if tool == "edit" {
					assert.Error(t, err, name)
				}
			}
		}
	}
	for _, name := range []string{"..", "folder", "absolute", "sub/up", "/", "folder/inside"} {
		for tool, in := range map[string]args{"list": {"path": name}, "search": {"path": name, "pattern": "secret"}} {
			text, failed := d.do(tool, in)
			assert.True(t, failed, "%s %s: %s", tool, name, text)
		}
	}
	assert.Equal(t, "nothing matches", d.ok("search", args{"pattern": "^secret"}), "links are not followed")
	assert.NotContains(t, d.ok("list", args{"recursive": true}), "secret")
	assert.Equal(t, "x\n", d.ok("read", args{"path": "inner"}), "a link that stays inside is a file")
	beside, err := os.ReadDir(filepath.Dir(d.dir))
	require.NoError(t, err)
	assert.Len(t, beside, 2, "nothing was made outside")
	secret, err := os.ReadFile(filepath.Join(filepath.Dir(d.dir), "secret"))
	require.NoError(t, err)
	assert.Equal(t, "secret\n", string(secret))
}

func TestList(t *testing.T) {
	d := open(t, "b.txt", "12345", "a/c.txt", "", "a/.git/x", "", ".hidden", "1")
	require.NoError(t, os.Symlink("b.txt", filepath.Join(d.dir, "link")))
	assert.Equal(t, ".hidden 1\na/\nb.txt 5\nlink@\n", d.ok("list", args{}))
	assert.Equal(t, ".hidden 1\na/\na/.git/\na/c.txt 0\nb.txt 5\nlink@\n", d.ok("list", args{"recursive": true}))
	assert.Equal(t, ".git/\nc.txt 0\n", d.ok("list", args{"path": "a/"}))
	d.fails("list", args{"path": "b.txt"}, "no folder")
	d.fails("list", args{"path": "nope"}, "no such file")
	require.NoError(t, os.Mkdir(filepath.Join(d.dir, "none"), 0o755))
	assert.Equal(t, "the folder is empty", d.ok("list", args{"path": "none"}))
	for i := range 600 {
		d.put(filepath.Join("many", strings.Repeat("x", i%100+1)+string(rune('a'+i/100))), "")
	}
	assert.Equal(t, 501, strings.Count(d.ok("list", args{"path": "many"}), "\n"))
}

func TestSearch(t *testing.T) {
	d := open(t, "a.go", "package a\n// TODO: b\n", "sub/b.go", "TODO\r\n", "c.md", "TODO\n", "bin", "\x00TODO\n",
		".git/x", "TODO\n", "long", "TODO "+strings.Repeat("ü", 300))
	assert.Equal(t, "a.go:2: // TODO: b\nsub/b.go:1: TODO\n", d.ok("search", args{"pattern": "TO.O", "files": "*.go"}))
	assert.Equal(t, "sub/b.go:1: TODO\n", d.ok("search", args{"pattern": "TODO", "path": "sub"}))
	assert.Equal(t, "nothing matches", d.ok("search", args{"pattern": "nowhere"}))
	long := d.ok("search", args{"pattern": "TODO", "files": "long"})
	assert.Less(t, len(long), 230)
	assert.True(t, strings.HasSuffix(long, "ü…\n"), long)
	d.fails("search", args{"pattern": "("}, "missing closing")
	d.fails("search", args{"pattern": "x", "files": "["}, "syntax error")
	d.put("many", strings.Repeat("TODO\n", 300))
	assert.Equal(t, 101, strings.Count(d.ok("search", args{"pattern": "TODO", "files": "many"}), "\n"))
}

// TestSpecialFile: what is no regular file is not opened, since that may wait for ever.
func TestSpecialFile(t *testing.T) {
	d := open(t)
	d.ok("run", args{"command": "mkfifo pipe"})
	d.fails("read", args{"path": "pipe"}, "no regular file")
	d.fails("write", args{"path": "pipe", "text": "x"}, "no regular file")
	assert.Equal(t, "nothing matches", d.ok("search", args{"pattern": "x"}))
}

// TestReadOnly: the gate may trust what the tools say of themselves.
func TestReadOnly(t *testing.T) {
	d := open(t)
	for name, tool := range d.tools {
		want := name == "read" || name == "list" || name == "search"
		assert.Equal(t, want, tool.ReadOnly != nil && tool.ReadOnly(json.RawMessage(`{}`)), name)
	}
	assert.Equal(t, "read x", d.tools["read"].Activity(json.RawMessage(`{"path":"x"}`)))
	assert.Empty(t, d.tools["read"].Activity(json.RawMessage(`{"path":1}`)))
}

func TestOpen(t *testing.T) {
	_, err := workspace.Open(filepath.Join(t.TempDir(), "nope"))
	require.Error(t, err)
}
