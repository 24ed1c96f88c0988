package agenttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// randomReply is a reply of anything, cut anywhere, that may go wrong in the end.
func randomReply(rng *rand.Rand, mayStall bool) agenttest.Reply {
	var r agenttest.Reply
	for range rng.IntN(4) {
		switch rng.IntN(6) {
		case 0:
			r = r.Thinking("Let me think: ä漢.")
		case 1:
			r = r.Calls([]string{"a", "b", "panics", "exits", "fails", "nobody"}[rng.IntN(6)])
		case 2:
			r = r.Call([]string{"", "x", "call_1", "null"}[rng.IntN(4)], "a", []string{"", "{}", `{"n":1}`, `{}{"n":1}`, `{"n":1}{"n":1}`, `{"n`, "null", "[]", "\"x\""}[rng.IntN(9)])
		case 3:
			r = r.Usage(agentkernel.Usage{Input: rng.IntN(9), Output: 1, Total: 10})
		case 4:
			r = r.Events(agentkernel.StreamEvent{Type: agentkernel.StreamEventThinkingDelta, Signature: "sig", Extra: json.RawMessage(`{"a": 1}`)})
		default:
			r = r.Text("Some text, ä漢🎉, <b>.")
		}
	}
	r = r.Split(rng).Model([]string{"", "m"}[rng.IntN(2)])
	switch rng.IntN(14) {
	case 0:
		return r.Fail(&agentkernel.Error{Kind: agentkernel.KindServer, Retryable: true})
	case 1:
		return r.Fail(errors.New("odd"))
	case 2:
		return r.EndsWithoutDone()
	case 3:
		return r.Panic("boom")
	case 4:
		return r.Goexit()
	case 5:
		return r.Stop(agentkernel.StopReasonLength)
	case 6:
		return r.Stop(agentkernel.StopReasonRefusal)
	case 7:
		if mayStall {
			return r.Stall()
		}
	}
	return r
}

func randomTools() []agentkernel.Tool {
	return []agentkernel.Tool{
		echo("a"), echo("b"),
		tool("panics", func(json.RawMessage) (agentkernel.ToolResult, error) { panic("boom") }),
		tool("exits", func(json.RawMessage) (agentkernel.ToolResult, error) { runtime.Goexit(); panic("unreachable") }),
		tool("fails", func(json.RawMessage) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{JSON: json.RawMessage(`{"a": "<"}`)}, errors.New("no luck\xff")
		}),
	}
}

// randomRun runs a random script, aborts it at a random event, and returns what it said.
func randomRun(ctx context.Context, rng *rand.Rand) []agentkernel.Event {
	abortAt := -1
	if rng.IntN(2) == 0 {
		abortAt = rng.IntN(60)
	}
	replies := make([]agenttest.Reply, 6)
	for i := range replies {
		replies[i] = randomReply(rng, abortAt >= 0)
	}
	cfg := agentkernel.Config{
		Model:    agenttest.Script(replies...),
		Tools:    randomTools(),
		MaxTurns: 1 + rng.IntN(5),
		Retry:    agentkernel.RetryPolicy{MaxRetries: rng.IntN(3) - 1, BaseDelay: -1},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A script that stalls before that event is aborted too, later.
	defer time.AfterFunc(20*time.Millisecond, func() { cancel(errors.New("late")) }).Stop()
	var events []agentkernel.Event
	for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi")) {
		events = append(events, ev)
		if len(events) == abortAt {
			cancel(errors.New("enough"))
		}
	}
	return events
}

// The kernel's runs pass, also as an asynchronous subscriber's checker would see them.
func TestCheckAcceptsTheKernel(t *testing.T) {
	ends := map[agentkernel.EndReason]int{}
	for seed := range uint64(400) {
		events := randomRun(t.Context(), rand.New(rand.NewPCG(seed, 1)))
		if err := agenttest.CheckRun(nil, events); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, agenttest.Format(events))
		}
		c := &agenttest.Checker{AllowCoalesced: true, AllowGaps: true}
		for _, ev := range events {
			c.Listen(ev)
		}
		if err := c.Finish(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ends[events[len(events)-1].Summary.EndReason]++
	}
	t.Log(fmt.Sprint(ends))
}

// Recorded runs of the kernel lose no event without notice.
func TestCheckNoticesWhatTheKernelWouldForget(t *testing.T) {
	for seed := range uint64(100) {
		events := randomRun(t.Context(), rand.New(rand.NewPCG(seed, 2)))
		for i := range events {
			var broken []agentkernel.Event
			for j, ev := range events {
				if i != j {
					ev.Seq = uint64(len(broken) + 1)
					broken = append(broken, ev)
				}
			}
			if agenttest.CheckRun(nil, broken) == nil && !mayBeMissing(events, i) {
				t.Errorf("seed %d: %s at seq %d is missing and not noticed\n%s", seed, events[i].Type, i+1, agenttest.Format(events))
			}
		}
	}
}

// mayBeMissing tells whether a log stays valid without event i: a request that nobody
// answered, the announcement of an attempt that an abort forestalled, or an update that showed
// nothing that another event does not show.
func mayBeMissing(events []agentkernel.Event, i int) bool {
	switch events[i].Type {
	case agentkernel.EventModelRequest, agentkernel.EventRetry:
		return events[i+1].Type == agentkernel.EventError || events[i+1].Type == agentkernel.EventAgentEnd
	case agentkernel.EventMessageUpdate:
		return events[i].Delta == "" || events[i].DeltaKind == agentkernel.DeltaToolCall
	}
	return false
}
