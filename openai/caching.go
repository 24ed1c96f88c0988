package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

const fieldCacheControl = "cache_control"

// mostMarks is how many places to keep an endpoint takes in one request.
const mostMarks = 4

// systemParts returns the system prompt: in its blocks where one of them is to be kept and
// the endpoint can be told so, else as one text.
func (c *Compat) systemParts(req *agentkernel.ModelRequest) []sentPart {
	var parts []sentPart
	kept := 0
	for _, b := range req.SystemBlocks {
		if b.Text != "" {
			parts = append(parts, sentPart{text: b.Text})
		}
		if b.Cache && len(parts) > 0 && !parts[len(parts)-1].cache {
			parts[len(parts)-1].cache = true
			kept++
		}
	}
	if !c.CacheControl || kept == 0 {
		return wholeText(req.System, parts)
	}
	for i := 0; kept > mostMarks; i++ {
		if parts[i].cache {
			parts[i].cache = false
			kept--
		}
	}
	return parts
}

// wholeText is the system prompt in one part: as the request has it, else its blocks.
func wholeText(system string, blocks []sentPart) []sentPart {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.text
	}
	text := cmp.Or(system, strings.Join(texts, "\n\n"))
	if text == "" {
		return nil
	}
	return []sentPart{{text: text}}
}

// marks returns the messages behind which to keep what was read: the last of those that the
// request names, as far as the system prompt leaves some.
func (c *Compat) marks(req *agentkernel.ModelRequest, system []sentPart) []int {
	if !c.CacheControl {
		return nil
	}
	left := mostMarks
	for _, p := range system {
		if p.cache {
			left--
		}
	}
	marks := slices.DeleteFunc(slices.Clone(req.CacheBreakpoints), func(i int) bool {
		return i < 0 || i >= len(req.Messages)
	})
	slices.Sort(marks)
	marks = slices.Compact(marks)
	return marks[max(len(marks)-left, 0):]
}

// mark marks the last part so far that can carry it: calls and thinking cannot.
func (c *conversation) mark() {
	for _, m := range slices.Backward(c.messages) {
		for i := range slices.Backward(m.parts) {
			if p := &m.parts[i]; !p.thinking {
				p.cache = true
				return
			}
		}
	}
}
