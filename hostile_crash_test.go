package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// rudeError panics with itself when it is asked for its text; fmt panics again with it.
type rudeError struct{}

func (e rudeError) Error() string { panic(e) }

// leavingError ends the goroutine that asks for its text.
type leavingError struct{}

func (leavingError) Error() string { runtime.Goexit(); return "" }

var rudeValues = map[string]error{"panics": rudeError{}, "leaves": leavingError{}}

// TestHostileToolPanicValue: a panic whose value cannot be put into words stays in its call.
func TestHostileToolPanicValue(t *testing.T) {
	for name, value := range rudeValues {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("p", "a"), agenttest.Text("ok")), Tools: []agentkernel.Tool{
				tool("p", func(context.Context) (agentkernel.ToolResult, error) { panic(value) }), echo("a"),
			}})
			require.Equal(t, agentkernel.EndStop, endReason(log))
			require.Equal(t, []string{"p panic", "a ok"}, causes(log))
		})
	}
}

// TestHostileModelPanicValue: a model's panic is the run's error, and that error has a text.
func TestHostileModelPanicValue(t *testing.T) {
	for name, value := range rudeValues {
		t.Run(name, func(t *testing.T) {
			log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Panic(value))})
			require.Equal(t, agentkernel.EndError, endReason(log))
			require.ErrorIs(t, final(log).Err, agentkernel.KindPanic)
			require.NotEmpty(t, final(log).Err.Error())
		})
	}
}

// TestHostileListenerPanicValue: a listener's panic stays in the listener, whatever its value.
func TestHostileListenerPanicValue(t *testing.T) {
	for name, value := range rudeValues {
		t.Run(name, func(t *testing.T) {
			agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
			agent.Subscribe(func(agentkernel.Event) { panic(value) })
			record, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
			require.Equal(t, "ok", record.Answer)
		})
	}
}

// TestHostileConcurrencySafePanicValue: a tool's short questions may panic with anything.
func TestHostileConcurrencySafePanicValue(t *testing.T) {
	for name, value := range rudeValues {
		t.Run(name, func(t *testing.T) {
			rude := echo("a")
			rude.ConcurrencySafe = func(json.RawMessage) bool { panic(value) }
			rude.ReadOnly = func(json.RawMessage) bool { panic(value) }
			rude.Activity = func(json.RawMessage) string { panic(value) }
			log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("a", "a"), agenttest.Text("ok")), Tools: []agentkernel.Tool{rude}})
			require.Equal(t, agentkernel.EndStop, endReason(log))
		})
	}
}

// mean is a harness's message whose methods misbehave; those left nil answer with nothing.
type mean struct {
	role agentkernel.Role
	ask  func() // what GetRole does first
	text func() string
}

func (m *mean) GetRole() agentkernel.Role {
	if m.ask != nil {
		m.ask()
	}
	return m.role
}

func (m *mean) GetTimestamp() time.Time { return time.Time{} }

func (m *mean) TextContent() string {
	if m.text == nil {
		return ""
	}
	return m.text()
}

func (m *mean) ThinkingContent() string { panic("ThinkingContent") }
func (m *mean) HasToolCalls() bool      { panic("HasToolCalls") }

// TestHostileMessageText: the kernel runs on messages whose texts panic.
func TestHostileMessageText(t *testing.T) {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	require.NoError(t, err)
	run, err := agent.PromptMessages(t.Context(), agentkernel.UserMessage("x"),
		&mean{role: agentkernel.RoleAssistant, text: func() string { panic("TextContent") }})
	require.NoError(t, err)
	record, err := run.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ok", record.Answer)
}

// TestHostileMessageIsNoAnswer: a harness's message of role assistant is input, not an answer.
func TestHostileMessageIsNoAnswer(t *testing.T) {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok").Stop(agentkernel.StopReasonRefusal))})
	require.NoError(t, err)
	run, err := agent.PromptMessages(t.Context(), agentkernel.UserMessage("x"),
		&mean{role: agentkernel.RoleAssistant, text: func() string { return "STATUS" }})
	require.NoError(t, err)
	record, err := run.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ok", record.Answer)
	require.Len(t, record.Steps, 1)
	require.Len(t, record.Input, 2)
}

