package jetstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// FrontConfig is how a Front serves.
type FrontConfig struct {
	// Session tells which session a request asks for; empty is none. Nil means the path value
	// "session", as in the pattern "GET /sessions/{session}/events".
	Session func(*http.Request) string
	// SSE is how each stream is served. MaxPerAddress and MaxConnections bound each session.
	SSE sse.Config
	// Linger is how long a session is followed after the last page that showed it has gone. Zero
	// means 30 s.
	Linger time.Duration
	// MaxSessions bounds the sessions that are followed at once; requests for more get 503. Zero
	// means 1,024.
	MaxSessions int
	// SnapshotEvery is that of the journal which each session has in memory: see
	// [journal.Config]. Zero means 128.
	SnapshotEvery int
}

// Front serves the events of sessions to browsers, on any node: package sse with a journal in
// memory, which a Follower feeds. A page that lost its connection may come back to another
// node: it goes on behind its last event where the run of that is active or was the last, and
// begins with a snapshot elsewhere. At a restart mark its connection is ended, and it comes
// back by itself to a snapshot.
type Front struct {
	client *Client
	cfg    FrontConfig
	ctx    context.Context
	cancel context.CancelFunc
	feeds  sync.WaitGroup // the goroutines that follow

	mu   sync.Mutex
	open map[string]*feed
}

// feed is one session that is followed.
type feed struct {
	ready   func()        // closes isReady, once
	isReady chan struct{} // the journal holds what there was at first, or there will be none
	pages   int
	idle    *time.Timer // until the feed ends; nil while pages look on

	handler *sse.Handler // of the journal from the last snapshot on
	ring    *journal.Journal
	cancel  context.CancelFunc
}

// NewFront returns a Front, which Close ends.
func NewFront(client *Client, cfg FrontConfig) (*Front, error) {
	if cfg.Session == nil {
		cfg.Session = func(r *http.Request) string { return r.PathValue("session") }
	}
	for _, d := range []struct {
		field *int
		value int
	}{{&cfg.MaxSessions, 1024}, {&cfg.SnapshotEvery, 128}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if cfg.Linger == 0 {
		cfg.Linger = 30 * time.Second
	}
	if client == nil || cfg.MaxSessions < 0 || cfg.Linger < 0 {
		return nil, errors.New("jetstream: a front needs a client, and bounds from 0 on")
	}
	f := &Front{client: client, cfg: cfg, open: make(map[string]*feed)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f, nil
}

// Close ends all streams and waits until no session is followed any more.
func (f *Front) Close() {
	f.cancel()
	f.feeds.Wait()
}

// ServeHTTP streams a session's events to one page: see [sse.Handler.ServeHTTP]. It answers 404
// where the request names no session, and 503 where too many are followed, or Close was called.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := f.cfg.Session(r)
	if checkSession(session) != nil {
		http.Error(w, "no session", http.StatusNotFound)
		return
	}
	fd := f.enter(session)
	if fd == nil {
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
		return
	}
	defer f.leave(session, fd)
	select {
	case <-fd.isReady:
	case <-r.Context().Done():
		return
	}
	f.mu.Lock()
	h := fd.handler
	f.mu.Unlock()
	if h == nil {
		http.Error(w, "the session cannot be read", http.StatusServiceUnavailable)
		return
	}
	h.ServeHTTP(w, r)
}

// enter finds the session's feed, or begins one.
func (f *Front) enter(session string) *feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd := f.open[session]
	if fd == nil {
		if len(f.open) >= f.cfg.MaxSessions || f.ctx.Err() != nil {
			return nil
		}
		fd = &feed{isReady: make(chan struct{})}
		fd.ready = sync.OnceFunc(func() { close(fd.isReady) })
		var ctx context.Context
		ctx, fd.cancel = context.WithCancel(f.ctx)
		f.open[session] = fd
		f.feeds.Go(func() { f.follow(ctx, session, fd) }) // ends with ctx, which Close ends
	}
	fd.pages++
	if fd.idle != nil {
		fd.idle.Stop()
		fd.idle = nil
	}
	return fd
}

func (f *Front) leave(session string, fd *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fd.pages--; fd.pages > 0 || f.open[session] != fd {
		return
	}
	fd.idle = time.AfterFunc(f.cfg.Linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if fd.pages == 0 && f.open[session] == fd {
			delete(f.open, session)
			fd.cancel()
		}
	})
}

// follow feeds the session's journal until ctx ends.
func (f *Front) follow(ctx context.Context, session string, fd *feed) {
	defer f.finish(session, fd)
	follower, err := f.client.Follow(session, "")
	if err != nil {
		return
	}
	last, err := follower.last(ctx)
	if err != nil {
		return
	}
	var there placeOfEvent // what a page that comes from another node may know
	if last != nil {
		there = placeOfEvent{last.Sequence, bytes.Count(last.Data, []byte("\n")) + 1}
	}
	for ev, err := range follower.Events(ctx) {
		switch {
		case err != nil:
			return
		case ev.Type == agentkernel.EventSnapshot:
			f.renew(fd, follower.State())
		default:
			fd.ring.Listen(ev) // a journal in memory takes what a decoder made
		}
		if !there.after(follower.place) {
			fd.ready()
		}
	}
}

// renew begins a journal with the state. Pages that showed the one before come back to this one.
func (f *Front) renew(fd *feed, state agentkernel.AgentState) {
	ring := journal.NewRing(journal.Config{SnapshotEvery: f.cfg.SnapshotEvery, State: state})
	f.mu.Lock()
	old := fd.handler
	fd.ring, fd.handler = ring, sse.NewHandler(ring, f.cfg.SSE)
	f.mu.Unlock()
	if old != nil {
		old.Close()
		return
	}
	time.AfterFunc(time.Second, fd.ready) // should the last of it not be kept any more
}

// finish ends what looks on at a feed that has ended.
func (f *Front) finish(session string, fd *feed) {
	f.mu.Lock()
	if f.open[session] == fd {
		delete(f.open, session)
	}
	h := fd.handler
	if fd.idle != nil {
		fd.idle.Stop()
	}
	f.mu.Unlock()
	fd.cancel()
	fd.ready()
	if h != nil {
		h.Close()
	}
}
