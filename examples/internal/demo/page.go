package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// MaxText bounds the body of a request that says something.
const MaxText = 64 << 10

// Guard keeps foreign pages out of next: requests of other origins, and names that were made to
// point here, which are an origin of their own.
func Guard(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "unknown host", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// WithText hands the text of requests whose body is {"text": "…"} to say, and answers what cannot
// be said.
func WithText(say func(w http.ResponseWriter, r *http.Request, text string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxText)).Decode(&body)
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil || strings.TrimSpace(body.Text) == "" {
			http.Error(w, "there is no text", http.StatusBadRequest)
			return
		}
		say(w, r, body.Text)
	}
}

// Request makes a request as a page would, with body as JSON. Its answer must be a success, and
// that of a GET must not be empty.
func Request(ctx context.Context, method, url string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	case method == http.MethodGet && len(text) == 0:
		return fmt.Errorf("%s is empty", url)
	}
	return nil
}
