package agentkernel

import (
	"maps"
	"sync"
)

// follow is an agent that a subscription hears.
type follow struct {
	agent       *Agent
	unsubscribe func()

	// Guarded by the subscription's mu.
	claims int  // calls of Follow that were not given up
	gone   bool // all were: what is still being delivered comes too late
	// begun are the blocks of open messages, and the calls, that were updated. Nil where no
	// MaxRate asks for it.
	begun map[begun]struct{}
}

// begun is a block of a message, or a call.
type begun struct {
	subject
	block int
}

// Follow makes the subscription hear another agent too, from the next event on, until the
// returned function is called. Its one goroutine, its bounds and its rate are then for all
// of them; events are told apart by RunID. Following a closed subscription does nothing.
//
// When unfollow has returned, no event of the agent is taken any more, and a run of it that
// waited for room goes on; what was taken before is still delivered. It may be called more
// than once, and inside fn. An agent that is followed several times is heard once, until all of
// these were given up, of which SubscribeAsync itself is one that only Close gives up.
func (s *Subscription) Follow(agent *Agent) (unfollow func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return func() {}
	}
	f := s.follows[agent]
	if f == nil {
		f = &follow{agent: agent}
		if s.interval > 0 {
			f.begun = make(map[begun]struct{})
		}
		f.unsubscribe = agent.subscribe(&listener{byRef: func(ev *Event) { s.put(f, ev) }})
		s.follows[agent] = f
	}
	f.claims++
	return sync.OnceFunc(func() {
		if s.giveUp(f) {
			f.unsubscribe()
		}
	})
}

// giveUp takes back one call of Follow and reports whether it was the last.
func (s *Subscription) giveUp(f *follow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.claims--; f.claims > 0 || s.closed {
		return false
	}
	f.gone = true
	delete(s.follows, f.agent)
	s.lookAgain()
	// Nobody may come to tell that the run has ended.
	if s.live = false; s.running {
		s.rouse()
	}
	return true
}

// first tells whether ev is the first update of its block or call. It is asked for every event.
func (f *follow) first(ev *Event) bool {
	if f.begun == nil {
		return false
	}
	about := subjectOf(ev)
	switch {
	case isUpdate(ev):
		before := len(f.begun)
		f.begun[begun{about, ev.ContentIndex}] = struct{}{}
		return len(f.begun) > before
	case ev.Type == EventToolExecEnd:
		delete(f.begun, begun{subject: about})
	case ev.Type == EventMessageEnd, ev.Type == EventMessageDiscard:
		maps.DeleteFunc(f.begun, func(b begun, _ struct{}) bool { return b.subject == about })
	case ev.Type == EventAgentEnd && ev.ParentRunID == "":
		clear(f.begun) // also of child runs that were left behind
	}
	return false
}
