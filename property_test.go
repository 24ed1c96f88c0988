package agentkernel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// property plays random worlds, each made of a seed of its own, until they came to enough
// runs: play tells how many its one did. AGENTKERNEL_FUZZ_RUNS is how many, in place of usual,
// and AGENTKERNEL_FUZZ_SEED repeats the world of one seed. A panic names the seed, and so
// should what play reports: see [seeded].
//
// As many worlds are played at a time as there are processors. So what t owns is gone when
// property returns, and play has a t of its own.
func property(t *testing.T, usual int, play func(t *testing.T, seed uint64) int) {
	named := func(t *testing.T, seed uint64) int {
		defer func() {
			if p := recover(); p != nil {
				panic(fmt.Sprintf(seeded+": %v", seed, p))
			}
		}()
		return play(t, seed)
	}
	if seed, ok := fromEnvironment(t, "AGENTKERNEL_FUZZ_SEED"); ok {
		named(t, seed)
		return
	}
	runs, ok := fromEnvironment(t, "AGENTKERNEL_FUZZ_RUNS")
	if !ok {
		runs = uint64(usual)
	}
	first := rand.Uint64()
	var worlds, played atomic.Uint64
	began := time.Now()
	t.Cleanup(func() {
		t.Logf("%d runs, %.0f a second", played.Load(), float64(played.Load())/time.Since(began).Seconds())
	})
	for shard := range runtime.GOMAXPROCS(0) {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			for !t.Failed() && played.Load() < runs {
				played.Add(uint64(named(t, first+worlds.Add(1))))
			}
		})
	}
}

// seeded is how a failure tells which seed repeats it.
const seeded = "AGENTKERNEL_FUZZ_SEED=%d"

func fromEnvironment(t *testing.T, name string) (n uint64, given bool) {
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n, true
}

// TestPropertyPlaysWhatItIsTold: the seed, or the number of runs, that the environment names.
func TestPropertyPlaysWhatItIsTold(t *testing.T) {
	t.Setenv("AGENTKERNEL_FUZZ_SEED", "18446744073709551615")
	var seeds []uint64
	property(t, 3, func(_ *testing.T, seed uint64) int {
		seeds = append(seeds, seed)
		return 1
	})
	require.Equal(t, []uint64{1<<64 - 1}, seeds)
	require.PanicsWithValue(t, "AGENTKERNEL_FUZZ_SEED=18446744073709551615: play", func() {
		property(t, 3, func(*testing.T, uint64) int { panic("play") })
	})
	_, given := fromEnvironment(t, "AGENTKERNEL_NOT_SET")
	require.False(t, given)
}
