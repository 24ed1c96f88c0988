package workspace

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel"
)

// maxLines is how many lines read returns where the call names no number.
const maxLines = 2000

type readArgs struct {
	Path  string `json:"path" jsonschema:"a file, relative to the workspace"`
	First int    `json:"first,omitempty" jsonschema:"the first line, from 1; the beginning by default"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many lines; 2000 by default"`
}

func (w *Workspace) readTool() agentkernel.Tool {
	tool := agentkernel.MustTool("read", "Reads a text file. A file must be read before it is changed.", w.read)
	tool.ReadOnly = agentkernel.Always
	tool.Activity = says(func(in readArgs) string { return "read " + in.Path })
	tool.Timeout = fileTimeout
	return tool
}

func (w *Workspace) read(_ context.Context, in readArgs) (string, error) {
	name, err := local(in.Path)
	if err != nil {
		return "", err
	}
	data, err := w.load(name)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return "", fmt.Errorf("%s is no text file", name)
	}
	w.know(name, data)
	return excerpt(string(data), in.First, in.Lines)
}

// excerpt is count lines of text from first on, saying so where that is not all.
func excerpt(text string, first, count int) (string, error) {
	first = max(first, 1)
	if count <= 0 {
		count = maxLines
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if first > 1 && first > len(lines) {
		return "", fmt.Errorf("there are %d lines", len(lines))
	}
	last := min(first-1+count, len(lines))
	out := strings.Join(lines[first-1:last], "")
	if first > 1 || last < len(lines) {
		out = strings.TrimSuffix(out, "\n") + fmt.Sprintf("\n(lines %d to %d of %d)\n", first, last, len(lines))
	}
	return out, nil
}
