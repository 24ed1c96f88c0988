package workspace

import (
	"context"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
	"github.com/aymanbagabas/go-udiff"
)

type writeArgs struct {
	Path string `json:"path" jsonschema:"a file, relative to the workspace"`
	Text string `json:"text" jsonschema:"all that shall be in the file"`
}

func (w *Workspace) writeTool() agentkernel.Tool {
	tool := agentkernel.MustTool("write", "Writes a whole file, and makes it, and the folders above it, where they do not exist. "+
		"A file that exists must have been read before.", w.write)
	tool.Activity = says(func(in writeArgs) string { return "write " + in.Path })
	tool.Preview = shows(func(in writeArgs) (string, error) {
		_, diff, err := w.writing(in)
		return diff, err
	})
	tool.Timeout = fileTimeout
	tool.Idempotent = true
	return tool
}

// writing checks a call of write, and returns the local path and what the call would change.
func (w *Workspace) writing(in writeArgs) (name, diff string, err error) {
	if name, err = local(in.Path); err != nil {
		return "", "", err
	}
	old, _, err := w.known(name)
	if err != nil {
		return "", "", err
	}
	return name, diffOf(name, string(old), in.Text), nil
}

func (w *Workspace) write(_ context.Context, in writeArgs) (string, error) {
	name, _, err := w.writing(in)
	if err != nil {
		return "", err
	}
	if err := w.store(name, []byte(in.Text)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %d bytes written", name, len(in.Text)), nil
}

// diffOf is the change of a file as a unified diff, empty where there is none.
func diffOf(name, before, after string) string {
	return udiff.Unified("a/"+name, "b/"+name, before, after)
}
