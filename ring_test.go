package agentkernel_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestEventBufferOfAnAgent: while a listener is at an event, exactly Config.EventBuffer others
// are made, and one more that waits for its place, round after round.
func TestEventBufferOfAnAgent(t *testing.T) {
	for _, buffer := range []int{2, 3, 7} {
		t.Run(fmt.Sprint(buffer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var yielded atomic.Int64
				const n = 40
				agent := watch(t, agentkernel.Config{EventBuffer: buffer, Model: agentkernel.ChatModelFunc(
					func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
						return func(yield func(agentkernel.StreamEvent, error) bool) {
							for range n {
								yielded.Add(1)
								if !yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: "a"}, nil) {
									return
								}
							}
							yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
						}
					})})
				updates := 0
				agent.Subscribe(func(ev agentkernel.Event) {
					if ev.Type == agentkernel.EventMessageUpdate {
						updates++
						time.Sleep(time.Second) // all others wait by then
						require.EqualValues(t, min(n, updates+buffer+1), yielded.Load())
					}
				})
				_, err := agent.Run(t.Context(), "hi")
				require.NoError(t, err)
				require.Equal(t, n, updates)
			})
		})
	}
}

// TestUpdatesThatTakeTurns: an update says nothing that an earlier one said in its place, and
// what was kept stays as it was.
func TestUpdatesThatTakeTurns(t *testing.T) {
	var increments []agentkernel.StreamEvent
	var want []string
	for i := range 30 {
		id := fmt.Sprint("c", i)
		increments = append(increments,
			agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, ID: id, Name: "noop", Delta: "{}"},
			agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: id},
			agentkernel.StreamEvent{Type: agentkernel.StreamEventThinkingDelta, Delta: "hm"})
		want = append(want, "tool_call "+id+" noop {}", "   "+id, "thinking   hm")
	}
	for _, buffer := range []int{2, 3, 64} {
		asked := false
		model := agentkernel.ChatModelFunc(func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
			return func(yield func(agentkernel.StreamEvent, error) bool) {
				for _, ev := range increments {
					if !asked && !yield(ev, nil) {
						return
					}
				}
				asked = true
				yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
			}
		})
		agent := watch(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{noop}, EventBuffer: buffer, MaxTurns: 2, MaxEmptyRetries: -1})
		var kept []agentkernel.Event
		agent.Subscribe(func(ev agentkernel.Event) { kept = append(kept, ev) })
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		require.NoError(t, agenttest.CheckEvents(kept))
		var got []string
		for _, ev := range kept {
			if ev.Type == agentkernel.EventMessageUpdate {
				got = append(got, fmt.Sprint(ev.DeltaKind, " ", ev.ToolID, " ", ev.Tool, " ", ev.Delta))
				require.Nil(t, ev.Args)
				require.Empty(t, ev.ToolLabel)
			}
		}
		require.Equal(t, want, got)
	}
}
