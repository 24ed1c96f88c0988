// Package sse streams a journal to browsers and other programs as server-sent events, and
// reads such a stream. The format is that of the WHATWG HTML standard, section "Server-sent
// events".
//
// Each event is one record of the delta-only wire form (docs/event.schema.json) as data, with
// the run's id, escaped as in a path, and the record's seq, "run:seq", as id. A client that
// lost its connection sends the last id that it saw in the header Last-Event-ID, as browsers do
// by themselves, and gets what follows. A client that is new, or that asks for a place which
// the journal does not keep any more, begins with a snapshot. A snapshot also comes before the
// first event of a run where the one before it died.
//
//	j := journal.NewRing(journal.Config{})
//	defer journal.Follow(agent, j)()
//	h := sse.NewHandler(j, sse.Config{})
//	mux.Handle("GET /events", h)
//	server.RegisterOnShutdown(h.Close)
//
// Clients share the journal: the server keeps of each one only its place. One that reads
// slowly, or not at all, therefore neither slows the run nor grows memory; when it goes on it
// gets what it missed, with updates that follow one another merged (Event.Coalesced), or, if
// that is not kept any more, a snapshot.
package sse
