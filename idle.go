package agentkernel

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// errStreamIdle is what an attempt fails with whose model was silent too long.
var errStreamIdle = &Error{Kind: KindStreamIdle, Op: "model", Retryable: true,
	Err: errors.New("the model stayed silent too long")}

// idleWatch ends an attempt whose model yields nothing for too long: first its context, and
// after the time that user code has to stop, the wait for it. The time in which the run
// itself is busy, or waits for its consumer, does not count. It also ends the wait, in
// the same time, for a model that has said all and does not return.
type idleWatch struct {
	limit, grace time.Duration
	began        time.Time       // when the run did
	run          context.Context // the run's
	visit        *visit          // tells when the model was last heard, as time since began
	cancel       context.CancelCauseFunc
	idle         atomic.Bool
	late         chan struct{} // closed when the wait is over

	mu       sync.Mutex
	timer    *time.Timer
	over     bool // nothing is left to end
	finished bool
	due      time.Duration // when the wait is over for a model that has said all, as time since began
}

// start starts the watch. A limit that is not positive never ends an attempt.
func (w *idleWatch) start() {
	w.late = make(chan struct{})
	w.visit.state.Store(int64(time.Since(w.began)))
	w.mu.Lock() // check needs the timer
	defer w.mu.Unlock()
	limit := w.limit
	if limit <= 0 {
		limit = math.MaxInt64
	}
	w.timer = time.AfterFunc(limit, w.check)
}

// finish notes that the model has said all.
func (w *idleWatch) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished, w.due = true, math.MaxInt64
	w.timer.Stop()
	if w.grace >= 0 {
		w.due = sum(time.Since(w.began), w.grace)
		w.timer.Reset(w.grace)
	}
}

// check runs when the model may have been silent for the limit, or has had its time.
func (w *idleWatch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over: // it came in the moment in which that became true
		return
	case w.finished && w.run.Err() != nil: // the fence has its own deadline
		return
	case w.finished && time.Since(w.began) < w.due: // it came for the silence before the last word
		return
	case w.finished || w.idle.Load():
		w.over = true
		close(w.late)
		return
	}
	heard := w.visit.state.Load()
	silent := time.Since(w.began) - time.Duration(heard)
	switch {
	case heard < 0: // the run is busy with what the model yielded
		w.timer.Reset(w.limit)
	case silent < w.limit:
		w.timer.Reset(w.limit - silent)
	default:
		w.idle.Store(true)
		w.cancel(errStreamIdle)
		if w.grace >= 0 {
			w.timer.Reset(w.grace)
		}
	}
}

// stop ends the watch. It reports whether it ended the attempt.
func (w *idleWatch) stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	return w.idle.Load()
}
