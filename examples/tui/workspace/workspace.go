package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// maxFile bounds the files that are read and written, in bytes.
const maxFile = 4 << 20

// fileTimeout bounds the calls that touch files.
const fileTimeout = 30 * time.Second

// Workspace is a folder and what is known of its files. Its tools may be used by several
// agents, and runs, at once; they then share what was read.
type Workspace struct {
	root *os.Root
	dir  string

	mu sync.Mutex
	// seen is what the files held when they were last read or written, by path.
	seen map[string][sha256.Size]byte
}

// Open opens the folder. Close it when no call is running any more.
func Open(dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Workspace{root: root, dir: dir, seen: make(map[string][sha256.Size]byte)}, nil
}

// Close closes the folder: every later call fails.
func (w *Workspace) Close() error { return w.root.Close() }

// Dir is the folder's absolute path.
func (w *Workspace) Dir() string { return w.dir }

// ReadTools are the tools that change nothing.
func (w *Workspace) ReadTools() []agentkernel.Tool {
	return []agentkernel.Tool{w.readTool(), w.listTool(), w.searchTool()}
}

// Tools are all tools.
func (w *Workspace) Tools() []agentkernel.Tool {
	return append(w.ReadTools(), w.writeTool(), w.editTool(), w.runTool())
}

// local is the path that a model wrote, cleaned. An empty one is the folder itself. Paths that
// lead out by their name are refused here, those that lead out by a link by the root.
func local(name string) (string, error) {
	if name == "" {
		return ".", nil
	}
	if filepath.IsAbs(name) {
		return "", fmt.Errorf("%q is an absolute path; paths are relative to the workspace", name)
	}
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%q leads out of the workspace", name)
	}
	return path.Clean(filepath.ToSlash(name)), nil
}

// load returns what is in the file at a local path.
func (w *Workspace) load(name string) ([]byte, error) {
	info, err := w.root.Stat(name)
	if err != nil {
		return nil, err
	}
	switch { // before it is opened: to open a pipe waits for a writer
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder", name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := w.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return data, nil
}

// know remembers what is in a file.
func (w *Workspace) know(name string, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[name] = sha256.Sum256(data)
}

// known returns what is in a file that a call wants to change: an error where the file was not
// read, or changed since. A file that does not exist is known to be empty.
func (w *Workspace) known(name string) (data []byte, exists bool, err error) {
	data, err = w.load(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	w.mu.Lock()
	sum, read := w.seen[name]
	w.mu.Unlock()
	switch {
	case !read:
		return nil, true, fmt.Errorf("%s exists and was not read: read it first", name)
	case sum != sha256.Sum256(data):
		return nil, true, fmt.Errorf("%s changed since it was read: read it again", name)
	}
	return data, true, nil
}

// store writes a file, and the folders above it.
func (w *Workspace) store(name string, data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("%s would be larger than %d bytes", name, maxFile)
	}
	if err := w.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := w.root.WriteFile(name, data, 0o644); err != nil {
		return err
	}
	w.know(name, data)
	return nil
}

// says makes a Tool.Activity of a function of the call's typed arguments.
func says[In any](say func(In) string) func(json.RawMessage) string {
	return func(args json.RawMessage) string {
		var in In
		if json.Unmarshal(args, &in) != nil {
			return ""
		}
		return say(in)
	}
}

// shows makes a Tool.Preview of a function that returns a diff, or why the call cannot be made.
func shows[In any](diff func(In) (string, error)) func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
	return func(_ context.Context, args json.RawMessage) (agentkernel.ProgressPayload, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return agentkernel.ProgressPayload{}, err
		}
		text, err := diff(in)
		return agentkernel.ProgressPayload{Text: text}, err
	}
}
