package openai

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// documented are the kinds that an adapter's error may have.
var documented = []agentkernel.Kind{
	agentkernel.KindCanceled, agentkernel.KindTimeout, agentkernel.KindStreamIdle, agentkernel.KindStreamTruncated,
	agentkernel.KindNetwork, agentkernel.KindServer, agentkernel.KindOverloaded, agentkernel.KindRateLimit,
	agentkernel.KindQuota, agentkernel.KindAuth, agentkernel.KindInvalidRequest, agentkernel.KindContextOverflow,
	agentkernel.KindRefusal, agentkernel.KindProtocol, agentkernel.KindProvider, agentkernel.KindLimit,
}

// damage flips, repeats and removes bytes of a body.
func damage(body []byte, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	out := bytes.Clone(body)
	for range r.IntN(8) {
		if len(out) == 0 {
			break
		}
		i := r.IntN(len(out))
		n := min(1+r.IntN(40), len(out)-i)
		switch r.IntN(3) {
		case 0:
			out[i] ^= byte(1 + r.IntN(255))
		case 1:
			out = bytes.Join([][]byte{out[:i+n], out[i : i+n], out[i+n:]}, nil)
		default:
			out = append(out[:i:i], out[i+n:]...)
		}
	}
	return out
}

// recorded are the bodies of all cases.
func recorded(t testing.TB) [][]byte {
	dir, err := conformanceDir()
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.sse"))
	require.NoError(t, err)
	if len(paths) == 0 { // a folder of refusals alone
		paths, err = filepath.Glob(filepath.Join(ownCases, "*", "*.sse"))
		require.NoError(t, err)
	}
	bodies := make([][]byte, len(paths))
	for i, path := range paths {
		bodies[i], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	require.NotEmpty(t, bodies)
	return bodies
}

// survive proves that a body is an error of a documented kind or a finished message, in a run
// that keeps the contract.
func survive(t *testing.T, body []byte, seed uint64) {
	t.Helper()
	m := inMemory(t, Config{}, roundTrip(func(req *http.Request) (*http.Response, error) {
		src := &piecewise{body, rand.New(rand.NewPCG(seed, 8)), 1 << 10}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(src), Request: req}, nil
	}))
	r := converse(t, m, 0)
	if r.message == nil {
		failure, ok := errors.AsType[*agentkernel.Error](r.err)
		require.True(t, ok, "%v", r.err)
		require.Contains(t, documented, failure.Kind, "seed %d: %v", seed, failure)
	}
}

func TestDamagedBodies(t *testing.T) {
	for i, body := range recorded(t) {
		for seed := range uint64(20) {
			seed += uint64(i) * 1000
			survive(t, damage(body, seed), seed)
		}
	}
}

func FuzzBody(f *testing.F) {
	for i, body := range recorded(f) {
		f.Add(body, uint64(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) { survive(t, damage(body, seed), seed) })
}

// TestHostileAnswers meets bodies that are made to cost more than they weigh.
func TestHostileAnswers(t *testing.T) {
	frame := func(delta string) string { return `data: {"choices":[{"delta":` + delta + `}]}` + "\n\n" }
	for name, body := range map[string]string{
		"calls in one frame":   frame(`{"tool_calls":[` + strings.Repeat(`{"function":{"name":"a","arguments":"{\"b\":1}"}},`, 5_000) + `{}]}`),
		"calls in frames":      strings.Repeat(frame(`{"tool_calls":[{"function":{"name":"a","arguments":"{\"b\":1}"}}]}`), 5_000),
		"blocks in one frame":  frame(`{"content":[` + strings.Repeat(`"a",{"thinking":"b"},`, 5_000) + `""]}`),
		"blocks in frames":     strings.Repeat(frame(`{"content":"a"}`)+frame(`{"reasoning":"b"}`), 5_000),
		"details in one frame": frame(`{"reasoning_details":[` + strings.Repeat(`{"a":1},`, 100_000) + `{}]}`),
		"a nest":               "data: " + strings.Repeat("[", 1<<20),
		"a nest of parts":      frame(`{"content":` + strings.Repeat(`[{"text":`, 100_000)),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			survive(t, []byte(body), 1)
			require.Less(t, time.Since(start), 10*time.Second)
		})
	}
}
