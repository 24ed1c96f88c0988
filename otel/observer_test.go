package otel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/otel"
)

var overloaded = &agentkernel.Error{Kind: agentkernel.KindOverloaded, Op: "model", Retryable: true, Err: errors.New("busy")}

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

// TestTrees: the spans of each scenario, with their errors and events.
func TestTrees(t *testing.T) {
	for name, tc := range scenarios {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, otel.Config{})
				agent := l.agent(t, tc.cfg())
				run, err := agent.Prompt(t.Context(), "hi")
				require.NoError(t, err)
				if tc.abort {
					synctest.Wait()
					run.Abort(errors.New("enough"))
				}
				_, _ = run.Wait(t.Context())
				require.Equal(t, tc.want, l.tree(t))
			})
		})
	}
}

// TestAttributes: what the spans of a run say, and that no content is in them.
func TestAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, otel.Config{})
		usage := agentkernel.Usage{Input: 100, Output: 20, CacheRead: 60, Reasoning: 5, Total: 120}
		agent := l.agent(t, agentkernel.Config{
			SystemPrompt: "secret system",
			Prepare: func(context.Context, agentkernel.PrepareRequest) (agentkernel.PrepareResult, error) {
				return agentkernel.PrepareResult{Temperature: new(0.5)}, nil
			},
			Model: agenttest.Script(
				agenttest.Thinking("secret thought").Call("c1", "echo", `{"x":"secret"}`).Usage(usage).Model("gpt-x-1").Delay(time.Second),
				agenttest.Text("secret answer").Usage(usage).Model("gpt-x-1")),
			Tools: []agentkernel.Tool{tool("echo", func(context.Context) (agentkernel.ToolResult, error) {
				time.Sleep(3 * time.Second)
				return agentkernel.TextResult("secret result"), nil
			})},
		})
		record, err := agent.Run(t.Context(), "secret prompt")
		require.NoError(t, err)

		run := l.only(t, "invoke_agent helper")
		require.Equal(t, otel.ScopeName, run.InstrumentationScope.Name)
		require.Equal(t, "https://opentelemetry.io/schemas/1.41.0", run.InstrumentationScope.SchemaURL)
		requireAttributes(t, run.Attributes, map[string]string{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.agent.name": "helper",
			"gen_ai.request.model": "gpt-x", "gen_ai.conversation.id": "conv", "agentkernel.run.id": record.ID,
			"agentkernel.run.end_reason": "stop", "agentkernel.run.turns": "2", "agentkernel.run.tool_calls": "1", "agentkernel.run.retries": "0",
			"gen_ai.usage.input_tokens": "200", "gen_ai.usage.output_tokens": "40",
			"gen_ai.usage.cache_read.input_tokens": "120", "gen_ai.usage.reasoning.output_tokens": "10",
		})
		require.Equal(t, record.Summary.Duration, run.EndTime.Sub(run.StartTime))

		chat := l.done(t)[0]
		requireAttributes(t, chat.Attributes, map[string]string{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.agent.name": "helper", "gen_ai.conversation.id": "conv",
			"gen_ai.request.model": "gpt-x", "gen_ai.response.model": "gpt-x-1", "gen_ai.request.stream": "true", "gen_ai.request.temperature": "0.5",
			"gen_ai.response.finish_reasons": `["tool_use"]`, "gen_ai.response.time_to_first_chunk": "1",
			"gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "20", "gen_ai.usage.cache_read.input_tokens": "60",
			"gen_ai.usage.reasoning.output_tokens": "5", "agentkernel.turn": "1", "agentkernel.attempt": "1",
		})

		call := l.only(t, "execute_tool echo")
		requireAttributes(t, call.Attributes, map[string]string{
			"gen_ai.operation.name": "execute_tool", "gen_ai.provider.name": "openai", "gen_ai.agent.name": "helper", "gen_ai.conversation.id": "conv",
			"gen_ai.tool.name": "echo", "gen_ai.tool.call.id": "c1", "gen_ai.tool.type": "function", "agentkernel.turn": "1", "agentkernel.tool.cause": "ok",
		})
		require.Equal(t, 3*time.Second, call.EndTime.Sub(call.StartTime))
		require.NotContains(t, fmt.Sprintf("%+v", l.done(t)), "secret")

		labels := "gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=gpt-x,gen_ai.response.model=gpt-x-1"
		require.Equal(t, []string{
			"gen_ai.client.operation.duration " + labels + " 2 4",
			"gen_ai.client.operation.time_to_first_chunk " + labels + " 2 1",
			"gen_ai.client.token.usage " + labels + ",gen_ai.token.type=input 2 200",
			"gen_ai.client.token.usage " + labels + ",gen_ai.token.type=output 2 40",
			"gen_ai.execute_tool.duration gen_ai.agent.name=helper,gen_ai.tool.name=echo,gen_ai.tool.type=function 1 3",
			"gen_ai.invoke_agent.duration gen_ai.agent.name=helper,gen_ai.request.model=gpt-x 1 7",
		}, l.points(t))
	})
}

