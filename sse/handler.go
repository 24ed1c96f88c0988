package sse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel/journal"
)

// Config is how a Handler serves.
type Config struct {
	// Heartbeat is after how much silence a comment is sent, so that a dead connection shows.
	// Zero means 15 s; negative means never.
	Heartbeat time.Duration
	// MinInterval is how long a client waits for more behind what it got: what comes in the
	// meantime is sent at once, with its updates merged, so that many clients of a fast model
	// cost little. The first event behind a silence is never held up. Zero means 16 ms, a
	// screen's refresh; negative means none.
	MinInterval time.Duration
	// WriteTimeout bounds how long a client may take for 64 KiB, or for what there is where
	// that is less. Then the connection is closed, and the client may come again. Zero means
	// 30 s; negative means no bound.
	WriteTimeout time.Duration
	// Retry is how long browsers are told to wait before they connect again. Zero means 1 s;
	// negative leaves it to them.
	Retry time.Duration
	// Origins are the foreign origins whose pages may read the stream, such as
	// "https://example.org"; "*" is all. Without any only pages of the request's own host may,
	// and programs that are no browsers. Behind a proxy that changes the Host header, the
	// origin under which browsers know the server belongs here.
	Origins []string
	// MaxPerAddress bounds the connections of one address, MaxConnections those of all. Zero
	// means 16 and 1,024; negative means no bound.
	MaxPerAddress  int
	MaxConnections int
	// Address names the client for MaxPerAddress, for servers behind a proxy. Nil: the
	// address of the connection.
	Address func(*http.Request) string
}

func (cfg Config) withDefaults() Config {
	set(&cfg.Heartbeat, 15*time.Second)
	set(&cfg.MinInterval, 16*time.Millisecond)
	set(&cfg.WriteTimeout, 30*time.Second)
	set(&cfg.Retry, time.Second)
	set(&cfg.MaxPerAddress, 16)
	set(&cfg.MaxConnections, 1024)
	cfg.Origins = originsOf(cfg.Origins)
	if cfg.Address == nil {
		cfg.Address = remoteHost
	}
	return cfg
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Handler is the http.Handler that streams a journal. Make one with NewHandler.
type Handler struct {
	journal *journal.Journal
	cfg     Config
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	nothing string // stands for a run in the id of a snapshot before any event; unlike any other

	mu     sync.Mutex
	active map[string]int // streams by address
	total  int
	idle   chan struct{} // closed when the handler is closed and the last stream has ended
}

// NewHandler returns a handler that streams j until Close is called or j is closed.
func NewHandler(j *journal.Journal, cfg Config) *Handler {
	ctx, cancel := context.WithCancel(context.Background())
	return &Handler{journal: j, cfg: cfg.withDefaults(), ctx: ctx, cancel: cancel, nothing: rand.Text(),
		active: make(map[string]int), idle: make(chan struct{})}
}

// Close ends all streams, also those whose clients do not read, and refuses new ones. It does
// not wait. A server calls it when it shuts down: see http.Server.RegisterOnShutdown.
func (h *Handler) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() == nil {
		h.cancel()
		if h.total == 0 {
			close(h.idle)
		}
	}
}

// Shutdown is Close, and waits until all streams have ended, or for ctx.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.Close()
	select {
	case <-h.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ServeHTTP streams to one client until it leaves, Close is called or the journal is closed.
//
// It answers 405 for methods other than GET, 403 for a page of a foreign origin, 429 where
// the client's address, and 503 where the handler has too many connections or is closed. The
// place to begin behind is taken from the header Last-Event-ID or, for a page that was loaded
// anew, the query parameter last_event_id; one that makes no sense is no place. Once the journal
// is closed it answers 204, which ends the stream for good, to a client behind its last record,
// and 410 where the rest, of a file that was moved, cannot be read any more.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if !h.admitOrigin(w, r) {
		http.Error(w, "foreign origin", http.StatusForbidden)
		return
	}
	leave, status := h.enter(h.cfg.Address(r))
	if leave == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, http.StatusText(status), status)
		return
	}
	defer leave()
	c := &conn{Handler: h, w: w, rc: http.NewResponseController(w)}
	c.at, c.behind = h.place(r)
	if status := c.over(); status != 0 {
		w.WriteHeader(status)
		return
	}
	defer c.watchClose()()
	c.serve(r.Context())
}

// mark names an event: that which a client has seen last.
type mark struct {
	run string
	seq uint64
}

func markOf(rec *journal.Record) *mark { return &mark{rec.RunID, rec.Seq} }

// place is where a client begins, and the event that it is behind, nil where it needs a
// snapshot.
func (h *Handler) place(r *http.Request) (at uint64, behind *mark) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("last_event_id")
	}
	if m, ok := parseID(id); ok {
		if m == (mark{run: h.nothing}) {
			m = mark{}
		} else if at, ok := h.journal.Find(m.run, m.seq); ok {
			return at, &m
		}
		if at, ok := h.lastSnapshot(m); ok {
			return at, &m // before it, for it may say that the run died
		}
	}
	return h.journal.Start(), nil
}

// lastSnapshot is the place before the last snapshot, where that stands for the event m, which
// itself may not be kept.
func (h *Handler) lastSnapshot(m mark) (at uint64, ok bool) {
	records, err := h.journal.Since(h.journal.Start(), 1)
	if err != nil || len(records) == 0 || *markOf(&records[0]) != m {
		return 0, false
	}
	return records[0].At - 1, true
}

