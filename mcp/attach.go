package mcp

import (
	"context"
	"errors"
	"slices"

	"github.com/agentkernel-go/agentkernel"
)

// AttachConfig is which tools an agent is to have.
type AttachConfig struct {
	// Own are the agent's own tools; they come first.
	Own []agentkernel.Tool
	// Sessions are the servers whose tools it gets, in this order.
	Sessions []*Session
	// OnChange is told whenever the agent was given tools, after it has them, and of what went
	// wrong: tools that could not be used ([*ToolError]), a server that could not be asked, or
	// a set that the agent refused; with the last two, tools is nil and the agent keeps what it
	// had. It is called by Attach, then on the attachment's goroutine, and must not call Close.
	OnChange func(tools []agentkernel.Tool, problem error)
}

// Attachment keeps the tools of servers on an agent.
type Attachment struct {
	agent   *agentkernel.Agent
	cfg     AttachConfig
	cancel  context.CancelCauseFunc
	done    chan struct{}
	unwatch []func()
}

// errDetached is why an attachment's requests end when it is closed.
var errDetached = errors.New("mcp: the tools were detached")

// Attach gives an agent its own tools and those of the sessions, and does so again whenever a
// server says that its list has changed: a running run has the new set from its next turn on.
// The server's word may come a moment behind the result of the call that changed its list, and a
// turn that began meanwhile does not know the new tools yet.
// Tools that cannot be used are left out; a server that cannot be asked, or a set that the
// agent refuses, is an error.
//
// While it is attached nobody else should call SetTools. A session that ends leaves its tools
// where they are; their calls fail. One goroutine runs until [Attachment.Close]; ctx bounds
// only this call.
func Attach(ctx context.Context, agent *agentkernel.Agent, cfg AttachConfig) (*Attachment, error) {
	a := &Attachment{agent: agent, cfg: cfg, done: make(chan struct{})}
	changed := make(chan struct{}, 1)
	for _, s := range cfg.Sessions {
		a.unwatch = append(a.unwatch, s.watch(changed))
	}
	if err := a.refresh(ctx); err != nil {
		a.stopWatching()
		return nil, err
	}
	ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go a.follow(ctx, changed) // ends with ctx, which Close ends and waits for
	return a, nil
}

// follow asks anew after each change. Changes that come meanwhile are one.
func (a *Attachment) follow(ctx context.Context, changed <-chan struct{}) {
	defer close(a.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if err := a.refresh(ctx); err != nil && ctx.Err() == nil {
				a.tell(nil, err)
			}
		}
	}
}

// refresh asks every server and gives the agent what they have now.
func (a *Attachment) refresh(ctx context.Context) error {
	all := slices.Clone(a.cfg.Own)
	var problems []error
	for _, s := range a.cfg.Sessions {
		tools, err := Tools(ctx, s)
		if err != nil && !partial(err) {
			return err
		}
		all = append(all, tools...)
		problems = append(problems, err)
	}
	if err := a.agent.SetTools(all...); err != nil {
		return err
	}
	a.tell(all, errors.Join(problems...))
	return nil
}

// partial tells whether err is about some tools only: the server could be asked.
func partial(err error) bool {
	_, ok := errors.AsType[*ToolError](err)
	return ok || errors.Is(err, agentkernel.KindLimit)
}

func (a *Attachment) tell(tools []agentkernel.Tool, problem error) {
	if a.cfg.OnChange != nil {
		a.cfg.OnChange(tools, problem)
	}
}

func (a *Attachment) stopWatching() {
	for _, stop := range a.unwatch {
		stop()
	}
}

// Close leaves the agent with the tools that it has now, which nobody keeps true any more. It
// returns when the attachment's goroutine has ended; it may be called more than once.
func (a *Attachment) Close() {
	a.stopWatching()
	a.cancel(errDetached)
	<-a.done
}
