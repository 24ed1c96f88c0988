package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// The faults of loops that speak of the adapter, each a test named after its number: a whole
// run with the adapter, on loopback, or in memory where the clock counts.

// attempts answers the n-th request with the n-th of these, and each later one with the last.
type attempts []func(w http.ResponseWriter, r *http.Request)

func (a attempts) serve(s *wireServer) {
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(s.requests.Add(1))
		a[min(n, len(a))-1](w, r)
	})
}

// sends sends a stream, and flushes it before what comes next.
func sends(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		write(w, body)
		w.(http.Flusher).Flush()
	}
}

// refuses answers with an error before any stream.
func refuses(status int, body string, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		write(w, body)
	}
}

// resets closes the connection with a reset.
func resets(_ http.ResponseWriter, r *http.Request) {
	time.Sleep(20 * time.Millisecond) // a reset may overtake what was written before
	conn := r.Context().Value(connKey{}).(*net.TCPConn)
	_ = conn.SetLinger(0)
	_ = conn.Close()
	panic(http.ErrAbortHandler)
}

// then answers with both, one after the other.
func then(first, second func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		first(w, r)
		second(w, r)
	}
}

var answers = sends(aChunk + aFinish + "data: [DONE]\n\n")

// inProcess answers as attempts.serve does, in memory, and counts the requests.
func inProcess(a attempts) (http.RoundTripper, *int) {
	n := new(int)
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		*n++
		w := &memoryResponse{header: http.Header{}, status: http.StatusOK}
		a[min(*n, len(a))-1](w, req)
		return &http.Response{
			StatusCode: w.status, Header: w.header, Body: io.NopCloser(strings.NewReader(w.body.String())), Request: req, ProtoMajor: 2,
		}, nil
	}), n
}

// memoryResponse is an http.ResponseWriter into memory.
type memoryResponse struct {
	header http.Header
	status int
	body   strings.Builder
}

func (m *memoryResponse) Header() http.Header         { return m.header }
func (m *memoryResponse) WriteHeader(status int)      { m.status = status }
func (m *memoryResponse) Write(p []byte) (int, error) { return m.body.Write(p) }
func (m *memoryResponse) Flush()                      {}

// loop runs the prompt "hi" and proves the run's stream.
func loop(t *testing.T, cfg agentkernel.Config) []agentkernel.Event {
	t.Helper()
	return agenttest.Run(t, cfg, nil, agentkernel.UserMessage("hi"))
}

func of(events []agentkernel.Event, kind agentkernel.EventType) []agentkernel.Event {
	var out []agentkernel.Event
	for _, ev := range events {
		if ev.Type == kind {
			out = append(out, ev)
		}
	}
	return out
}

// endOf is the run's last event.
func endOf(events []agentkernel.Event) agentkernel.Event { return events[len(events)-1] }

const (
	quotaBody   = `{"error":{"code":"insufficient_quota","message":"quota exceeded"}}`
	limitedBody = `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`
)

// Fault 16: a quota that is used up is not asked for again.
func TestFault16QuotaIsNotRetried(t *testing.T) {
	s := newWireServer(t)
	attempts{refuses(http.StatusTooManyRequests, quotaBody), answers}.serve(s)
	events := loop(t, agentkernel.Config{Model: s.model(t, Config{})})
	require.Equal(t, int64(1), s.requests.Load())
	require.Empty(t, of(events, agentkernel.EventRetry))
	requireFailure(t, endOf(events).Err, agentkernel.KindQuota, false, "quota exceeded")
}

// Fault 16: a server that wants a day is not waited for, and the error says what it wants.
func TestFault16ALongWaitIsNotSleptThrough(t *testing.T) {
	s := newWireServer(t)
	attempts{refuses(http.StatusTooManyRequests, limitedBody, "Retry-After", "86400"), answers}.serve(s)
	began := time.Now()
	events := loop(t, agentkernel.Config{Model: s.model(t, Config{})})
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, int64(1), s.requests.Load())
	require.Empty(t, of(events, agentkernel.EventRetry))
	requireFailure(t, endOf(events).Err, agentkernel.KindRateLimit, true, "slow down")
	failure, _ := errors.AsType[*agentkernel.Error](endOf(events).Err)
	require.Equal(t, 24*time.Hour, failure.RetryAfter)
	require.Equal(t, http.StatusTooManyRequests, failure.Status)
}