func requireAttributes(t *testing.T, got []kv, want map[string]string) {
	t.Helper()
	all := make(map[string]string)
	for _, a := range got {
		all[string(a.Key)] = a.Value.String()
	}
	require.Equal(t, want, all)
}

// TestErrorMetrics: failures are told apart by operation and kind, and failed attempts count
// their time and tokens.
func TestErrorMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, otel.Config{})
		usage := agentkernel.Usage{Input: 7, Total: 7}
		agent := l.agent(t, agentkernel.Config{
			Model: agenttest.Script(
				agenttest.Text("a").Usage(usage).Delay(time.Second).Fail(overloaded),
				agenttest.Calls("made_up"),
				agenttest.Fail(&agentkernel.Error{Kind: agentkernel.KindAuth, Op: "model", Err: errors.New("who are you")})),
		})
		_, err := agent.Run(t.Context(), "hi")
		require.ErrorIs(t, err, agentkernel.KindAuth)
		points := strings.Join(l.points(t), "\n")
		for _, want := range []string{
			"agentkernel.errors error.type=auth,gen_ai.operation.name=chat 1",
			"agentkernel.errors error.type=auth,gen_ai.operation.name=invoke_agent 1",
			"agentkernel.errors error.type=overloaded,gen_ai.operation.name=chat 1",
			"agentkernel.errors error.type=unknown,gen_ai.operation.name=execute_tool 1",
			"gen_ai.client.operation.duration error.type=overloaded,gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=gpt-x 1 3",
			"gen_ai.client.token.usage gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=gpt-x,gen_ai.token.type=input 1 7",
			"gen_ai.execute_tool.duration error.type=unknown,gen_ai.agent.name=helper,gen_ai.tool.name=_OTHER,gen_ai.tool.type=function 1 0",
		} {
			require.Contains(t, points, want)
		}
		require.NotContains(t, points, "made_up")
		retry := l.only(t, "invoke_agent helper").Events[0]
		require.Equal(t, "overloaded", text(retry.Attributes, "error.type"))
		require.Equal(t, "1", text(retry.Attributes, "agentkernel.attempt"))
		require.NotEmpty(t, text(retry.Attributes, "agentkernel.retry.delay"))
	})
}

// TestParent: runs stand below the span in the context of the subscription.
func TestParent(t *testing.T) {
	l := newLab(t, otel.Config{})
	ctx, request := l.tracer.Start(t.Context(), "request")
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("a"), agenttest.Text("b"))})
	require.NoError(t, err)
	stop := l.Subscribe(ctx, agent, otel.Identity{})
	for range 2 {
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
	}
	stop()
	stop()
	request.End()
	require.Equal(t, lines("request", "  invoke_agent", "    chat (client)", "  invoke_agent", "    chat (client)"), l.tree(t))
	require.Equal(t, "unknown", attr(l.done(t)[0], "gen_ai.provider.name"))
}

// TestStop: a subscription that is stopped in the middle of a run ends what is open, and hears
// nothing more; one that begins there shows the rest.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		early, late := newLab(t, otel.Config{}), newLab(t, otel.Config{})
		hold := make(chan struct{})
		agent, err := agentkernel.NewAgent(agentkernel.Config{
			Model: agenttest.Script(agenttest.Calls("hold"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{tool("hold", func(context.Context) (agentkernel.ToolResult, error) {
				<-hold
				return agentkernel.TextResult("x"), nil
			})},
		})
		require.NoError(t, err)
		stop := early.Subscribe(t.Context(), agent, helper)
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		time.Sleep(time.Second)
		stop()
		defer late.Subscribe(t.Context(), agent, helper)()
		close(hold)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, lines("invoke_agent helper …", "  chat gpt-x (client)", "  execute_tool hold …"), early.tree(t))
		tree := late.tree(t)
		require.Contains(t, tree, "  execute_tool hold\n")
		require.Contains(t, tree, "  chat gpt-x (client)\n")
		require.NotEmpty(t, attr(late.only(t, "invoke_agent helper"), "agentkernel.events.missed"))
	})
}

// TestBareLoop: a loop without agent, ranged over to its end and left early.
func TestBareLoop(t *testing.T) {
	l := newLab(t, otel.Config{})
	n := 0
	for range l.Observe(t.Context(), agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: agenttest.Script(agenttest.Text("a"))}, nil, agentkernel.UserMessage("hi")), helper) {
		n++
	}
	require.Positive(t, n)
	require.Equal(t, lines("invoke_agent helper", "  chat gpt-x (client)"), l.tree(t))

	l = newLab(t, otel.Config{})
	events := agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: agenttest.Script(agenttest.Text("a"))}, nil, agentkernel.UserMessage("hi"))
	for ev := range l.Observe(t.Context(), events, helper) {
		if ev.Type == agentkernel.EventModelRequest {
			break
		}
	}
	require.Equal(t, lines("invoke_agent helper …", "  chat gpt-x (client) …"), l.tree(t))
	_, err := agentkernel.Collect(events)
	require.NoError(t, err)
}

