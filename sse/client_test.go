package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// wire is a RoundTripper that answers each request with the next of its answers.
type wire struct {
	answers []func(*http.Request) (*http.Response, error)
	times   []time.Time
	lastIDs []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.times = append(w.times, time.Now())
	w.lastIDs = append(w.lastIDs, r.Header.Get("Last-Event-ID"))
	if len(w.answers) == 0 {
		return answer(204, "")(r)
	}
	next := w.answers[0]
	w.answers = w.answers[1:]
	return next(r)
}

func (w *wire) client(cfg sse.ClientConfig) *sse.Client {
	cfg.HTTP = &http.Client{Transport: w}
	return sse.NewClient("http://example.com/events", cfg)
}

// answer is a response whose body ends behind text.
func answer(status int, text string) func(*http.Request) (*http.Response, error) {
	return respond(status, io.NopCloser(strings.NewReader(text)))
}

func respond(status int, body io.ReadCloser) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: body,
			Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Retry-After": {"7"}}}, nil
	}
}

// silent is a response that never says anything, until its request ends.
func silent(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	return respond(200, in)(r)
}

func broken(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }

// frames is a run as a server sends it.
func frames(t *testing.T) ([]agentkernel.Event, []string) {
	var events []agentkernel.Event
	var lines []string
	enc := new(agentkernel.Encoder)
	for ev := range agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: agenttest.Script(agenttest.Text("one two three").Chunks(2))},
		nil, agentkernel.UserMessage("hi")) {
		data, err := enc.Encode(ev)
		require.NoError(t, err)
		events = append(events, ev)
		lines = append(lines, fmt.Sprintf("id: r:%d\ndata: %s\n\n", ev.Seq, data))
	}
	return events, lines
}

// TestReconnects: a stream that is cut behind any byte goes on behind the last whole event,
// and what it yields is the run as it was.
func TestReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, lines := frames(t)
		all := strings.Join(lines, "")
		for cut := 0; cut < len(all); cut += 11 {
			first := all[:cut]
			whole := strings.Count(first, "\n\n")
			w := &wire{answers: []func(*http.Request) (*http.Response, error){
				answer(200, first), broken, answer(200, strings.Join(lines[whole:], ""))}}
			var got []agentkernel.Event
			c := w.client(sse.ClientConfig{})
			for ev, err := range c.Events(t.Context()) {
				require.NoError(t, err)
				got = append(got, ev)
			}
			require.NoError(t, agenttest.CheckRun(nil, got))
			require.Equal(t, agenttest.Format(events), agenttest.Format(got))
			require.Equal(t, fmt.Sprintf("r:%d", len(events)), c.LastEventID())
			if whole > 0 {
				require.Equal(t, []string{"", fmt.Sprintf("r:%d", whole), fmt.Sprintf("r:%d", whole)}, w.lastIDs[:3])
			}
		}
	})
}

// TestLeavingAndComingBack: who leaves the loop misses nothing in the next one.
func TestLeavingAndComingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, lines := frames(t)
		c := (&wire{answers: []func(*http.Request) (*http.Response, error){
			answer(200, strings.Join(lines, "")), answer(200, strings.Join(lines[3:], ""))}}).client(sse.ClientConfig{})
		var got []agentkernel.Event
		for range 2 {
			for ev, err := range c.Events(t.Context()) {
				require.NoError(t, err)
				if got = append(got, ev); len(got) == 3 {
					break
				}
			}
		}
		require.Equal(t, agenttest.Format(events), agenttest.Format(got))
	})
}

// TestWaits: attempts that fail are made again after waits that double up to the bound, and a
// success begins anew.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answers: []func(*http.Request) (*http.Response, error){
			answer(200, "retry: 500\n\n"), broken, broken, answer(500, ""), broken, broken, answer(429, "")}}
		var waits []time.Duration
		var errs []string
		c := w.client(sse.ClientConfig{MaxWait: 8 * time.Second, OnDisconnect: func(err error, wait time.Duration) {
			errs = append(errs, err.Error())
			waits = append(waits, wait)
		}})
		for range c.Events(t.Context()) {
			t.Fatal("nothing came")
		}
		require.Len(t, waits, 7)
		for i, base := range []float64{0.5, 1, 2, 4, 8, 8, 8} {
			least, most := time.Duration(base/2*1e9), time.Duration(base*1e9)
			if i == 3 || i == 6 { // the server's Retry-After
				least = 7 * time.Second
				most = max(most, least)
			}
			require.GreaterOrEqual(t, waits[i], least, i)
			require.LessOrEqual(t, waits[i], most, i)
			require.Equal(t, waits[i], w.times[i+1].Sub(w.times[i]))
		}
		require.Equal(t, "EOF", errs[0])
	})
}