// Fault 16: the wait that a server asks for is kept, and told.
func TestFault16RetryAfterIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for header, want := range map[string]time.Duration{"Retry-After: 2": 2 * time.Second, "Retry-After-Ms: 2500": 2500 * time.Millisecond} {
			name, value, _ := strings.Cut(header, ": ")
			rt, requests := inProcess(attempts{refuses(http.StatusTooManyRequests, limitedBody, name, value), answers})
			began := time.Now()
			events := loop(t, agentkernel.Config{Model: inMemory(t, Config{}, rt)})
			require.NoError(t, endOf(events).Err)
			require.Equal(t, 2, *requests)
			require.Equal(t, want, time.Since(began))
			retry := of(events, agentkernel.EventRetry)
			require.Len(t, retry, 1)
			require.Equal(t, 1, retry[0].Attempt)
			require.Equal(t, want, retry[0].RetryInfo.Delay)
			requireFailure(t, retry[0].Err, agentkernel.KindRateLimit, true, "slow down")
		}
	})
}

// Fault 20: a Timeout of the user's own HTTP client cuts a healthy stream, and the error says
// which limit it was; the limits of the adapter do not, and its own client has no Timeout.
func TestFault20ClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := streamed(func(w io.Writer, wait func(time.Duration)) {
			for range 60 {
				wait(50 * time.Millisecond)
				write(w, aChunk)
			}
			write(w, aFinish+"data: [DONE]\n\n")
		})
		began := time.Now()
		events := loop(t, agentkernel.Config{
			Model: inMemory(t, Config{HTTPClient: &http.Client{Timeout: time.Second}}, healthy),
			Retry: agentkernel.RetryPolicy{MaxRetries: -1},
		})
		require.Equal(t, time.Second, time.Since(began))
		requireFailure(t, endOf(events).Err, agentkernel.KindTimeout, true, "Timeout of 1s")
		require.Equal(t, agentkernel.EndTimeout, endOf(events).Summary.EndReason)

		events = loop(t, agentkernel.Config{Model: inMemory(t, Config{IdleTimeout: 200 * time.Millisecond}, healthy)})
		require.NoError(t, endOf(events).Err)
		require.Len(t, endOf(events).NewMessages[1].TextContent(), 60)
	})
	require.Zero(t, sharedClient(defaultConnectTimeout).Timeout)
}

// Fault 55: an attempt that fails after its first byte is retried as any other.
func TestFault55FailuresInTheStreamAreRetried(t *testing.T) {
	for name, c := range map[string]struct {
		attempt func(http.ResponseWriter, *http.Request)
		kind    agentkernel.Kind
		partial bool
	}{
		"reset after a delta": {then(sends(aChunk), resets), agentkernel.KindNetwork, true},
		"error frame": {
			sends(aChunk + `data: {"error":{"message":"the server had an error","code":"server_error"}}` + "\n\n"),
			agentkernel.KindServer, true,
		},
		"reset before any byte": {resets, agentkernel.KindNetwork, false},
		"cut in a chunk": {
			then(sends(aChunk), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
			agentkernel.KindStreamTruncated, true,
		},
		"end without a word": {sends(aChunk), agentkernel.KindStreamTruncated, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWireServer(t)
			attempts{c.attempt, c.attempt, answers}.serve(s)
			events := loop(t, agentkernel.Config{Model: s.model(t, Config{}), Retry: agentkernel.RetryPolicy{BaseDelay: -1}})
			require.NoError(t, endOf(events).Err)
			require.Equal(t, "x", endOf(events).NewMessages[1].TextContent())
			retries := of(events, agentkernel.EventRetry)
			require.Len(t, retries, 2)
			for _, retry := range retries {
				requireFailure(t, retry.Err, c.kind, true, "")
			}
			discards := 0
			if c.partial {
				discards = 2
			}
			require.Len(t, of(events, agentkernel.EventMessageDiscard), discards)

			s = newWireServer(t)
			attempts{c.attempt, answers}.serve(s)
			events = loop(t, agentkernel.Config{Model: s.model(t, Config{}), Retry: agentkernel.RetryPolicy{MaxRetries: -1}})
			requireFailure(t, endOf(events).Err, c.kind, true, "")
			require.Equal(t, int64(1), s.requests.Load())
			require.Empty(t, of(events, agentkernel.EventRetry))
		})
	}
}

