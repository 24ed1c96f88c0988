package agentkernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel/internal/redact"
)

// judged is a result with its cause: ctx tells whether a failure is the end of its time.
func judged(ctx context.Context, result ToolResult, err error) ToolResult {
	switch {
	case err == nil && !result.IsError:
		result.Cause = ToolOK
	case errors.Is(context.Cause(ctx), errToolTimeout):
		return timedOut(result, err)
	case ctx.Err() != nil:
		return interrupted(result, err)
	case errors.Is(err, errTooDeep):
		return unstarted(ToolLimit, errorText(err))
	case err != nil:
		return failed(result, err)
	case result.Cause != ToolInvalid:
		result.Cause = ToolFailed
	}
	return result
}

// unstarted is the result of a call that was not run.
func unstarted(cause ToolCause, text string) ToolResult {
	result := ErrorResult(text)
	result.Cause = cause
	return result
}

// notStarted is the result of a call that the end of the run's context forestalled.
func notStarted() ToolResult {
	return unstarted(ToolNotStarted, "The run was stopped before this call began. It was not run.")
}

// skipped is the result of a call that steering forestalled.
func skipped() ToolResult {
	return unstarted(ToolSkipped, "The call was skipped because the user had something else to say. It was not run.")
}

// denied is the result of a call that the gate refused.
func denied(reason string) ToolResult {
	text := "The call was denied and not run."
	if reason != "" {
		text += " Reason: " + reason
	}
	return unstarted(ToolDenied, text)
}

// panicked is the result of a call in which who panicked. The model is told the value, the
// event the stack.
func panicked(who string, crash *PanicError) ToolResult {
	result := ErrorResult(fmt.Sprintf("%s failed: %s.", who, errorText(crash)))
	result.Cause, result.Stack = ToolPanic, crash.Stack
	return result
}

// failed is the result of a tool that returned err: what it had to say, then the error.
func failed(result ToolResult, err error) ToolResult {
	result.IsError, result.Cause = true, ToolFailed
	result.Content = append(result.shown(), TextBlock(errorText(err)))
	return result
}

// interrupted is the result of a call that was stopped half-way, or whose end nobody saw.
func interrupted(result ToolResult, err error) ToolResult {
	return stopped(result, err, ToolInterrupted, "The call was interrupted. It may have had effects.")
}

func timedOut(result ToolResult, err error) ToolResult {
	return stopped(result, err, ToolTimeout, "The call took too long and was stopped. It may have had effects.")
}

func stopped(result ToolResult, err error, cause ToolCause, text string) ToolResult {
	if err != nil {
		text += " Its last word: " + errorText(err) + "."
	}
	result.IsError, result.Cause = true, cause
	result.Content = append([]ContentBlock{TextBlock(text)}, result.shown()...)
	return result
}

// errorText is an error in the words that a model may read.
func errorText(err error) string {
	if e, ok := err.(*Error); ok && e.Err != nil {
		err = e.Err
	}
	return redact.Text(err)
}

// recorded is a result as it goes on the stream and into the history: named, no longer than
// limit, a fixed point of encoding/json, sharing nothing with the tool.
func recorded(call ToolCall, result ToolResult, limit int) ToolResult {
	result.ToolCallID, result.ToolName = call.ID, call.Name
	result.Content = slices.DeleteFunc(normalize(Message{Content: result.Content}).Content,
		func(b ContentBlock) bool { return b.ToolCall != nil || b.Type == ContentToolCall }) // a model's, not a tool's
	result.JSON = compactJSON(result.JSON)
	result.Usage = result.Usage.clone()
	if size := result.size(); limit > 0 && size > limit {
		result.cut(limit, size)
	}
	return result
}

// size is how much text a model would read.
func (t *ToolResult) size() int {
	if len(t.Content) == 0 {
		return len(t.JSON)
	}
	n := 0
	for _, b := range t.Content {
		n += len(b.Text)
	}
	return n
}

// shown is what a model reads, in a slice of its own.
func (t *ToolResult) shown() []ContentBlock {
	if len(t.Content) == 0 && len(t.JSON) > 0 {
		return []ContentBlock{TextBlock(string(t.JSON))}
	}
	return slices.Clone(t.Content)
}

// cut keeps the first limit bytes of the text, says so, and moves the whole into Details.
func (t *ToolResult) cut(limit, size int) {
	t.Details = &FullResult{Content: t.Content, JSON: t.JSON, Details: t.Details}
	blocks := t.shown()
	t.JSON, t.Content = nil, nil
	left := limit
	for _, b := range blocks {
		if b.Type == ContentText {
			b.Text = firstRunes(b.Text, left)
			left -= len(b.Text)
			if b.Text == "" {
				continue
			}
		}
		t.Content = append(t.Content, b)
	}
	t.Content = append(t.Content, TextBlock(fmt.Sprintf("[cut: %d of %d bytes are left out]", size-(limit-left), size)))
}

// firstRunes returns the whole runes of the first n bytes of s.
func firstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}

func (t ToolResult) clone() *ToolResult {
	t.Content = cloneBlocks(t.Content)
	t.JSON = bytes.Clone(t.JSON)
	t.Usage = t.Usage.clone()
	return &t
}

// message is the tool message that tells the model of the result.
func (t *ToolResult) message() AgentMessage {
	m := Message{
		Role:       RoleTool,
		Content:    t.Content,
		Timestamp:  now(),
		Usage:      t.Usage,
		ToolCallID: t.ToolCallID,
		ToolName:   t.ToolName,
		IsError:    t.IsError,
		Cause:      t.Cause,
	}
	if len(t.Content) == 0 {
		m.Content = t.shown()
	}
	return m.boxedClone()
}

// excerptBytes is how much of an argument text a model is shown again.
const excerptBytes = 500

func excerpt(s string) string {
	if len(s) <= excerptBytes {
		return s
	}
	return firstRunes(s, excerptBytes) + "…"
}
