package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentkernel-go/agentkernel"
)

// ServeConfig is what an agent is called as a server. The zero value of a field is its default.
type ServeConfig struct {
	// Name and Version are the server's. Empty means "agent" and "0".
	Name, Version string
	// Tool and Description are what clients see of the one tool. Empty means "ask" and a
	// sentence that says what it does.
	Tool, Description string
	// MaxRate bounds the notifications per second about text and progress. Zero means 10;
	// negative means no bound.
	MaxRate float64
	// Server are the SDK's own options.
	Server *sdk.ServerOptions
}

const defaultRate = 10

// task is what a client asks.
type task struct {
	Prompt string `json:"prompt" jsonschema:"what to do"`
}

// Serve makes an MCP server of an agent, with one tool that prompts it: ServeConfig.Tool, whose
// one argument is "prompt", a string. The caller runs the server on a transport of the SDK, or
// several. On an [sdk.StdioTransport] the standard output is the protocol's, so that listeners
// and tools must not print there.
//
// One conversation is shared by all clients; their calls run one after the other, each as a run
// of the agent, and while the program itself has a run going a call is answered as an error. A
// client that cancels its call aborts the run. The result is the answer; a run that failed is
// an error result that says why. A client that asks for progress is told of turns, tools and
// text as they come, of text each time what was added; one that does not read is no concern of
// the run's.
//
// Where a gate of this agent suspends ([agentkernel.Suspend]) the client gets an error result that
// says what is asked; the program answers by [agentkernel.Agent.Resume]. Until then the next call
// to the server skips what waits.
func Serve(agent *agentkernel.Agent, cfg ServeConfig) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: cmp.Or(cfg.Name, "agent"), Version: cmp.Or(cfg.Version, "0")}, cfg.Server)
	h := &handler{agent: agent, rate: cmp.Or(cfg.MaxRate, defaultRate), turn: make(chan struct{}, 1)}
	sdk.AddTool(server, &sdk.Tool{
		Name:        cmp.Or(cfg.Tool, "ask"),
		Description: cmp.Or(cfg.Description, "Gives the agent something to do and returns its answer."),
	}, h.call)
	return server
}

// handler runs the calls of clients.
type handler struct {
	agent *agentkernel.Agent
	rate  float64
	turn  chan struct{} // holds one: the call that runs
}

// call is one run.
func (h *handler) call(ctx context.Context, req *sdk.CallToolRequest, in task) (*sdk.CallToolResult, any, error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	if ctx.Err() != nil { // it gave up in the moment in which its turn came
		return nil, nil, context.Cause(ctx)
	}

	told, done := context.WithCancel(ctx)
	defer done()
	teller := &teller{ctx: told, session: req.Session, token: req.Params.GetProgressToken(), started: make(chan struct{})}
	if teller.token != nil {
		sub := h.agent.SubscribeAsync(teller.hear, agentkernel.AsyncOptions{Name: "mcp progress", MaxRate: max(h.rate, 0)})
		defer sub.Close()
		defer done() // first, so that a notification which nobody reads ends
		defer teller.finish(sub)
	}
	run, err := h.agent.Prompt(ctx, in.Prompt)
	if err != nil {
		close(teller.started)
		return nil, nil, err
	}
	teller.runID = run.ID()
	close(teller.started)
	record, err := run.Wait(context.WithoutCancel(ctx)) // ctx has stopped it already
	if err != nil {
		return nil, nil, err
	}
	if waiting := record.Summary.Suspended; len(waiting) > 0 {
		return nil, nil, suspended(waiting)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: record.Answer}}}, nil, nil
}

// suspended tells a client that a person has to answer first, and what.
func suspended(waiting []agentkernel.Suspension) error {
	text := []string{"the agent waits for an answer before it can go on"}
	for _, w := range waiting {
		if w.Ask != nil {
			text = append(text, fmt.Sprintf("%s: %s", cmp.Or(w.Label, w.Call.Name), w.Ask.Text))
		}
	}
	return errors.New(strings.Join(text, "; "))
}

// teller tells a client of a run, on the goroutine of an asynchronous subscription.
type teller struct {
	ctx     context.Context
	session *sdk.ServerSession
	token   any
	started chan struct{} // closed when runID holds
	runID   string
	said    int
}

// lastWords is how long a client that does not read delays its own result.
const lastWords = time.Second

// finish waits until the client was told what there is to tell.
func (t *teller) finish(sub *agentkernel.Subscription) {
	ctx, cancel := context.WithTimeout(t.ctx, lastWords)
	defer cancel()
	_ = sub.Drain(ctx)
}

func (t *teller) hear(ev agentkernel.Event) {
	<-t.started
	if ev.RunID != t.runID {
		return
	}
	text := words(ev)
	if text == "" {
		return
	}
	t.said++
	_ = t.session.NotifyProgress(t.ctx, &sdk.ProgressNotificationParams{
		ProgressToken: t.token, Message: text, Progress: float64(t.said),
	})
}

// words is an event in the words of a progress notification, empty for most.
func words(ev agentkernel.Event) string {
	switch ev.Type {
	case agentkernel.EventTurnStart:
		return fmt.Sprintf("turn %d", ev.Turn)
	case agentkernel.EventMessageUpdate:
		if ev.DeltaKind == agentkernel.DeltaText {
			return ev.Delta
		}
	case agentkernel.EventToolExecStart:
		return cmp.Or(ev.ToolLabel, ev.Tool) + " …"
	case agentkernel.EventToolExecEnd:
		return fmt.Sprintf("%s: %s", cmp.Or(ev.ToolLabel, ev.Tool), ev.Result.Cause)
	case agentkernel.EventToolExecUpdate:
		if ev.Progress != nil {
			return ev.Progress.Text
		}
	case agentkernel.EventRetry:
		return fmt.Sprintf("trying again after: %v", ev.RetryInfo.Err)
	}
	return ""
}
