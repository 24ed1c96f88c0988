package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// The files of the workspace that a script works in.
var sample = map[string]string{
	"README.md":      "# Greeter\n\nSays hello. TODO: say to whom.\n",
	"greeting.txt":   "Hello, nobody.\nHow are you?\n",
	"names/list.txt": "Ada\nGrace\nKurt\n",
}

// script is the model that needs no endpoint. Asked for anything, it shows all that the screen
// can show: it thinks, has four calls run side by side, one of which asks a sub-agent, changes
// a file, runs a command, and reports in markdown. Asked for a story it talks for a while, and
// told to be short it is.
func script(pace time.Duration) agentkernel.ChatModel { return demo.Script(pace, priced(tour)) }

// explorer is the sub-agent's model.
func explorer(pace time.Duration) agentkernel.ChatModel { return demo.Script(pace, priced(explore)) }

// priced gives the usage of a reply a cost: that many dollars for each token.
func priced(reply func(agentkernel.ModelRequest) []agentkernel.StreamEvent) func(agentkernel.ModelRequest) []agentkernel.StreamEvent {
	const price = 0.00001
	return func(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
		events := reply(req)
		for i := range events {
			if u := events[i].Usage; u != nil {
				u.Cost = new(price * float64(u.Total))
			}
		}
		return events
	}
}

type (
	object  = map[string]any
	results map[string]agentkernel.Message // of the calls since the user spoke, by tool
)

// since splits a conversation at the last thing that the user said.
func since(messages []agentkernel.Message) (said string, got results) {
	got = make(results)
	for _, m := range messages {
		switch m.Role {
		case agentkernel.RoleUser:
			said = m.TextContent()
			clear(got)
		case agentkernel.RoleTool:
			got[m.ToolName] = m
		}
	}
	return strings.ToLower(said), got
}

func tour(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	said, got := since(req.Messages)
	_, looked := got["explore"]
	edited, changed := got["edit"]
	ran, counted := got["run"]
	switch {
	case strings.Contains(said, "story"):
		return demo.End(req, demo.Text(story))
	case strings.Contains(said, "short"):
		return demo.End(req, demo.Text("Short, then: **done**."))
	case !looked:
		return demo.End(req,
			demo.Thinking("They want to see what I can do. I look at the files first, all at once."),
			demo.Text("I look around."),
			call(req, "list", object{}),
			call(req, "read", object{"path": "greeting.txt"}),
			call(req, "search", object{"pattern": "TODO"}),
			call(req, "explore", object{"tasks": []object{{"agent": "explorer", "prompt": "Whom could we greet?"}}}))
	case !changed:
		return demo.End(req, demo.Text("The greeting is for nobody. I change that."),
			call(req, "edit", object{"path": "greeting.txt", "old": "nobody", "new": "Ada"}))
	case edited.IsError:
		return demo.End(req, demo.Text("I leave the file as it is."))
	case !counted:
		return demo.End(req, demo.Text("I check it with a command."),
			call(req, "run", object{"command": "cat greeting.txt && wc -l < names/list.txt"}))
	case ran.IsError:
		return demo.End(req, demo.Text("The file is changed, and no command was run."))
	}
	return demo.End(req, demo.Text(report))
}

// explore looks into a folder, then into a file, and names what it found.
func explore(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	_, got := since(req.Messages)
	_, listed := got["list"]
	names, read := got["read"]
	switch {
	case !listed:
		return demo.End(req, call(req, "list", object{"path": "names"}))
	case !read:
		return demo.End(req, call(req, "read", object{"path": "names/list.txt"}))
	}
	return demo.End(req, demo.Text("We could greet "+strings.Join(strings.Fields(names.TextContent()), ", ")+"."))
}

// call is a call whose id is its own in the conversation.
func call(req agentkernel.ModelRequest, tool string, args object) []agentkernel.StreamEvent {
	return demo.Call(tool+"_"+strconv.Itoa(len(req.Messages)), tool, args)
}

const report = "## Done\n\n" +
	"- `greeting.txt` greets **Ada** now\n" +
	"- `names/list.txt` has *three* names\n\n" +
	"```go\nfmt.Println(\"Hello, Ada.\")\n```\n"

var story = "Once upon a time there was a run that nobody had asked to stop. " +
	strings.Repeat("It went on and on, word after word, and whoever watched saw the text grow. ", 20) +
	"Then it ended."
