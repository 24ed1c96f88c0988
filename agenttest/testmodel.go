package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// TestModel runs the suite that every adapter has to pass.
//
// newModel returns a model whose backend answers every request, also several at once, with
// the scenario. It is called once for each subtest, cleans up with t.Cleanup, and calls
// t.Skip for a scenario that its backend cannot play. The suite checks, for each scenario,
// the increments that the model yields (one Done at most and nothing after it, nothing
// after yield returned false, all on the goroutine that ranges), the message that they make,
// the error that a failure is reported as, and a whole run of [agentkernel.AgentLoop] under
// [CheckRun]; then that a stream stops at once when its context ends or its consumer
// leaves, leaves no goroutine behind, changes nothing in the request, and knows nothing of
// its neighbours.
func TestModel(t *testing.T, newModel func(t *testing.T, s Scenario) agentkernel.ChatModel) {
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			model := newModel(t, s)
			report(t, checkStream(t.Context(), model, s))
			report(t, checkGenerate(t.Context(), model, s))
			report(t, checkLoop(t.Context(), model, s))
		})
	}
	t.Run("many at once", func(t *testing.T) {
		s := scenarios[0]
		report(t, checkConcurrent(t.Context(), newModel(t, s), s))
	})
	for _, check := range []struct {
		name string
		run  func(context.Context, agentkernel.ChatModel) error
	}{
		{"context ends in the middle", checkCancel},
		{"context has ended before", checkCanceled},
		{"run is aborted", checkAbort},
		{"consumer leaves", checkLeave},
	} {
		t.Run(check.name, func(t *testing.T) { report(t, check.run(t.Context(), newModel(t, stalled))) })
	}
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// prompt is how long a stream may take to stop.
const prompt = 5 * time.Second

// listened is what one stream yielded.
type listened struct {
	events []agentkernel.StreamEvent
	err    error
}

// listen ranges over one stream by hand, so that it sees what a range loop hides. each may
// stop it by returning false.
func listen(ctx context.Context, model agentkernel.ChatModel, each func(agentkernel.StreamEvent) bool) (listened, error) {
	req := scenarioRequest()
	seq := model.Stream(ctx, req)
	if seq == nil {
		return listened{}, errors.New("the stream is nil")
	}
	var got listened
	var problem error
	over, home := false, goroutine()
	seq(func(ev agentkernel.StreamEvent, err error) bool {
		switch {
		case over:
			problem = cmpOr(problem, fmt.Errorf("yield was called again after the end: %q, error %v", ev.Type, err))
		case goroutine() != home:
			problem = cmpOr(problem, errors.New("yield was called on another goroutine than the one that ranges"))
		case err != nil:
			got.err, over = err, true
		default:
			got.events = append(got.events, ev)
			over = ev.Type == agentkernel.StreamEventDone || !each(ev)
		}
		// After Done the stream is asked for more, to see that there is none.
		return !over || ev.Type == agentkernel.StreamEventDone && err == nil
	})
	if !reflect.DeepEqual(req, scenarioRequest()) {
		problem = cmpOr(problem, errors.New("the request was changed"))
	}
	return got, problem
}

func cmpOr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// goroutine is the first words of a stack, which name the goroutine.
func goroutine() string {
	buf := make([]byte, 32)
	buf = buf[:runtime.Stack(buf, false)]
	return string(buf[:max(0, slices.Index(buf, '['))])
}

