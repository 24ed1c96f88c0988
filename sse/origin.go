package sse

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// admitOrigin tells whether the page that asks may read the stream, and tells its browser so.
// A program that is no browser names no origin and may.
func (h *Handler) admitOrigin(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Add("Vary", "Origin")
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	all := slices.Contains(h.cfg.Origins, "*")
	switch {
	case site == "same-origin": // the browser knows under which name it asks
		return true
	case origin == "":
		return all || site == "" || site == "none"
	case ownOrigin(r, origin):
		return true
	case slices.Contains(h.cfg.Origins, normalOrigin(origin)):
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		return true
	case all:
		w.Header().Set("Access-Control-Allow-Origin", "*")
		return true
	}
	return false
}

// ownOrigin tells whether the request goes to the origin that it comes from. That a connection
// without TLS was not one of https is known only to a proxy before it; the other way round it
// is foreign.
func ownOrigin(r *http.Request, origin string) bool {
	scheme, host, ok := cutOrigin(origin)
	if !ok || scheme == "http" && r.TLS != nil {
		return false
	}
	_, own, ok := cutOrigin(scheme + "://" + r.Host)
	return ok && own == host
}

// originsOf are the origins in the form in which they are compared.
func originsOf(origins []string) []string {
	out := make([]string, len(origins))
	for i, o := range origins {
		out[i] = normalOrigin(o)
	}
	return out
}

// normalOrigin makes origins equal that are the same: letter case, a default port and a slash
// behind it do not count. What is none stays as it is.
func normalOrigin(origin string) string {
	if scheme, host, ok := cutOrigin(origin); ok {
		return scheme + "://" + host
	}
	return origin
}

// cutOrigin parts a web origin, "scheme://host[:port]", without its default port. Nothing but
// a slash may follow it.
func cutOrigin(origin string) (scheme, host string, ok bool) {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", false
	}
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if standard == "" {
		return "", "", false
	}
	host = strings.TrimSuffix(strings.ToLower(u.Host), ":")
	return u.Scheme, strings.TrimSuffix(host, ":"+standard), true
}

// remoteHost is the address of the connection without its port.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
