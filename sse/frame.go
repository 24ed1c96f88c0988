package sse

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentkernel-go/agentkernel/journal"
)

// maxID bounds the length of an event id that is taken from a client.
const maxID = 4096

// formatID is "run:seq". What of a run's id cannot stand in a header is escaped as in the path
// of a URL.
func formatID(m mark) string {
	return url.PathEscape(m.run) + ":" + strconv.FormatUint(m.seq, 10)
}

// parseID reads what formatID wrote.
func parseID(id string) (m mark, ok bool) {
	i := strings.LastIndexByte(id, ':')
	if len(id) > maxID || i < 1 {
		return mark{}, false
	}
	run, err := url.PathUnescape(id[:i])
	if err != nil {
		return mark{}, false
	}
	seq, err := strconv.ParseUint(id[i+1:], 10, 64)
	return mark{run, seq}, err == nil
}

// pieceBytes is how much is written at once: what a client has WriteTimeout for.
const pieceBytes = 64 << 10

// write writes one record as an event. The data is not copied: it may be a long snapshot, and
// w may wait.
func write(w io.Writer, id string, rec *journal.Record) error {
	if _, err := fmt.Fprintf(w, "id: %s\ndata: ", id); err != nil {
		return err
	}
	for rest := rec.Data; len(rest) > 0; {
		piece := rest[:min(len(rest), pieceBytes)]
		rest = rest[len(piece):]
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "\n\n")
	return err
}
