// Package redact gives an error's text without the parts that must not be stored.
package redact

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Text returns err's text with every URL in it and in its chain cut to scheme, host and path.
func Text(err error) string {
	text := err.Error()
	walk(err, func(e error) {
		if u, ok := e.(*url.Error); ok && u.URL != "" {
			text = strings.ReplaceAll(text, u.URL, bare(u.URL))
		}
	})
	return cutURLs(text)
}

// Error returns err with its text cleaned as by Text, and without the secrets and what looks
// like a part of one: "[redacted]" stands in their place. The original stays reachable
// through errors.As and errors.Is.
func Error(err error, secrets ...string) error {
	text := Clean(Text(err), secrets...)
	if text == err.Error() {
		return err
	}
	return With(err, text)
}

// With returns an error of that text that unwraps to err.
func With(err error, text string) error { return &cleaned{text: text, err: err} }

type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }

// GoString keeps "%#v" from showing what the text hides.
func (c *cleaned) GoString() string { return strconv.Quote(c.text) }
func (c *cleaned) Unwrap() error    { return c.err }

const mark = "[redacted]"

// Clean returns text with its URLs cut to scheme, host and path, and without the secrets, the
// words that hold a longer piece of one, and the words in which somebody has masked one.
func Clean(text string, secrets ...string) string {
	text = cutURLs(text)
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, mark)
		}
	}
	pieces := piecesOf(secrets)
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if w != mark && (strings.Contains(w, "***") || holdsPiece(w, pieces)) {
			return mark
		}
		return w
	})
}

var (
	word   = regexp.MustCompile("[^\\s\"'`,;:()<>{}=&?]+")
	anyURL = regexp.MustCompile("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'`<>{}\\\\|^]+")
)

// pieceLength is how much of a secret a text may not show.
const pieceLength = 8

func piecesOf(secrets []string) map[string]bool {
	pieces := make(map[string]bool)
	for _, s := range secrets {
		for i := 0; i+pieceLength <= len(s); i++ {
			pieces[s[i:i+pieceLength]] = true
		}
	}
	return pieces
}

func holdsPiece(w string, pieces map[string]bool) bool {
	for i := 0; i+pieceLength <= len(w) && len(pieces) > 0; i++ {
		if pieces[w[i:i+pieceLength]] {
			return true
		}
	}
	return false
}

func cutURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return anyURL.ReplaceAllStringFunc(text, func(found string) string {
		raw := strings.TrimRight(found, ".,;:!?)]")
		return bare(raw) + found[len(raw):]
	})
}

// bare cuts a URL to scheme, host and path, without parsing what it need not.
func bare(raw string) string {
	raw, _, _ = strings.Cut(raw, "#")
	raw, _, _ = strings.Cut(raw, "?")
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		return raw
	}
	host, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	}
	if slash {
		host += "/"
	}
	return scheme + "://" + host + path
}

func walk(err error, visit func(error)) {
	for err != nil {
		visit(err)
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				walk(e, visit)
			}
			return
		}
		err = errors.Unwrap(err)
	}
}
