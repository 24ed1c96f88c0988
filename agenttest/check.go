package agenttest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/agentkernel-go/agentkernel"
)

// Breach is a place where a stream of events broke its contract.
type Breach struct {
	// Rule is what was broken: "1" to "10" for a rule of the event stream, "grammar",
	// "fields" (what an event type may fill), "ends" (the table of end reasons), "abort",
	// "calls" (arguments and ids), "messages" (the JSON fixed point), "runs" (several
	// runs on one stream).
	Rule string
	// RunID, Seq and Type are those of the event at which it showed.
	RunID string
	Seq   uint64
	Type  agentkernel.EventType
	// Problem says what was got and what was wanted.
	Problem string
}

// Error returns the breach on one line.
func (b *Breach) Error() string {
	return fmt.Sprintf("agenttest: rule %s broken at seq %d (%s, run %q): %s", b.Rule, b.Seq, b.Type, b.RunID, b.Problem)
}

// CheckEvents proves that the events, in the order in which they were delivered, are whole
// runs that keep the contract as far as it shows without the history they began with. It
// returns nil or the first [Breach] of each run, joined.
func CheckEvents(events []agentkernel.Event) error { return checkAll(NewChecker(), events) }

// CheckRun is [CheckEvents] for a log whose first run began with history, which may be
// empty and must be sound (see [agentkernel.ValidateHistory]). It proves too that call ids are
// unique against the history, and that calls which the history left open are answered, in their
// order, before anything else is said.
func CheckRun(history []agentkernel.AgentMessage, events []agentkernel.Event) error {
	c := NewChecker()
	c.StartFrom(history)
	return checkAll(c, events)
}

func checkAll(c *Checker, events []agentkernel.Event) error {
	if len(events) == 0 {
		return errors.New("agenttest: no events")
	}
	for i := range events {
		c.Listen(events[i])
	}
	return c.Finish()
}

// Checker checks a stream while it runs: subscribe its Listen to one agent, or feed it from
// one channel. It follows the runs of that agent one after the other, and child runs within
// them. The zero Checker is ready to use. Its methods may be called from any goroutine; its
// fields are set before the first event.
type Checker struct {
	// AllowCoalesced accepts merged updates, as an asynchronous subscriber gets them: Seq
	// may jump by what Coalesced accounts for, and sums of deltas are compared per block
	// and at the end of the message.
	AllowCoalesced bool
	// AllowGaps accepts that events are missing, as they are for a consumer of a bare loop
	// that stopped reading after the run's context ended. After the first gap only what
	// does not depend on order is checked, and that the run ends properly.
	AllowGaps bool
	// AllowRepair accepts that calls run whose arguments were no JSON object, as they may
	// where Config.RepairToolCall is set.
	AllowRepair bool

	mu       sync.Mutex
	runs     map[string]*run
	active   *run // the run without parent that has not ended
	history  []agentkernel.AgentMessage
	known    bool // history is what the next run begins with
	breaches []error
}

// NewChecker returns a checker of full streams that does not know the history of the first run.
func NewChecker() *Checker { return new(Checker) }

// StartFrom tells the history of the run that begins next. The checker follows it from there.
func (c *Checker) StartFrom(history []agentkernel.AgentMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history, c.known = history[:len(history):len(history)], true
}

// Listen takes the next event. It never panics on a malformed one.
func (c *Checker) Listen(ev agentkernel.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.runOf(&ev)
	if err == nil && !r.broken {
		err = r.take(&ev)
	}
	if err != nil {
		r.broken = true
		c.breaches = append(c.breaches, err)
	}
	c.settle(r, &ev)
}

// Err returns the first breach of each run so far, joined, or nil.
func (c *Checker) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.breaches...)
}

// Finish is Err at the end of the stream, where a run that has not ended is a breach too.
func (c *Checker) Finish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := c.breaches[:len(c.breaches):len(c.breaches)]
	for id, r := range c.runs {
		if !r.over && !r.broken {
			errs = append(errs, &Breach{Rule: "8", RunID: id, Seq: r.seq, Problem: "the stream stops without agent_end, " + r.phase.String()})
		}
	}
	return errors.Join(errs...)
}

// runOf finds the run of an event or opens it.
func (c *Checker) runOf(ev *agentkernel.Event) (*run, error) {
	if r := c.runs[ev.RunID]; r != nil {
		return r, nil
	}
	r := newRun(c, ev)
	if c.runs == nil {
		c.runs = make(map[string]*run)
	}
	c.runs[ev.RunID] = r
	if parent := c.runs[ev.ParentRunID]; ev.ParentRunID != "" && parent != nil && parent != r {
		r.hosts = parent.openExecs()
		if len(r.hosts) == 0 {
			return r, breach(ev, "runs", "child run begins while its parent %q executes no call", ev.ParentRunID)
		}
		return r, nil
	}
	if ev.ParentRunID != "" {
		return r, nil // the parent is on another stream
	}
	if c.active != nil && !c.active.over {
		return r, breach(ev, "runs", "run begins before run %q has ended", c.active.id)
	}
	c.active = r
	r.begin(c.history, c.known)
	return r, nil
}

// settle does what an event means for other runs than its own.
func (c *Checker) settle(r *run, ev *agentkernel.Event) {
	switch ev.Type {
	case agentkernel.EventToolExecEnd:
		for _, child := range c.runs {
			c.leave(child, ev)
		}
	case agentkernel.EventAgentEnd:
		r.over = true
		switch {
		case r != c.active:
		case r.broken: // what it left behind is not known
			c.history, c.known = nil, false
		default:
			c.history, c.known = r.history, r.known
		}
		r.forget()
	}
}

// leave takes the call that ended from the calls that a child run may belong to.
func (c *Checker) leave(child *run, ev *agentkernel.Event) {
	if child.over || child.parent != ev.RunID || child.hosts == nil {
		return
	}
	delete(child.hosts, ev.ToolID)
	if len(child.hosts) == 0 && !child.broken {
		child.broken = true
		c.breaches = append(c.breaches, breach(ev, "runs", "call %q ends before its child run %q", ev.ToolID, child.id))
	}
}

func breach(ev *agentkernel.Event, rule, format string, args ...any) error {
	return &Breach{Rule: rule, RunID: ev.RunID, Seq: ev.Seq, Type: ev.Type, Problem: fmt.Sprintf(format, args...)}
}
