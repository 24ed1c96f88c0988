package agentkernel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel/internal/schema"
)

// toolset is a set of tools made ready for use. It is never changed.
type toolset struct {
	tools  []compiledTool
	byName map[string]*compiledTool
	specs  []ToolSpec // of all tools, in their order
	// deferred tells that some tools wait to be found.
	deferred bool
}

type compiledTool struct {
	Tool
	schema *schema.Schema
}

// newToolset compiles tools, or says which of them cannot be offered to a model.
func newToolset(tools []Tool) (*toolset, error) {
	set := &toolset{
		tools:  make([]compiledTool, len(tools)),
		byName: make(map[string]*compiledTool, len(tools)),
		specs:  make([]ToolSpec, len(tools)),
	}
	for i, t := range tools {
		switch {
		case t.Name == "":
			return nil, invalid("config", "tool %d has no name", i)
		case set.byName[t.Name] != nil:
			return nil, invalid("config", "two tools are named %q", t.Name)
		case t.Execute == nil:
			return nil, invalid("config", "tool %q has no Execute", t.Name)
		case t.Interrupt != InterruptBlock && t.Interrupt != InterruptCancel:
			return nil, invalid("config", "tool %q has an unknown Interrupt %q", t.Name, t.Interrupt)
		}
		compiled, err := schema.Compile(t.Schema)
		if err != nil {
			return nil, invalid("config", "schema of tool %q: %w", t.Name, err)
		}
		set.tools[i] = compiledTool{Tool: t, schema: compiled}
		set.byName[t.Name] = &set.tools[i]
		set.specs[i] = ToolSpec{Name: t.Name, Description: t.Description, Schema: compiled.JSON(), Strict: t.Strict}
		set.deferred = set.deferred || t.Deferred
	}
	return set, nil
}

// known names the tools, for a model that asked for another one.
func (set *toolset) known() string {
	if len(set.tools) == 0 {
		return "There are no tools."
	}
	names := make([]string, len(set.tools))
	for i := range set.tools {
		names[i] = fmt.Sprintf("%q", set.tools[i].Name)
	}
	return "The tools are " + strings.Join(names, ", ") + "."
}

// offered is what the model is told of the tools: all that are not deferred, then those
// that the history found or used, in the order in which it did, so that an earlier request's
// list stays the beginning of a later one's.
func (set *toolset) offered(found *foundTools) []ToolSpec {
	if !set.deferred {
		return set.specs
	}
	var out []ToolSpec
	for i := range set.tools {
		if !set.tools[i].Deferred {
			out = append(out, set.specs[i])
		}
	}
	for _, name := range found.names {
		if t := set.byName[name]; t != nil && t.Deferred {
			out = append(out, set.specs[set.indexOf(name)])
		}
	}
	return out
}

func (set *toolset) indexOf(name string) int {
	return slices.IndexFunc(set.tools, func(t compiledTool) bool { return t.Name == name })
}

// foundTools are the names of tools that a history speaks of: by a call, or by a block of a
// tool's result with their name.
type foundTools struct {
	names []string
	seen  map[string]bool
	read  int
}

// learn reads what is new in history.
func (f *foundTools) learn(history []AgentMessage) {
	for _, m := range history[f.read:] {
		own, ok := ownMessage(m)
		if !ok {
			continue
		}
		for _, b := range own.Content {
			switch {
			case own.Role == RoleTool:
				f.add(b.ToolName)
			case b.ToolCall != nil:
				f.add(b.ToolCall.Name)
			}
		}
	}
	f.read = len(history)
}

func (f *foundTools) add(name string) {
	if name == "" || f.seen[name] {
		return
	}
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	f.seen[name] = true
	f.names = append(f.names, name)
}

// readOnly asks the tool about a call.
func (t *compiledTool) readOnly(args json.RawMessage) bool {
	return t.ReadOnly != nil && t.ReadOnly(bytes.Clone(args))
}

// concurrencySafe asks the tool about a call.
func (t *compiledTool) concurrencySafe(args json.RawMessage) bool {
	if t.ConcurrencySafe != nil {
		return t.ConcurrencySafe(bytes.Clone(args))
	}
	return t.readOnly(args)
}

// timeout bounds the execution of a call; not positive is no bound.
func (t *compiledTool) timeout(cfg *Config) time.Duration {
	if t.Timeout == 0 {
		return cfg.ToolTimeout
	}
	return t.Timeout
}

// label is the call's name for people.
func (t *compiledTool) label(args json.RawMessage) string {
	if t.Activity != nil {
		if text := t.Activity(bytes.Clone(args)); text != "" {
			return validText(text)
		}
	}
	return t.Label
}
