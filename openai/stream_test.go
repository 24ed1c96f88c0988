package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

func TestCancelClosesTheConnection(t *testing.T) {
	s := newWireServer(t)
	gone := make(chan struct{})
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write(w, aChunk)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var canceled time.Time
	for _, err := range s.model(t, Config{}).Stream(ctx, oneQuestion) {
		if err != nil {
			requireFailure(t, err, agentkernel.KindCanceled, false, "escape")
			break
		}
		canceled = time.Now()
		cancel(errWhy)
	}
	require.Less(t, time.Since(canceled), 10*time.Second, "the server says nothing more")
	<-gone
}

func TestConnectionIsUsedAgain(t *testing.T) {
	s := newWireServer(t)
	s.wire.Store(sse(aChunk + aFinish + "data: [DONE]\n\n"))
	m := s.model(t, Config{})
	for range 5 {
		require.NoError(t, ask(t.Context(), m).err)
	}
	require.LessOrEqual(t, s.conns.Load(), int64(2))
}

// refusing is a wire that answers with an error before any stream.
func refusing(status int, header map[string]string, body string) *wire {
	return &wire{status: status, header: header, body: []byte(body)}
}

func TestRedirectToAnotherHostIsNotFollowed(t *testing.T) {
	s := newWireServer(t)
	s.wire.Store(refusing(http.StatusFound, map[string]string{"Location": "http://elsewhere.invalid/?key=SECRET"}, ""))
	m, err := New(Config{Model: "m", BaseURL: s.URL})
	require.NoError(t, err)
	a := ask(t.Context(), m)
	requireFailure(t, a.err, agentkernel.KindProtocol, false, "http://elsewhere.invalid/")
	require.NotContains(t, a.err.Error(), "SECRET")
	sharedClient(defaultConnectTimeout).CloseIdleConnections()
}

// TestOpaqueDataComesBack sends an answer's opaque data back, from a history that was JSON.
func TestOpaqueDataComesBack(t *testing.T) {
	s := newWireServer(t)
	s.wire.Store(sse(`data: {"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]}}]}

data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"m","index":0,"signature":"a+/="},{"type":"reasoning.encrypted","data":"e+/<>","id":"r"}]}}]}

data: {"choices":[{"delta":{"content":"Yes","tool_calls":[{"index":0,"id":"A","function":{"name":"noop","arguments":"{}"},"extra_content":{"sig":"<b>"}}]},"finish_reason":"tool_calls"}]}

`))
	message, err := agentkernel.Generate(t.Context(), s.model(t, Config{}), oneQuestion)
	require.NoError(t, err)
	raw, err := json.Marshal(message)
	require.NoError(t, err)
	var back agentkernel.Message
	require.NoError(t, json.Unmarshal(raw, &back))

	m, err := New(Config{Model: "m", Compat: PresetOpenRouter()})
	require.NoError(t, err)
	body, err := m.encodeRequest(agentkernel.ModelRequest{Messages: []agentkernel.Message{back}})
	require.NoError(t, err)
	var request struct {
		Messages []struct {
			Details json.RawMessage `json:"reasoning_details"`
			Calls   []struct {
				Extra json.RawMessage `json:"extra_content"`
			} `json:"tool_calls"`
		}
	}
	require.NoError(t, json.Unmarshal(body, &request))
	require.JSONEq(t, `[{"type":"reasoning.text","text":"hm","index":0,"signature":"a+/="},{"type":"reasoning.encrypted","data":"e+/<>","id":"r"}]`,
		string(request.Messages[0].Details))
	require.JSONEq(t, `{"sig":"<b>"}`, string(request.Messages[0].Calls[0].Extra))
	require.Equal(t, "a+/=", back.Content[0].Signature)
}
