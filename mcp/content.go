package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/internal/schema"
)

// result makes a kernel result of a server's. Structured output is its JSON; one that does not
// fit the tool's own output schema is an error that the model is told of, beside the content.
func result(got *sdk.CallToolResult, output *schema.Schema) (agentkernel.ToolResult, error) {
	r := agentkernel.ToolResult{IsError: got.IsError}
	for _, c := range got.Content {
		r.Content = append(r.Content, block(c))
	}
	if got.StructuredContent == nil {
		return r, nil
	}
	raw, err := json.Marshal(got.StructuredContent)
	if err != nil {
		return r, fmt.Errorf("the server's structured result is no JSON: %w", err)
	}
	r.JSON = raw
	if output != nil && !got.IsError {
		if wrong := output.Check(raw); len(wrong) > 0 {
			return r, fmt.Errorf("the server's result does not fit its own output schema: %v", wrong)
		}
	}
	return r, nil
}

// block is content as a model reads it. What no model reads is named.
func block(c sdk.Content) agentkernel.ContentBlock {
	switch c := c.(type) {
	case *sdk.TextContent:
		return agentkernel.TextBlock(c.Text)
	case *sdk.ImageContent:
		return image(c.Data, c.MIMEType)
	case *sdk.AudioContent:
		return agentkernel.TextBlock(fmt.Sprintf("[audio of type %s, %d bytes]", c.MIMEType, len(c.Data)))
	case *sdk.ResourceLink:
		parts := slices.DeleteFunc([]string{"resource " + c.URI, c.Name, c.Title, c.Description, c.MIMEType},
			func(part string) bool { return part == "" })
		return agentkernel.TextBlock("[" + strings.Join(parts, ", ") + "]")
	case *sdk.EmbeddedResource:
		return resource(c.Resource)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return agentkernel.TextBlock(fmt.Sprintf("[content of type %T]", c))
	}
	return agentkernel.TextBlock(string(raw))
}

func resource(r *sdk.ResourceContents) agentkernel.ContentBlock {
	switch {
	case r == nil:
		return agentkernel.TextBlock("[empty resource]")
	case len(r.Blob) == 0:
		return agentkernel.TextBlock("[resource " + r.URI + "]\n" + r.Text)
	case strings.HasPrefix(r.MIMEType, "image/"):
		return image(r.Blob, r.MIMEType)
	}
	return agentkernel.TextBlock(fmt.Sprintf("[resource %s of type %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob)))
}

func image(data []byte, mime string) agentkernel.ContentBlock {
	return agentkernel.ContentBlock{Type: agentkernel.ContentImage, Image: &agentkernel.Image{Data: data, MIMEType: mime}}
}
