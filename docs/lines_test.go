package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"

	"github.com/agentkernel-go/agentkernel"
)

// Lines asks a server that answers with one JSON object for each increment.
type Lines struct{ URL string }

func (m Lines) Stream(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		body, err := m.post(ctx, req)
		if err != nil {
			yield(agentkernel.StreamEvent{}, err)
			return
		}
		defer body.Close()
		for dec, ev := json.NewDecoder(body), (agentkernel.StreamEvent{}); ev.Type != agentkernel.StreamEventDone; {
			var line struct {
				Text, Think, ID, Name, Args string
				Usage                       *agentkernel.Usage
				Stop                        agentkernel.StopReason
			}
			err := dec.Decode(&line)
			switch {
			case err == io.EOF:
				return // without Done the kernel takes it for a stream that was cut off
			case line.Stop != "":
				ev = agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: line.Stop, Usage: line.Usage}
			case line.ID != "":
				ev = agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: line.ID, Name: line.Name, Delta: line.Args}
			case line.Think != "":
				ev = agentkernel.StreamEvent{Type: agentkernel.StreamEventThinkingDelta, Delta: line.Think}
			default:
				ev = agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: line.Text}
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

func (m Lines) post(ctx context.Context, req agentkernel.ModelRequest) (io.ReadCloser, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(post)
	if err != nil {
		return nil, err
	}
	e := &agentkernel.Error{Kind: agentkernel.KindInvalidRequest, Op: "lines", Status: resp.StatusCode}
	switch {
	case resp.StatusCode == http.StatusOK:
		return resp.Body, nil
	case resp.StatusCode == http.StatusUnauthorized:
		e.Kind = agentkernel.KindAuth
	case resp.StatusCode == http.StatusTooManyRequests:
		e.Kind, e.Retryable = agentkernel.KindRateLimit, true
	case resp.StatusCode >= 500:
		e.Kind, e.Retryable = agentkernel.KindServer, true
	}
	resp.Body.Close()
	return nil, e
}
