package sse_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// slow is a ResponseWriter whose client takes so many bytes per second, and fails a write that
// its deadline does not leave the time for.
type slow struct {
	recorder
	rate int
}

func (s *slow) Write(p []byte) (int, error) {
	takes := time.Duration(len(p)) * time.Second / time.Duration(s.rate)
	if left := time.Until(s.until); left < takes {
		time.Sleep(left)
		return 0, errors.New("deadline")
	}
	time.Sleep(takes)
	return s.recorder.Write(p)
}

// TestSlowClientOfALongRecord: a client that reads slowly, but does, keeps its connection for
// as long as a record takes; one that is too slow for 64 KiB loses it in time.
func TestSlowClientOfALongRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agentkernel.UserMessage(strings.Repeat("x", 8<<20))
		j := journal.NewRing(journal.Config{State: agentkernel.AgentState{Messages: []agentkernel.AgentMessage{m}}})
		require.NoError(t, j.Close())
		h := sse.NewHandler(j, sse.Config{WriteTimeout: 10 * time.Second})

		w := &slow{recorder: recorder{header: make(http.Header)}, rate: 10 << 10}
		began := time.Now()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		require.Greater(t, time.Since(began), 13*time.Minute)
		require.True(t, strings.HasSuffix(w.text(), "}\n\n"))

		w = &slow{recorder: recorder{header: make(http.Header)}, rate: 6 << 10}
		began = time.Now()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		require.Less(t, time.Since(began), 11*time.Second)
	})
}

// dripping is a body of which a piece comes whenever the last one was read, so much later.
type dripping struct {
	pieces []string
	wait   time.Duration
	ctx    <-chan struct{}
}

func (d *dripping) Read(p []byte) (int, error) {
	if len(d.pieces) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(d.wait):
	case <-d.ctx:
		return 0, errors.New("canceled")
	}
	n := copy(p, d.pieces[0])
	if d.pieces[0] = d.pieces[0][n:]; d.pieces[0] == "" {
		d.pieces = d.pieces[1:]
	}
	return n, nil
}

func (d *dripping) Close() error { return nil }

// TestSlowConsumer: a consumer that takes longer than IdleTimeout for an event is not the
// server's silence; a silence of the server is one also behind such an event.
func TestSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, lines := frames(t)
		drip := func(lines []string, wait time.Duration) func(*http.Request) (*http.Response, error) {
			return func(r *http.Request) (*http.Response, error) {
				return respond(200, &dripping{slices.Clone(lines), wait, r.Context().Done()})(r)
			}
		}
		w := &wire{answers: []func(*http.Request) (*http.Response, error){drip(lines, 10*time.Second)}}
		var why []error
		cfg := sse.ClientConfig{IdleTimeout: 20 * time.Second, OnDisconnect: func(err error, _ time.Duration) { why = append(why, err) }}
		n := 0
		for _, err := range w.client(cfg).Events(t.Context()) {
			require.NoError(t, err)
			time.Sleep(time.Minute)
			n++
		}
		require.Len(t, events, n)
		require.Equal(t, []error{io.EOF}, why)

		why, n = nil, 0
		w = &wire{answers: []func(*http.Request) (*http.Response, error){drip(lines, 30*time.Second), answer(200, lines[0]), silent}}
		for range w.client(cfg).Events(t.Context()) {
			time.Sleep(time.Minute)
			n++
		}
		require.Equal(t, 1, n)
		require.Len(t, why, 3)
		require.ErrorContains(t, why[0], "silent")
		require.ErrorContains(t, why[2], "silent")
	})
}

// TestComments: comments and what else means nothing do not count towards MaxEventBytes,
// however many and long they are.
func TestComments(t *testing.T) {
	_, lines := frames(t)
	long := strings.Repeat("x", 10_000)
	for name, between := range map[string]string{
		"heartbeats": strings.Repeat(":\n\n", 10_000), "no empty lines": strings.Repeat(": still there\n", 10_000),
		"one": ":" + long + "\n", "unknown fields": strings.Repeat("foo: bar\n", 10_000), "events without data": strings.Repeat("event: x\n\n", 10_000),
		"CR": strings.Repeat(": x\r", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				text := between + strings.Join(lines[:3], between) + strings.Replace(lines[3], "\n", "\n"+between, 1)
				if strings.Contains(between, "\n\n") {
					text = between + strings.Join(lines[:4], between)
				}
				w := &wire{answers: []func(*http.Request) (*http.Response, error){answer(200, text)}}
				n := 0
				for _, err := range w.client(sse.ClientConfig{MaxEventBytes: 4096}).Events(t.Context()) {
					require.NoError(t, err)
					n++
				}
				require.Equal(t, 4, n)
			})
		})
	}
}
