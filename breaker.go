package agentkernel

import (
	"bytes"
	"encoding/json"
)

// breaker counts the failures of tools in a row, and calls that repeat themselves.
type breaker struct {
	failures map[string]int
	last     ToolCall
	repeats  int
}

// count takes the end of a call in.
func (b *breaker) count(tool string, cause ToolCause) {
	switch cause {
	case ToolOK:
		delete(b.failures, tool)
	case ToolFailed, ToolInvalid, ToolTimeout, ToolPanic:
		if b.failures == nil {
			b.failures = make(map[string]int)
		}
		b.failures[tool]++
	}
}

// repeated returns how many times in a row that call was made now.
func (b *breaker) repeated(call ToolCall, args json.RawMessage) int {
	call.Args = args
	if call.Name != b.last.Name || call.RawArgs != b.last.RawArgs || !bytes.Equal(args, b.last.Args) {
		b.last, b.repeats = call, 0
	}
	b.repeats++
	return b.repeats
}
