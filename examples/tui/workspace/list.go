package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// maxEntries bounds what list returns.
const maxEntries = 500

type listArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"a folder, relative to the workspace; the workspace by default"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"also what is in the folders below"`
}

func (w *Workspace) listTool() agentkernel.Tool {
	tool := agentkernel.MustTool("list", "Lists a folder. Folders end in /, links in @; of files the size follows.", w.list)
	tool.ReadOnly = agentkernel.Always
	tool.Activity = says(func(in listArgs) string {
		if in.Path == "" {
			return "list ."
		}
		return "list " + in.Path
	})
	tool.Timeout = fileTimeout
	return tool
}

func (w *Workspace) list(ctx context.Context, in listArgs) (string, error) {
	name, err := local(in.Path)
	if err != nil {
		return "", err
	}
	below := ""
	if name != "." {
		below = name + "/"
	}
	var out strings.Builder
	n := 0
	err = w.walk(ctx, name, func(file string, entry fs.DirEntry) error {
		if n++; n > maxEntries {
			fmt.Fprintf(&out, "(there is more than these %d)\n", maxEntries)
			return fs.SkipAll
		}
		out.WriteString(line(strings.TrimPrefix(file, below), entry))
		if entry.IsDir() && !in.Recursive {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "the folder is empty", nil
	}
	return out.String(), nil
}

func line(name string, entry fs.DirEntry) string {
	switch {
	case entry.IsDir():
		return name + "/\n"
	case entry.Type()&fs.ModeSymlink != 0:
		return name + "@\n"
	}
	info, err := entry.Info()
	if err != nil { // it is gone
		return name + "\n"
	}
	return fmt.Sprintf("%s %d\n", name, info.Size())
}

// walk calls visit for each entry below a local path, in the order of their names and without
// following links. What cannot be read is passed over, and so is what is in .git.
func (w *Workspace) walk(ctx context.Context, name string, visit func(file string, entry fs.DirEntry) error) error {
	info, err := w.root.Stat(name)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", name)
	}
	err = fs.WalkDir(w.root.FS(), name, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case file == name: // not an entry of it; the root itself where it cannot be read
			return err
		case err != nil && errors.Is(err, fs.ErrClosed):
			return err
		case err != nil:
			return nil
		}
		if err := visit(file, entry); err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		return nil
	})
	return err
}
