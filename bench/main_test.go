package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBench(tb testing.TB) *bench {
	b := &bench{ctx: tb.Context(), effort: effort{rounds: 1}}
	tb.Cleanup(b.close)
	return b
}

// TestPrograms: every program of every library does what its workload says: the text and the
// arguments that come out whole, and how many deltas, turns and calls it took.
func TestPrograms(t *testing.T) {
	b := newBench(t)
	b.small = true // some of the peers take time that grows with the square
	for _, g := range groups {
		for _, r := range g.races(b) {
			for _, p := range r.programs {
				t.Run(g.name+"/"+r.name+"/"+p.name, func(t *testing.T) {
					for range 2 { // a second run begins like the first
						done, err := p.run(t.Context())
						require.NoError(t, err)
						require.NoError(t, p.want.verify(done))
						require.NotZero(t, done.Deltas)
					}
				})
			}
		}
	}
}

// TestFloorIsAsLargeAsAnEvent, so that the floor copies what the kernel copies.
func TestFloorIsAsLargeAsAnEvent(t *testing.T) {
	require.Equal(t, sizeOfEvent, sizeOfItem)
}
