package journal

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// Merged yields the records with updates joined that follow one another and are about the
// same block, or the same call and kind of progress: the newest, with the deltas concatenated
// and the others counted in coalesced. Everything else comes as it is and where it is, so that
// a [agentkernel.Decoder] still proves that nothing is missing. It is for a reader that is
// behind. The records must follow one another in a journal.
func Merged(records []Record) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i := 0; i < len(records); {
			rec, n := join(records[i:])
			if !yield(rec) {
				return
			}
			i += n
		}
	}
}

// join merges the first n records into one.
func join(records []Record) (rec Record, n int) {
	if len(records) < 2 || !mergeable(&records[0]) || !mergeable(&records[1]) {
		return records[0], 1
	}
	first, ok := parse(&records[0])
	if !ok {
		return records[0], 1
	}
	sum, all := first, new(strings.Builder)
	all.WriteString(deltaText(&first))
	for n = 1; n < len(records) && mergeable(&records[n]); n++ {
		next, ok := parse(&records[n])
		if !ok || !sameSubject(&sum, &next) {
			break
		}
		next.Coalesced += sum.Coalesced + 1
		all.WriteString(deltaText(&next))
		sum = next
	}
	if n == 1 {
		return records[0], 1
	}
	if sum.Progress == nil {
		sum.Delta = all.String()
	} else if sum.Progress.Kind.AddsUp() {
		joined := *sum.Progress // which others read
		joined.Text = all.String()
		sum.Progress = &joined
	}
	data, err := sum.MarshalJSON()
	if err != nil {
		return records[0], 1
	}
	rec = records[n-1]
	rec.Data, rec.update = data, nil
	return rec, n
}

func mergeable(rec *Record) bool {
	return rec.Type == agentkernel.EventMessageUpdate || rec.Type == agentkernel.EventToolExecUpdate
}

// parse returns an update without its message. One that carries the whole message stays as
// it is.
func parse(rec *Record) (ev agentkernel.Event, ok bool) {
	if rec.update != nil {
		return *rec.update, true
	}
	err := json.Unmarshal(rec.Data, &ev)
	return ev, err == nil && ev.Message == nil
}

// slim is what parse gives for ev, written as data: nil for what cannot be merged. That the
// text of a delta looks like the name does not matter, since its quotes are escaped.
func slim(ev agentkernel.Event, data []byte) *agentkernel.Event {
	rec := Record{Type: ev.Type}
	if !mergeable(&rec) || bytes.Contains(data, []byte(`"message":`)) {
		return nil
	}
	ev.Message = nil
	return &ev
}

func sameSubject(a, b *agentkernel.Event) bool {
	if a.Type != b.Type || a.RunID != b.RunID {
		return false
	}
	if a.Type == agentkernel.EventMessageUpdate {
		return a.Attempt == b.Attempt && a.ContentIndex == b.ContentIndex && a.DeltaKind == b.DeltaKind
	}
	return a.ToolID == b.ToolID && a.UpdateKind == b.UpdateKind && a.UpdateKind == agentkernel.ToolExecUpdateProgress &&
		a.Progress.Kind == b.Progress.Kind && a.Progress.Tool == b.Progress.Tool
}

func deltaText(ev *agentkernel.Event) string {
	if ev.Progress != nil {
		return ev.Progress.Text
	}
	return ev.Delta
}
