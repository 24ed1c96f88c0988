package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// streamed answers each request with a body that write writes, and closes it when write
// returns. A wait of write ends with the request.
func streamed(write func(w io.Writer, wait func(time.Duration))) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		r, w := io.Pipe()
		go func() {
			write(w, func(d time.Duration) {
				select {
				case <-time.After(d):
				case <-req.Context().Done():
					_ = w.CloseWithError(req.Context().Err())
				}
			})
			_ = w.Close()
		}()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: r, Request: req, ProtoMajor: 2}, nil
	}
}

// inMemory is a model that talks to rt.
func inMemory(t testing.TB, cfg Config, rt http.RoundTripper) *Model {
	cfg.Model = "m-test"
	cfg.BaseURL = "http://localhost/v1"
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{}
	}
	cfg.HTTPClient.Transport = rt
	m, err := New(cfg)
	require.NoError(t, err)
	return m
}

var oneQuestion = agentkernel.ModelRequest{Messages: []agentkernel.Message{agentkernel.UserMessage("hi")}}

// asked is what one call came to: its text, its events, its error, and how long it took.
type asked struct {
	text string
	done *agentkernel.StreamEvent
	err  error
	took time.Duration
}

func ask(ctx context.Context, m agentkernel.ChatModel) asked {
	var a asked
	start := time.Now()
	for ev, err := range m.Stream(ctx, oneQuestion) {
		switch {
		case err != nil:
			a.err = err
		case ev.Type == agentkernel.StreamEventTextDelta:
			a.text += ev.Delta
		case ev.Type == agentkernel.StreamEventDone:
			a.done = &ev
		}
	}
	a.took = time.Since(start)
	return a
}

const (
	aChunk  = `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n"
	aFinish = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
)

func write(w io.Writer, s string) { _, _ = io.WriteString(w, s) }

func requireFailure(t *testing.T, err error, kind agentkernel.Kind, retryable bool, text string) {
	t.Helper()
	failure, ok := errors.AsType[*agentkernel.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, kind, failure.Kind, "%v", err)
	require.Equal(t, retryable, failure.Retryable, "%v", err)
	require.Contains(t, failure.Error(), text)
}

func TestIdleTimeoutCountsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, Config{}, streamed(func(w io.Writer, wait func(time.Duration)) {
			for range 100 {
				wait(119 * time.Second)
				write(w, aChunk)
			}
			wait(time.Hour)
		}))
		a := ask(t.Context(), m)
		requireFailure(t, a.err, agentkernel.KindStreamIdle, true, "IdleTimeout")
		require.Len(t, a.text, 100)
		require.Equal(t, 100*119*time.Second+2*time.Minute, a.took)
	})
}

func TestKeepAlivesAreLifeForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, Config{}, streamed(func(w io.Writer, wait func(time.Duration)) {
			write(w, aChunk)
			for range 100 {
				wait(time.Minute)
				write(w, ": still here\n\ndata:\n\nevent: ping\n\n")
			}
		}))
		a := ask(t.Context(), m)
		requireFailure(t, a.err, agentkernel.KindStreamIdle, true, "KeepAliveLimit")
		require.Equal(t, 5*time.Minute, a.took)
	})
}

func TestLimitsThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{ConnectTimeout: -1, HeaderTimeout: -1, IdleTimeout: -1, KeepAliveLimit: -1, TailTimeout: -1, MaxLineBytes: -1}
		m := inMemory(t, cfg, streamed(func(w io.Writer, wait func(time.Duration)) {
			wait(24 * time.Hour)
			write(w, aChunk+aFinish)
			wait(24 * time.Hour)
		}))
		a := ask(t.Context(), m)
		require.NoError(t, a.err)
		require.Equal(t, 48*time.Hour, a.took)
	})
}

func TestTailTimeoutFinishesTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, Config{}, streamed(func(w io.Writer, wait func(time.Duration)) {
			write(w, aChunk+aFinish)
			wait(time.Second)
			write(w, `data: {"choices":[],"usage":{"prompt_tokens":3}}`+"\n\n")
			wait(time.Hour)
		}))
		a := ask(t.Context(), m)
		require.NoError(t, a.err)
		require.Equal(t, agentkernel.StopReasonStop, a.done.StopReason)
		require.Equal(t, 5*time.Second, a.took)
	})
}

func TestHeaderTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, Config{}, roundTrip(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}))
		a := ask(t.Context(), m)
		requireFailure(t, a.err, agentkernel.KindTimeout, true, "HeaderTimeout")
		require.Equal(t, 2*time.Minute, a.took)
	})
}

func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, Config{}, roundTrip(func(req *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(req.Context()).GetConn("localhost:80")
			<-req.Context().Done()
			return nil, req.Context().Err()
		}))
		a := ask(t.Context(), m)
		requireFailure(t, a.err, agentkernel.KindTimeout, true, "ConnectTimeout")
		require.Equal(t, 30*time.Second, a.took)
	})
}

func TestBodyOfAnErrorMayHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := streamed(func(w io.Writer, wait func(time.Duration)) {
			write(w, `{"error":{"message":"come back`)
			wait(time.Hour)
		})
		m := inMemory(t, Config{}, roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := hanging(req)
			resp.StatusCode = http.StatusTooManyRequests
			return resp, err
		}))
		a := ask(t.Context(), m)
		requireFailure(t, a.err, agentkernel.KindRateLimit, true, "come back")
		require.Equal(t, 5*time.Second, a.took)
	})
}

var errWhy = errors.New("the user pressed escape")

// TestCancelAtAnyPoint cancels before the header, between chunks and in the tail.
func TestCancelAtAnyPoint(t *testing.T) {
	points := map[string]http.RoundTripper{
		"header": roundTrip(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, errors.New("some error of the client")
		}),
		"first byte": streamed(func(_ io.Writer, wait func(time.Duration)) { wait(time.Minute) }),
		"chunks":     streamed(func(w io.Writer, wait func(time.Duration)) { write(w, aChunk); wait(time.Minute) }),
		"tail":       streamed(func(w io.Writer, wait func(time.Duration)) { write(w, aChunk+aFinish); wait(time.Minute) }),
	}
	for name, rt := range points {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errWhy) })
				a := ask(ctx, inMemory(t, Config{}, rt))
				requireFailure(t, a.err, agentkernel.KindCanceled, false, "escape")
				require.ErrorIs(t, a.err, errWhy)
				require.ErrorIs(t, a.err, context.Canceled)
				require.Equal(t, time.Second, a.took)
			})
		})
	}
}

func TestDeadlineOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := ask(ctx, inMemory(t, Config{}, streamed(func(_ io.Writer, wait func(time.Duration)) { wait(time.Minute) })))
		requireFailure(t, a.err, agentkernel.KindTimeout, false, "")
	})
}

// closeNoted is a body that tells when it was closed.
type closeNoted struct {
	io.ReadCloser
	closed chan struct{}
}

func (c *closeNoted) Close() error {
	close(c.closed)
	return c.ReadCloser.Close()
}

func TestBodyIsClosedWhenTheReaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		note := make(chan struct{})
		inner := streamed(func(w io.Writer, wait func(time.Duration)) { write(w, aChunk+aChunk); wait(time.Minute) })
		m := inMemory(t, Config{}, roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := inner(req)
			resp.Body = &closeNoted{resp.Body, note}
			return resp, err
		}))
		for range m.Stream(t.Context(), oneQuestion) {
			break
		}
		<-note
	})
}
