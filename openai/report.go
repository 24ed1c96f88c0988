package openai

import (
	"bytes"
	"encoding/json"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// report is what an endpoint says of a failure, whatever the form that it says it in.
type report struct {
	// status is the HTTP status of the response, or the one that the report names.
	status int
	// codes are the typed words of the report, lower-case, the most telling first.
	codes   []string
	message string
	// wait is how long the report asks to wait.
	wait time.Duration
}

// mostMessage bounds the text that an error keeps of a report.
const mostMessage = 2000

// readReport reads a failure: JSON of any shape, HTML or plain text.
func readReport(data []byte) report {
	var r report
	data = bytes.TrimSpace(data)
	var value any
	if json.Unmarshal(data, &value) == nil {
		r.read(value, 0)
		if r.message == "" && len(data) > len("{}") {
			r.say(plainText(data)) // better than nothing
		}
	} else {
		r.say(plainText(data))
	}
	if !utf8.ValidString(r.message) {
		r.message = strings.ToValidUTF8(r.message, "\uFFFD")
	}
	if len(r.message) > mostMessage {
		r.message = strings.ToValidUTF8(r.message[:mostMessage], "") + " …"
	}
	return r
}

// mostNested bounds how deep a report is looked into.
const mostNested = 6

func (r *report) read(value any, depth int) {
	if depth > mostNested {
		return
	}
	switch v := value.(type) {
	case string:
		var inner map[string]any
		if json.Unmarshal([]byte(v), &inner) == nil {
			r.readObject(inner, depth+1) // a gateway's copy of what it got
		} else {
			r.say(v)
		}
	case []any:
		for _, item := range v {
			r.read(item, depth+1)
		}
	case map[string]any:
		r.readObject(v, depth)
	}
}

// readObject reads the members of an error object. The error that it wraps counts first.
func (r *report) readObject(v map[string]any, depth int) {
	for _, name := range []string{
		"error", "errors", "detail", "message", "msg", "Message", "error_msg", "error_message", "error_description",
		"reason", "text", "title", "x_groq",
	} {
		r.read(v[name], depth+1)
	}
	for _, name := range []string{"code", "type", "status", "error_code", "error_type", "status_code", "http_status", "statusCode"} {
		r.code(v[name])
	}
	for _, name := range []string{"retry_after", "retry_after_seconds"} {
		if s, ok := v[name].(float64); ok {
			r.wait = max(r.wait, seconds(s))
		}
	}
	if text, ok := v["retryDelay"].(string); ok {
		if d, err := time.ParseDuration(text); err == nil {
			r.wait = max(r.wait, d)
		}
	}
	for _, name := range []string{"innererror", "inner_error", "details"} {
		if _, text := v[name].(string); !text {
			r.read(v[name], depth+1)
		}
	}
	if metadata, ok := v["metadata"].(map[string]any); ok {
		r.code(metadata["error_type"])
		r.read(metadata["raw"], depth+1)
	}
}

// say adds a text to the message, unless it is there already.
func (r *report) say(text string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "" || strings.Contains(r.message, text):
	case r.message == "" || len(r.message) > mostMessage:
		r.message = text
	default:
		r.message += ": " + text
	}
}

// code takes a code in: a word, or an HTTP status.
func (r *report) code(value any) {
	switch v := value.(type) {
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			r.code(float64(n))
		} else if v != "" {
			r.codes = append(r.codes, strings.ToLower(v))
		}
	case float64:
		if v == math.Trunc(v) && v >= 400 && v <= 599 && r.status == 0 {
			r.status = int(v)
		} else if v != 0 {
			r.codes = append(r.codes, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
}

var (
	titleTag = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	anyTag   = regexp.MustCompile(`(?s)<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>`)
	spaces   = regexp.MustCompile(`\s+`)
)

// mostPage bounds what is looked at of a page.
const mostPage = 64 << 10

// plainText is the text of a body that is no JSON, in one line.
func plainText(data []byte) string {
	data = data[:min(len(data), mostPage)]
	if len(data) > 0 && data[0] == '<' {
		if m := titleTag.FindSubmatch(data); m != nil {
			data = m[1]
		}
		data = []byte(html.UnescapeString(string(anyTag.ReplaceAll(data, []byte(" ")))))
	}
	return strings.TrimSpace(string(spaces.ReplaceAll(data, []byte(" "))))
}

// seconds is a duration of that many seconds, within what a Duration holds and without sense
// below zero.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || s <= 0 {
		return 0
	}
	return time.Duration(min(s, math.MaxInt64/4/1e9) * 1e9)
}
