package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// crashSites are the places of a call where user code may crash, with what the model is
// told of whose it was.
var crashSites = map[string]struct {
	who  string
	plug func(cfg *agentkernel.Config, tool *agentkernel.Tool, crash func())
}{
	"Execute": {`The tool "bad"`, func(_ *agentkernel.Config, tool *agentkernel.Tool, crash func()) {
		tool.Execute = func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
			crash()
			return agentkernel.ToolResult{}, nil
		}
	}},
	"Validate": {`The validation of the tool "bad"`, func(_ *agentkernel.Config, tool *agentkernel.Tool, crash func()) {
		tool.Validate = func(context.Context, json.RawMessage) error { crash(); return nil }
	}},
	"Preview": {`The preview of the tool "bad"`, func(_ *agentkernel.Config, tool *agentkernel.Tool, crash func()) {
		tool.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
			crash()
			return agentkernel.ProgressPayload{}, nil
		}
	}},
	"Activity": {`The tool "bad"`, func(_ *agentkernel.Config, tool *agentkernel.Tool, crash func()) {
		tool.Activity = func(json.RawMessage) string { crash(); return "" }
	}},
	"ReadOnly": {`The tool "bad"`, func(_ *agentkernel.Config, tool *agentkernel.Tool, crash func()) {
		tool.ConcurrencySafe, tool.ReadOnly = nil, func(json.RawMessage) bool { crash(); return true }
	}},
	"ConcurrencySafe": {`The tool "bad"`, func(_ *agentkernel.Config, tool *agentkernel.Tool, crash func()) {
		tool.ConcurrencySafe = func(json.RawMessage) bool { crash(); return true }
	}},
	"Gate": {"The gate", func(cfg *agentkernel.Config, _ *agentkernel.Tool, crash func()) {
		cfg.Gate = func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			if req.Call.Name == "bad" {
				crash()
			}
			return agentkernel.GateDecision{Allow: true}, nil
		}
	}},
	"RepairToolCall": {"The repair of the call", func(cfg *agentkernel.Config, tool *agentkernel.Tool, crash func()) {
		tool.Schema = json.RawMessage(`{"required":["x"]}`)
		cfg.RepairToolCall = func(context.Context, agentkernel.RepairRequest) (json.RawMessage, error) { crash(); return nil, nil }
	}},
	"a middleware": {`The tool "bad"`, func(cfg *agentkernel.Config, _ *agentkernel.Tool, crash func()) {
		cfg.Middleware = append(cfg.Middleware, func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
				if call.Name == "bad" {
					crash()
				}
				return next(ctx, call)
			}
		})
	}},
	"a middleware behind the tool": {`The tool "bad"`, func(cfg *agentkernel.Config, _ *agentkernel.Tool, crash func()) {
		cfg.Middleware = append(cfg.Middleware, func(next agentkernel.ToolHandler) agentkernel.ToolHandler {
			return func(ctx context.Context, call agentkernel.ToolCall) (agentkernel.ToolResult, error) {
				result, err := next(ctx, call)
				if call.Name == "bad" {
					crash()
				}
				return result, err
			}
		})
	}},
}

// TestCrashesStayInTheirCall: wherever in a call user code panics or leaves its goroutine,
// that call alone has an error result: the value for the model, the stack on the event.
func TestCrashesStayInTheirCall(t *testing.T) {
	var none map[string]int
	crashes := map[string]struct {
		crash func()
		value string
	}{
		"panic":      {func() { panic("oh no") }, "panic: oh no"},
		"map":        {func() { none["x"] = 1 }, "assignment to entry in nil map"},
		"nil panic":  {func() { panic(nil) }, "nil"},
		"error":      {func() { panic(&url.Error{Op: "Get", URL: "http://a.test/x?key=SECRET", Err: errors.New("bad")}) }, "http://a.test/x"},
		"bad error":  {func() { panic(badError{}) }, "PANIC"},
		"not UTF-8":  {func() { panic("a\xffb") }, "a\uFFFDb"},
		"Goexit":     {runtime.Goexit, "ended its goroutine"},
		"own result": {func() { panic(agentkernel.ToolResult{}) }, "panic"},
	}
	for site, s := range crashSites {
		for how, c := range crashes {
			t.Run(site+", "+how, func(t *testing.T) {
				bad := safe(echo("bad"))
				model := agenttest.Script(agenttest.Calls("good", "bad", "good"), agenttest.Text("ok"))
				cfg := agentkernel.Config{Model: model}
				s.plug(&cfg, &bad, c.crash)
				cfg.Tools = []agentkernel.Tool{bad, safe(echo("good"))}
				log := play(t, cfg)
				want := "bad panic"
				if site == "Gate" {
					want = "bad denied"
				}
				require.Equal(t, []string{"good ok", want, "good ok"}, causes(log))
				require.Equal(t, agentkernel.EndStop, endReason(log))
				require.Contains(t, results(log)["bad"].Stack, "goroutine ")
				text := told(model, 2)[1]
				require.Contains(t, text, s.who+" failed")
				require.Contains(t, text, c.value)
				require.NotContains(t, text, "goroutine ")
				require.NotContains(t, text, "SECRET")
			})
		}
	}
}

type badError struct{}

func (badError) Error() string { panic("no text") }

