package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/openai"
)

// defaultModel is asked where OPENAI_MODEL names none.
const defaultModel = "gpt-4.1-mini"

// chooseModel returns the model that the environment names, or the scripted one.
func chooseModel(getenv func(string) string) (agentkernel.ChatModel, error) {
	model, err := Endpoint(getenv)
	if model == nil && err == nil {
		model = Script(pace, reply)
	}
	return model, err
}

// Endpoint returns the model that the environment names, or nil where it names none.
func Endpoint(getenv func(string) string) (agentkernel.ChatModel, error) {
	key, base := getenv("OPENAI_API_KEY"), getenv("OPENAI_BASE_URL")
	if key == "" && base == "" {
		return nil, nil
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

// Script returns a model that needs no endpoint: it says what reply answers, with a pause
// before each increment. All that an adapter has to do is here: yield increments, then one
// Done, and stop when told to.
func Script(pace time.Duration, reply func(agentkernel.ModelRequest) []agentkernel.StreamEvent) agentkernel.ChatModelFunc {
	return func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
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
}

// pace is the time between two increments of the scripted model.
const pace = 15 * time.Millisecond

var date = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// reply is the script of hello and loop: the model thinks, has the tool count the days
// between the first two dates of the prompt, and says what came out.
func reply(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	last := req.Messages[len(req.Messages)-1]
	dates := date.FindAllString(last.TextContent(), 2)
	switch {
	case last.Role == agentkernel.RoleTool && last.IsError:
		return End(req, Text("The tool says no: "+last.TextContent()))
	case last.Role == agentkernel.RoleTool:
		return End(req, Text("It is "+last.TextContent()+" from the first date to the second."))
	case len(dates) < 2:
		return End(req, Text("I am a script that counts the days between two dates like 2026-03-01. Ask me for that, or set OPENAI_API_KEY."))
	}
	return End(req, Thinking("Two dates. I am bad at counting days, but there is a tool that is good at it."),
		Call("call_1", toolName, span{From: dates[0], To: dates[1]}))
}

// Text is an answer, word by word.
func Text(text string) []agentkernel.StreamEvent {
	return words(agentkernel.StreamEventTextDelta, text)
}

// Thinking is a thought, word by word.
func Thinking(text string) []agentkernel.StreamEvent {
	return words(agentkernel.StreamEventThinkingDelta, text)
}

func words(kind agentkernel.StreamEventType, text string) []agentkernel.StreamEvent {
	var out []agentkernel.StreamEvent
	for word := range strings.SplitAfterSeq(text, " ") {
		out = append(out, agentkernel.StreamEvent{Type: kind, Delta: word, Model: "script"})
	}
	return out
}

// Call is a tool call as endpoints send it: its name first, then its arguments in pieces.
func Call(id, name string, args any) []agentkernel.StreamEvent {
	raw, _ := json.Marshal(args)
	out := []agentkernel.StreamEvent{{Type: agentkernel.StreamEventToolCallDelta, ID: id, Name: name}}
	for piece := range strings.SplitAfterSeq(string(raw), ",") {
		out = append(out, agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: id, Delta: piece})
	}
	return out
}

// End joins the parts of an answer to req and ends it, with the usage.
func End(req agentkernel.ModelRequest, parts ...[]agentkernel.StreamEvent) []agentkernel.StreamEvent {
	out := slices.Concat(parts...)
	stop := agentkernel.StopReasonStop
	if out[len(out)-1].Type == agentkernel.StreamEventToolCallDelta {
		stop = agentkernel.StopReasonToolUse
	}
	return append(out,
		agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Usage: usage(req, len(out))},
		agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: stop})
}

// usage counts a word as a token.
func usage(req agentkernel.ModelRequest, output int) *agentkernel.Usage {
	input := len(strings.Fields(req.System))
	for _, m := range req.Messages {
		input += len(strings.Fields(m.TextContent()))
	}
	return &agentkernel.Usage{Input: input, Output: output, Total: input + output}
}
