package agentkernel_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// BenchmarkDeltas streams one message of n deltas of 4 bytes through an Agent with one
// listener. B/delta and ns/delta are what it costs from the model's yield to the listener.
func BenchmarkDeltas(b *testing.B) {
	for name, of := range costKinds {
		for _, n := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				agent, err := agentkernel.NewAgent(agentkernel.Config{Model: deltas(n, of), MaxTurns: 1, MaxEmptyRetries: -1})
				require.NoError(b, err)
				seen := 0
				agent.Subscribe(func(ev agentkernel.Event) {
					if ev.Type == agentkernel.EventMessageUpdate {
						seen++
					}
				})
				b.ReportAllocs()
				runs := 0
				for b.Loop() {
					_, _ = agent.Run(context.Background(), "hi")
					require.NoError(b, agent.Reset())
					runs++
				}
				require.Equal(b, runs*n, seen)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(seen), "ns/delta")
			})
		}
	}
}