func scenarioRequest() agentkernel.ModelRequest {
	return agentkernel.ModelRequest{
		System:   "You are a test.",
		Messages: []agentkernel.Message{{Role: agentkernel.RoleUser, Content: []agentkernel.ContentBlock{agentkernel.TextBlock("hi")}}},
		Tools:    []agentkernel.ToolSpec{{Name: scenarioTool, Description: "Looks things up.", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
}

func always(agentkernel.StreamEvent) bool { return true }

// checkStream checks what the model yields for a scenario.
func checkStream(ctx context.Context, model agentkernel.ChatModel, s Scenario) error {
	got, err := listen(ctx, model, always)
	if err != nil {
		return err
	}
	for i, ev := range got.events {
		if !slices.Contains(streamEventTypes, ev.Type) {
			return fmt.Errorf("event %d has type %q, want one of the documented", i, ev.Type)
		}
	}
	done := len(got.events) > 0 && got.events[len(got.events)-1].Type == agentkernel.StreamEventDone
	switch {
	case s.Status != 0:
		return checkStatus(got, s.Status)
	case s.Truncated && done:
		return errors.New("a stream that was cut off ends with Done")
	case s.Truncated && got.err != nil && !errors.Is(got.err, agentkernel.KindStreamTruncated):
		return fmt.Errorf("a stream that was cut off fails with %w, want kind stream_truncated or no error", got.err)
	case s.Truncated:
		return nil
	case got.err != nil:
		return fmt.Errorf("the stream fails: %w", got.err)
	case !done:
		return errors.New("the stream ends without Done")
	}
	return nil
}

var streamEventTypes = []agentkernel.StreamEventType{
	agentkernel.StreamEventTextDelta, agentkernel.StreamEventThinkingDelta,
	agentkernel.StreamEventToolCallDelta, agentkernel.StreamEventUsage, agentkernel.StreamEventDone,
}

// checkStatus checks the error that an HTTP status is reported as.
func checkStatus(got listened, status int) error {
	e, ok := errors.AsType[*agentkernel.Error](got.err)
	switch {
	case len(got.events) > 0:
		return fmt.Errorf("%d events before the failure, want none", len(got.events))
	case !ok:
		return fmt.Errorf("got error %v, want an *agentkernel.Error", got.err)
	case !slices.Contains(statusKinds[status], e.Kind):
		return fmt.Errorf("got kind %s, want one of %v", e.Kind, statusKinds[status])
	case e.Status != status:
		return fmt.Errorf("got Status %d, want %d", e.Status, status)
	case e.Retryable != retryable(status):
		return fmt.Errorf("got Retryable %t, want %t", e.Retryable, retryable(status))
	}
	return nil
}

// checkGenerate checks what the increments make.
func checkGenerate(ctx context.Context, model agentkernel.ChatModel, s Scenario) error {
	msg, err := agentkernel.Generate(ctx, model, scenarioRequest())
	switch {
	case s.Status != 0 && slices.Contains(statusKinds[s.Status], kindOf(err)):
		return nil
	case s.Truncated && errors.Is(err, agentkernel.KindStreamTruncated):
		return nil
	case s.Status != 0 || s.Truncated || err != nil:
		return fmt.Errorf("agentkernel.Generate ends with error %v", err)
	}
	return checkAnswer(&msg, s)
}

// checkLoop runs a scenario through the whole kernel.
func checkLoop(ctx context.Context, model agentkernel.ChatModel, s Scenario) error {
	events, err := runScenario(ctx, model, nil)
	if err != nil {
		return err
	}
	end := events[len(events)-1]
	switch {
	case s.Status != 0:
		if kind := kindOf(end.Err); !slices.Contains(statusKinds[s.Status], kind) {
			return fmt.Errorf("the run ends with %v, want kind %v", end.Err, statusKinds[s.Status])
		}
		return nil
	case s.Truncated:
		if !errors.Is(end.Err, agentkernel.KindStreamTruncated) {
			return fmt.Errorf("the run ends with %v, want kind stream_truncated", end.Err)
		}
		return nil
	}
	for _, m := range end.NewMessages {
		if msg, ok := asMessage(m); ok && msg.Role == agentkernel.RoleAssistant {
			return checkAnswer(&msg, s)
		}
	}
	return fmt.Errorf("the run has no answer; it ends with %v", end.Err)
}

// runScenario makes one model call within a run and checks the run's events. each sees
// them as they come.
func runScenario(ctx context.Context, model agentkernel.ChatModel, each func(agentkernel.Event)) ([]agentkernel.Event, error) {
	cfg := agentkernel.Config{
		Model:    model,
		MaxTurns: 1,
		Retry:    agentkernel.RetryPolicy{MaxRetries: -1},
		Tools: []agentkernel.Tool{{
			Name: scenarioTool,
			Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
				return agentkernel.TextResult("found"), nil
			},
		}},
	}
	var events []agentkernel.Event
	for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
		events = append(events, ev)
		if each != nil {
			each(ev)
		}
	}
	if err := CheckRun(nil, events); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, Format(events))
	}
	return events, nil
}

// checkAnswer compares a finished message with its scenario.
func checkAnswer(msg *message, s Scenario) error {
	calls := msg.ToolCalls()
	switch {
	case msg.TextContent() != s.Text:
		return fmt.Errorf("got text %q, want %q", msg.TextContent(), s.Text)
	case msg.ThinkingContent() != s.Thinking:
		return fmt.Errorf("got thinking %q, want %q", msg.ThinkingContent(), s.Thinking)
	case msg.StopReason != s.Stop:
		return fmt.Errorf("got stop reason %q, want %q", msg.StopReason, s.Stop)
	case len(calls) != len(s.Calls):
		return fmt.Errorf("got %d calls, want %d", len(calls), len(s.Calls))
	case (msg.Usage == nil) != (s.Usage == nil):
		return fmt.Errorf("got usage %v, want %v", msg.Usage, s.Usage)
	}
	for i, want := range s.Calls {
		got := calls[i]
		if got.ID != want.ID || got.Name != want.Name || got.ArgsError != "" || string(got.Args) != compact(string(want.Args)) {
			return fmt.Errorf("call %d is %+v, want %q of %q with %s", i, got, want.ID, want.Name, want.Args)
		}
	}
	if u, want := msg.Usage, s.Usage; want != nil && (u.Input != want.Input || u.Output != want.Output || u.Total != want.Total) {
		return fmt.Errorf("got usage %s, want %s", usageText(*u), usageText(*want))
	}
	return nil
}

// checkConcurrent runs one scenario many times at once.
func checkConcurrent(ctx context.Context, model agentkernel.ChatModel, s Scenario) error {
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = checkLoop(ctx, model, s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
