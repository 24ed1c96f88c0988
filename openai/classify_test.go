package openai

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		status    int
		body      string
		kind      agentkernel.Kind
		retryable bool
	}{
		// A typed code counts before the status.
		{429, `{"error":{"code":"insufficient_quota"}}`, agentkernel.KindQuota, false},
		{400, `{"error":{"code":"context_length_exceeded"}}`, agentkernel.KindContextOverflow, false},
		{400, `{"error":{"code":"400","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, agentkernel.KindRefusal, false},
		{429, `{"error":{"type":"engine_overloaded_error"}}`, agentkernel.KindOverloaded, true},
		{429, `{"error":{"type":"exceeded_current_quota_error"}}`, agentkernel.KindQuota, false},
		{500, `{"error":{"code":"context_length_exceeded"}}`, agentkernel.KindContextOverflow, false},
		// The status counts before a type that says no more than a status.
		{401, `{"error":{"type":"api_error"}}`, agentkernel.KindAuth, false},
		{401, `{"error":{"type":"invalid_request_error"}}`, agentkernel.KindAuth, false},
		{503, `{"error":{"type":"invalid_request_error"}}`, agentkernel.KindServer, true},
		// Without a status the type is one.
		{0, `{"error":{"type":"invalid_request_error","message":"odd"}}`, agentkernel.KindInvalidRequest, false},
		{0, `{"error":{"type":"server_error","code":"overloaded"}}`, agentkernel.KindServer, true},
		{0, `{"error":{"code":502}}`, agentkernel.KindServer, true},
		{0, `{"error":{"code":"429"}}`, agentkernel.KindRateLimit, true},
		{0, `{"error":{"message":"no","status_code":401}}`, agentkernel.KindAuth, false},
		{0, `{"error":{"code":503,"status":"UNAVAILABLE","message":"The model is overloaded."}}`, agentkernel.KindOverloaded, true},
		// The text decides what those leave open.
		{429, `{"error":{"message":"You exceeded your current quota"}}`, agentkernel.KindQuota, false},
		{429, `{"error":{"message":"Rate limit reached. Upgrade in the billing settings.","code":"rate_limit_exceeded"}}`, agentkernel.KindRateLimit, true},
		{429, `Rate limit reached. Upgrade in the billing settings.`, agentkernel.KindRateLimit, true},
		{400, `{"error":{"message":"Your credit balance is too low to use the API","type":"invalid_request_error"}}`, agentkernel.KindQuota, false},
		{400, `{"error":{"message":"API key not valid","status":"INVALID_ARGUMENT"}}`, agentkernel.KindAuth, false},
		{403, `{"message":"your account balance is insufficient"}`, agentkernel.KindQuota, false},
		{500, `{"error":"the request exceeds the available context size"}`, agentkernel.KindContextOverflow, false},
		{404, `{"error":"context length"}`, agentkernel.KindInvalidRequest, false},
		{0, `{"error":"rate limit reached"}`, agentkernel.KindRateLimit, true},
		{0, `overloaded`, agentkernel.KindOverloaded, true},
		{0, `Internal Server Error`, agentkernel.KindServer, true},
		{0, `something else`, agentkernel.KindProvider, false},
		{0, ``, agentkernel.KindProvider, false},
		// Statuses alone.
		{402, ``, agentkernel.KindQuota, false},
		{403, ``, agentkernel.KindAuth, false},
		{404, ``, agentkernel.KindInvalidRequest, false},
		{408, ``, agentkernel.KindTimeout, true},
		{409, ``, agentkernel.KindServer, true},
		{413, `{"error":{"code":"rate_limit_exceeded"}}`, agentkernel.KindContextOverflow, false},
		{418, ``, agentkernel.KindInvalidRequest, false},
		{498, ``, agentkernel.KindOverloaded, true},
		{500, ``, agentkernel.KindServer, true},
		{501, ``, agentkernel.KindServer, false},
		{504, ``, agentkernel.KindServer, true},
		{524, ``, agentkernel.KindServer, true},
		{529, ``, agentkernel.KindOverloaded, true},
		{302, ``, agentkernel.KindProtocol, false},
	} {
		r := readReport([]byte(c.body))
		if c.status != 0 {
			r.status = c.status
		}
		kind, retryable := classify(r)
		require.Equal(t, c.kind, kind, "%d %s", c.status, c.body)
		require.Equal(t, c.retryable, retryable, "%d %s", c.status, c.body)
	}
}

func TestReportReadsEveryShape(t *testing.T) {
	for _, c := range []struct{ body, message string }{
		{`{"error":{"message":"a"}}`, "a"},
		{`{"error":"a"}`, "a"},
		{`{"error":"Unauthorized","message":"who?"}`, "Unauthorized: who?"},
		{`{"error":{"message":["a","b"]}}`, "a: b"},
		{`{"errors":[{"message":"a"},{"message":"b"}]}`, "a: b"},
		{`[{"error":{"message":"a"}}]`, "a"},
		{`{"detail":"a"}`, "a"},
		{`{"detail":[{"loc":["body"],"msg":"a","type":"missing"}]}`, "a"},
		{`{"message":"a","code":5}`, "a"},
		{`{"error_msg":"a","error_code":6}`, "a"},
		{`{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"a\"}}"}}}`, "Provider returned error: a"},
		{`{"error":{"message":"Provider returned error","metadata":{"raw":"a"}}}`, "Provider returned error: a"},
		{`"a"`, "a"},
		{"  plain\n text ", "plain text"},
		{"<html><head><title>502 Bad\nGateway</title></head><body>x</body></html>", "502 Bad Gateway"},
		{"<!doctype html><style>p{}</style><h1>Access &amp; more</h1>", "Access & more"},
		{`{"error":true,"message":"a"}`, "a"},
		{`{"error":{"message":{"text":"a"}}}`, "a"},
		{`{"error":{"code":"odd"}}`, `{"error":{"code":"odd"}}`},
		{``, ""},
	} {
		require.Equal(t, c.message, readReport([]byte(c.body)).message, c.body)
	}
	long := readReport([]byte(strings.Repeat("世", mostMessage)))
	require.LessOrEqual(t, len(long.message), mostMessage+len(" …"))
	require.True(t, strings.HasSuffix(long.message, "世 …"))
	require.Equal(t, 33*time.Second, readReport([]byte(`{"error":{"details":[{"@type":"RetryInfo","retryDelay":"33s"}]}}`)).wait)
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{nil, 0},
		{map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		{map[string]string{"Retry-After": "Fri, 01 May 2026 12:01:00 GMT"}, time.Minute},
		{map[string]string{"Retry-After": "Fri, 01 May 2026 11:00:00 GMT"}, 0},
		{map[string]string{"Retry-After": "-3"}, 0},
		{map[string]string{"Retry-After": "soon"}, 0},
		{map[string]string{"Retry-After": "NaN"}, 0},
		{map[string]string{"Retry-After-Ms": "660"}, 660 * time.Millisecond},
		{map[string]string{"Retry-After": "1", "Retry-After-Ms": "0"}, time.Second},
		{map[string]string{"Retry-After": "1", "Retry-After-Ms": "1500"}, 1500 * time.Millisecond},
	} {
		h := http.Header{}
		for name, value := range c.header {
			h.Set(name, value)
		}
		require.Equal(t, c.want, retryAfter(h, now), "%v", c.header)
	}
	h := http.Header{}
	h.Set("Retry-After", "1e300")
	require.Greater(t, retryAfter(h, now), 24*time.Hour)
}

func TestRateLimitReset(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{"X-Ratelimit-Reset-Requests": "12ms"}, 12 * time.Millisecond},
		{map[string]string{"X-Ratelimit-Reset-Tokens": "6m0s"}, 6 * time.Minute},
		{map[string]string{"X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Remaining-Tokens": "9"}, 0},
		{map[string]string{"X-Ratelimit-Reset": "30"}, 30 * time.Second},
		{map[string]string{"X-Ratelimit-Reset": "1777636830"}, 30 * time.Second},
		{map[string]string{"X-Ratelimit-Reset": "1777636830000"}, 30 * time.Second},
		{map[string]string{"Anthropic-Ratelimit-Tokens-Reset": "2026-05-01T12:00:30Z"}, 0},
		{map[string]string{"X-Ratelimit-Reset-Tokens": "2026-05-01T12:00:30Z"}, 30 * time.Second},
		{map[string]string{"X-Ratelimit-Timeremaining": "44"}, 44 * time.Second},
		{map[string]string{"X-Ratelimit-Reset": "never"}, 0},
	} {
		h := http.Header{}
		for name, value := range c.header {
			h.Set(name, value)
		}
		require.Equal(t, c.want, rateLimitReset(h, now), "%v", c.header)
	}
}

func TestPicker(t *testing.T) {
	one := func(index int, role bool) []choice { return []choice{{index: index, role: role}} }
	for _, c := range []struct {
		name   string
		frames [][]choice
		want   []bool
	}{
		{"one answer", [][]choice{one(0, true), one(0, false), one(0, false)}, []bool{true, true, true}},
		{"an index that counts", [][]choice{one(1, true), one(2, false), one(3, false)}, []bool{true, true, true}},
		{"an index that counts from 0", [][]choice{one(0, true), one(1, false), one(2, false)}, []bool{true, true, true}},
		{"two answers, both begin", [][]choice{one(0, true), one(1, true), one(1, false), one(0, false)}, []bool{true, false, false, true}},
		{"two answers, one after the other", [][]choice{one(0, true), one(0, false), one(1, true), one(1, false)}, []bool{true, true, false, false}},
	} {
		var p picker
		for i, frame := range c.frames {
			require.Equal(t, c.want[i], p.pick(frame) != nil, "%s, frame %d", c.name, i)
		}
	}
	var p picker
	both := []choice{{index: 1}, {index: 0}}
	require.Equal(t, 0, p.pick(both).index)
	require.Nil(t, p.pick(one(1, false)))
	require.Nil(t, p.pick(nil))
}
