package agentkernel

import "sync"

// follow is an agent that a subscription hears.
type follow struct {
	agent       *Agent
	unsubscribe func()

	// Guarded by the subscription's mu.
	claims int  // calls of Follow that were not given up
	gone   bool // all were: what is still being delivered comes too late
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
		f.unsubscribe = agent.Subscribe(func(ev Event) { s.put(f, &ev) })
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