// TestHostileMessageRolePanics: a role that panics at any time ends neither process nor agent.
func TestHostileMessageRolePanics(t *testing.T) {
	for first := range int64(12) {
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"), agenttest.Text("ok"))})
		require.NoError(t, err)
		var armed atomic.Bool
		var asked atomic.Int64
		armed.Store(true)
		m := &mean{role: "mark", ask: func() {
			if armed.Load() && asked.Add(1) > first {
				panic("GetRole")
			}
		}}
		w := &watched{Agent: agent}
		agent.Subscribe(w.listen)
		func() {
			defer func() { _ = recover() }()
			if run, err := agent.PromptMessages(t.Context(), agentkernel.UserMessage("x"), m); err == nil {
				_, err = waitIn(t, run, time.Minute)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
			}
		}()
		armed.Store(false) // the checker asks for roles as well
		require.False(t, agent.State().IsRunning)
		if log := w.events(); len(log) > 0 {
			require.NoError(t, agenttest.CheckRun(nil, log), "after %d", first)
		}
		require.NoError(t, agent.Reset())
		_, err = agent.Run(t.Context(), "again")
		require.NoError(t, err)
	}
}

// TestHostileMessageAsksAgent: a message's methods may ask the agent; no lock is held then.
func TestHostileMessageAsksAgent(t *testing.T) {
	agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok"))})
	run, err := agent.PromptMessages(t.Context(), agentkernel.UserMessage("x"),
		&mean{role: "mark", ask: func() { _ = agent.State() }})
	require.NoError(t, err)
	record, err := waitIn(t, run, time.Minute)
	require.NoError(t, err)
	require.Equal(t, "ok", record.Answer)
}

// TestHostileTypedNilErrors: an error that is a nil pointer can be read at the end of the run.
func TestHostileTypedNilErrors(t *testing.T) {
	var none *agentkernel.Error
	for name, cfg := range map[string]agentkernel.Config{
		"commit": {Commit: func(context.Context, agentkernel.AgentMessage) error { return none }},
		"prepare": {Prepare: func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
			return agentkernel.PrepareResult{}, none
		}},
		"guard": {StopGuard: func(context.Context, agentkernel.StopRequest) (agentkernel.StopDecision, error) {
			return agentkernel.StopDecision{}, none
		}},
		"model": {Model: agenttest.Script(agenttest.Fail(none))},
	} {
		t.Run(name, func(t *testing.T) {
			if cfg.Model == nil {
				cfg.Model = agenttest.Script(agenttest.Text("ok"))
			}
			err := final(play(t, cfg)).Err
			require.Error(t, err)
			require.NotEmpty(t, err.Error())
			require.NotEmpty(t, fmt.Sprint(err))
		})
	}
}

// stuckError is an error whose cause blocks until release is closed.
type stuckError struct{ release chan struct{} }

func (stuckError) Error() string   { return "stuck" }
func (e stuckError) Unwrap() error { <-e.release; return nil }

// stuckName is a model whose name blocks until release is closed.
type stuckName struct {
	agentkernel.ChatModel
	release chan struct{}
}

func (n stuckName) String() string { <-n.release; return "x" }

// TestHostileStuckMethods: a model whose error or name blocks does not hold up the end.
func TestHostileStuckMethods(t *testing.T) {
	for name, of := range map[string]func(release chan struct{}) agentkernel.ChatModel{
		"error": func(release chan struct{}) agentkernel.ChatModel {
			return modelOf(func(_ context.Context, _ agentkernel.ModelRequest, yield yieldFunc) {
				yield(agentkernel.StreamEvent{}, stuckError{release})
			})
		},
		"name": func(release chan struct{}) agentkernel.ChatModel {
			return stuckName{agenttest.Script(agenttest.Fail(failure(agentkernel.KindServer, true))), release}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer synctest.Wait()
				defer close(release)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				cfg := agentkernel.Config{Model: of(release), StopTimeout: 5 * time.Second}
				log := drain(t, nil, agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("x")))
				require.LessOrEqual(t, time.Since(began), 6*time.Second)
				require.Equal(t, agentkernel.EndTimeout, endReason(log))
			})
		})
	}
}

var errHostile = errors.New("hostile")
