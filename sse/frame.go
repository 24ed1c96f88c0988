package sse

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agentkernel-go/agentkernel/journal"
)

// maxID bounds the length of an event id that is taken from a client.
const maxID = 256

// parseID reads "run:seq".
func parseID(id string) (run string, seq uint64, ok bool) {
	i := strings.LastIndexByte(id, ':')
	if len(id) > maxID || i < 1 {
		return "", 0, false
	}
	seq, err := strconv.ParseUint(id[i+1:], 10, 64)
	return id[:i], seq, err == nil
}

// write writes one record as an event. A record that no event came before has no id. The data
// is not copied: it may be a long snapshot, and w may wait.
func write(w io.Writer, rec *journal.Record) error {
	head := "data: "
	if rec.RunID != "" && !strings.ContainsAny(rec.RunID, "\x00\r\n") {
		head = fmt.Sprintf("id: %s:%d\ndata: ", rec.RunID, rec.Seq)
	}
	for _, part := range [][]byte{[]byte(head), rec.Data, []byte("\n\n")} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
