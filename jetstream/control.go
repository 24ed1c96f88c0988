package jetstream

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
	broker "github.com/nats-io/nats.go/jetstream"
)

// The kinds of controls.
const (
	controlSteer    = "steer"
	controlFollowUp = "follow_up"
	controlAbort    = "abort"
)

// ErrAborted is the cause with which the context of a run ends that a client aborted.
var ErrAborted = errors.New("jetstream: a client aborted it")

// controls brings what clients say in between to a run. It reads the session's subject, on which
// a control stays until a run has taken it, at its beginning, when it is nudged, and now and then.
type controls struct {
	*bus
	session string
	since   time.Time // aborts from before it are about earlier requests
	abort   context.CancelCauseFunc

	steering, followUps *agentkernel.Queue

	reading chan struct{} // holds one, which who reads takes out
	next    uint64        // the place to read from

	mu      sync.Mutex
	taken   map[uint64]bool // said already
	waiting []control       // in a queue, in their order
	passed  []uint64        // places of controls that no run needs any more
}

// control is a message that a client sent.
type control struct {
	at      uint64
	message agentkernel.AgentMessage
	last    bool // of its control
}

// read takes in what is new.
func (c *controls) read(ctx context.Context) error {
	select {
	case <-c.reading:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.reading <- struct{}{} }()
	for msg, err := range c.records(ctx, streamControl, c.subject(), c.next) {
		if err != nil {
			return err
		}
		c.next = msg.Sequence + 1
		c.take(msg)
	}
	return nil
}

func (c *controls) subject() string { return c.cfg.subject(streamControl, c.session) }

func (c *controls) take(msg *broker.RawStreamMsg) {
	kind := msg.Header.Get(headerKind)
	if kind == controlAbort {
		if msg.Time.After(c.since) {
			c.abort(ErrAborted)
			return
		}
		c.mu.Lock() // it is about earlier requests than this one, and so than all that follow
		c.passed = append(c.passed, msg.Sequence)
		c.mu.Unlock()
		return
	}
	messages, err := readSaid(msg.Data)
	queue := c.steering
	if kind == controlFollowUp {
		queue = c.followUps
	}
	c.mu.Lock()
	ours := err == nil && !c.taken[msg.Sequence]
	if ours {
		for i, m := range messages {
			c.waiting = append(c.waiting, control{msg.Sequence, m, i == len(messages)-1})
		}
	}
	c.mu.Unlock()
	if ours {
		_ = queue.Push(messages...) // they were checked when they were sent
	}
}

// origin tells which control brought the message that a run is about to say; 0 is none.
func (c *controls) origin(m agentkernel.AgentMessage) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		if reflect.DeepEqual(w.message, m) {
			return w.at
		}
	}
	return 0
}

// said notes that the message of a control is in the history.
func (c *controls) said(at uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.waiting, func(w control) bool { return w.at == at })
	if i < 0 {
		return
	}
	if c.waiting[i].last {
		c.passed = append(c.passed, at)
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
}

// waits tells whether something waits for a run.
func (c *controls) waits() bool { return len(c.steering.Items())+len(c.followUps.Items()) > 0 }

// watch reads until ctx ends: when nudged, and every while, in case a nudge was lost.
func (c *controls) watch(ctx context.Context) {
	nudged, stop := c.nudges(c.session)
	defer stop()
	every := time.NewTicker(min(c.cfg.AckWait/3, 5*time.Second))
	defer every.Stop()
	for {
		_ = c.read(ctx) // it is read again
		select {
		case <-ctx.Done():
			return
		case <-nudged:
		case <-every.C:
		}
	}
}

// clear takes off the subject what no run needs any more.
func (c *controls) clear(ctx context.Context) {
	c.mu.Lock()
	passed := c.passed
	c.passed = nil
	c.mu.Unlock()
	for _, at := range passed {
		s, err := c.stream(ctx, streamControl)
		if err == nil {
			_ = s.DeleteMsg(ctx, at) // else it goes with its age; runs know that it was said
		}
	}
}

// place writes the place of a record into a header.
func place(at uint64) string { return strconv.FormatUint(at, 10) }