// Fault 56: the kernel is the only one that retries.
func TestFault56RetriesDoNotMultiply(t *testing.T) {
	s := newWireServer(t)
	attempts{refuses(http.StatusServiceUnavailable, "")}.serve(s)
	events := loop(t, agentkernel.Config{
		Model: s.model(t, Config{}), Retry: agentkernel.RetryPolicy{MaxRetries: 2, BaseDelay: time.Millisecond},
	})
	require.Equal(t, int64(3), s.requests.Load())
	require.Len(t, of(events, agentkernel.EventRetry), 2)
	requireFailure(t, endOf(events).Err, agentkernel.KindServer, true, "")
}

// Fault 57: an abort ends the wait for the next attempt at once.
func TestFault57AbortEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, requests := inProcess(attempts{refuses(http.StatusServiceUnavailable, "", "Retry-After", "30"), answers})
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: inMemory(t, Config{}, rt)})
		require.NoError(t, err)
		var events []agentkernel.Event
		agent.Subscribe(func(ev agentkernel.Event) {
			events = append(events, ev)
			if ev.Type == agentkernel.EventRetry {
				require.Equal(t, 30*time.Second, ev.RetryInfo.Delay)
				time.AfterFunc(50*time.Millisecond, func() { agent.Abort(nil) })
			}
		})
		began := time.Now()
		record, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindCanceled)
		require.Equal(t, 50*time.Millisecond, time.Since(began))
		require.Equal(t, agentkernel.EndAborted, record.EndReason)
		require.Empty(t, of(events, agentkernel.EventError))
		require.Len(t, of(events, agentkernel.EventRetry), 1)
		require.NoError(t, agenttest.CheckEvents(events))
		time.Sleep(time.Minute)
		require.Equal(t, 1, *requests, "no further request")
	})
}

// Fault 57 once more, on loopback.
func TestFault57OnLoopback(t *testing.T) {
	s := newWireServer(t)
	attempts{refuses(http.StatusServiceUnavailable, "", "Retry-After", "30"), answers}.serve(s)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var canceled time.Time
	var last agentkernel.Event
	for ev := range agentkernel.AgentLoop(ctx, agentkernel.Config{Model: s.model(t, Config{})}, nil, agentkernel.UserMessage("hi")) {
		if ev.Type == agentkernel.EventRetry {
			canceled = time.Now()
			cancel(errWhy)
		}
		last = ev
	}
	require.Less(t, time.Since(canceled), 10*time.Second, "the wait would have taken 30 s")
	require.Equal(t, agentkernel.EndAborted, last.Summary.EndReason)
	require.ErrorIs(t, last.Err, errWhy)
	require.Equal(t, int64(1), s.requests.Load())
}

// Fault 9: a strict server wants a content in each message and arguments in each call.
func TestFault09NoContentKeyIsLeftOut(t *testing.T) {
	s := newWireServer(t)
	var second []byte
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if s.requests.Add(1) == 1 {
			write(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"A","function":{"name":"noop","arguments":""}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
			return
		}
		second = body
		write(w, aChunk+aFinish)
	})
	noop := agentkernel.Tool{Name: "noop", Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
		return agentkernel.TextResult(""), nil
	}}
	cfg := agentkernel.Config{Model: s.model(t, Config{}), Tools: []agentkernel.Tool{noop}}
	for range agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
	}
	var request struct{ Messages []map[string]any }
	require.NoError(t, json.Unmarshal(second, &request))
	require.Len(t, request.Messages, 3)
	for _, m := range request.Messages {
		content, ok := m["content"]
		require.True(t, ok, "%v", m)
		require.True(t, content != nil || m["tool_calls"] != nil, "%v", m)
	}
	call := request.Messages[1]["tool_calls"].([]any)[0].(map[string]any)
	require.Equal(t, "{}", call["function"].(map[string]any)["arguments"])
}

// Fault 60: whether to ask for the usage is a switch, and a usage that is missing is none.
func TestFault60StreamOptionsAreASwitch(t *testing.T) {
	s := newWireServer(t)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "stream_options") {
			w.WriteHeader(http.StatusBadRequest)
			write(w, `{"error":{"message":"unknown field stream_options","type":"invalid_request_error"}}`)
			return
		}
		write(w, aChunk+aFinish)
	})
	a := ask(t.Context(), s.model(t, Config{}))
	requireFailure(t, a.err, agentkernel.KindInvalidRequest, false, "stream_options")
	r := converse(t, s.model(t, Config{Compat: &Compat{NoStreamOptions: true}}), 0)
	require.NoError(t, r.err)
	require.Nil(t, r.message.Usage)
}
