package agentkernel

import "github.com/agentkernel-go/agentkernel/internal/textbuf"

// backlog is the events that wait for an asynchronous subscriber, in the order of their Seq.
// Updates merge in it; everything else is an edge, which stays as it came and where it is.
//
// An update merges into the newest waiting update of the same block of the same message, or
// of the same call and kind of progress, and takes its place at the back. It passes what is
// about other messages and calls, but no edge of its own, and no mark.
type backlog struct {
	front, back *entry
	// urgent counts the edges, the marks and the first updates, which MaxRate does not hold up.
	urgent int
	// weight counts the edges, and the updates of a call beyond one: what else waits is
	// bounded by the messages and calls that these open.
	weight int
	// taken counts the updates that were taken out.
	taken int
	spare *entry // to be used again
}

// patience is how many updates may overtake one that waits. Then no more merges into it, so
// that it keeps its place and its turn comes.
const patience = 8

// entry is an event that waits, or a mark.
type entry struct {
	prev, next *entry

	agent *Agent // whose event it is
	ev    Event
	about subject
	part  part
	// update tells that others may merge into it, extra that it adds to the weight, first that
	// it is urgent all the same.
	update, extra, first bool
	since                int // taken, when it came
	// text is what the deltas come to, once there are several.
	text *textbuf.Buffer

	mark chan struct{} // of a mark: closed when all before it was delivered
}

// subject is what an event is about: a call, or the open message of a run.
type subject struct{ runID, toolID string }

// part is what of its subject an update is about: a block, or a kind of progress.
type part struct {
	block int
	kind  ProgressKind
	tool  string
}

// isUpdate tells whether ev may be merged. What a preview or a gate says may not.
func isUpdate(ev *Event) bool {
	return ev.Type == EventMessageUpdate ||
		ev.Type == EventToolExecUpdate && ev.UpdateKind == ToolExecUpdateProgress
}

func subjectOf(ev *Event) subject {
	if ev.Type == EventMessageUpdate { // of a call's block: the call does not execute yet
		return subject{runID: ev.RunID}
	}
	return subject{ev.RunID, ev.ToolID}
}

func partOf(ev *Event) part {
	if ev.Type == EventToolExecUpdate {
		return part{kind: ev.Progress.Kind, tool: ev.Progress.Tool}
	}
	return part{block: ev.ContentIndex}
}

// add takes in an event of agent; first is that of [follow.first].
func (b *backlog) add(agent *Agent, ev *Event, first bool) {
	if !isUpdate(ev) {
		e := b.push()
		e.agent, e.ev, e.about = agent, *ev, subjectOf(ev)
		b.urgent++
		b.weight++
		return
	}
	about, part := subjectOf(ev), partOf(ev)
	e, extra := b.find(about, part)
	if e == nil {
		e = b.push()
		e.agent, e.ev, e.about, e.part, e.update, e.since = agent, *ev, about, part, true, b.taken
		if e.extra = extra; extra {
			b.weight++
		}
		if e.first = first; first {
			b.urgent++
		}
		return
	}
	e.merge(ev)
	if e != b.back {
		b.unlink(e)
		b.link(e)
	}
}

// find returns the waiting update that others of its part may merge with. Where there is none
// it tells whether another update of the same call waits.
//
// It looks from the back and rarely far: an update that merged is at the back again, and one
// that finds nothing is only asked for once what it is about was delivered.
func (b *backlog) find(about subject, part part) (found *entry, extra bool) {
	for e := b.back; e != nil && e.mark == nil; e = e.prev {
		switch {
		case e.about != about:
		case !e.update:
			return nil, extra
		case e.part != part:
			extra = about.toolID != ""
		case b.taken-e.since < patience:
			return e, false
		default:
			return nil, about.toolID != ""
		}
	}
	return nil, extra
}

// adds tells whether ev would add to the weight.
func (b *backlog) adds(ev *Event) bool {
	if !isUpdate(ev) {
		return true
	}
	_, extra := b.find(subjectOf(ev), partOf(ev))
	return extra
}

// merge makes e stand for newer too.
func (e *entry) merge(newer *Event) {
	if delta, ok := addedBy(newer); ok { // which may be empty: then e keeps its own
		if e.text == nil {
			first, _ := addedBy(&e.ev)
			e.text = new(textbuf.Buffer)
			e.text.Append(first)
		}
		e.text.Append(delta)
	}
	coalesced := e.ev.Coalesced + 1 + newer.Coalesced
	if newer.Type == EventMessageUpdate { // in all else, updates of one block are equal
		e.ev.Seq, e.ev.Time, e.ev.Message, e.ev.ToolID, e.ev.Tool = newer.Seq, newer.Time, newer.Message, newer.ToolID, newer.Tool
	} else {
		e.ev = *newer
	}
	e.ev.Coalesced = coalesced
}

// addedBy is the text of an update that adds up; not ok where the newest text is the whole.
func addedBy(ev *Event) (text string, ok bool) {
	switch {
	case ev.Type == EventMessageUpdate:
		return ev.Delta, true
	case ev.Progress.Kind.AddsUp():
		return ev.Progress.Text, true
	}
	return "", false
}

// event is e as its subscriber gets it.
func (e *entry) event() Event {
	ev := e.ev
	switch {
	case e.text == nil:
	case ev.Type == EventMessageUpdate:
		ev.Delta = e.text.String()
	default:
		joined := *ev.Progress
		joined.Text = e.text.String()
		ev.Progress = &joined
	}
	return ev
}

// addMark puts a mark behind all that waits. Later updates do not merge with what is before it.
func (b *backlog) addMark() *entry {
	e := b.push()
	e.mark = make(chan struct{})
	b.urgent++
	return e
}

// take takes the first entry out. It is to be given back with reuse.
func (b *backlog) take() *entry {
	e := b.front
	b.remove(e)
	return e
}

func (b *backlog) remove(e *entry) {
	b.unlink(e)
	if e.update {
		b.taken++
	}
	if !e.update || e.first {
		b.urgent--
	}
	if !e.update && e.mark == nil || e.extra {
		b.weight--
	}
}

// push adds an empty entry.
func (b *backlog) push() *entry {
	e := b.spare
	if e == nil {
		e = new(entry)
	}
	b.spare = nil
	b.link(e)
	return e
}

// reuse takes back an entry that nobody refers to any more.
func (b *backlog) reuse(e *entry) {
	*e = entry{}
	b.spare = e
}

func (b *backlog) link(e *entry) {
	e.prev, e.next = b.back, nil
	if b.back == nil {
		b.front = e
	} else {
		b.back.next = e
	}
	b.back = e
}

func (b *backlog) unlink(e *entry) {
	if e.prev == nil {
		b.front = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		b.back = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}
