package sse_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// TestAnyRunID: whatever a run is called, its stream goes on behind any of its events.
func TestAnyRunID(t *testing.T) {
	for _, run := range []string{"r", "two words", " r ", "a:b", "50%", "%41", "é", "\x01\x00", "a\r\nid: b:1\ndata: {}\n\nc", "\xff", strings.Repeat("long", 200)} {
		t.Run(fmt.Sprintf("%.20q", run), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, _ := frames(t)
				j := journal.NewRing(journal.Config{})
				for i := range events {
					events[i].RunID = run
					require.NoError(t, j.Append(events[i]))
				}
				require.NoError(t, j.Close())
				w := &counting{direct: direct{sse.NewHandler(j, sse.Config{})}}
				c := sse.NewClient("http://example.com/", sse.ClientConfig{HTTP: &http.Client{Transport: w}})
				var last agentkernel.Event
				snapshots := 0
				for last.Type != agentkernel.EventAgentEnd {
					for ev, err := range c.Events(t.Context()) {
						require.NoError(t, err)
						if last = ev; ev.Type == agentkernel.EventSnapshot {
							snapshots++
						}
						break // and comes again
					}
				}
				for ev := range c.Events(t.Context()) {
					t.Fatalf("got %s behind the end", ev.Type)
				}
				require.Equal(t, 1, snapshots)
				require.Equal(t, 204, w.last)
				require.Equal(t, "one two three", c.State().Messages[1].TextContent())
			})
		})
	}
}

// counting keeps the last status of what it carries.
type counting struct {
	direct
	last int
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, v := range r.Header["Last-Event-Id"] {
		r.Header.Set("Last-Event-Id", strings.TrimSpace(v)) // as on the wire
	}
	resp, err := c.direct.RoundTrip(r)
	if err == nil {
		c.last = resp.StatusCode
	}
	return resp, err
}

// TestIDsThatCannotBeSent: an id that no header carries is not sent, and the stream goes on
// with what the server makes of that.
func TestIDsThatCannotBeSent(t *testing.T) {
	for _, id := range []string{"\x01:1", "a\x7f:1", "a\x1b[0m"} {
		synctest.Test(t, func(t *testing.T) {
			_, lines := frames(t)
			w := &wire{answers: []func(*http.Request) (*http.Response, error){
				answer(200, strings.Replace(lines[0], "id: r:1", "id: "+id, 1)), answer(200, strings.Join(lines, ""))}}
			c := w.client(sse.ClientConfig{})
			n := 0
			for _, err := range c.Events(t.Context()) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, len(lines), n)
			require.Equal(t, []string{"", "", fmt.Sprintf("r:%d", len(lines))}, w.lastIDs)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_, lines := frames(t)
		w := &wire{answers: []func(*http.Request) (*http.Response, error){answer(200, lines[0])}}
		for _, err := range w.client(sse.ClientConfig{LastEventID: "r:1\r\nX: y"}).Events(t.Context()) {
			require.NoError(t, err)
		}
		require.Equal(t, "", w.lastIDs[0])
		for _, err := range w.client(sse.ClientConfig{Header: http.Header{"X": {"a\nb"}}}).Events(t.Context()) {
			require.ErrorContains(t, err, `header "X"`)
		}
		require.Len(t, w.times, 2)
	})
}

// TestEndWithoutEvents: the end of a journal in which nothing happened reaches a client, also
// one that was there before; what another handler called its beginning is no place.
func TestEndWithoutEvents(t *testing.T) {
	for name, cfg := range map[string]journal.Config{
		"empty": {}, "with a state": {State: agentkernel.AgentState{Messages: []agentkernel.AgentMessage{agentkernel.UserMessage("hi")}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := journal.NewRing(cfg)
				first, done := connected(t, j)
				require.NoError(t, j.Close())
				<-done
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				c := sse.NewClient("http://example.com/", sse.ClientConfig{LastEventID: first.LastEventID(),
					HTTP: &http.Client{Transport: direct{sse.NewHandler(j, sse.Config{})}}})
				n := 0
				for ev, err := range c.Events(ctx) {
					require.NoError(t, err)
					require.Equal(t, agentkernel.EventSnapshot, ev.Type)
					n++
				}
				require.NoError(t, ctx.Err())
				require.Equal(t, 1, n)
				require.Len(t, c.State().Messages, len(cfg.State.Messages))
			})
		})
	}
}

// TestLastRecordsBeforeTheEnd: what is written and closed while a client is being served still
// comes on its connection.
func TestLastRecordsBeforeTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.jsonl")
	synctest.Test(t, func(t *testing.T) {
		events, _ := frames(t)
		j, err := journal.Open(path, journal.Config{})
		require.NoError(t, err)
		h := sse.NewHandler(j, sse.Config{MinInterval: time.Second})
		w, done := serve(t.Context(), h, "")
		require.NoError(t, j.Append(events[0]))
		synctest.Wait()
		for _, ev := range events[1:] {
			require.NoError(t, j.Append(ev))
		}
		require.NoError(t, j.Close())
		<-done
		require.Contains(t, w.text(), `"type":"agent_end"`)
	})
}

// TestHugeIDs: an id of any length and any seq is a place or none, and no error.
func TestHugeIDs(t *testing.T) {
	agent, j := talk(t, journal.Config{}, "hello")
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.NoError(t, j.Close())
	h := sse.NewHandler(j, sse.Config{})
	for _, id := range []string{strings.Repeat("9", 1<<20), strings.Repeat(":", 4096), "%zz:1", ":", ":0", "a:-1",
		fmt.Sprintf("%s:%d", agent.State().RunID, uint64(math.MaxUint64))} {
		w, done := serve(t.Context(), h, id)
		<-done
		require.Contains(t, w.text(), `"type":"snapshot"`, "%.20q", id)
	}
}
