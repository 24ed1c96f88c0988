package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel"
)

const (
	maxMatches   = 100
	maxMatchLine = 200 // bytes of a line that are shown
)

type searchArgs struct {
	Pattern string `json:"pattern" jsonschema:"a regular expression (RE2) that is looked for in each line"`
	Path    string `json:"path,omitempty" jsonschema:"a folder, relative to the workspace; the workspace by default"`
	Files   string `json:"files,omitempty" jsonschema:"only in files whose name matches, such as *.go"`
}

func (w *Workspace) searchTool() agentkernel.Tool {
	tool := agentkernel.MustTool("search", "Searches the text files of a folder and of those below it.", w.search)
	tool.ReadOnly = agentkernel.Always
	tool.Activity = says(func(in searchArgs) string { return "search " + in.Pattern })
	tool.Timeout = fileTimeout
	return tool
}

func (w *Workspace) search(ctx context.Context, in searchArgs) (string, error) {
	name, err := local(in.Path)
	if err != nil {
		return "", err
	}
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", err
	}
	if _, err := path.Match(in.Files, ""); err != nil {
		return "", fmt.Errorf("%q: %w", in.Files, err)
	}
	var out strings.Builder
	found := 0
	err = w.walk(ctx, name, func(file string, entry fs.DirEntry) error {
		if !entry.Type().IsRegular() {
			return nil
		}
		if ok, _ := path.Match(in.Files, entry.Name()); in.Files != "" && !ok {
			return nil
		}
		data, err := w.load(file)
		if err != nil || bytes.IndexByte(data, 0) >= 0 { // gone, too large, no text
			return nil
		}
		number := 0
		for text := range bytes.Lines(data) {
			number++
			text = bytes.TrimRight(text, "\r\n")
			if !pattern.Match(text) {
				continue
			}
			if found++; found > maxMatches {
				fmt.Fprintf(&out, "(there is more than these %d)\n", maxMatches)
				return fs.SkipAll
			}
			fmt.Fprintf(&out, "%s:%d: %s\n", file, number, shortened(string(text), maxMatchLine))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if found == 0 {
		return "nothing matches", nil
	}
	return out.String(), nil
}

// shortened is text of at most n bytes and a mark where it was cut, which is between runes.
func shortened(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
