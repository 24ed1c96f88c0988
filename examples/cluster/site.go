package main

import (
	"embed"
	"io/fs"
	"net/http"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/agentkernel-go/agentkernel/sse"
)

//go:embed page
var files embed.FS

// session is the one conversation that the page shows.
const session = "page"

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
	mux.HandleFunc("POST /prompt", demo.WithText(func(w http.ResponseWriter, r *http.Request, text string) {
		_, err := s.client.Submit(r.Context(), session, jetstream.Request{Messages: []agentkernel.AgentMessage{agentkernel.UserMessage(text)}})
		answer(w, err)
	}))
	mux.HandleFunc("POST /abort", func(w http.ResponseWriter, r *http.Request) {
		answer(w, s.client.Abort(r.Context(), session))
	})
	return demo.Guard(mux)
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
