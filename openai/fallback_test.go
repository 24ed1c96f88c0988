package openai

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// twoEndpoints are two servers on loopback that answer as told, and a Config with the second
// as the fallback of the first.
func twoEndpoints(t *testing.T, first, second attempts) (a, b *wireServer, cfg agentkernel.Config) {
	a, b = newWireServer(t), newWireServer(t)
	first.serve(a)
	second.serve(b)
	return a, b, agentkernel.Config{
		Model:     a.model(t, Config{Model: "m-first"}),
		Fallbacks: []agentkernel.ChatModel{b.model(t, Config{Model: "m-second"})},
		Retry:     agentkernel.RetryPolicy{MaxRetries: 2, BaseDelay: time.Millisecond},
	}
}

const (
	firstSays  = `data: {"model":"m-first","choices":[{"delta":{"content":"half"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
	secondSays = `data: {"model":"m-second","choices":[{"delta":{"content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n"
)

// An endpoint whose retries are used up hands its call over; what it said is taken back.
func TestFallbackWhenRetriesAreUsedUp(t *testing.T) {
	cut := sends(firstSays)
	a, b, cfg := twoEndpoints(t, attempts{cut}, attempts{sends(secondSays)})
	events := loop(t, cfg)
	end := endOf(events)
	require.NoError(t, end.Err)
	require.Equal(t, int64(3), a.requests.Load())
	require.Equal(t, int64(1), b.requests.Load())

	discards, retries := of(events, agentkernel.EventMessageDiscard), of(events, agentkernel.EventRetry)
	require.Len(t, discards, 3)
	require.Len(t, retries, 3)
	for i, retry := range retries {
		require.Equal(t, "half", discards[i].Message.TextContent())
		requireFailure(t, retry.Err, agentkernel.KindStreamTruncated, true, "")
		require.Contains(t, retry.RetryInfo.Model, "m-first")
	}
	require.Empty(t, retries[1].RetryInfo.NextModel)
	require.Contains(t, retries[2].RetryInfo.NextModel, "m-second")

	answer := end.NewMessages[1].(agentkernel.Message)
	require.Equal(t, "whole", answer.TextContent())
	require.Equal(t, "m-second", answer.Model)
	require.Equal(t, 5, end.Summary.Usage.Total)
	require.Equal(t, 3*4, end.Summary.DiscardedUsage.Total)
}

// What another endpoint may cure is handed over at once, what none does ends the run.
func TestFallbackByKind(t *testing.T) {
	for name, c := range map[string]struct {
		refusal func(http.ResponseWriter, *http.Request)
		kind    agentkernel.Kind
		cured   bool
	}{
		"quota":           {refuses(http.StatusTooManyRequests, quotaBody), agentkernel.KindQuota, true},
		"a day's wait":    {refuses(http.StatusTooManyRequests, limitedBody, "Retry-After", "86400"), agentkernel.KindRateLimit, true},
		"key":             {refuses(http.StatusUnauthorized, ""), agentkernel.KindAuth, true},
		"too long":        {refuses(http.StatusRequestEntityTooLarge, ""), agentkernel.KindContextOverflow, true},
		"no stream":       {sends("hello\n"), agentkernel.KindProtocol, true},
		"bad request":     {refuses(http.StatusBadRequest, ""), agentkernel.KindInvalidRequest, false},
		"content refused": {refuses(http.StatusBadRequest, `{"error":{"code":"content_filter"}}`), agentkernel.KindRefusal, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, cfg := twoEndpoints(t, attempts{c.refusal}, attempts{sends(secondSays)})
			end := endOf(loop(t, cfg))
			require.Equal(t, int64(1), a.requests.Load())
			if c.cured {
				require.NoError(t, end.Err)
				require.Equal(t, int64(1), b.requests.Load())
				return
			}
			require.ErrorIs(t, end.Err, c.kind)
			require.Zero(t, b.requests.Load())
		})
	}
}

// The next turn asks the first endpoint again.
func TestFallbackEndsWithItsTurn(t *testing.T) {
	call := sends(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"A","function":{"name":"nobody","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n")
	a, b, cfg := twoEndpoints(t, attempts{refuses(http.StatusUnauthorized, ""), answers}, attempts{call})
	events := loop(t, cfg)
	require.NoError(t, endOf(events).Err)
	require.Equal(t, int64(2), a.requests.Load())
	require.Equal(t, int64(1), b.requests.Load())
}
