package agentkernel

import (
	"slices"
	"time"
)

// wireStream is what both ends of a delta-only stream know: the events so far as a state,
// and, of each run that has not ended, what later records may refer to.
type wireStream struct {
	state AgentState
	runs  map[string]*wireRun
	kids  map[string]int // how many of runs have that parent
	clock int            // events so far
	last  wireMark
	// over are the last runs of the agent that ended, oldest first, and overChildren those of
	// the run that is open: what comes of them came before.
	over, overChildren []endedRun
}

// wireMark is the place of an event.
type wireMark struct {
	runID, parentID string
	seq             uint64
	time            time.Time
	turn            int
}

func markOf(ev *Event) wireMark {
	return wireMark{ev.RunID, ev.ParentRunID, ev.Seq, ev.Time, ev.Turn}
}

// endedRun is a run that has ended, as a snapshot says it too.
type endedRun struct {
	RunID string `json:"run_id"`
	Seq   uint64 `json:"seq"` // of its end; 0 where that was not seen
	Child bool   `json:"child,omitempty"`
}

const (
	// maxWireRuns bounds the runs that a stream follows at once.
	maxWireRuns = 1024
	// maxEndedRuns bounds each list of those that ended.
	maxEndedRuns = 32
)

// run finds the run of an event. The first event of a run that no run of the stream has made
// ends what was there: an agent runs one after the other, so that it died. While the agent's
// run is open, a run with a parent is a child, also where the parent has not been seen.
//
// Where too many runs are open, the child that has been silent for longest makes room. Where
// all of them have children of their own, the new run is not followed: each of its events
// finds another wireRun.
func (s *wireStream) run(id, parent string) *wireRun {
	if r := s.runs[id]; r != nil {
		return r
	}
	own := s.runs[s.state.RunID]
	r := &wireRun{id: id, parent: parent}
	r.child = s.bearsChild(parent)
	if !r.child {
		clear(s.runs)
		clear(s.kids)
		s.overChildren = nil
	}
	if len(s.runs) >= maxWireRuns && !s.makeRoom(r) {
		r.midway = true
		return r
	}
	r.midway = r.child && own != nil && own.joined
	r.used = s.clock
	s.add(r)
	return r
}

func (s *wireStream) add(r *wireRun) {
	if s.runs == nil {
		s.runs, s.kids = make(map[string]*wireRun), make(map[string]int)
	}
	s.runs[r.id] = r
	s.kids[r.parent]++
}

func (s *wireStream) drop(id string) {
	r := s.runs[id]
	if r == nil {
		return
	}
	delete(s.runs, id)
	if s.kids[r.parent]--; s.kids[r.parent] == 0 {
		delete(s.kids, r.parent)
	}
}

// bearsChild tells whether a run that comes with that parent is a child of one that is open.
func (s *wireStream) bearsChild(parent string) bool {
	own := s.runs[s.state.RunID]
	return parent != "" && (s.runs[parent] != nil || own != nil && own.parent == "")
}

// makeRoom drops the child run without children, and not the parent of comes, that has been
// silent for longest. What still comes of it begins in the middle.
func (s *wireStream) makeRoom(comes *wireRun) bool {
	own := s.runs[s.state.RunID]
	if own != nil {
		own.joined = true
	}
	var idle *wireRun
	for id, r := range s.runs {
		if idle != nil && r.used >= idle.used || r == own || !r.child || id == comes.parent || s.kids[id] > 0 {
			continue
		}
		idle = r
	}
	if idle == nil {
		return false
	}
	s.drop(idle.id)
	return true
}

// take adds an event that is complete.
func (s *wireStream) take(r *wireRun, ev *Event) {
	s.last = markOf(ev)
	s.clock++
	r.used = s.clock
	s.fold(r, ev)
	if ev.Type == EventAgentEnd {
		s.end(r.id, ev.Seq, r.child)
		return
	}
	r.follow(ev)
}

// fold is Reduce for a stream that may begin in the middle of a run, or lose the end of one.
func (s *wireStream) fold(r *wireRun, ev *Event) {
	switch starts := ev.Type == EventAgentStart; {
	case r.child || r.id == s.state.RunID:
	case starts:
		s.state = interruptedState(s.state)
	case r.parent == "": // otherwise perhaps the child of a run that has not been seen yet
		s.state = interruptedState(s.state)
		s.state.RunID, s.state.IsRunning, s.state.Suspended = r.id, true, nil
	}
	s.state = Reduce(s.state, *ev)
}

// interruptedState is the state of an agent whose run died in the middle: what was open never
// happened.
func interruptedState(s AgentState) AgentState {
	s.IsRunning, s.StreamMessage, s.PendingToolCalls = false, nil, nil
	return s
}

// end notes that a run has ended.
func (s *wireStream) end(id string, seq uint64, child bool) {
	s.drop(id)
	list := &s.overChildren
	if !child {
		s.overChildren = nil // that they ended follows from the end of their parent
		list = &s.over
	}
	*list = append(*list, endedRun{RunID: id, Seq: seq, Child: child})
	*list = (*list)[max(0, len(*list)-maxEndedRuns):]
}

// ended tells whether a run that is not open has ended, or was the child of one that has, and
// the seq of its end, as far as it is known.
func (s *wireStream) ended(id, parent string) (seq uint64, over bool) {
	for _, list := range [][]endedRun{s.over, s.overChildren} {
		i := slices.IndexFunc(list, func(e endedRun) bool { return e.RunID == id })
		if i >= 0 {
			return list[i].Seq, true
		}
	}
	if parent == "" || s.runs[parent] != nil {
		return 0, false
	}
	if _, over := s.ended(parent, ""); over {
		s.end(id, 0, true) // and so have its children
		return 0, true
	}
	return 0, false
}
