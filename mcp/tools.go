package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/internal/schema"
)

// ToolError is a tool of a server that cannot be used.
type ToolError struct {
	// Name is what the server calls it.
	Name string
	Err  error
}

// Error names the tool and what is wrong with it.
func (e *ToolError) Error() string { return fmt.Sprintf("mcp: tool %q: %v", e.Name, e.Err) }

// Unwrap returns what is wrong.
func (e *ToolError) Unwrap() error { return e.Err }

// Tools asks the server for its tools and makes the kernel's of them, in the server's order.
//
// A tool that cannot be used (no name, a schema that is none) is left out and told in the
// error, as a [*ToolError] for each; the others are returned beside it. More than
// Config.MaxTools is an error of kind "limit", and the first of them are returned.
//
// How what the server says is understood: the input schema is the Schema; its title is the
// Label; the hint "read only" is ReadOnly, lets calls run side by side, and lets steering cancel
// them; the hint "idempotent" is Idempotent. Without hints a tool counts as one that may
// destroy, as the specification says.
//
// A server's message about progress is the Text of a report of kind "summary", of which the newest
// holds. So of messages that are pieces of a text, as those of [Serve] are, a late consumer
// misses some; the result has all of it.
func Tools(ctx context.Context, s *Session) ([]agentkernel.Tool, error) {
	var tools []agentkernel.Tool
	var problems []error
	taken := map[string]bool{}
	listed, err := s.list(ctx)
	if errors.Is(err, agentkernel.KindLimit) {
		problems = append(problems, err)
	} else if err != nil {
		return nil, err
	}
	for _, t := range listed {
		if t == nil { // "null" in the list
			continue
		}
		tool, err := s.tool(t, taken)
		if err != nil {
			problems = append(problems, &ToolError{Name: t.Name, Err: err})
			continue
		}
		tools = append(tools, tool)
	}
	return tools, errors.Join(problems...)
}

// list reads the server's list, page by page, as far as Config.MaxTools allows. A page may be
// empty, but not every one: a server could go on for ever.
func (s *Session) list(ctx context.Context) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for page := 1; ; page++ {
		got, err := ask(ctx, s.line, func(ctx context.Context) (*sdk.ListToolsResult, error) { return s.conn.ListTools(ctx, params) })
		if err != nil {
			return nil, failure(ctx, "list tools", err)
		}
		all = append(all, got.Tools...)
		if most := s.cfg.MaxTools; most > 0 && (len(all) > most || page > most && got.NextCursor != "") {
			return all[:min(len(all), most)], &agentkernel.Error{Kind: agentkernel.KindLimit, Op: "mcp list tools",
				Err: fmt.Errorf("the server has more than %d tools", most)}
		}
		if got.NextCursor == "" {
			return all, nil
		}
		params.Cursor = got.NextCursor
	}
}

// tool makes a kernel tool of a server's.
func (s *Session) tool(t *sdk.Tool, taken map[string]bool) (agentkernel.Tool, error) {
	if t.Name == "" {
		return agentkernel.Tool{}, errors.New("it has no name")
	}
	var output *schema.Schema
	if t.OutputSchema != nil {
		var err error
		if output, err = schema.Compile(t.OutputSchema); err != nil {
			return agentkernel.Tool{}, fmt.Errorf("its output schema: %w", err)
		}
	}
	tool := agentkernel.Tool{
		Name:        unique(s.prefix()+t.Name, taken),
		Description: t.Description,
		Schema:      t.InputSchema,
		Label:       t.Title,
		Execute: func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			return s.call(ctx, t.Name, args, output)
		},
	}
	if a := t.Annotations; a != nil {
		tool.Label = cmp.Or(t.Title, a.Title)
		if !s.cfg.Untrusted && a.ReadOnlyHint {
			tool.ReadOnly, tool.Interrupt = agentkernel.Always, agentkernel.InterruptCancel
		}
		tool.Idempotent = !s.cfg.Untrusted && (a.IdempotentHint || a.ReadOnlyHint)
	}
	return tool, usable(tool)
}

// usable tells what the kernel would say of a tool.
func usable(tool agentkernel.Tool) error {
	_, err := agentkernel.NewAgent(agentkernel.Config{Tools: []agentkernel.Tool{tool}})
	return err
}

// maxName is how long a tool's name may be: what the strictest providers take.
const maxName = 64

// prefix stands before the names of the session's tools.
func (s *Session) prefix() string {
	switch {
	case s.cfg.Prefix == "-":
		return ""
	case s.cfg.Prefix != "":
		return s.cfg.Prefix + "_"
	}
	if info := s.conn.InitializeResult(); info != nil && info.ServerInfo != nil && info.ServerInfo.Name != "" {
		return info.ServerInfo.Name + "_"
	}
	return ""
}

// unique makes a name of letters, digits, "_" and "-" that no other tool of the server has.
// One that is too long or taken ends in a hash of the whole name, so that it is the same in
// every session.
func unique(name string, taken map[string]bool) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	for n := 0; len(clean) > maxName || taken[clean]; n++ {
		h := fnv.New32a()
		fmt.Fprint(h, n, name)
		clean = fmt.Sprintf("%s_%08x", clean[:min(len(clean), maxName-9)], h.Sum32())
	}
	taken[clean] = true
	return clean
}
