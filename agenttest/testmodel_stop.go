package agenttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// checkCancel ends the context in the middle of a stream that is silent from there on.
func checkCancel(ctx context.Context, model agentkernel.ChatModel) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return promptly(func() error {
		got, err := listen(ctx, model, func(agentkernel.StreamEvent) bool {
			cancel()
			return true
		})
		return cmpOr(err, checkCanceledEnd(got))
	})
}

// checkCanceled asks with a context that has ended.
func checkCanceled(ctx context.Context, model agentkernel.ChatModel) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return promptly(func() error {
		got, err := listen(ctx, model, always)
		return cmpOr(err, checkCanceledEnd(got))
	})
}

// checkCanceledEnd checks how a stream ended whose context did: not with Done, and with no
// other error than kind canceled.
func checkCanceledEnd(got listened) error {
	if n := len(got.events); n > 0 && got.events[n-1].Type == agentkernel.StreamEventDone {
		return errors.New("a stream whose context ended ends with Done")
	}
	if !errors.Is(got.err, context.Canceled) {
		return fmt.Errorf("a stream whose context was canceled ends with error %v, want kind canceled or context.Canceled", got.err)
	}
	return nil
}

// checkAbort ends the context of a run in the middle of a message.
func checkAbort(ctx context.Context, model agentkernel.ChatModel) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return promptly(func() error {
		events, err := runScenario(ctx, model, func(ev agentkernel.Event) {
			if ev.Type == agentkernel.EventMessageUpdate {
				cancel()
			}
		})
		if err != nil {
			return err
		}
		if end := events[len(events)-1]; end.Summary.EndReason != agentkernel.EndAborted || end.Summary.Abandoned != 0 {
			return fmt.Errorf("the aborted run ends as %q with %d goroutines left behind, want aborted and 0", end.Summary.EndReason, end.Summary.Abandoned)
		}
		return nil
	})
}

// leavers is how many consumers leave in the middle, one after the other.
const leavers = 32

// checkLeave leaves streams in their middle, again and again. A goroutine for each of them
// that stays is a leak; a few that come and go are the transport's.
func checkLeave(ctx context.Context, model agentkernel.ChatModel) error {
	before := runtime.NumGoroutine()
	for range leavers {
		err := promptly(func() error {
			_, err := listen(ctx, model, func(agentkernel.StreamEvent) bool { return false })
			return err
		})
		if err != nil {
			return err
		}
	}
	deadline := time.Now().Add(prompt)
	for runtime.NumGoroutine() >= before+leavers/2 {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d goroutines before, %d after %d streams were left in the middle", before, runtime.NumGoroutine(), leavers)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// promptly runs f, which has to return promptly.
func promptly(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }() // it stays behind where the model does: that is the failure
	select {
	case err := <-done:
		return err
	case <-time.After(prompt):
		return fmt.Errorf("the stream did not stop within %v", prompt)
	}
}
