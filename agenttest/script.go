package agenttest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// Model is a scripted [agentkernel.ChatModel]. Make one with [Script]. All of its methods
// may be called from any goroutine.
type Model struct {
	replies []Reply
	release chan struct{}

	mu       sync.Mutex
	requests []agentkernel.ModelRequest
	minted   int
	released bool
}

// Script returns a model that answers its n-th call, counted over all runs, with the n-th
// reply. A call after the last reply fails with kind "provider", not retryable.
func Script(replies ...Reply) *Model {
	return &Model{replies: slices.Clone(replies), release: make(chan struct{})}
}

// Stream implements [agentkernel.ChatModel]. It takes the next reply at once; the sequence
// plays it each time it is ranged over.
func (m *Model) Stream(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	r := m.next(req)
	if r.nilStream {
		return nil
	}
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		p := player{model: m, ctx: ctx, reply: r, yield: yield}
		p.play()
	}
}

// Requests returns the requests of all calls so far, in their order, as they came.
func (m *Model) Requests() []agentkernel.ModelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Release ends every stall, present and future. A test whose model ignores its context
// calls it before it looks for goroutines that were left behind.
func (m *Model) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.released {
		m.released = true
		close(m.release)
	}
}

func (m *Model) next(req agentkernel.ModelRequest) Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.requests)
	m.requests = append(m.requests, req)
	if n < len(m.replies) {
		return m.replies[n]
	}
	return Fail(&agentkernel.Error{
		Kind: agentkernel.KindProvider, Op: "agenttest", Err: errors.New("script exhausted"),
	})
}

func (m *Model) mintID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.minted++
	return fmt.Sprintf("call_%d", m.minted)
}

// player plays one reply into one yield.
type player struct {
	model *Model
	ctx   context.Context
	reply Reply
	yield func(agentkernel.StreamEvent, error) bool
	named bool // the model's name was sent
	done  bool // a raw Done was sent
}

func (p *player) play() {
	for _, s := range p.reply.steps {
		if !p.step(s) {
			return
		}
	}
	if !p.done {
		p.emit(step{event: agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: p.stopReason()}})
	}
}

// step plays one step and tells whether the stream goes on.
func (p *player) step(s step) bool {
	switch s.kind {
	case stepEmit:
		return p.emit(s)
	case stepStall:
		return p.wait(nil)
	case stepFail:
		if p.pause() {
			p.yield(agentkernel.StreamEvent{}, s.err)
		}
	case stepPanic:
		panic(s.value)
	case stepGoexit:
		runtime.Goexit()
	case stepEnd:
		p.pause()
	}
	return false
}

func (p *player) emit(s step) bool {
	if !p.pause() {
		return false
	}
	ev := s.event
	if s.mint {
		ev.ID = p.model.mintID()
	}
	if !p.named && ev.Model == "" {
		ev.Model = p.reply.model
	}
	p.named = true
	p.done = p.done || ev.Type == agentkernel.StreamEventDone
	return p.yield(ev, nil)
}

// pause waits for the reply's delay and tells whether the stream goes on.
func (p *player) pause() bool {
	if p.reply.delay <= 0 {
		return p.alive()
	}
	timer := time.NewTimer(p.reply.delay)
	defer timer.Stop()
	return p.wait(timer.C)
}

// wait waits for timer, or for Release where timer is nil, and tells whether the stream goes on.
func (p *player) wait(timer <-chan time.Time) bool {
	var ended <-chan struct{}
	if !p.reply.deaf {
		ended = p.ctx.Done()
	}
	var release <-chan struct{}
	if timer == nil {
		release = p.model.release
	}
	select {
	case <-timer:
	case <-release:
	case <-ended:
	}
	return p.alive()
}

// alive tells whether the reply may go on; where the context has ended it says so.
func (p *player) alive() bool {
	if p.reply.deaf || p.ctx.Err() == nil {
		return true
	}
	p.yield(agentkernel.StreamEvent{}, p.ctx.Err())
	return false
}

func (p *player) stopReason() agentkernel.StopReason {
	switch {
	case p.reply.stop != "":
		return p.reply.stop
	case p.reply.calls > 0:
		return agentkernel.StopReasonToolUse
	}
	return agentkernel.StopReasonStop
}
