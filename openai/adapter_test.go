package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestAdapter is the suite that every adapter has to pass.
func TestAdapter(t *testing.T) {
	agenttest.TestModel(t, func(t *testing.T, s agenttest.Scenario) agentkernel.ChatModel {
		server := newWireServer(t)
		server.wire.Store(playing(t, s))
		return server.model(t, Config{APIKey: secretKey})
	})
}

// playing is a response that plays a scenario, in chunks of one rune.
func playing(t *testing.T, s agenttest.Scenario) *wire {
	if s.Status != 0 {
		return refusing(s.Status, nil, "")
	}
	var body strings.Builder
	chunk := func(v any) {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		fmt.Fprintf(&body, "data: %s\n\n", raw)
	}
	delta := func(delta map[string]any) {
		chunk(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}})
	}
	for _, r := range s.Thinking {
		delta(map[string]any{"reasoning_content": string(r)})
	}
	for _, r := range s.Text {
		delta(map[string]any{"content": string(r)})
	}
	for i, c := range s.Calls {
		add := func(call map[string]any) {
			call["index"] = i
			delta(map[string]any{"tool_calls": []any{call}})
		}
		add(map[string]any{"id": c.ID, "type": "function", "function": map[string]string{"name": c.Name, "arguments": ""}})
		for _, r := range string(c.Args) {
			add(map[string]any{"function": map[string]string{"arguments": string(r)}})
		}
	}
	w := sse("")
	switch {
	case s.Truncated:
	case s.Stalls:
		w.end = "hang"
	default:
		chunk(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finishOf(s.Stop)}}})
		if u := s.Usage; u != nil {
			chunk(map[string]any{"choices": []any{}, "usage": map[string]int{
				"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Total,
			}})
		}
		body.WriteString("data: [DONE]\n\n")
	}
	w.body = []byte(body.String())
	return w
}

func finishOf(stop agentkernel.StopReason) string {
	if stop == agentkernel.StopReasonToolUse {
		return "tool_calls"
	}
	return string(stop)
}

// A status without a word is still the failure that it says.
func TestStatusAlone(t *testing.T) {
	s := newWireServer(t)
	s.wire.Store(refusing(http.StatusServiceUnavailable, nil, ""))
	requireFailure(t, ask(t.Context(), s.model(t, Config{})).err, agentkernel.KindServer, true, "Service Unavailable")
}
