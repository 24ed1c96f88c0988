package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
)

// config is what the sessions of this program are: the model that the environment names or the
// scripted one, two tools and a skill.
func config(getenv func(string) string, pace time.Duration) (session.Config, error) {
	name := cmp.Or(getenv("OPENAI_MODEL"), "endpoint")
	model, err := demo.Endpoint(getenv)
	if err != nil {
		return session.Config{}, err
	}
	if model == nil {
		name, model = "script", flaky(demo.Script(pace, reply))
	}
	model = named{model, name}
	return session.Config{
		Agent: agentkernel.Config{
			SystemPrompt: "Answer briefly. Let the tools count.",
			Tools:        []agentkernel.Tool{demo.Tool(), waitTool()},
			Retry:        agentkernel.RetryPolicy{BaseDelay: 100 * time.Millisecond},
		},
		Models:    map[string]agentkernel.ChatModel{name: model},
		Model:     name,
		Compactor: &agentkernel.Compactor{Window: 100_000, Model: model},
		Skills: []session.Skill{{
			Name:         "dates",
			Description:  "how to speak of dates and the time between them",
			Instructions: "Name the number of days, and call the user by name where you know it.",
		}},
	}, nil
}

// named is a model with a name, which stands in what the kernel tells of retries.
type named struct {
	agentkernel.ChatModel
	name string
}

func (m named) String() string { return m.name }

// flaky is a model whose first call fails, so that there is a retry to be seen.
func flaky(m agentkernel.ChatModel) agentkernel.ChatModel {
	var asked atomic.Bool
	return agentkernel.ChatModelFunc(func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		if asked.Swap(true) {
			return m.Stream(ctx, req)
		}
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			yield(agentkernel.StreamEvent{}, &agentkernel.Error{Kind: agentkernel.KindOverloaded, Op: "script", Retryable: true,
				Err: errors.New("it always fails once")})
		}
	})
}

var (
	date   = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)
	person = regexp.MustCompile(`(?i)my name is (\w+)`)
)

// reply is the script: the model reads up on dates, has the tool count the days between the
// first two of the prompt, and says what came out.
func reply(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	last := req.Messages[len(req.Messages)-1]
	dates := date.FindAllString(prompt(req), 2)
	id := fmt.Sprintf("call_%d", len(req.Messages))
	switch {
	case last.Role == agentkernel.RoleTool && last.IsError:
		return demo.End(req, demo.Text("The tool says no: "+last.TextContent()))
	case len(dates) < 2:
		return demo.End(req, demo.Text("I am a script that counts the days between two dates like 2026-03-01"+whom(req)+"."))
	case last.Role == agentkernel.RoleUser:
		return demo.End(req, demo.Thinking("Two dates: I read up, then let the tool count."),
			demo.Call(id, "use_skill", map[string]string{"name": "dates"}))
	case last.ToolName != demo.Tool().Name:
		return demo.End(req, demo.Call(id, demo.Tool().Name, map[string]string{"from": dates[0], "to": dates[1]}))
	}
	return demo.End(req, demo.Text("It is "+last.TextContent()+whom(req)+"."))
}

// prompt is what the user said last.
func prompt(req agentkernel.ModelRequest) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == agentkernel.RoleUser {
			return m.TextContent()
		}
	}
	return ""
}

// whom is how the model calls the user, by what the session remembers or the user said.
func whom(req agentkernel.ModelRequest) string {
	var said strings.Builder
	said.WriteString(req.System)
	for _, m := range req.Messages {
		said.WriteString("\n" + m.TextContent())
	}
	if name := person.FindStringSubmatch(said.String()); name != nil {
		return ", " + name[1]
	}
	return ""
}

type pause struct {
	Milliseconds int `json:"milliseconds" jsonschema:"how long, at most 60000"`
}

// waitTool does nothing for a while: a call that can be interrupted.
func waitTool() agentkernel.Tool {
	return agentkernel.MustTool("wait", "Waits for some milliseconds.", func(ctx context.Context, in pause) (string, error) {
		if in.Milliseconds < 0 || in.Milliseconds > 60_000 {
			return "", errors.New("milliseconds must be from 0 to 60000")
		}
		select {
		case <-time.After(time.Duration(in.Milliseconds) * time.Millisecond):
			return fmt.Sprintf("%d ms have passed.", in.Milliseconds), nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
}
