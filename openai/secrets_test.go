package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

const secretKey = "sk-test-0123456789abcdef"

// forbidden are the pieces of secrets that nothing may show: of the key, of the query string
// and of a header.
var forbidden = []string{secretKey, "sk-test-0", "9abcdef", "SECRET", "key=", "Bearer"}

// shown is all that printing, logging and marshalling make of v.
func shown(v any) string {
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, verb+"\n", v)
	}
	if raw, err := json.Marshal(v); err == nil {
		out.Write(raw)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Error("x", "value", v, slog.Group("g", "value", v))
	}
	return out.String()
}

func requireShowsNoSecret(t *testing.T, v any) {
	t.Helper()
	text := shown(v)
	for _, part := range forbidden {
		require.NotContains(t, text, part)
	}
}

// ownError is an error that the caller's HTTP client made. The caller may find it in the end
// as it was.
type ownError string

func (e ownError) Error() string { return string(e) }

// requireCleanChain looks at an error and at all that it wraps, up to what is the caller's own.
func requireCleanChain(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for ; err != nil; err = errors.Unwrap(err) {
		if _, own := err.(ownError); own {
			return
		}
		requireShowsNoSecret(t, err)
	}
}

// Fault 71: no key, query or header shows in an error, in an event or in a log, whatever the
// endpoint says and whatever breaks; and the cause can still be had.
func TestFault71NoSecretIsShown(t *testing.T) {
	quoting := `{"error":{"message":"Incorrect key sk-test-****cdef and ` + secretKey +
		`, sent as Authorization: Bearer ` + secretKey + `; see https://host/path?key=SECRET",` +
		`"code":"invalid_api_key","param":"` + secretKey + `"}}`
	s := newWireServer(t)
	base := s.URL + "/v1?key=SECRET-1234"
	closed := httptest.NewServer(nil)
	closed.Close()
	broken := func(err error) *http.Client {
		return &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, err })}
	}
	ended := sse("")
	ended.end = "reset"
	for name, c := range map[string]struct {
		wire *wire
		cfg  Config
		says string
	}{
		"typed status":     {refusing(http.StatusUnauthorized, nil, quoting), Config{}, "Incorrect key"},
		"another body":     {refusing(http.StatusBadGateway, nil, "no JSON: "+quoting), Config{}, "no JSON"},
		"a page":           {refusing(http.StatusForbidden, nil, `<html><a href="https://h/?key=SECRET">`+secretKey+" is bad</a>"), Config{}, "is bad"},
		"a gateway's copy": {refusing(http.StatusBadRequest, nil, `{"error":{"metadata":{"raw":"{\"message\":\"key `+secretKey+`\"}"}}}`), Config{}, "[redacted]"},
		"moved":            {refusing(http.StatusFound, map[string]string{"Location": "https://u:SECRET@elsewhere.invalid/v2?key=SECRET#SECRET"}, ""), Config{}, "moved to https://elsewhere.invalid/v2"},
		"moved here":       {refusing(http.StatusSeeOther, map[string]string{"Location": "/v2?key=SECRET"}, ""), Config{}, "moved to /v2"},
		"moved over there": {refusing(http.StatusFound, map[string]string{"Location": "//elsewhere.invalid/v2?key=SECRET"}, ""), Config{}, "moved to //elsewhere.invalid/v2"},
		"moved nowhere":    {refusing(http.StatusFound, map[string]string{"Location": "mailto:SECRET"}, ""), Config{}, "moved to [no URL]"},
		"error frame":      {sse("data: " + quoting + "\n\n"), Config{}, "Incorrect key"},
		"error text":       {sse(`data: {"error":"the header Bearer ` + secretKey + ` is no good"}` + "\n\n"), Config{}, "is no good"},
		"bare error line":  {sse("error: " + quoting + "\n\n"), Config{}, "Incorrect key"},
		"no JSON":          {sse("data: no JSON but " + secretKey + " and https://h/?key=SECRET\n\n"), Config{}, "no JSON"},
		"no stream":        {sse("what is " + secretKey + "? https://h/?key=SECRET\n"), Config{}, "no stream"},
		"JSON body":        {sse(quoting), Config{}, "Incorrect key"},
		"finish reason":    {sse(`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"error"}]}` + "\n\n"), Config{}, "finish reason"},
		"reset":            {ended, Config{}, ""},
		"no connection":    {nil, Config{BaseURL: closed.URL + "/v1?key=SECRET-1234"}, "refused"},
		"no host":          {nil, Config{BaseURL: "http://no-such-host.invalid/v1?key=SECRET-1234"}, ""},
		"client's words":   {nil, Config{HTTPClient: broken(ownError("Bearer " + secretKey + " at http://h/?key=SECRET"))}, "[redacted]"},
		"client's URL": {nil, Config{HTTPClient: broken(&url.Error{
			Op: "proxyconnect", URL: "http://u:SECRET@proxy.invalid?key=SECRET", Err: ownError("key " + secretKey),
		})}, "proxy.invalid"},
		"own header": {
			refusing(http.StatusForbidden, nil, "no such tenant: SECRET-of-a-tenant"),
			Config{Header: http.Header{"X-Api-Key": {"SECRET-of-a-tenant"}}}, "no such tenant",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.wire != nil {
				s.wire.Store(c.wire)
			}
			c.cfg.Model, c.cfg.APIKey = "m-test", secretKey
			if c.cfg.BaseURL == "" {
				c.cfg.BaseURL = base
			}
			if c.cfg.HTTPClient == nil {
				c.cfg.HTTPClient = &http.Client{Transport: s.Client().Transport, CheckRedirect: sameHost}
			}
			m, err := New(c.cfg)
			require.NoError(t, err)
			a := ask(t.Context(), m)
			requireCleanChain(t, a.err)
			require.Contains(t, a.err.Error(), c.says)

			// Whole runs, with a retry and a fallback in them.
			for _, ev := range loop(t, agentkernel.Config{
				Model: m, Fallbacks: []agentkernel.ChatModel{m},
				Retry: agentkernel.RetryPolicy{MaxRetries: 1, BaseDelay: -1},
			}) {
				requireShowsNoSecret(t, ev)
				if ev.Err != nil {
					requireCleanChain(t, ev.Err)
				}
				if ev.RetryInfo != nil {
					requireShowsNoSecret(t, *ev.RetryInfo)
				}
			}

			if _, err := Models(t.Context(), c.cfg); err != nil {
				requireCleanChain(t, err)
			}
		})
	}
}

