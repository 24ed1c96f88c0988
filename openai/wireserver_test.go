package openai

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// wire is a response as it goes over the wire.
type wire struct {
	status int
	header map[string]string
	body   []byte
	// pieces returns the length of the next piece to write of n bytes that are left.
	pieces func(n int) int
	// end is how the connection ends: "eof", "hang", which stays open and silent, or "reset".
	end string
}

// wireServer is an HTTP server on loopback that answers with what it is told.
type wireServer struct {
	*httptest.Server
	wire     atomic.Pointer[wire]
	requests atomic.Int64
	conns    atomic.Int64
}

type connKey struct{}

func newWireServer(t testing.TB) *wireServer {
	s := new(wireServer)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		s.conns.Add(1)
		return context.WithValue(ctx, connKey{}, c)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *wireServer) serve(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	a := s.wire.Load()
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	flush := w.(http.Flusher).Flush
	flush()
	for body := a.body; len(body) > 0; {
		n := len(body)
		if a.pieces != nil {
			n = max(1, min(n, a.pieces(n)))
		}
		if _, err := w.Write(body[:n]); err != nil {
			return
		}
		flush()
		body = body[n:]
	}
	switch a.end {
	case "hang":
		<-r.Context().Done()
	case "reset":
		// A reset may overtake what was written before: some systems drop what was not read yet.
		time.Sleep(20 * time.Millisecond)
		conn := r.Context().Value(connKey{}).(*net.TCPConn)
		_ = conn.SetLinger(0)
		_ = conn.Close()
		panic(http.ErrAbortHandler)
	}
}

// sse is a wire that sends body as a stream.
func sse(body string) *wire {
	return &wire{status: http.StatusOK, header: map[string]string{"Content-Type": "text/event-stream"}, body: []byte(body)}
}

// anywhere cuts a body at places that depend on the seed alone.
func anywhere(seed uint64, most int) func(int) int {
	r := rand.New(rand.NewPCG(seed, seed))
	return func(int) int { return 1 + r.IntN(most) }
}

// model is a model at the server, with cfg's other fields.
func (s *wireServer) model(t testing.TB, cfg Config) *Model {
	cfg.BaseURL = s.URL
	if cfg.Model == "" {
		cfg.Model = "m-test"
	}
	cfg.HTTPClient = s.Client()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
