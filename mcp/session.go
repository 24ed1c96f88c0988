package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentkernel-go/agentkernel"
)

// Config is how to be the client of a server. The zero value of a field is its default.
type Config struct {
	// Prefix stands before the name of each tool, with "_" between, so that the tools of two
	// servers do not clash. Empty means the server's own name; "-" means no prefix.
	Prefix string
	// Untrusted makes nothing of what the server says of its tools' effects: each counts as
	// one that may change anything. By default its hints are believed, as the specification
	// allows for servers that are trusted.
	Untrusted bool
	// MaxTools bounds the tools that are taken of a server. Zero means 1,000; negative means
	// no bound.
	MaxTools int
	// Name and Version are what the server is told of this program. Empty means "agentkernel"
	// and "0".
	Name, Version string
	// Client are the SDK's own options. Its handlers for progress and for changes of the list
	// of tools are called as well.
	Client *sdk.ClientOptions
}

const defaultMaxTools = 1000

// Session is the connection to a server. Its methods may be called from any goroutine.
type Session struct {
	cfg  Config
	conn *sdk.ClientSession
	line *line

	tokens  atomic.Uint64
	running sync.Map // progress token: context of the call

	mu       sync.Mutex
	watchers map[*watcher]bool
}

// watcher is somebody who wants to know of a changed list of tools. The channel holds one.
type watcher struct{ changed chan struct{} }

// Connect begins a session over transport. ctx bounds the handshake only; [Session.Close] ends
// the session, and so does the server's end.
func Connect(ctx context.Context, transport sdk.Transport, cfg Config) (*Session, error) {
	if cfg.MaxTools == 0 {
		cfg.MaxTools = defaultMaxTools
	}
	s := &Session{cfg: cfg, line: &line{Transport: transport}, watchers: map[*watcher]bool{}}
	client := sdk.NewClient(&sdk.Implementation{
		Name: cmp.Or(cfg.Name, "agentkernel"), Version: cmp.Or(cfg.Version, "0"),
	}, s.options())
	stop := context.AfterFunc(ctx, s.line.cut) // a server that does not read holds the SDK past ctx
	conn, err := client.Connect(ctx, s.line, nil)
	if !stop() && err == nil {
		err = context.Cause(ctx)
		_ = conn.Close()
	}
	if err != nil {
		s.line.cut()
		return nil, failure(ctx, "connect", err)
	}
	s.conn = conn
	return s, nil
}

// options are the SDK's, with the session's own handlers before those of the program.
func (s *Session) options() *sdk.ClientOptions {
	var opts sdk.ClientOptions
	if s.cfg.Client != nil {
		opts = *s.cfg.Client
	}
	progress, changed := opts.ProgressNotificationHandler, opts.ToolListChangedHandler
	opts.ProgressNotificationHandler = func(ctx context.Context, req *sdk.ProgressNotificationClientRequest) {
		s.progressed(req.Params)
		if progress != nil {
			progress(ctx, req)
		}
	}
	opts.ToolListChangedHandler = func(ctx context.Context, req *sdk.ToolListChangedRequest) {
		s.toolsChanged()
		if changed != nil {
			changed(ctx, req)
		}
	}
	return &opts
}

// Close ends the session. Calls that are running fail, and what the server does not read is not
// waited for.
func (s *Session) Close() error {
	s.line.cut() // the SDK would wait for what is under way
	err := s.conn.Close()
	s.line.asking.Wait()
	return err
}

// Wait returns when the session has ended, whoever ended it.
func (s *Session) Wait() error { return s.conn.Wait() }

// SDK is the connection itself, for what this package does not do: prompts, resources, logs.
func (s *Session) SDK() *sdk.ClientSession { return s.conn }

// watch makes changed hold something whenever the list of tools has changed, until stop.
func (s *Session) watch(changed chan struct{}) (stop func()) {
	w := &watcher{changed: changed}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[w] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	}
}

func (s *Session) toolsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		select {
		case w.changed <- struct{}{}:
		default: // it has not yet looked since the last change
		}
	}
}

// failure is an error of the connection: what the context ended is the context's.
func failure(ctx context.Context, op string, err error) error {
	kind := agentkernel.KindProvider
	switch {
	case ctx.Err() != nil:
		kind, err = agentkernel.KindCanceled, context.Cause(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = agentkernel.KindTimeout
		}
	case errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
		kind = agentkernel.KindNetwork
	}
	return &agentkernel.Error{Kind: kind, Op: "mcp " + op, Err: err}
}
