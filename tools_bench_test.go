package agentkernel_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// callingModel answers its first turns with calls of "noop", then with text. It costs as
// little as a model can.
func callingModel(turns, calls int) agentkernel.ChatModel {
	n := 0
	return agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		n++
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			if n > turns {
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "ok"}, nil)
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: agentkernel.StopReasonStop}, nil)
				return
			}
			for i := range calls {
				ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: fmt.Sprint(n, "_", i), Name: "noop", Delta: "{}"}
				if !yield(ev, nil) {
					return
				}
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: agentkernel.StopReasonToolUse}, nil)
		}
	})
}

// BenchmarkToolCalls is a run of turns with calls of a tool that does nothing.
func BenchmarkToolCalls(b *testing.B) {
	parallel := safe(noop)
	for _, bb := range []struct {
		name         string
		turns, calls int
		tool         agentkernel.Tool
	}{
		{"100 turns of 1", 100, 1, noop},
		{"10 turns of 10", 10, 10, noop},
		{"10 turns of 10 in parallel", 10, 10, parallel},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cfg := agentkernel.Config{Model: callingModel(bb.turns, bb.calls), Tools: []agentkernel.Tool{bb.tool}, MaxTurns: -1}
				var last agentkernel.Event
				for ev := range agentkernel.AgentLoop(b.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
					last = ev
				}
				require.Equal(b, bb.turns*bb.calls, last.Summary.ToolCalls)
				require.Zero(b, last.Summary.ToolErrors)
			}
			n := float64(b.N * bb.turns * bb.calls)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/call")
		})
	}
}
