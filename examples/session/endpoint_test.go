package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/stretchr/testify/require"
)

// endpoint speaks the OpenAI wire: it answers each prompt with some turns that say something
// and call two tools, then with an answer. No text of it comes twice. To "hold" its answer has
// no end; the first call of "slow" takes a minute.
type endpoint struct {
	t   *testing.T
	url string

	arrived  func() // tells of the first request
	mu       sync.Mutex
	said     int
	requests [][]string // each message as told by wireText
}

// chatMessage is a message as it comes over the wire.
type chatMessage struct {
	Role       string
	Content    string
	ToolCallID string                `json:"tool_call_id"`
	ToolCalls  []struct{ ID string } `json:"tool_calls"`
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{t: t, arrived: func() {}}
	server := httptest.NewServer(http.HandlerFunc(e.answer))
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	e.url = server.URL + "/v1"
	return e
}

const turnsOfAPrompt = 6

func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) {
	var req struct{ Messages []chatMessage }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	turns, prompt := 0, ""
	var texts []string
	for _, m := range req.Messages {
		if m.Role == "system" {
			continue
		}
		switch m.Role {
		case "user":
			turns, prompt = 0, m.Content
		case "assistant":
			turns++
		}
		texts = append(texts, wireText(m))
	}
	e.arrived()
	e.mu.Lock()
	e.said++
	n := e.said
	e.requests = append(e.requests, texts)
	e.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"model\":\"fake\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		w.(http.Flusher).Flush()
		time.Sleep(200 * time.Microsecond) // so that there is a stream to be killed in
	}
	for word := range strings.SplitAfterSeq(fmt.Sprintf("These are the words of answer number %d.", n), " ") {
		send(fmt.Sprintf(`{"content":%q}`, word), "null")
	}
	if prompt == "hold" {
		<-r.Context().Done()
		return
	}
	finish := `"stop"`
	if turns < turnsOfAPrompt {
		finish = `"tool_calls"`
		call := `{"tool_calls":[{"index":%d,"id":"call_%d_%d","function":{"name":%q,"arguments":%q}}]}`
		pause := 5
		if prompt == "slow" && turns == 0 {
			pause = 60_000
		}
		send(fmt.Sprintf(call, 0, n, 0, "wait", fmt.Sprintf(`{"milliseconds":%d}`, pause)), "null")
		send(fmt.Sprintf(call, 1, n, 1, "days_between", `{"from":"2026-01-01","to":"2026-01-02"}`), "null")
	}
	send(`{}`, finish)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func wireText(m chatMessage) string {
	var text strings.Builder
	text.WriteString(m.Role + ":" + m.Content + ":" + m.ToolCallID)
	for _, call := range m.ToolCalls {
		text.WriteString(" " + call.ID)
	}
	return text.String()
}

// check proves that each request was a beginning of history, and counts the results of calls
// that were interrupted. No answer and no result is in history twice.
func (e *endpoint) check(history []agentkernel.AgentMessage) (interrupted int) {
	e.t.Helper()
	var texts []string
	once := make(map[string]bool)
	for _, m := range history {
		own := m.(agentkernel.Message)
		text := chatMessage{Role: string(own.Role), Content: own.TextContent(), ToolCallID: own.ToolCallID}
		for _, call := range own.ToolCalls() {
			text.ToolCalls = append(text.ToolCalls, struct{ ID string }{call.ID})
		}
		texts = append(texts, wireText(text))
		key := texts[len(texts)-1]
		if own.Role == agentkernel.RoleTool {
			key = own.ToolCallID
		}
		require.False(e.t, once[key], "%s is there twice", key)
		once[key] = true
		if own.Cause == agentkernel.ToolInterrupted {
			interrupted++
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, request := range e.requests {
		require.LessOrEqual(e.t, len(request), len(texts))
		require.Equal(e.t, texts[:len(request)], request, "what a model was asked is what is stored")
	}
	return interrupted
}
