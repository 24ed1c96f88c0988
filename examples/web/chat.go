package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

//go:embed page
var files embed.FS

// maxPrompt bounds the body of a request.
const maxPrompt = 64 << 10

// What a run that was stopped ends with.
var (
	errUser     = errors.New("the user stopped it")
	errShutdown = errors.New("the server shuts down")
)

// chat is one conversation, which any number of pages shows.
type chat struct {
	agent    *agentkernel.Agent
	steering *agentkernel.Queue
	journal  *journal.Journal
	events   *sse.Handler
	// runs is the context of the runs: they outlive the request, and the page, that began them.
	runs context.Context
	stop context.CancelCauseFunc
	// unfollow ends the writing of the journal.
	unfollow func()
}

func newChat(cfg agentkernel.Config) (*chat, error) {
	c := &chat{steering: new(agentkernel.Queue)}
	cfg.Steering = c.steering
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		return nil, err
	}
	c.agent = agent
	c.journal = journal.NewRing(journal.Config{SnapshotEvery: 128}) // a page that comes late reads little
	c.unfollow = journal.Follow(agent, c.journal)
	c.events = sse.NewHandler(c.journal, sse.Config{})
	c.runs, c.stop = context.WithCancelCause(context.Background())
	return c, nil
}

// close stops the run, if there is one, and lets no other begin. When it returns, the journal
// has all, and the streams end once they have told it.
func (c *chat) close() {
	c.stop(errShutdown)
	_, _ = c.agent.HoldRuns(context.Background()) // Config.StopTimeout bounds it
	c.unfollow()
	_ = c.journal.Close()
}

// handler serves the page, the events and what the buttons do.
func (c *chat) handler() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is no path
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.Handle("GET /events", c.events)
	mux.HandleFunc("POST /prompt", c.withText(func(text string) error {
		_, err := c.agent.Prompt(c.runs, text)
		return err
	}))
	mux.HandleFunc("POST /steer", c.withText(func(text string) error {
		// Where the run has just ended, this starts one.
		_, err := c.agent.Inject(c.runs, agentkernel.UserMessage(text))
		return err
	}))
	mux.HandleFunc("POST /abort", func(w http.ResponseWriter, _ *http.Request) {
		c.agent.Abort(errUser)
		c.steering.Clear() // what was said to this run is not meant for the next one
		w.WriteHeader(http.StatusNoContent)
	})
	return guard(mux)
}

// guard keeps foreign pages out: requests of other origins, and names that were made to point
// here, which are an origin of their own.
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
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// withText is a request whose body is {"text": "…"}.
func (c *chat) withText(say func(text string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPrompt)).Decode(&body)
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil || strings.TrimSpace(body.Text) == "" {
			http.Error(w, "there is no text", http.StatusBadRequest)
			return
		}
		switch err := say(body.Text); {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, agentkernel.ErrAlreadyRunning):
			http.Error(w, "a run is active: steer it", http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}