// TestGaps: whatever events are missing, each span that begins ends with its run, and the run
// says how many are missing.
func TestGaps(t *testing.T) {
	ask := agentTool(t, agentkernel.ForwardEvents, agentkernel.Config{Model: agenttest.Script(agenttest.Text("help"))})
	var all []agentkernel.Event
	cfg := agentkernel.Config{
		Model: agenttest.Script(agenttest.Fail(overloaded), agenttest.Call("c1", "ask", tasks("single", "helper: help")), agenttest.Text("o").EndsWithoutDone(), agenttest.Text("ok")),
		Tools: []agentkernel.Tool{ask}, Retry: agentkernel.RetryPolicy{BaseDelay: time.Nanosecond},
	}
	for ev := range agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
		all = append(all, ev)
	}
	for from := range all {
		for to := from; to < len(all); to++ { // all but the last
			l := newLab(t, otel.Config{})
			listen, stop := l.Listener(t.Context(), helper)
			missing := 0
			for i, ev := range all {
				if i < from || i >= to {
					listen(ev)
				} else if ev.ParentRunID == "" {
					missing++
				}
			}
			spans := l.done(t)
			run := spans[len(spans)-1]
			require.Equal(t, "invoke_agent helper", run.Name)
			if missing > 0 {
				require.Equal(t, fmt.Sprint(missing), attr(run, "agentkernel.events.missed"), "%d to %d", from, to)
			} else {
				require.Empty(t, attr(run, "agentkernel.events.missed"))
			}
			stop()
			l.done(t)
		}
	}
}

// TestManyAgents: one observer and one listener serve many agents at once.
func TestManyAgents(t *testing.T) {
	l := newLab(t, otel.Config{})
	listen, stop := l.Listener(t.Context(), helper)
	var group sync.WaitGroup
	const agents, runs = 8, 5
	for range agents {
		var replies []agenttest.Reply
		for range runs {
			replies = append(replies, agenttest.Calls("echo", "echo"), agenttest.Text("some words").Chunks(1))
		}
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(replies...), Tools: []agentkernel.Tool{tool("echo", nil)}})
		require.NoError(t, err)
		agent.Subscribe(listen)
		group.Go(func() {
			for range runs {
				if _, err := agent.Run(t.Context(), "hi"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	stop()
	one := lines("invoke_agent helper", "  chat gpt-x (client)", "  execute_tool echo", "  execute_tool echo", "  chat gpt-x (client)")
	require.Equal(t, strings.Repeat(one, agents*runs), l.tree(t))
}

// TestLateListener: an asynchronous listener, which gets updates merged, draws the same spans
// and misses nothing.
func TestLateListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, otel.Config{})
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("word ", 100)).Chunks(3).Delay(time.Millisecond))})
		require.NoError(t, err)
		listen, stop := l.Listener(t.Context(), helper)
		defer stop()
		merged := 0
		sub := agent.SubscribeAsync(func(ev agentkernel.Event) {
			time.Sleep(10 * time.Millisecond)
			merged += ev.Coalesced
			listen(ev)
		}, agentkernel.AsyncOptions{})
		record, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.NoError(t, sub.Drain(t.Context()))
		require.Positive(t, merged)
		require.Equal(t, lines("invoke_agent helper", "  chat gpt-x (client)"), l.tree(t))
		run := l.only(t, "invoke_agent helper")
		require.Empty(t, attr(run, "agentkernel.events.missed"))
		require.Equal(t, record.Summary.Duration, run.EndTime.Sub(run.StartTime))
	})
}

// refusing is a MeterProvider whose meters refuse one instrument.
type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

var errRefused = errors.New("not this one")

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return noop.Int64Counter{}, errRefused
}

// TestNewRefuses: the error of New is the MeterProvider's.
func TestNewRefuses(t *testing.T) {
	observer, err := otel.New(otel.Config{MeterProvider: refusing{}})
	require.Nil(t, observer)
	require.ErrorIs(t, err, errRefused)
}

// TestNothingConfigured: without providers the global ones are used, which do nothing.
func TestNothingConfigured(t *testing.T) {
	observer, err := otel.New(otel.Config{})
	require.NoError(t, err)
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("a"))})
	require.NoError(t, err)
	defer observer.Subscribe(trace.ContextWithSpan(t.Context(), trace.SpanFromContext(t.Context())), agent, otel.Identity{})()
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
}
