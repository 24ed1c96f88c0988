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
	origin := r.Header.Get("Origin")
	all := slices.Contains(h.cfg.Origins, "*")
	if origin == "" {
		site := r.Header.Get("Sec-Fetch-Site")
		return all || site == "" || site == "same-origin" || site == "none"
	}
	if u, err := url.Parse(origin); err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
		return true
	}
	switch {
	case slices.Contains(h.cfg.Origins, origin):
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		return true
	case all:
		w.Header().Set("Access-Control-Allow-Origin", "*")
		return true
	}
	return false
}

// remoteHost is the address of the connection without its port.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
