package main

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

//go:embed page
var files embed.FS

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
	mux.HandleFunc("POST /prompt", said(func(text string) error {
		_, err := c.agent.Prompt(c.runs, text)
		return err
	}))
	mux.HandleFunc("POST /steer", said(func(text string) error {
		// Where the run has just ended, this starts one.
		_, err := c.agent.Inject(c.runs, agentkernel.UserMessage(text))
		return err
	}))
	mux.HandleFunc("POST /abort", func(w http.ResponseWriter, _ *http.Request) {
		c.agent.Abort(errUser)
		c.steering.Clear() // what was said to this run is not meant for the next one
		w.WriteHeader(http.StatusNoContent)
	})
	return demo.Guard(mux)
}

// said hands the text of a request to say, and tells what came of it.
func said(say func(text string) error) http.HandlerFunc {
	return demo.WithText(func(w http.ResponseWriter, _ *http.Request, text string) {
		switch err := say(text); {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, agentkernel.ErrAlreadyRunning):
			http.Error(w, "a run is active: steer it", http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}
