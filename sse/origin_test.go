package sse_test

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

func TestOrigins(t *testing.T) {
	_, j := talk(t, journal.Config{})
	require.NoError(t, j.Close()) // so that streams end at once
	listed := sse.Config{Origins: []string{"https://friend.example", "HTTP://Other.Example:80/", "null", "app://page"}}
	all := sse.Config{Origins: []string{"*"}}
	for _, c := range []struct {
		cfg          sse.Config
		origin, site string
		status       int
		allowed      string
	}{
		{sse.Config{}, "", "", 200, ""},
		{sse.Config{}, "", "same-origin", 200, ""},
		{sse.Config{}, "", "none", 200, ""},
		{sse.Config{}, "", "cross-site", 403, ""},
		{sse.Config{}, "http://example.com", "same-origin", 200, ""},
		{sse.Config{}, "http://example.com:8080", "", 403, ""},
		{sse.Config{}, "https://evil.example", "cross-site", 403, ""},
		{sse.Config{}, "null", "", 403, ""},
		{sse.Config{}, "https://example.com.evil.example", "", 403, ""},
		{listed, "https://friend.example", "cross-site", 200, "https://friend.example"},
		{listed, "https://FRIEND.example:443", "", 200, "https://FRIEND.example:443"},
		{listed, "http://friend.example", "", 403, ""},
		{listed, "http://other.example", "", 200, "http://other.example"},
		{listed, "null", "", 200, "null"},
		{listed, "app://page", "", 200, "app://page"},
		{listed, "https://evil.example", "cross-site", 403, ""},
		{all, "https://evil.example", "cross-site", 200, "*"},
		{all, "", "cross-site", 200, ""},
		// A proxy has changed the name of the host.
		{sse.Config{}, "https://public.example", "same-origin", 200, ""},
		{sse.Config{}, "https://public.example", "", 403, ""},
		{sse.Config{Origins: []string{"https://public.example"}}, "https://public.example", "", 200, "https://public.example"},
	} {
		r := httptest.NewRequest("GET", "http://example.com/events", nil)
		r.Header.Set("Origin", c.origin)
		r.Header.Set("Sec-Fetch-Site", c.site)
		w := httptest.NewRecorder()
		sse.NewHandler(j, c.cfg).ServeHTTP(w, r)
		require.Equal(t, c.status, w.Code, "%+v", c)
		require.Equal(t, c.allowed, w.Header().Get("Access-Control-Allow-Origin"), "%+v", c)
	}
}

// TestSameOrigin: scheme, letter case and default ports count as the standard says.
func TestSameOrigin(t *testing.T) {
	_, j := talk(t, journal.Config{})
	require.NoError(t, j.Close())
	for _, c := range []struct {
		origin, host string
		tls          bool
		want         int
	}{
		{"http://example.com", "example.com:80", false, 200},
		{"http://example.com:80", "example.com", false, 200},
		{"HTTP://EXAMPLE.com", "Example.COM", false, 200},
		{"http://example.com:8080", "example.com:8080", false, 200},
		{"http://[::1]:8080", "[::1]:8080", false, 200},
		{"http://[::1]", "[::1]:80", false, 200},
		{"https://example.com", "example.com:443", true, 200},
		{"https://example.com:443", "example.com", true, 200},
		{"https://example.com", "example.com", false, 200}, // TLS ends at a proxy
		{"http://example.com", "example.com", true, 403},
		{"http://example.com", "example.com:443", false, 403},
		{"https://example.com", "example.com:80", true, 403},
		{"ftp://example.com", "example.com", false, 403},
		{"//example.com", "example.com", false, 403},
		{"http://user@example.com", "example.com", false, 403},
		{"http://example.com/path", "example.com", false, 403},
		{"http://example.com?x", "example.com", false, 403},
		{"http://", "", false, 403},
		{"http://example.com", "example.com/path", false, 403},
	} {
		r := httptest.NewRequest("GET", "/events", nil)
		r.Host = c.host
		if r.TLS = nil; c.tls {
			r.TLS = new(tls.ConnectionState)
		}
		r.Header.Set("Origin", c.origin)
		w := httptest.NewRecorder()
		sse.NewHandler(j, sse.Config{}).ServeHTTP(w, r)
		require.Equal(t, c.want, w.Code, "%+v", c)
	}
}