// TestSilence: a connection on which nothing comes is given up in time.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answers: []func(*http.Request) (*http.Response, error){silent}}
		var why error
		c := w.client(sse.ClientConfig{IdleTimeout: 20 * time.Second, OnDisconnect: func(err error, _ time.Duration) { why = err }})
		for range c.Events(t.Context()) {
			t.Fatal("nothing came")
		}
		require.ErrorContains(t, why, "silent")
		require.GreaterOrEqual(t, w.times[1].Sub(w.times[0]), 20*time.Second)
		require.Less(t, w.times[1].Sub(w.times[0]), 22*time.Second)
	})
}

// TestGivesUp: an answer that no other attempt cures ends the stream with an error.
func TestGivesUp(t *testing.T) {
	for name, a := range map[string]func(*http.Request) (*http.Response, error){
		"403": answer(403, ""), "404": answer(404, ""),
		"a page": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{"Content-Type": {"text/html"}}}, nil
		},
		"an endless line": answer(200, "data: "+strings.Repeat("x", 5000)),
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{answers: []func(*http.Request) (*http.Response, error){a}}
			var errs []error
			for ev, err := range w.client(sse.ClientConfig{MaxEventBytes: 4096}).Events(t.Context()) {
				require.Empty(t, ev.Type)
				errs = append(errs, err)
			}
			require.Len(t, errs, 1)
			require.Error(t, errs[0])
			require.Len(t, w.times, 1)
		})
	}
	for _, err := range sse.NewClient("::", sse.ClientConfig{}).Events(t.Context()) {
		require.Error(t, err)
	}
}

// TestBadRecords are yielded as errors, with their seq, and the stream goes on behind them.
func TestBadRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, lines := frames(t)
		text := strings.Join(lines[:3], "") + "data: nonsense\n\n" + lines[2] + // garbage, a duplicate
			strings.Join(lines[3:6], "") + strings.Join(lines[7:], "") // a gap
		w := &wire{answers: []func(*http.Request) (*http.Response, error){answer(200, text)}}
		var errs []error
		var last agentkernel.Event
		for ev, err := range w.client(sse.ClientConfig{}).Events(t.Context()) {
			if err != nil {
				errs = append(errs, err)
			}
			last = ev
		}
		require.ErrorIs(t, errs[0], agentkernel.WireGarbage)
		require.ErrorIs(t, errs[1], agentkernel.WireDuplicate)
		require.ErrorIs(t, errs[2], agentkernel.WireGap)
		gap := errs[2].(*agentkernel.WireError)
		require.Equal(t, [2]uint64{8, 6}, [2]uint64{gap.Seq, gap.After})
		for _, err := range errs[3:] {
			require.ErrorIs(t, err, agentkernel.WireSkipped)
		}
		require.Equal(t, agentkernel.EventAgentEnd, last.Type)
		require.Len(t, last.NewMessages, len(events[len(events)-1].NewMessages))
	})
}

// TestRepeatedBehindAConnection: what a server sends again when the client comes again is left
// out, but not an update that stands for that and for more.
func TestRepeatedBehindAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, lines := frames(t)
		w := &wire{answers: []func(*http.Request) (*http.Response, error){
			answer(200, strings.Join(lines[:5], "")), answer(200, strings.Join(lines[2:], ""))}}
		var got []agentkernel.Event
		for ev, err := range w.client(sse.ClientConfig{}).Events(t.Context()) {
			require.NoError(t, err)
			got = append(got, ev)
		}
		require.Equal(t, agenttest.Format(events), agenttest.Format(got))

		overlap := strings.Replace(lines[5], `"v":1`, `"v":1,"coalesced":2`, 1)
		w = &wire{answers: []func(*http.Request) (*http.Response, error){answer(200, strings.Join(lines[:5], "")), answer(200, overlap)}}
		var last error
		for _, err := range w.client(sse.ClientConfig{}).Events(t.Context()) {
			last = err
		}
		require.ErrorIs(t, last, agentkernel.WireDuplicate)
	})
}

// TestNoBounds: negative bounds are none.
func TestNoBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, lines := frames(t)
		w := &wire{}
		for range 80 {
			w.answers = append(w.answers, broken)
		}
		w.answers = append(w.answers, answer(200, strings.Join(lines, "")))
		var waits []time.Duration
		c := w.client(sse.ClientConfig{MaxWait: -1, MaxEventBytes: -1, IdleTimeout: -1,
			OnDisconnect: func(_ error, wait time.Duration) {
				waits = append(waits, wait)
				if len(waits) == 12 {
					w.answers = w.answers[len(w.answers)-1:]
				}
			}})
		n := 0
		for _, err := range c.Events(t.Context()) {
			require.NoError(t, err)
			n++
		}
		require.Len(t, events, n)
		require.Greater(t, waits[11], 1000*time.Second)
	})
}

