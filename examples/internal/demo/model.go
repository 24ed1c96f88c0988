package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/openai"
)

// defaultModel is asked where OPENAI_MODEL names none.
const defaultModel = "gpt-4.1-mini"

// chooseModel returns the model that the environment names, or the scripted one.
func chooseModel(getenv func(string) string) (agentkernel.ChatModel, error) {
	key, base := getenv("OPENAI_API_KEY"), getenv("OPENAI_BASE_URL")
	if key == "" && base == "" {
		return agentkernel.ChatModelFunc(scripted), nil
	}
	model, err := openai.New(openai.Config{
		Model:   cmp.Or(getenv("OPENAI_MODEL"), defaultModel),
		APIKey:  key,
		BaseURL: base,
	})
	if err != nil {
		return nil, err // not a typed nil within the interface
	}
	return model, nil
}

// pace is the time between two increments of the scripted model.
const pace = 15 * time.Millisecond

var date = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// scripted is a model that needs no endpoint: it thinks, has the tool count the days
// between the first two dates of the prompt, and says what came out. All that an adapter
// has to do is here: yield increments, then one Done, and stop when told to.
func scripted(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		for _, ev := range reply(req) {
			select {
			case <-time.After(pace):
			case <-ctx.Done():
				yield(agentkernel.StreamEvent{}, ctx.Err())
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// reply is the whole answer of the scripted model, in increments.
func reply(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	last := req.Messages[len(req.Messages)-1]
	dates := date.FindAllString(last.TextContent(), 2)
	var out []agentkernel.StreamEvent
	stop := agentkernel.StopReasonStop
	switch {
	case last.Role == agentkernel.RoleTool && last.IsError:
		out = words(out, agentkernel.StreamEventTextDelta, "The tool says no: "+last.TextContent())
	case last.Role == agentkernel.RoleTool:
		out = words(out, agentkernel.StreamEventTextDelta, "It is "+last.TextContent()+" from the first date to the second.")
	case len(dates) < 2:
		out = words(out, agentkernel.StreamEventTextDelta,
			"I am a script that counts the days between two dates like 2026-03-01. Ask me for that, or set OPENAI_API_KEY.")
	default:
		out = words(out, agentkernel.StreamEventThinkingDelta,
			"Two dates. I am bad at counting days, but there is a tool that is good at it.")
		out = append(out, call(dates[0], dates[1])...)
		stop = agentkernel.StopReasonToolUse
	}
	return append(out,
		agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Usage: usage(req, len(out))},
		agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: stop})
}

// words adds text word by word.
func words(out []agentkernel.StreamEvent, kind agentkernel.StreamEventType, text string) []agentkernel.StreamEvent {
	for word := range strings.SplitAfterSeq(text, " ") {
		out = append(out, agentkernel.StreamEvent{Type: kind, Delta: word, Model: "script"})
	}
	return out
}

// call is a tool call as endpoints send it: its name first, then its arguments in pieces.
func call(from, to string) []agentkernel.StreamEvent {
	args, _ := json.Marshal(map[string]string{"from": from, "to": to})
	out := []agentkernel.StreamEvent{{
		Type: agentkernel.StreamEventToolCallDelta, ID: "call_1", Name: toolName,
	}}
	for piece := range strings.SplitAfterSeq(string(args), ",") {
		out = append(out, agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: "call_1", Delta: piece})
	}
	return out
}

// usage counts a word as a token.
func usage(req agentkernel.ModelRequest, output int) *agentkernel.Usage {
	input := len(strings.Fields(req.System))
	for _, m := range req.Messages {
		input += len(strings.Fields(m.TextContent()))
	}
	return &agentkernel.Usage{Input: input, Output: output, Total: input + output}
}
