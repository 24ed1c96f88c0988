package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/sse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pace = 100 * time.Microsecond

// page is a chat on a server, and the tab of a browser that looks at it.
type page struct {
	t   *testing.T
	url string
	*sse.Client
}

func open(t *testing.T, model agentkernel.ChatModel, tools ...agentkernel.Tool) page {
	c, err := newChat(agentkernel.Config{Model: model, Tools: tools})
	require.NoError(t, err)
	server := httptest.NewServer(c.handler())
	t.Cleanup(func() {
		c.close()
		c.events.Close()
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return page{t, server.URL, nil}.reload()
}

// reload is the page loaded anew, which knows nothing.
func (p page) reload() page {
	return page{p.t, p.url, sse.NewClient(p.url+"/events", sse.ClientConfig{})}
}

// press presses a button, and expects that status.
func (p page) press(want int, button, text string) {
	p.t.Helper()
	body, err := json.Marshal(map[string]string{"text": text})
	require.NoError(p.t, err)
	p.post(want, button, string(body), nil)
}

func (p page) post(want int, path, body string, header http.Header) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+path, strings.NewReader(body))
	require.NoError(p.t, err)
	maps.Copy(req.Header, header)
	req.Host = header.Get("Host")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	require.Equal(p.t, want, resp.StatusCode, path)
}

// until reads up to the first event that matches, and returns what came.
func (p page) until(match func(agentkernel.Event) bool) (events []agentkernel.Event) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for ev, err := range p.Events(ctx) {
		require.NoError(p.t, err)
		events = append(events, ev)
		if match(ev) {
			return events
		}
	}
	require.Fail(p.t, "the event does not come")
	return nil
}

func is(typ agentkernel.EventType) func(agentkernel.Event) bool {
	return func(ev agentkernel.Event) bool { return ev.Type == typ }
}

var ended = is(agentkernel.EventAgentEnd)

// said is the text of the page's messages of a role.
func (p page) said(role agentkernel.Role) (out []string) {
	for _, m := range p.State().Messages {
		if m.GetRole() == role {
			out = append(out, m.TextContent())
		}
	}
	return out
}

// held is the scripted model, which stops in the middle of its thoughts until release is closed.
func held(release <-chan struct{}) agentkernel.ChatModelFunc {
	return func(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			n := 0
			for ev, err := range script(pace).Stream(ctx, req) {
				if n++; n == 4 {
					select {
					case <-release:
					case <-ctx.Done():
						yield(agentkernel.StreamEvent{}, context.Cause(ctx))
						return
					}
				}
				if !yield(ev, err) {
					return
				}
			}
		}
	}
}

// TestPrompts: the model thinks, its tool reports, it answers; and so again.
func TestPrompts(t *testing.T) {
	p := open(t, script(pace), primesTool(pace))
	p.press(http.StatusNoContent, "/prompt", "Primes below 1000?")
	events := p.until(ended)
	assert.Equal(t, []string{"Primes below 1000?"}, p.said(agentkernel.RoleUser))
	assert.Equal(t, []string{"There are 168 primes below 1000."}, p.said(agentkernel.RoleTool))
	assert.True(t, strings.HasPrefix(p.State().Messages[3].TextContent(), "There are 168 primes below 1000. I did not"))
	assert.Contains(t, p.State().Messages[1].ThinkingContent(), "Primes below 1000?")
	assert.True(t, slices.ContainsFunc(events, is(agentkernel.EventToolExecUpdate)), "no progress")
	assert.True(t, slices.ContainsFunc(events, is(agentkernel.EventMessageUpdate)), "no increments")

	p.press(http.StatusNoContent, "/prompt", "hello")
	p.until(ended)
	p.press(http.StatusNoContent, "/prompt", "And below 99999999999999999999?")
	p.until(ended)
	tools := p.said(agentkernel.RoleTool)
	assert.Equal(t, "There are 168 primes below 1000.", tools[1])
	assert.Contains(t, tools[2], "below must be from 2 to 1000000")
	assert.Contains(t, p.State().Messages[11].TextContent(), "The tool says no: ")
}

func TestPrimes(t *testing.T) {
	for below, want := range map[int]string{2: "0 ", 3: "1 ", 10: "4 ", 25: "9 ", 26: "9 ", 100: "25 ", maxBelow: "78498 "} {
		got, err := countPrimes(t.Context(), below, 0)
		require.NoError(t, err)
		assert.Contains(t, got, "There are "+want)
	}
	_, err := countPrimes(t.Context(), 1, 0)
	assert.Error(t, err)
}

// TestSteer: a second prompt during a run is refused, and steering is how to say it.
func TestSteer(t *testing.T) {
	release := make(chan struct{})
	p := open(t, held(release), primesTool(pace))
	p.press(http.StatusNoContent, "/prompt", "Primes below 10?")
	p.until(is(agentkernel.EventMessageUpdate))
	p.press(http.StatusConflict, "/prompt", "Primes below 20?")
	p.press(http.StatusNoContent, "/steer", "No, below 100!")
	close(release)
	p.until(ended)
	assert.Equal(t, []string{"Primes below 10?", "No, below 100!"}, p.said(agentkernel.RoleUser))
	answers := p.said(agentkernel.RoleAssistant)
	assert.Contains(t, answers[len(answers)-1], "There are 25 primes below 100.")
}

