package openai

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter is how long the server asks to wait: the longer of Retry-After and
// retry-after-ms. Zero where it asks for nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	wait := time.Duration(0)
	for _, value := range h.Values("Retry-After") {
		if s, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			wait = max(wait, seconds(s))
		} else if at, err := http.ParseTime(value); err == nil {
			wait = max(wait, at.Sub(now))
		} else if d, err := time.ParseDuration(strings.TrimSpace(value)); err == nil {
			wait = max(wait, d)
		}
	}
	for _, value := range h.Values("Retry-After-Ms") {
		if ms, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			wait = max(wait, seconds(ms/1000))
		}
	}
	return wait
}

// rateLimitReset is when the used-up limits are open again by the x-ratelimit headers, from
// now on. It is what a server says that sends no Retry-After.
func rateLimitReset(h http.Header, now time.Time) time.Duration {
	wait := time.Duration(0)
	for name, values := range h {
		name = strings.ToLower(name)
		before, rest, ok := strings.Cut(name, "ratelimit-reset")
		if !ok || len(values) == 0 {
			if name == "x-ratelimit-timeremaining" && len(values) > 0 {
				wait = max(wait, resetTime(values[0], now))
			}
			continue
		}
		left := h.Get(before + "ratelimit-remaining" + rest)
		if n, err := strconv.ParseFloat(left, 64); err == nil && n > 0 {
			continue // this limit is not the one that was hit
		}
		wait = max(wait, resetTime(values[0], now))
	}
	return wait
}

// resetTime reads when a limit is reset: "6m0s", "12ms", seconds, a Unix time in seconds or
// milliseconds, or a date.
func resetTime(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if d, err := time.ParseDuration(value); err == nil {
		return max(d, 0)
	}
	if n, err := strconv.ParseFloat(value, 64); err == nil && !math.IsNaN(n) {
		const epoch, epochMs = 1e9, 1e12
		switch {
		case n >= epochMs:
			return max(time.UnixMilli(int64(min(n, 1e15))).Sub(now), 0)
		case n >= epoch:
			return max(time.Unix(int64(n), 0).Sub(now), 0)
		}
		return seconds(n)
	}
	for _, layout := range []string{time.RFC3339, http.TimeFormat} {
		if at, err := time.Parse(layout, value); err == nil {
			return max(at.Sub(now), 0)
		}
	}
	return 0
}
