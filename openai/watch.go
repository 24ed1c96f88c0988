package openai

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// phase is what a call waits for.
type phase uint8

const (
	phaseConnect phase = iota
	phaseHeader
	phaseBody
	// phaseTail is after the finish reason: what is still to come is the usage.
	phaseTail
)

// errTailOver ends the wait for the usage. It is no failure.
var errTailOver = errors.New("the wait for the usage is over")

// watch ends a call that waits too long, by cancelling its context with the reason. It costs
// a stream no goroutine: a timer looks from time to time when the last byte came.
type watch struct {
	cfg    *Config
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	phase phase
	// since is when the phase began, byteAt when the last byte came, and frameAt when the
	// last one came that was more than a sign of life.
	since, byteAt, frameAt time.Time
}

// newWatch begins to watch a call in phaseHeader.
func newWatch(cfg *Config, cancel context.CancelCauseFunc) *watch {
	w := &watch{cfg: cfg, cancel: cancel}
	w.enter(phaseHeader)
	return w
}

// enter begins a phase.
func (w *watch) enter(p phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.phase = p
	w.since = time.Now()
	w.byteAt, w.frameAt = w.since, w.since
	w.arm(w.since)
}

// arm sets the timer to the earliest time at which the limit can be over.
func (w *watch) arm(now time.Time) {
	at, _ := w.deadline()
	switch {
	case at.IsZero():
		if w.timer != nil {
			w.timer.Stop()
		}
	case w.timer == nil:
		w.timer = time.AfterFunc(at.Sub(now), w.check)
	default:
		w.timer.Reset(at.Sub(now))
	}
}

// check runs when the timer fires.
func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, reason := w.deadline()
	if w.over || at.IsZero() {
		return
	}
	if now := time.Now(); now.Before(at) {
		w.timer.Reset(at.Sub(now))
		return
	}
	w.over = true
	w.cancel(reason)
}

// deadline returns when the phase is over if nothing more comes, zero for never, and what
// the end means.
func (w *watch) deadline() (time.Time, error) {
	switch w.phase {
	case phaseConnect:
		return after(w.since, w.cfg.ConnectTimeout), timeout("no connection within %v (ConnectTimeout)", w.cfg.ConnectTimeout)
	case phaseHeader:
		return after(w.since, w.cfg.HeaderTimeout), timeout("no response within %v (HeaderTimeout)", w.cfg.HeaderTimeout)
	case phaseTail:
		if w.cfg.TailTimeout >= 0 {
			return after(w.since, w.cfg.TailTimeout), errTailOver
		}
	}
	idle := after(w.byteAt, w.cfg.IdleTimeout)
	alive := after(w.frameAt, w.cfg.KeepAliveLimit)
	if !alive.IsZero() && (idle.IsZero() || alive.Before(idle)) {
		return alive, silence("nothing but signs of life for %v (KeepAliveLimit)", w.cfg.KeepAliveLimit)
	}
	return idle, silence("no byte for %v (IdleTimeout)", w.cfg.IdleTimeout)
}

// after returns t plus d, or zero for a limit that is none.
func after(t time.Time, d time.Duration) time.Time {
	if d < 0 {
		return time.Time{}
	}
	return t.Add(d)
}

// limitError is the end that a limit of the Config put to a call.
type limitError struct {
	kind   agentkernel.Kind
	format string
	limit  time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf(e.format, e.limit) }

func timeout(format string, d time.Duration) error {
	return &limitError{agentkernel.KindTimeout, format, d}
}

func silence(format string, d time.Duration) error {
	return &limitError{agentkernel.KindStreamIdle, format, d}
}

// sawBytes notes that bytes came.
func (w *watch) sawBytes() {
	now := time.Now()
	w.mu.Lock()
	w.byteAt = now
	w.mu.Unlock()
}

// sawFrame notes that the last bytes were more than a sign of life.
func (w *watch) sawFrame() {
	w.mu.Lock()
	w.frameAt = w.byteAt
	w.mu.Unlock()
}

// stop ends the watch. It reports nothing from then on.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