// TestSteerCancelsTool: a count that runs when steering comes is not waited for.
func TestSteerCancelsTool(t *testing.T) {
	slow := true // the first count takes for ever
	tool := primesTool(pace)
	count := tool.Execute
	tool.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		if slow {
			slow = false
			return primesTool(time.Hour).Execute(ctx, args)
		}
		return count(ctx, args)
	}
	p := open(t, script(pace), tool)
	p.press(http.StatusNoContent, "/prompt", "Primes below 10?")
	p.until(is(agentkernel.EventToolExecUpdate))
	p.press(http.StatusNoContent, "/steer", "Below 100!")
	p.until(ended)
	answers := p.said(agentkernel.RoleAssistant)
	assert.Contains(t, answers[len(answers)-1], "There are 25 primes below 100.")
}

// TestSteerIdle: where the run has just ended, steering is a prompt.
func TestSteerIdle(t *testing.T) {
	p := open(t, script(pace), primesTool(pace))
	p.press(http.StatusNoContent, "/steer", "Primes below 10?")
	p.until(ended)
	assert.Equal(t, []string{"There are 4 primes below 10."}, p.said(agentkernel.RoleTool))
}

// TestAbort: a run is stopped in its tool, what waited for it is dropped, and the next prompt works.
func TestAbort(t *testing.T) {
	stuck := primesTool(time.Hour)
	stuck.Interrupt = agentkernel.InterruptBlock
	p := open(t, script(pace), stuck)
	p.press(http.StatusNoContent, "/abort", "") // there is nothing to abort
	p.press(http.StatusNoContent, "/prompt", "Primes below 10?")
	p.until(is(agentkernel.EventToolExecUpdate))
	p.press(http.StatusNoContent, "/steer", "this is dropped")
	p.press(http.StatusNoContent, "/abort", "")
	events := p.until(ended)
	end := events[len(events)-1]
	assert.Equal(t, agentkernel.EndAborted, end.Summary.EndReason)
	assert.ErrorContains(t, end.Err, errUser.Error())

	p.press(http.StatusNoContent, "/prompt", "Primes below 1?") // which the tool refuses
	p.until(ended)
	assert.Equal(t, []string{"Primes below 10?", "Primes below 1?"}, p.said(agentkernel.RoleUser))
	assert.Contains(t, p.said(agentkernel.RoleTool)[1], "below must be")
}

// TestReload: pages that come in mid-run, from the start or behind the last event that they
// saw, end with what the first one has.
func TestReload(t *testing.T) {
	release := make(chan struct{})
	p := open(t, held(release), primesTool(pace))
	p.press(http.StatusNoContent, "/prompt", "Primes below 100?")
	p.until(is(agentkernel.EventMessageUpdate))
	seen := p.LastEventID()

	fresh := p.reload()
	events := fresh.until(is(agentkernel.EventMessageUpdate))
	assert.Equal(t, agentkernel.EventSnapshot, events[0].Type)
	assert.True(t, fresh.State().IsRunning)

	close(release)
	fresh.until(ended)
	p.until(ended) // a new connection with Last-Event-ID
	late := p.reload()
	late.until(func(agentkernel.Event) bool { // the snapshot with which it begins may have it all
		s := late.State()
		return len(s.Messages) == 4 && !s.IsRunning
	})
	for _, other := range []page{fresh, late} {
		assert.Equal(t, texts(p.State()), texts(other.State()))
	}
	assert.Len(t, texts(p.State()), 4)

	first := p.firstRecord(seen)
	assert.Equal(t, agentkernel.EventMessageUpdate, first.Type)
	assert.Equal(t, seen, fmt.Sprintf("%s:%d", first.RunID, first.Seq-first.Coalesced-1))
	assert.Equal(t, agentkernel.EventSnapshot, p.firstRecord("nonsense").Type)
}

func texts(s agentkernel.AgentState) (out []string) {
	for _, m := range s.Messages {
		out = append(out, string(m.GetRole())+": "+m.ThinkingContent()+m.TextContent())
	}
	return out
}

// record is what stands on a record of the wire.
type record struct {
	Type           agentkernel.EventType
	RunID          string `json:"run_id"`
	Seq, Coalesced uint64
}

// firstRecord is what an EventSource gets first that has seen the event with that id.
func (p page) firstRecord(lastID string) (rec record) {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/events", nil)
	require.NoError(p.t, err)
	req.Header.Set("Last-Event-ID", lastID)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			require.NoError(p.t, json.Unmarshal([]byte(data), &rec))
			return rec
		}
	}
	require.Fail(p.t, "no event")
	return rec
}

// TestRefused: what no button of the page sends.
func TestRefused(t *testing.T) {
	p := open(t, script(pace), primesTool(pace))
	const ok = `{"text":"hi"}`
	p.post(http.StatusBadRequest, "/prompt", "", nil)
	p.post(http.StatusBadRequest, "/prompt", "[]", nil)
	p.post(http.StatusBadRequest, "/prompt", `{"text":" \n"}`, nil)
	p.post(http.StatusBadRequest, "/steer", `{}`, nil)
	p.post(http.StatusRequestEntityTooLarge, "/prompt", `{"text":"`+strings.Repeat("x", demo.MaxText)+`"}`, nil)
	p.post(http.StatusForbidden, "/prompt", ok, http.Header{"Origin": {"https://example.org"}})
	p.post(http.StatusForbidden, "/abort", ok, http.Header{"Sec-Fetch-Site": {"cross-site"}})
	p.post(http.StatusMisdirectedRequest, "/prompt", ok, http.Header{"Host": {"example.org:8080"}, "Origin": {"http://example.org:8080"}})
	p.post(http.StatusMethodNotAllowed, "/nope", ok, nil)
	assert.Empty(t, p.until(is(agentkernel.EventSnapshot))[0].RunID, "a run was started")
	p.post(http.StatusNoContent, "/prompt", ok, http.Header{"Host": {"localhost"}})
	p.until(ended)
}