// id names a record. That of a snapshot before any event means nothing to other handlers,
// whose journals may have begun in another way.
func (h *Handler) id(rec *journal.Record) string {
	m := *markOf(rec)
	if m == (mark{}) {
		m.run = h.nothing
	}
	return formatID(m)
}

// over is the status for a client of a closed journal for whom nothing is left: 204 where it
// has seen all, 410 where the rest cannot be read any more. It is 0 where there is something.
func (c *conn) over() int {
	if !c.journal.Closed() {
		return 0
	}
	for at := c.at; ; {
		records, err := c.journal.Since(at, batchSize)
		switch {
		case errors.Is(err, journal.ErrGone):
			return 0
		case err != nil:
			return http.StatusGone
		case len(records) == 0:
			return http.StatusNoContent
		}
		for i := range records {
			if !c.knows(&records[i]) {
				return 0
			}
			at = records[i].At
		}
	}
}

// enter counts a stream. It returns no leave, and a status, where there are too many.
func (h *Handler) enter(address string) (leave func(), status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ctx.Err() != nil, h.cfg.MaxConnections > 0 && h.total >= h.cfg.MaxConnections:
		return nil, http.StatusServiceUnavailable
	case h.cfg.MaxPerAddress > 0 && h.active[address] >= h.cfg.MaxPerAddress:
		return nil, http.StatusTooManyRequests
	}
	h.total++
	h.active[address]++
	return func() { h.leave(address) }, 0
}

func (h *Handler) leave(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total--
	if h.active[address]--; h.active[address] == 0 {
		delete(h.active, address)
	}
	if h.total == 0 && h.ctx.Err() != nil {
		close(h.idle)
	}
}

// conn is one stream, on the goroutine of its request.
type conn struct {
	*Handler
	w  http.ResponseWriter
	rc *http.ResponseController
	// at is the place behind which the client is, behind the last event that it knows: nil
	// where it needs a snapshot.
	at     uint64
	behind *mark
	// passed is the place of the snapshot that was left out as the last record, 0 where it was
	// another one.
	passed  uint64
	written int // since the time for it was set
}

// watchClose makes Close end a write that waits for the client.
func (c *conn) watchClose() (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(c.ctx, func() {
		defer close(done)
		_ = c.rc.SetWriteDeadline(time.Now())
	})
	return func() {
		if !cancel() {
			<-done
		}
		_ = c.rc.SetWriteDeadline(time.Time{}) // of the connection's next request
	}
}

// batchSize and batchBytes bound what is taken from the journal, and merged, at once: what a
// client that stops reading keeps in memory after the journal has dropped it.
const (
	batchSize  = 64
	batchBytes = 64 << 10
)

func (c *conn) serve(ctx context.Context) {
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("X-Accel-Buffering", "no")
	hello := ": agentkernel\n\n"
	if c.cfg.Retry > 0 {
		hello = fmt.Sprintf("retry: %d\n\n", c.cfg.Retry.Milliseconds())
	}
	if !c.send(hello) {
		return
	}
	for {
		changed, closed := c.journal.Changed(), c.journal.Closed() // before Since, which then has the last record
		records, err := c.journal.Since(c.at, batchSize)
		more := full(records)
		switch {
		case errors.Is(err, journal.ErrGone):
			c.at, c.behind, c.passed = c.journal.Start(), nil, 0
		case err != nil:
			return
		case len(records) > 0:
			if !c.sendRecords(records) || !more && !c.pause(ctx) {
				return
			}
		case closed || !c.wait(ctx, changed):
			return
		}
	}
}

// full tells whether the journal probably holds more behind the records.
func full(records []journal.Record) bool {
	size := 0
	for i := range records {
		size += len(records[i].Data)
	}
	return len(records) == batchSize || size > batchBytes/2
}

// wait waits for the journal, and keeps the connection alive. It reports false at the end.
func (c *conn) wait(ctx context.Context, changed <-chan struct{}) bool {
	var beat <-chan time.Time
	if c.cfg.Heartbeat > 0 {
		timer := time.NewTimer(c.cfg.Heartbeat)
		defer timer.Stop()
		beat = timer.C
	}
	select {
	case <-changed:
		return true
	case <-beat:
		return c.send(":\n\n")
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return false
}

// pause lets events gather. It reports false at the end.
func (c *conn) pause(ctx context.Context) bool {
	if c.cfg.MinInterval <= 0 {
		return true
	}
	timer := time.NewTimer(c.cfg.MinInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return false
}

func (c *conn) sendRecords(records []journal.Record) bool {
	if !c.bound() {
		return false
	}
	records = c.wanted(records)
	for frame := range journal.Merged(records) {
		c.at = frame.At
		if err := write(c, c.id(&frame), &frame); err != nil {
			return false
		}
	}
	return c.rc.Flush() == nil
}

func (c *conn) send(text string) bool {
	if !c.bound() {
		return false
	}
	_, err := io.WriteString(c, text)
	return err == nil && c.rc.Flush() == nil
}

// Write gives the client new time for every piece.
func (c *conn) Write(p []byte) (int, error) {
	if c.written+len(p) > pieceBytes && !c.bound() {
		return 0, http.ErrServerClosed
	}
	c.written += len(p)
	return c.w.Write(p)
}

// bound sets the time for what is written next. It reports false once the handler is closed.
func (c *conn) bound() bool {
	c.written = 0
	if c.cfg.WriteTimeout > 0 {
		_ = c.rc.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)) // as far as w supports it
	}
	return c.ctx.Err() == nil
}
