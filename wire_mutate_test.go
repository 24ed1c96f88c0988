package agentkernel_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// spoil changes a record: members of another one, members taken out or of another type, other
// numbers.
func spoil(t testing.TB, rng *rand.Rand, lines [][]byte, at int) []byte {
	record, other := instance(t, lines[at]), instance(t, lines[rng.IntN(len(lines))])
	names := slices.Sorted(maps.Keys(record))
	switch rng.IntN(6) {
	case 0:
		for _, name := range slices.Sorted(maps.Keys(other)) {
			if name != "v" && rng.IntN(2) == 0 {
				record[name] = other[name]
			}
		}
	case 1:
		delete(record, names[rng.IntN(len(names))])
	case 2:
		values := []any{nil, -1, 1e18, "x", []any{}, map[string]any{}, 3, true, []any{map[string]any{}}}
		record[names[rng.IntN(len(names))]] = values[rng.IntN(len(values))]
	case 3:
		record["seq"], record["coalesced"] = rng.IntN(60), rng.IntN(6)
	case 4:
		record["seq"] = []uint64{1 << 63, 1<<64 - 1, 0, 1}[rng.IntN(4)]
	case 5:
		if m, ok := record["message"].(map[string]any); ok {
			inner := slices.Sorted(maps.Keys(m))
			delete(m, inner[rng.IntN(len(inner))])
		}
		record["content_index"] = rng.IntN(4)
	}
	out, err := json.Marshal(record)
	require.NoError(t, err)
	return out
}

// TestWireSpoiledStreams: whatever happens to the records of a stream, its end comes through
// where it is whole, and a snapshot of what the reader made of it is one that others can read,
// who then have the same state.
func TestWireSpoiledStreams(t *testing.T) {
	lines := encoded(t, wireRun(t))
	property(t, 100, func(t *testing.T, seed uint64) int {
		rng := rand.New(rand.NewPCG(seed, 1))
		dec := &agentkernel.Decoder{AllowCoalesced: rng.IntN(4) == 0}
		for at := 0; at < len(lines); at++ {
			line := lines[at]
			switch rng.IntN(12) {
			case 0:
				line = spoil(t, rng, lines, at)
			case 1:
				at = rng.IntN(len(lines)) // a jump, forth or back
			}
			_, _ = dec.Decode(line)
			if rng.IntN(8) > 0 {
				continue
			}
			snapshot, err := dec.Encoder().Snapshot()
			require.NoError(t, err)
			late := new(agentkernel.Decoder)
			_, err = late.Decode(snapshot)
			require.NoError(t, err, seeded+": behind %s:\n%s", seed, line, snapshot)
			requireSameState(t, dec.State(), late.State())
		}
		_, _ = dec.Decode(lines[len(lines)-1])
		require.False(t, dec.State().IsRunning && dec.State().RunID == instance(t, lines[0])["run_id"], seeded, seed)
		return 1
	})
}
