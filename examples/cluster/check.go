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

const checkPrompt = "Tell me a story."

// check does what the page at url does, kills the worker that speaks, and tells on w how it
// goes on.
func check(ctx context.Context, url string, workers *crew, w io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the run does not end"))
	defer cancel()
	defer http.DefaultClient.CloseIdleConnections()
	for _, file := range []string{"", "page.css", "page.js"} {
		if err := demo.Request(ctx, http.MethodGet, url+file, nil); err != nil {
			return err
		}
	}
	killed, last := "", ""
	for ev, err := range sse.NewClient(url+"events", sse.ClientConfig{}).Events(ctx) {
		if err != nil {
			return err
		}
		switch e := ev.Payload().(type) {
		case agentkernel.MessageUpdated:
			m, ok := e.Message.(agentkernel.Message)
			if !ok || m.Model == last {
				continue
			}
			if last = m.Model; killed != "" {
				fmt.Fprintln(w, last, "speaks")
				continue
			}
			killed = last
			fmt.Fprintln(w, last, "speaks, and is killed")
			if err := workers.kill(killed); err != nil {
				return err
			}
		case agentkernel.MessageEnded:
			fmt.Fprintf(w, "%s: %s\n", e.Message.GetRole(), e.Message.TextContent())
		case agentkernel.RunEnded:
			return e.Err
		}
		if ev.Type != agentkernel.EventSnapshot {
			continue
		}
		if killed != "" {
			fmt.Fprintln(w, "the page begins anew with what was kept")
			continue
		}
		if err := demo.Request(ctx, http.MethodPost, url+"prompt", map[string]string{"text": checkPrompt}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
