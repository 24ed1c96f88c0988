package agentkernel

import (
	"context"
	"fmt"

	"github.com/agentkernel-go/agentkernel/internal/goid"
)

// Drain waits until fn has returned from everything that waits now, MaxRate or not. It
// returns an error that names the subscriber where ctx ends before that, or Close comes
// between; ErrInListener inside fn, which would wait for itself. What comes while it waits
// is not waited for.
//
// When [Run.Wait] has returned, all events of that run wait or are delivered, so that a
// Drain after it means the whole run.
func (s *Subscription) Drain(ctx context.Context) error {
	mark, err := s.mark()
	if mark == nil {
		return err
	}
	select {
	case <-mark.mark:
		return nil
	case <-s.gone:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return s.unmark(mark, err)
}

// mark puts a mark behind what waits; nil where nothing does.
func (s *Subscription) mark() (*entry, error) {
	id := goid.Current()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, fmt.Errorf("%w: %s", ErrSubscriptionClosed, s.name)
	case s.calling && s.goid == id:
		return nil, ErrInListener
	case s.backlog.front == nil && !s.calling:
		return nil, nil
	}
	mark := s.backlog.addMark()
	s.rouse()
	return mark, nil
}

// unmark gives a mark up, and says why: err, or, where that is nil, that Close came.
func (s *Subscription) unmark(mark *entry, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-mark.mark: // it was reached in the same moment
		return nil
	default:
	}
	if s.closed {
		return fmt.Errorf("%w: %s", ErrSubscriptionClosed, s.name)
	}
	left := 0
	for e := mark.prev; e != nil; e = e.prev {
		if e.mark == nil {
			left++
		}
	}
	if s.calling {
		left++
	}
	s.backlog.remove(mark)
	return fmt.Errorf("agentkernel: subscriber %s has not taken %d events: %w", s.name, left, err)
}

// Close ends the subscription at once and waits for nothing: what waits is dropped, runs that
// wait for room go on, and no new call of fn begins; one that runs may still be finishing. It
// may be called more than once, and inside fn.
func (s *Subscription) Close() {
	for _, f := range s.close() {
		f.unsubscribe()
	}
}

// close reports whom it followed.
func (s *Subscription) close() map[*Agent]*follow {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.gone)
	s.lookAgain()
	follows := s.follows
	s.backlog, s.follows = backlog{}, nil
	return follows
}
