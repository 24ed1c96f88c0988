package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// ClientConfig is how a Client connects.
type ClientConfig struct {
	// HTTP makes the requests. Nil means http.DefaultClient. A Timeout of it bounds each
	// connection as a whole, so it should have none.
	HTTP *http.Client
	// Header is added to each request.
	Header http.Header
	// LastEventID is where to begin: behind that event. The Client must be given the state
	// behind it too. Empty means at the last snapshot.
	LastEventID string
	State       agentkernel.AgentState
	// IdleTimeout is after how much silence the connection counts as dead: only the time counts
	// in which the Client waits for the server. It must be longer than the server's heartbeat.
	// Zero means 45 s; negative means never.
	IdleTimeout time.Duration
	// MaxWait bounds the wait between two attempts to connect, which begins with what the
	// server asks for (1 s where it does not) and doubles. Zero means 30 s; negative means no
	// bound.
	MaxWait time.Duration
	// MaxEventBytes bounds one record, comments not counted. Zero means 64 MiB; negative means no
	// bound.
	MaxEventBytes int
	// OnDisconnect is told why a connection ended and how long the Client waits before the
	// next one, on the goroutine that ranges over Events. It may be nil.
	OnDisconnect func(err error, wait time.Duration)
}

// Client reads the stream of a Handler, connects again where it breaks off, and rebuilds the
// cumulative events. It is for one goroutine.
type Client struct {
	url    string
	cfg    ClientConfig
	dec    *agentkernel.Decoder
	lastID string
	wait   time.Duration // before the next attempt, where the last one failed
	retry  time.Duration // what the server asks for
	again  bool          // since it connected only records came that it had
}

// NewClient returns a client of the handler at url. It connects when Events is ranged over.
func NewClient(url string, cfg ClientConfig) *Client {
	if cfg.HTTP == nil {
		cfg.HTTP = http.DefaultClient
	}
	set(&cfg.IdleTimeout, 45*time.Second)
	set(&cfg.MaxWait, 30*time.Second)
	set(&cfg.MaxEventBytes, 64<<20)
	if cfg.MaxWait < 0 {
		cfg.MaxWait = math.MaxInt64 / 4 // doubles without overflow
	}
	if cfg.MaxEventBytes < 0 {
		cfg.MaxEventBytes = math.MaxInt
	}
	return &Client{url: url, cfg: cfg, dec: agentkernel.NewDecoder(cfg.State), lastID: cfg.LastEventID, retry: time.Second}
}

// State is the state behind the last event that Events yielded.
func (c *Client) State() agentkernel.AgentState { return c.dec.State() }

// LastEventID is the place behind the last event that Events yielded.
func (c *Client) LastEventID() string { return c.lastID }

var (
	errTooLong = errors.New("sse: too long")
	errRequest = errors.New("sse: no request can be made")
	errIdle    = errors.New("sse: the server was silent too long")
	errDone    = errors.New("sse: the server has no more")
	errLeft    = errors.New("sse: nobody reads on")
)

// StatusError is an answer that is no stream of events.
type StatusError struct {
	Status      int
	ContentType string
	// RetryAfter is the wait that the server asked for, 0 where it asked for none.
	RetryAfter time.Duration
}

// Error returns the error on one line.
func (e *StatusError) Error() string {
	return fmt.Sprintf("sse: got status %d, content type %q", e.Status, e.ContentType)
}

// temporary tells whether another attempt may succeed.
func (e *StatusError) temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500
}

// Events yields the events of the stream as they come, rebuilt, on the goroutine that ranges,
// until ctx ends. Connections that break are made again and lose nothing.
//
// An event of type snapshot comes first, and where the server could not go on behind the last
// one: State is then what the stream goes on from. A record that is not as it should be is
// yielded as an error of type [*agentkernel.WireError], and the stream goes on. Records
// that a server repeats behind a new connection are left out. An answer that
// no other attempt can cure is the last thing yielded, with an error; status 204 ends the
// stream without one. Who leaves the loop may range over Events again and misses nothing.
//
// Where the server's process died within a run, nothing more comes of that run, no message is
// discarded and AgentEnd is missing. A snapshot, with the RunID and Seq of the run's last event,
// and the AgentStart of the next run, without a ParentRunID, tell that what was open is void.
func (c *Client) Events(ctx context.Context) iter.Seq2[agentkernel.Event, error] {
	return func(yield func(agentkernel.Event, error) bool) {
		for ctx.Err() == nil {
			err := c.connect(ctx, yield)
			status, refused := errors.AsType[*StatusError](err)
			switch {
			case errors.Is(err, errDone), errors.Is(err, errLeft), ctx.Err() != nil:
				return
			case refused && !status.temporary(), errors.Is(err, errTooLong), errors.Is(err, errRequest):
				yield(agentkernel.Event{}, err)
				return
			}
			wait := c.nextWait()
			if refused {
				wait = max(wait, min(status.RetryAfter, c.cfg.MaxWait))
			}
			if c.cfg.OnDisconnect != nil {
				c.cfg.OnDisconnect(err, wait)
			}
			sleep(ctx, wait)
		}
	}
}

