package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/sse"
)

const checkPrompt = "How many primes are there below 100?"

// check does over HTTP what the page at url does: it loads its files, listens to the events,
// asks, and shows on w what comes.
func check(ctx context.Context, url string, w io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the run does not end"))
	defer cancel()
	defer http.DefaultClient.CloseIdleConnections()
	for _, file := range []string{"", "page.css", "page.js"} {
		if err := demo.Request(ctx, http.MethodGet, url+file, nil); err != nil {
			return err
		}
	}
	show := demo.Show(w)
	reports := 0
	for ev, err := range sse.NewClient(url+"events", sse.ClientConfig{}).Events(ctx) {
		if err != nil {
			return err
		}
		show(ev)
		switch e := ev.Payload().(type) {
		case agentkernel.ToolProgressed:
			reports++
		case agentkernel.ToolEnded:
			if !e.IsError && reports == 0 {
				return fmt.Errorf("%s ended without a report", e.Tool)
			}
		case agentkernel.RunEnded:
			return e.Err
		}
		if ev.Type == agentkernel.EventSnapshot { // connected
			fmt.Fprintln(w, checkPrompt)
			if err := demo.Request(ctx, http.MethodPost, url+"prompt", map[string]string{"text": checkPrompt}); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}
