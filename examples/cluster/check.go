package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/agentkernel-go/agentkernel"
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
		if err := request(ctx, http.MethodGet, url+file, nil); err != nil {
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
		if err := request(ctx, http.MethodPost, url+"prompt", map[string]string{"text": checkPrompt}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// request makes a request, with body as JSON, whose answer must be a success.
func request(ctx context.Context, method, url string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return nil
}