// The cause of an error is still there to be found, in a copy without secrets.
func TestCausesAreReachable(t *testing.T) {
	s := newWireServer(t)
	s.wire.Store(refusing(http.StatusUnauthorized, nil, `{"error":{"message":"no key `+secretKey+`","code":"invalid_api_key"}}`))
	a := ask(t.Context(), s.model(t, Config{APIKey: secretKey}))
	api, ok := errors.AsType[*goopenai.APIError](a.err)
	require.True(t, ok)
	require.Equal(t, http.StatusUnauthorized, api.HTTPStatusCode)
	require.Equal(t, "invalid_api_key", api.Code)
	require.Equal(t, "no key [redacted]", api.Message)

	s.wire.Store(refusing(http.StatusBadGateway, nil, "no JSON: "+secretKey))
	a = ask(t.Context(), s.model(t, Config{APIKey: secretKey}))
	request, ok := errors.AsType[*goopenai.RequestError](a.err)
	require.True(t, ok)
	require.Equal(t, http.StatusBadGateway, request.HTTPStatusCode)
	require.Equal(t, "no JSON: [redacted]", string(request.Body))

	cause := errors.New("at http://h/?key=SECRET")
	m, err := New(Config{Model: "m", BaseURL: "http://localhost/v1?key=SECRET", HTTPClient: &http.Client{
		Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, cause }),
	}})
	require.NoError(t, err)
	a = ask(t.Context(), m)
	require.ErrorIs(t, a.err, cause)
	address, ok := errors.AsType[*url.Error](a.err)
	require.True(t, ok)
	require.Equal(t, "http://localhost/v1/chat/completions", address.URL)
}

// A request that the run shows holds nothing of the Config's secrets.
func TestRequestEventsHoldNoSecret(t *testing.T) {
	s := newWireServer(t)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		write(w, aChunk+aFinish)
	})
	m := s.model(t, Config{
		APIKey: secretKey, Header: http.Header{"X-Token": {"SECRET-1234"}}, ExtraBody: map[string]any{"token": "SECRET-1234"},
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: m})
	require.NoError(t, err)
	agent.Subscribe(func(ev agentkernel.Event) { requireShowsNoSecret(t, ev) })
	record, err := agent.Run(context.Background(), "hi")
	require.NoError(t, err)
	requireShowsNoSecret(t, record)
	requireShowsNoSecret(t, agent.State())
	require.False(t, strings.Contains(shown(m), secretKey))
}
