package agentkernel

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// errStreamIdle is what an attempt fails with whose model was silent too long.
var errStreamIdle = &Error{Kind: KindStreamIdle, Op: "model", Retryable: true,
	Err: errors.New("the model stayed silent too long")}

// idleWatch ends an attempt whose model yields nothing for too long: first its context, and
// after the time that user code has to stop, the wait for it. The time in which the run
// itself is busy, or waits for its consumer, does not count.
type idleWatch struct {
	limit, grace time.Duration
	began        time.Time
	visit        *visit
	last         atomic.Int64 // when the model was last heard, as time since began
	cancel       context.CancelCauseFunc
	timer        *time.Timer
	idle         atomic.Bool
	late         chan struct{} // closed when the wait is over
}

// watchIdle starts a watch. A limit that is not positive never ends anything.
func watchIdle(v *visit, limit, grace time.Duration, cancel context.CancelCauseFunc) *idleWatch {
	w := &idleWatch{visit: v, limit: limit, grace: grace, began: time.Now(), cancel: cancel, late: make(chan struct{})}
	if limit > 0 {
		w.timer = time.AfterFunc(math.MaxInt64, w.check)
		w.timer.Reset(limit) // not before check can see the timer
	}
	return w
}

// heard notes that the model yields.
func (w *idleWatch) heard() {
	if w.limit > 0 {
		w.last.Store(int64(time.Since(w.began)))
	}
}

// check runs when the model may have been silent for the limit.
func (w *idleWatch) check() {
	if w.idle.Load() {
		close(w.late)
		return
	}
	silent := time.Since(w.began) - time.Duration(w.last.Load())
	if w.visit.state.Load() == visitInside {
		silent = 0
	}
	if silent < w.limit {
		w.timer.Reset(w.limit - silent)
		return
	}
	w.idle.Store(true)
	w.cancel(errStreamIdle)
	if w.grace >= 0 {
		w.timer.Reset(w.grace)
	}
}

// stop ends the watch. It reports whether it ended the attempt.
func (w *idleWatch) stop() bool {
	if w.timer != nil {
		w.timer.Stop()
	}
	return w.idle.Load()
}
