package main

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/agentkernel-go/agentkernel/sse"
)

//go:embed page
var files embed.FS

// session is the one conversation that the page shows.
const session = "page"

// maxPrompt bounds the body of a request.
const maxPrompt = 64 << 10

// site is the page and what its buttons do. There could be any number of it, on other machines.
type site struct {
	client *jetstream.Client
	front  *jetstream.Front
}

func newSite(client *jetstream.Client) (*site, error) {
	front, err := jetstream.NewFront(client, jetstream.FrontConfig{
		Session: func(*http.Request) string { return session },
		SSE:     sse.Config{Retry: 200 * time.Millisecond},
	})
	return &site{client, front}, err
}

func (s *site) handler() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is no path
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.Handle("GET /events", s.front)
	mux.HandleFunc("POST /prompt", withText(func(ctx context.Context, text string) error {
		_, err := s.client.Submit(ctx, session, jetstream.Request{Messages: []agentkernel.AgentMessage{agentkernel.UserMessage(text)}})
		return err
	}))
	mux.HandleFunc("POST /abort", func(w http.ResponseWriter, r *http.Request) {
		answer(w, s.client.Abort(r.Context(), session))
	})
	return guard(mux)
}

// guard keeps foreign pages out: requests of other origins, and names that were made to point here.
func guard(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "unknown host", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// withText is a request whose body is {"text": "…"}.
func withText(say func(ctx context.Context, text string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPrompt)).Decode(&body)
		if err != nil || strings.TrimSpace(body.Text) == "" {
			http.Error(w, "there is no text", http.StatusBadRequest)
			return
		}
		answer(w, say(r.Context(), body.Text))
	}
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
