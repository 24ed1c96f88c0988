package agentkernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SearchToolName is the name of the tool that [SearchTool] returns.
const SearchToolName = "search_tools"

// searchToolHits bounds the tools that one search makes available.
const searchToolHits = 8

// SearchTool returns the tool that finds deferred tools among tools: it announces their
// names, and makes available those that a call names or whose name or description contains
// all words of its query. Its hits are marked in the result by ContentBlock.ToolName, so
// that a history alone tells which tools are available; see Tool.Deferred.
//
//	cfg.Tools = append(tools, agentkernel.SearchTool(tools...))
func SearchTool(tools ...Tool) Tool {
	var deferred []Tool
	for _, t := range tools {
		if t.Deferred {
			deferred = append(deferred, t)
		}
	}
	return Tool{
		Name:        SearchToolName,
		Label:       "Search tools",
		Description: searchDescription(deferred),
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"names":{"type":"array","items":{"type":"string"},"description":"exact names of tools"},` +
			`"query":{"type":"string","description":"words that the name or the description contains"}},` +
			`"additionalProperties":false}`),
		ReadOnly: Always,
		Execute: func(_ context.Context, args json.RawMessage) (ToolResult, error) {
			return searchTools(deferred, args)
		},
	}
}

func searchDescription(deferred []Tool) string {
	names := make([]string, len(deferred))
	for i, t := range deferred {
		names[i] = t.Name
	}
	return "Makes further tools available, by name or by words. They can be called from the next answer on. " +
		"There are: " + strings.Join(names, ", ") + "."
}

func searchTools(deferred []Tool, args json.RawMessage) (ToolResult, error) {
	var asked struct {
		Names []string
		Query string
	}
	if err := json.Unmarshal(args, &asked); err != nil {
		return ToolResult{}, err
	}
	words := strings.Fields(strings.ToLower(asked.Query))
	var hits []ContentBlock
	for _, t := range deferred {
		if len(hits) < searchToolHits && (slices.Contains(asked.Names, t.Name) || containsAll(t, words)) {
			hits = append(hits, ContentBlock{Type: ContentText, ToolName: t.Name,
				Text: fmt.Sprintf("%s: %s", t.Name, t.Description)})
		}
	}
	if len(hits) == 0 {
		return ToolResult{}, errors.New("no tool was found; ask with other words or an exact name")
	}
	return ToolResult{Content: hits}, nil
}

func containsAll(t Tool, words []string) bool {
	text := strings.ToLower(t.Name + " " + t.Description)
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return len(words) > 0
}
