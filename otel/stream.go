package otel

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// stream is one subscription.
type stream struct {
	observer *Observer
	ctx      context.Context // has the span above
	who      Identity

	mu      sync.Mutex
	stopped bool
	runs    map[string]*run // that have not ended, by id
}

// listen takes in one event.
func (s *stream) listen(ev agentkernel.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	r := s.runs[ev.RunID]
	if r == nil {
		r = s.meet(&ev)
	}
	r.seen += 1 + uint64(ev.Coalesced)
	r.last = ev.Time
	if r.span == nil && r.ready(&ev) {
		r.begin(promptOf(&ev))
	}
	r.take(&ev)
}

// meet begins to know a run: at its beginning, or later where that was missed.
func (s *stream) meet(ev *agentkernel.Event) *run {
	r := &run{stream: s, id: ev.RunID, parentID: ev.ParentRunID, parent: s.runs[ev.ParentRunID]}
	r.began = ev.Time.Add(-ev.Duration) // of what ends here the beginning was missed
	if r.parent != nil {
		r.parent.children = append(r.parent.children, r)
	}
	s.runs[r.id] = r
	return r
}

// stop ends what is open.
func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, r := range s.runs {
		if r.parent == nil { // it ends its children
			r.abandon(r.last)
		}
	}
}

// forget takes a run that ended out of what is known.
func (s *stream) forget(r *run) {
	delete(s.runs, r.id)
	if r.caller != nil {
		r.caller.active--
		r.caller.answer = r.answer
	}
	if r.parent != nil {
		r.parent.children = slices.DeleteFunc(r.parent.children, func(c *run) bool { return c == r })
	}
}

// seconds is a duration as the conventions count it.
func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }

// promptOf is what a run is asked, where ev tells.
func promptOf(ev *agentkernel.Event) string {
	if ev.Type == agentkernel.EventMessageStart && ev.Message != nil && ev.Message.GetRole() == agentkernel.RoleUser {
		return ev.Message.TextContent()
	}
	return ""
}