// TestFormat: what the standard allows is read, line ends, comments and all.
func TestFormat(t *testing.T) {
	_, lines := frames(t)
	data := strings.TrimPrefix(lines[0][strings.Index(lines[0], "data: "):len(lines[0])-2], "data: ")
	half := strings.Index(data, ",") + 1
	for name, text := range map[string]string{
		"CR LF":       "id: r:1\r\ndata: " + data + "\r\n\r\n",
		"CR":          "id: r:1\rdata: " + data + "\r\r",
		"no blank":    "id:r:1\ndata:" + data + "\n\n",
		"two lines":   "id: r:1\ndata: " + data[:half] + "\ndata: " + data[half:] + "\n\n",
		"comments":    ": hello\n\n:\nid: r:1\n: more\ndata: " + data + "\n\n",
		"other":       "event: x\nid: r:1\nfoo\nbar: baz\ndata: " + data + "\n\n",
		"mark":        "\uFEFFid: r:1\ndata: " + data + "\n\n",
		"zero in id":  "id: r:1\nid: \x00\ndata: " + data + "\n\n",
		"bad retry":   "retry: 12x\nid: r:1\ndata: " + data + "\n\n",
		"id stays":    "id: r:1\n\ndata: " + data + "\n\n",
		"cut off":     "id: r:1\ndata: " + data + "\n\nid: r:2\ndata: {}",
		"empty lines": "\n\n\nid: r:1\ndata: " + data + "\n\n\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := (&wire{answers: []func(*http.Request) (*http.Response, error){answer(200, text)}}).client(sse.ClientConfig{})
				n := 0
				for ev, err := range c.Events(t.Context()) {
					require.NoError(t, err)
					require.Equal(t, agentkernel.EventAgentStart, ev.Type)
					n++
				}
				require.Equal(t, 1, n)
				require.Equal(t, "r:1", c.LastEventID())
			})
		})
	}
}

// TestMergedStreamIsExact: a slow reader gets merged updates that rebuild to what was said.
func TestMergedStreamIsExact(t *testing.T) {
	agent, j := talk(t, journal.Config{SnapshotEvery: 1 << 20}, strings.Repeat("many words ", 200))
	var last agentkernel.Event
	agent.Subscribe(func(ev agentkernel.Event) { last = ev })
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	h := sse.NewHandler(j, sse.Config{})
	text := strings.Join(stream(t, h, ""), "\n\n") + "\n\n"
	w := &wire{answers: []func(*http.Request) (*http.Response, error){answer(200, text)}}
	checker := agenttest.Checker{AllowCoalesced: true}
	var got strings.Builder
	var sum, events uint64
	c := w.client(sse.ClientConfig{})
	for ev, err := range c.Events(t.Context()) {
		require.NoError(t, err)
		if ev.Type == agentkernel.EventSnapshot {
			continue
		}
		checker.Listen(ev)
		got.WriteString(ev.Delta)
		sum += 1 + uint64(ev.Coalesced)
		events++
	}
	require.NoError(t, checker.Finish())
	require.Equal(t, record.Answer, got.String())
	require.Equal(t, record.Answer, c.State().Messages[1].TextContent())
	require.Equal(t, last.Seq, sum)
	require.Less(t, events, uint64(30))
}

// FuzzClient: whatever a server sends, the client ends without a panic, and what it yields
// without an error has a type.
func FuzzClient(f *testing.F) {
	f.Add([]byte("id: r:1\ndata: {\"v\":1,\"type\":\"agent_start\",\"run_id\":\"r\",\"seq\":1}\n\n"))
	f.Add([]byte("data: {\"v\":1,\"type\":\"snapshot\",\"run_id\":\"\",\"seq\":0,\"turn\":0,\"state\":{\"messages\":null}}\n\n"))
	f.Add([]byte(":\r\rretry:1\r\nid\n\ndata\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := (&wire{answers: []func(*http.Request) (*http.Response, error){answer(200, string(data))}}).client(
			sse.ClientConfig{MaxWait: time.Microsecond, MaxEventBytes: 1 << 16})
		for ev, err := range c.Events(t.Context()) {
			if err == nil {
				require.NotEmpty(t, ev.Type)
			}
		}
	})
}