// TestErrorThatPanics when it is asked for its text is a panic of the call.
func TestErrorThatPanics(t *testing.T) {
	_, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{}, badError{}
	})}}, "t", "{}")
	require.Equal(t, agentkernel.ToolPanic, got.Cause)
}

// TestErrorsOfToolsHideSecrets: neither the model nor the stream sees a query string.
func TestErrorsOfToolsHideSecrets(t *testing.T) {
	_, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{tool("t", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{}, &url.Error{Op: "Get", URL: "http://u:p@a.test/x?key=SECRET", Err: errors.New("refused")}
	})}}, "t", "{}")
	require.Equal(t, `Get "http://a.test/x": refused`, got.Content[0].Text)
}

// TestDeafHooksOfACall: whichever of a call's functions never returns, the run ends
// StopTimeout after the abort, with the goroutine counted, and a tool that was not begun
// is not said to have been.
func TestDeafHooksOfACall(t *testing.T) {
	for site, s := range crashSites {
		t.Run(site, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				bad := safe(echo("bad"))
				cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Calls("good", "bad", "good"), agenttest.Text("never"))}
				s.plug(&cfg, &bad, func() { <-release })
				cfg.Tools = []agentkernel.Tool{bad, safe(echo("good"))}
				agent := watch(t, cfg)
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				synctest.Wait()
				began := time.Now()
				run.Abort(nil)
				record, err := run.Wait(t.Context())
				require.ErrorIs(t, err, agentkernel.KindCanceled)
				require.Equal(t, 5*time.Second, time.Since(began))
				require.Equal(t, 1, record.Summary.Abandoned)
				want := agentkernel.ToolNotStarted
				if site == "Execute" || site == "a middleware" || site == "a middleware behind the tool" {
					want = agentkernel.ToolInterrupted
				}
				require.Equal(t, want, results(agent.events())["bad"].Cause)
				n := len(agent.events())
				close(release)
				synctest.Wait()
				require.Len(t, agent.events(), n)
			})
		})
	}
}

// TestToolsCannotChangeWhatWasSaid: arguments and results are copies.
func TestToolsCannotChangeWhatWasSaid(t *testing.T) {
	shared := agentkernel.ToolResult{
		Content: []agentkernel.ContentBlock{agentkernel.TextBlock("good"), {Type: agentkernel.ContentImage, Image: &agentkernel.Image{Data: []byte("good")}}},
		Usage:   &agentkernel.Usage{Total: 1},
	}
	model := agenttest.Script(agenttest.Call("a", "t", `{"x":1}`), agenttest.Text("ok"))
	agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{{Name: "t",
		Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			clear(args)
			return shared, nil
		}}}})
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	shared.Content[0].Text = "bad"
	clear(shared.Content[1].Image.Data)
	shared.Usage.Total = 99
	message := agent.Messages()[2].(agentkernel.Message)
	require.Equal(t, "good", message.Content[0].Text)
	require.Equal(t, "good", string(message.Content[1].Image.Data))
	require.Equal(t, 1, message.Usage.Total)
	require.Equal(t, `{"x":1}`, string(agent.Messages()[1].(agentkernel.Message).ToolCalls()[0].Args))
	require.Equal(t, `{"x":1}`, string(ofType(agent.events(), agentkernel.EventToolExecEnd)[0].Args))
}

// TestConsumerThatWritesIntoItsEvents as soon as the loop has let go of them changes neither what
// the model is asked nor which calls are executed, and crashes nothing.
func TestConsumerThatWritesIntoItsEvents(t *testing.T) {
	vandal := func(ev agentkernel.Event) {
		if ev.Request != nil {
			*ev.Request = agentkernel.ModelRequest{}
		}
		if m, ok := ev.Message.(agentkernel.Message); ok && ev.Type == agentkernel.EventMessageEnd {
			for i := range m.Content {
				m.Content[i].ToolCall = nil
			}
		}
		for i := range ev.ToolResults {
			ev.ToolResults[i].Terminate = true
		}
	}
	for n := range 10 { // so that each event is the last one of what comes at once, for some n
		synctest.Test(t, func(t *testing.T) {
			model := agenttest.Script(agenttest.Text("0123456789"[n:]).Chunks(1).Call("", "a", "{}").Call("", "b", "{}"), agenttest.Text("ok"))
			events := agentkernel.AgentLoop(t.Context(), agentkernel.Config{
				Model: model, Tools: []agentkernel.Tool{echo("a"), echo("b")}, EventBuffer: 2,
			}, nil, agentkernel.UserMessage("hi"))
			var end agentkernel.Event
			for open := true; open; {
				synctest.Wait() // the loop waits for room, and gets it for several events at once
				for range len(events) + 1 {
					var ev agentkernel.Event
					if ev, open = <-events; !open {
						break
					}
					vandal(ev)
					end = ev
				}
			}
			require.NoError(t, end.Err)
			require.Equal(t, agentkernel.EndStop, end.Summary.EndReason)
			require.Equal(t, 2, end.Summary.ToolCalls)
			require.Len(t, end.NewMessages, 5)
			require.Len(t, end.NewMessages[1].(agentkernel.Message).ToolCalls(), 2)
			require.Len(t, model.Requests(), 2)
			for i, req := range model.Requests() {
				require.Len(t, req.Messages, 1+3*i)
				require.Len(t, req.Tools, 2)
			}
		})
	}
}
