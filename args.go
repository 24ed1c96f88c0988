package agentkernel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentkernel-go/agentkernel/internal/compact"
	"github.com/agentkernel-go/agentkernel/internal/nesting"
	"github.com/agentkernel-go/agentkernel/internal/textbuf"
)

// increments are the lengths of the pieces that a text came in, as varints: a byte for most.
type increments []byte

func (in increments) with(n int) increments { return binary.AppendUvarint(in, uint64(n)) }

// ends are the offsets at which the pieces ended.
func (in increments) ends() []int {
	var ends []int
	for end := 0; len(in) > 0; {
		n, size := binary.Uvarint(in)
		end += int(n)
		ends, in = append(ends, end), in[size:]
	}
	return ends
}

// finishArgs turns the argument text of a call, which came in those pieces, into its Args. cut
// tells that the output limit ended the message within or behind this call, so that only text
// that is an object itself is known to be whole.
func finishArgs(call *ToolCall, came increments, cut bool) {
	raw := call.RawArgs
	call.Args, call.RawArgs = json.RawMessage(`{}`), ""
	args, err := parseObject(raw)
	if err != nil && !cut {
		args, err = resolveArgs(raw, came.ends(), err)
	}
	switch {
	case cut && (err != nil || isBlank(raw)):
		call.ArgsError = "the output limit cut the call off before its arguments were complete"
		call.RawArgs = raw
	case err != nil:
		call.ArgsError = err.Error()
		call.RawArgs = raw
	default:
		call.Args = args
	}
}

// resolveArgs reads argument text that is no object, for the reason err, but as providers send
// one: behind a placeholder {}, or as a whole more than once. ends are where its pieces ended.
func resolveArgs(raw string, ends []int, err error) (json.RawMessage, error) {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(raw, jsonSpace), "{}"); ok {
		raw, ends = rest, shifted(ends, len(raw)-len(rest))
		if args, err := parseObject(raw); err == nil {
			return args, nil
		}
	}
	if again, ok := sentAgain(raw, ends); ok {
		return parseObject(again)
	}
	return nil, err
}

const jsonSpace = " \t\r\n"

func isBlank(raw string) bool {
	trimmed := strings.TrimSpace(raw)
	return trimmed == "" || trimmed == "null"
}

// parseObject returns raw compacted if it is one JSON object, and an empty one for blank
// text; otherwise the error names the place.
func parseObject(raw string) (json.RawMessage, error) {
	if isBlank(raw) {
		return json.RawMessage(`{}`), nil
	}
	if strings.TrimLeft(raw, jsonSpace)[0] != '{' {
		return nil, noObject(raw)
	}
	args, ok := compact.JSON(textbuf.Bytes(raw))
	switch {
	case !ok:
		return nil, noObject(raw)
	case nesting.TooDeep(raw):
		return nil, fmt.Errorf("arguments are nested more than %d levels deep", nesting.Max)
	}
	return escaped(args), nil
}

// noObject tells why raw is no JSON object.
func noObject(raw string) error {
	var object struct{}
	err := json.Unmarshal(textbuf.Bytes(raw), &object)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("arguments are no JSON: %w at offset %d of %d", err, syntax.Offset, len(raw))
	}
	return errors.New("arguments are JSON but no object")
}

// sentAgain finds the one object in a text that holds it several times: as whole copies, or
// as increments of which each repeats all before it and the last is the object.
func sentAgain(raw string, ends []int) (string, bool) {
	if one := firstObject(raw); one != "" && isRepeated(raw, one) {
		return one, true
	}
	held, start := "", 0
	for _, end := range ends {
		piece := raw[start:end]
		if !strings.HasPrefix(piece, held) {
			return "", false
		}
		held, start = piece, end
	}
	return held, len(ends) > 1
}

// firstObject is the text up to where the object that it begins with is closed, "" where it
// begins with none or that is not closed.
func firstObject(raw string) string {
	raw = strings.TrimLeft(raw, jsonSpace)
	if !strings.HasPrefix(raw, "{") {
		return ""
	}
	depth, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case c == '{' && !inText:
			depth++
		case c == '}' && !inText:
			if depth--; depth == 0 {
				return raw[:i+1]
			}
		}
	}
	return ""
}

// isRepeated tells whether raw is nothing but one, over and over.
func isRepeated(raw, one string) bool {
	for raw = strings.TrimLeft(raw, jsonSpace); raw != ""; raw = strings.TrimLeft(raw, jsonSpace) {
		rest, ok := strings.CutPrefix(raw, one)
		if !ok {
			return false
		}
		raw = rest
	}
	return true
}

func shifted(ends []int, by int) []int {
	var out []int
	for _, end := range ends {
		if end > by {
			out = append(out, end-by)
		}
	}
	return out
}