// nextWait doubles the wait, and spreads those of clients that lost one server.
func (c *Client) nextWait() time.Duration {
	c.wait = min(max(2*c.wait, c.retry), c.cfg.MaxWait)
	return c.wait/2 + rand.N(c.wait/2+1)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect makes one connection and reads it to its end.
func (c *Client) connect(ctx context.Context, yield func(agentkernel.Event, error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := &idleTimer{wait: c.cfg.IdleTimeout, fire: func() { cancel(errIdle) }}
	idle.start()
	defer idle.stop()
	resp, err := c.request(ctx)
	idle.stop()
	if err != nil {
		return cause(ctx, err)
	}
	defer resp.Body.Close()
	c.again = true
	p := newParser(&awake{resp.Body, idle}, c.cfg.MaxEventBytes)
	for {
		m, err := p.next()
		if err != nil {
			return cause(ctx, err)
		}
		if !c.take(&m, yield) {
			return errLeft
		}
	}
}

// cause is why a connection ended: the end of its context before what that led to.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (c *Client) request(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	maps.Copy(req.Header, c.cfg.Header)
	for name, values := range req.Header {
		if slices.ContainsFunc(values, unsendable) {
			return nil, fmt.Errorf("%w: the value of header %.60q", errRequest, name)
		}
	}
	req.Header.Set("Accept", "text/event-stream")
	if c.lastID != "" && !unsendable(c.lastID) { // without, the stream begins with a snapshot
		req.Header.Set("Last-Event-ID", c.lastID)
	}
	resp, err := c.cfg.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNoContent:
		err = errDone
	case resp.StatusCode != http.StatusOK || kind != "text/event-stream":
		e := &StatusError{Status: resp.StatusCode, ContentType: kind}
		if s, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
			e.RetryAfter = time.Duration(s) * time.Second
		}
		err = e
	default:
		return resp, nil
	}
	return nil, errors.Join(err, resp.Body.Close())
}

// unsendable tells whether text is no value of a header.
func unsendable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// take hands one event of the stream on. It reports false where nobody wants more.
func (c *Client) take(m *message, yield func(agentkernel.Event, error) bool) bool {
	if m.retry > 0 {
		c.retry = m.retry
	}
	goesOn := true
	if len(m.data) > 0 {
		c.wait = 0
		ev, err := c.dec.Decode(m.data)
		if m.hasID { // before the yield, which may be the last
			c.lastID = m.id
		}
		if c.again = c.again && repeated(err); !c.again {
			goesOn = yield(ev, err)
		}
	} else if m.hasID {
		c.lastID = m.id
	}
	return goesOn
}

// repeated tells whether err says that a record came before, and stands for nothing else.
func repeated(err error) bool {
	e, ok := errors.AsType[*agentkernel.WireError](err)
	return ok && e.Problem == agentkernel.WireDuplicate && e.Seq <= e.After
}

// awake runs the idle timer while it waits for the server, and only then: the reader may take
// its time.
type awake struct {
	in   io.Reader
	idle *idleTimer
}

func (a *awake) Read(p []byte) (int, error) {
	a.idle.start()
	defer a.idle.stop()
	return a.in.Read(p)
}

// idleTimer calls fire where it is not stopped in time. A wait below zero is for ever.
type idleTimer struct {
	wait  time.Duration
	fire  func()
	timer *time.Timer
}

func (t *idleTimer) start() {
	switch {
	case t.wait <= 0:
	case t.timer == nil:
		t.timer = time.AfterFunc(t.wait, t.fire)
	default:
		t.timer.Reset(t.wait)
	}
}

func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
