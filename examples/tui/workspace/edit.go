package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

type editArgs struct {
	Path string `json:"path" jsonschema:"a file, relative to the workspace"`
	Old  string `json:"old" jsonschema:"the text to replace, exactly as it is in the file, with as much around it as makes it unique"`
	New  string `json:"new" jsonschema:"the text to put there"`
	All  bool   `json:"all,omitempty" jsonschema:"replace every place where the old text is"`
}

func (w *Workspace) editTool() agentkernel.Tool {
	tool := agentkernel.MustTool("edit", "Replaces a piece of text in a file that was read before.", w.edit)
	tool.Activity = says(func(in editArgs) string { return "edit " + in.Path })
	tool.Preview = shows(func(in editArgs) (string, error) {
		name, old, edited, err := w.editing(in)
		if err != nil {
			return "", err
		}
		return diffOf(name, old, edited), nil
	})
	tool.Timeout = fileTimeout
	return tool
}

// editing checks a call of edit, and returns the local path and the file before and after it.
func (w *Workspace) editing(in editArgs) (name, before, after string, err error) {
	if name, err = local(in.Path); err != nil {
		return "", "", "", err
	}
	data, exists, err := w.known(name)
	if err != nil {
		return "", "", "", err
	}
	before = string(data)
	found := strings.Count(before, in.Old)
	switch {
	case !exists:
		err = fmt.Errorf("%s does not exist: write it", name)
	case in.Old == "":
		err = errors.New("the old text is empty")
	case in.Old == in.New:
		err = errors.New("the new text is the old one")
	case found == 0:
		err = fmt.Errorf("the old text is not in %s", name)
	case found > 1 && !in.All:
		err = fmt.Errorf("the old text is in %s %d times: give more of what is around it, or set all", name, found)
	}
	return name, before, strings.ReplaceAll(before, in.Old, in.New), err
}

func (w *Workspace) edit(_ context.Context, in editArgs) (string, error) {
	name, before, after, err := w.editing(in)
	if err != nil {
		return "", err
	}
	if err := w.store(name, []byte(after)); err != nil {
		return "", err
	}
	if n := strings.Count(before, in.Old); n > 1 {
		return fmt.Sprintf("%s: %d places replaced", name, n), nil
	}
	return name + ": replaced", nil
}
