package session

import (
	"context"
	"errors"
	"fmt"
)

// Hook is called at the end of each run, when all of the run is stored and before its AgentEnd
// is shown. Hooks are called one after the other, each on a goroutine of its own and for
// [Config.Timeout] at most; the end of the run waits for them. An error, a panic or a hook that
// takes too long is a session_error, and the others are called all the same. A hook that does
// not heed its context is left behind.
type Hook struct {
	Name string
	Run  func(ctx context.Context, end RunEnd) error
}

func (s *Session) runHooks(end RunEnd) {
	for _, h := range s.cfg.Hooks {
		if err := s.guarded(context.Background(), func(ctx context.Context) error { return h.Run(ctx, end) }); err != nil {
			s.trouble("hook "+h.Name, err)
		}
	}
}

// guarded calls what others wrote, or what may hang, for [Config.Timeout] at most.
func (s *Session) guarded(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout,
		fmt.Errorf("it did not come back within %v", s.cfg.Timeout))
	defer cancel()
	done := make(chan error, 1)
	go func() { // ends with fn, which is waited for below, or left behind
		err := errors.New("it left its goroutine")
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
			done <- err
		}()
		err = fn(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
