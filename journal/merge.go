package journal

import (
	"bytes"
	"iter"
	"strconv"

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
	sum, text := first, bytes.Clone(first.text)
	for n = 1; n < len(records) && mergeable(&records[n]); n++ {
		next, ok := parse(&records[n])
		if !ok || records[n].RunID != records[0].RunID || !next.sameSubject(&first) {
			break
		}
		text = append(text, next.text...)
		next.coalesced += sum.coalesced + 1
		sum = next
	}
	if n == 1 {
		return records[0], 1
	}
	if sum.text = text; !sum.addsUp() {
		sum.text = nil
	}
	rec = records[n-1]
	rec.Data = sum.bytes(rec.Data)
	return rec, n
}

func mergeable(rec *Record) bool {
	return rec.Type == agentkernel.EventMessageUpdate || rec.Type == agentkernel.EventToolExecUpdate
}

// update is what merging needs to know of an update's record, as JSON. It is read without
// making an event of it, since each reader that is behind does that anew.
type update struct {
	// about is the values that updates which merge have in common; nil is not there.
	about struct{ kind, attempt, index, deltaKind, toolID, updateKind, progress, tool []byte }
	// text is what the delta, or the progress, adds, without its quotes.
	text      []byte
	coalesced int
}

// parse reads an update. It reports false for one that carries the whole message, for a
// preview or what a gate says, and for what is not written as an Encoder does: these stay as
// they are.
func parse(rec *Record) (u update, ok bool) {
	ok = true
	read := members(rec.Data, func(key, value []byte) {
		switch string(key) {
		case "message":
			ok = false
		case "type":
			u.about.kind = value
		case "attempt":
			u.about.attempt = value
		case "content_index":
			u.about.index = value
		case "delta_kind":
			u.about.deltaKind = value
		case "tool_id":
			u.about.toolID = value
		case "update_kind":
			u.about.updateKind = value
		case "delta":
			u.text = unquote(value, &ok)
		case "progress":
			ok = ok && u.parseProgress(value)
		case "coalesced":
			n, err := strconv.ParseUint(string(value), 10, 32)
			u.coalesced, ok = int(n), ok && err == nil
		}
	})
	if rec.Type == agentkernel.EventMessageUpdate {
		u.about.toolID, u.about.updateKind = nil, nil // of the block
	} else {
		ok = ok && string(u.about.updateKind) == progressKind && u.about.progress != nil
	}
	return u, ok && read
}

var progressKind = strconv.Quote(string(agentkernel.ToolExecUpdateProgress))

func (u *update) parseProgress(data []byte) bool {
	ok := true
	return members(data, func(key, value []byte) {
		switch string(key) {
		case "kind":
			u.about.progress = value
		case "tool":
			u.about.tool = value
		case "text":
			u.text = unquote(value, &ok)
		}
	}) && ok
}

func (u *update) sameSubject(v *update) bool {
	a, b := &u.about, &v.about
	return bytes.Equal(a.kind, b.kind) && bytes.Equal(a.attempt, b.attempt) && bytes.Equal(a.index, b.index) &&
		bytes.Equal(a.deltaKind, b.deltaKind) && bytes.Equal(a.toolID, b.toolID) &&
		bytes.Equal(a.updateKind, b.updateKind) && bytes.Equal(a.progress, b.progress) && bytes.Equal(a.tool, b.tool)
}

// addsUp tells whether the texts of such updates add up; otherwise the newest is the whole.
func (u *update) addsUp() bool {
	switch string(u.about.progress) {
	case "", toolDelta, thinking:
		return true
	}
	return false
}

var (
	toolDelta = strconv.Quote(string(agentkernel.ProgressToolDelta))
	thinking  = strconv.Quote(string(agentkernel.ProgressThinking))
)

// bytes is the newest record with the text of all, where there is one, and their number.
func (u *update) bytes(newest []byte) []byte {
	out := append(make([]byte, 0, len(newest)+len(u.text)+32), '{')
	member := func(key, value []byte) {
		if len(out) > 1 && out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), key...), '"', ':'), value...)
	}
	quoted := func() []byte { return append(append([]byte{'"'}, u.text...), '"') }
	members(newest, func(key, value []byte) {
		switch {
		case string(key) == "coalesced", string(key) == "delta" && u.text != nil:
		case string(key) == "progress" && u.text != nil:
			member(key, []byte{'{'})
			members(value, func(key, value []byte) {
				if string(key) != "text" {
					member(key, value)
				}
			})
			member([]byte("text"), quoted())
			out = append(out, '}')
		default:
			member(key, value)
		}
	})
	if u.about.progress == nil && u.text != nil {
		member([]byte("delta"), quoted())
	}
	member([]byte("coalesced"), strconv.AppendInt(nil, int64(u.coalesced), 10))
	return append(out, '}')
}
