package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// serveModels answers every request on loopback with handler, and returns the server's address.
func serveModels(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestModelsOfManyEndpoints(t *testing.T) {
	created := time.Unix(1700000000, 0).UTC()
	for name, c := range map[string]struct {
		body string
		want []ModelInfo
	}{
		"OpenAI": {
			`{"object":"list","data":[{"id":"gpt-x","object":"model","created":1700000000,"owned_by":"system"},{"id":"b"}]}`,
			[]ModelInfo{{ID: "gpt-x", Created: created, OwnedBy: "system"}, {ID: "b"}},
		},
		"OpenRouter": {
			`{"data":[{"id":"a/b","name":"A: B","created":1700000000,"context_length":128000,"top_provider":{"max_completion_tokens":8000,"context_length":null}}]}`,
			[]ModelInfo{{ID: "a/b", Name: "A: B", Created: created, ContextWindow: 128000, MaxOutput: 8000}},
		},
		"a bare list": {
			`[{"id":"meta/x","type":"chat","created":0,"context_length":4096}]`,
			[]ModelInfo{{ID: "meta/x", ContextWindow: 4096}},
		},
		"vLLM":     {`{"data":[{"id":"m","max_model_len":2048}]}`, []ModelInfo{{ID: "m", ContextWindow: 2048}}},
		"Groq":     {`{"data":[{"id":"m","context_window":131072,"max_completion_tokens":32768}]}`, []ModelInfo{{ID: "m", ContextWindow: 131072, MaxOutput: 32768}}},
		"Mistral":  {`{"data":[{"id":"m","name":null,"max_context_length":32768}]}`, []ModelInfo{{ID: "m", ContextWindow: 32768}}},
		"llamacpp": {`{"models":[],"data":[{"id":"m","meta":{"n_ctx_train":40960}}]}`, []ModelInfo{{ID: "m", ContextWindow: 40960}}},
		"odd": {
			`{"data":[null,1,{},{"id":7},{"name":"n","created":"1700000000.5","context_length":"8192","max_output_tokens":1e300},{"id":"x","context_length":-1,"top_provider":[]}]}`,
			[]ModelInfo{{ID: "n", Name: "n", Created: created, ContextWindow: 8192, MaxOutput: maxNumber}, {ID: "x"}},
		},
		"none": {`{"data":[]}`, []ModelInfo{}},
	} {
		t.Run(name, func(t *testing.T) {
			infos, err := Models(t.Context(), Config{BaseURL: serveModels(t, respond(200, c.body))})
			require.NoError(t, err)
			for i := range infos {
				require.NotEmpty(t, infos[i].Raw)
				infos[i].Raw = nil
			}
			require.Equal(t, c.want, infos)
		})
	}
}

// Every request carries the key, the headers and the query of the Config.
func TestModelsAsksAsConfigured(t *testing.T) {
	var asked *http.Request
	address := serveModels(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		respond(200, `{"data":[]}`)(w, r)
	})
	_, err := Models(t.Context(), Config{
		BaseURL: address + "/v1/?key=a%20b", APIKey: "k-1",
		Header: http.Header{"X-Title": {"t"}, "Accept": {"x"}},
	})
	require.NoError(t, err)
	require.Equal(t, "/v1/models", asked.URL.Path)
	require.Equal(t, url.Values{"key": {"a b"}}, asked.URL.Query())
	require.Equal(t, "Bearer k-1", asked.Header.Get("Authorization"))
	require.Equal(t, []string{"t"}, asked.Header["X-Title"])
	require.Equal(t, []string{"x"}, asked.Header["Accept"])
	require.Equal(t, "agentkernel-go", asked.Header.Get("User-Agent"))

	_, err = Models(t.Context(), Config{BaseURL: address, Header: http.Header{"Authorization": {"Basic x"}, "User-Agent": {"mine"}}})
	require.NoError(t, err)
	require.Equal(t, []string{"Basic x"}, asked.Header["Authorization"])
	require.Equal(t, "mine", asked.Header.Get("User-Agent"))

	azure := goopenai.DefaultAzureConfig("k-2", address+"?tenant=t")
	_, err = Models(t.Context(), Config{Client: &azure})
	require.NoError(t, err)
	require.Equal(t, "/openai/models", asked.URL.Path)
	require.Equal(t, url.Values{"api-version": {"2023-05-15"}, "tenant": {"t"}}, asked.URL.Query())
	require.Equal(t, "k-2", asked.Header.Get("api-key"))
}

func TestModelsErrors(t *testing.T) {
	silent := serveModels(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for name, c := range map[string]struct {
		cfg  Config
		kind agentkernel.Kind
	}{
		"no URL":         {Config{BaseURL: "SECRET"}, agentkernel.KindInvalidRequest},
		"a wrong key":    {Config{BaseURL: serveModels(t, respond(401, `{"error":{"message":"Incorrect API key: k-SECRET","code":"invalid_api_key"}}`))}, agentkernel.KindAuth},
		"a refusal":      {Config{BaseURL: serveModels(t, respond(429, "slow down"))}, agentkernel.KindRateLimit},
		"a page":         {Config{BaseURL: serveModels(t, respond(200, "<html>hello</html>"))}, agentkernel.KindProtocol},
		"another object": {Config{BaseURL: serveModels(t, respond(200, `{"ok":true}`))}, agentkernel.KindProtocol},
		"too long":       {Config{BaseURL: serveModels(t, respond(200, `{"data":[{"id":"`+strings.Repeat("x", 100)+`"}]}`)), MaxLineBytes: 99}, agentkernel.KindLimit},
		"nobody there":   {Config{BaseURL: "http://127.0.0.1:1/v1?key=SECRET"}, agentkernel.KindNetwork},
		"silence":        {Config{BaseURL: silent + "?key=SECRET", ConnectTimeout: 1, HeaderTimeout: 20 * time.Millisecond}, agentkernel.KindTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.APIKey = "k-SECRET"
			infos, err := Models(t.Context(), c.cfg)
			require.Nil(t, infos)
			require.ErrorIs(t, err, c.kind)
			require.NotContains(t, err.Error(), "SECRET")
		})
	}

	stop := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	_, err := Models(ctx, Config{BaseURL: silent, HeaderTimeout: -1})
	require.ErrorIs(t, err, agentkernel.KindCanceled)
	require.ErrorIs(t, err, stop)
}
