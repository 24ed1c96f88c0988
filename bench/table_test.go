package main

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMissed: a target is missed on its wrong side, and the margin is for ratios alone.
func TestMissed(t *testing.T) {
	for name, tt := range map[string]struct {
		figure  figure
		margin  float64
		missed  bool
		verdict string
	}{
		"at the target":            {most("x", 1.6, 1.6, ratio), 1, false, "met"},
		"above":                    {most("x", 1.61, 1.6, ratio), 1, true, "MISSED"},
		"above, within the margin": {most("x", 2.4, 1.6, ratio), 1.5, false, "within the margin"},
		"above the margin":         {most("x", 2.41, 1.6, ratio), 1.5, true, "MISSED"},
		"enough":                   {least("x", 20, 20, ratio), 1, false, "met"},
		"below":                    {least("x", 19, 20, ratio), 1, true, "MISSED"},
		"below, within the margin": {least("x", 14, 20, ratio), 1.5, false, "within the margin"},
		"counts have no margin":    {most("x", 1.2, 1.1, allocs), 1.5, true, "MISSED"},
		"sizes have no margin":     {most("x", 5000, 4096, octets), 1.5, true, "MISSED"},
		"no target":                {report("x", 1e9, nanos), 1, false, ""},
		"left out":                 {least("x", math.NaN(), 150, ratio), 1, false, "left out"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.missed, tt.figure.missed(tt.margin))
			require.Equal(t, tt.verdict, tt.figure.verdict(tt.margin))
		})
	}
}

// TestPrint: the table for people, then one line per measured figure for programs.
func TestPrint(t *testing.T) {
	var out strings.Builder
	missed := print(&out, []figure{most("a", 3, 2, ratio), report("b", 1234.5678, nanos), least("c", math.NaN(), 2, ratio)}, 1)
	require.Equal(t, []string{"a"}, missed)
	require.Regexp(t, `(?m)^a +3 +× +at most 2 +MISSED$`, out.String())
	require.Regexp(t, `(?m)^c +- +× +at least 2 +left out$`, out.String())
	require.True(t, strings.HasSuffix(out.String(), "\n\nfigure a 3\nfigure b 1235\n"), out.String())
}

// TestRatio pairs the samples of a round, and takes the median of the pairs.
func TestRatio(t *testing.T) {
	res := results{
		"r/a": {{ns: 2}, {ns: 30}, {ns: 2}},
		"r/b": {{ns: 1}, {ns: 10}, {ns: 4}},
	}
	require.Equal(t, 2.0, res.ratio("r/a", "r/b"))
	require.Equal(t, 2.0, res.of("r/a", nanoseconds))
	require.True(t, math.IsNaN(res.ratio("r/a", "r/left_out")))
	require.True(t, math.IsNaN(res.ratio("r/left_out", "r/left_out")))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
}

// TestRace: programs are sampled in turn, and one that does something else is refused.
func TestRace(t *testing.T) {
	var order strings.Builder
	of := func(name string) program {
		return program{name: name, units: 1, want: Done{Deltas: 1}, run: func(context.Context) (Done, error) {
			order.WriteString(name)
			time.Sleep(time.Millisecond)
			return Done{Deltas: 1}, nil
		}}
	}
	e := effort{rounds: 5, sample: time.Nanosecond}
	res := make(results)
	require.NoError(t, e.run(t.Context(), race{"r", []program{of("a"), of("b")}}, res))
	require.Equal(t, "ab"+strings.Repeat("ab", 5), order.String(), "each is warmed first")
	require.Len(t, res["r/a"], 5)
	require.Len(t, res["r/b"], 5)

	other := of("c")
	other.want = Done{Deltas: 2}
	require.ErrorContains(t, e.run(t.Context(), race{"r", []program{other}}, res), "r/c: it did {Deltas:1")
	broken := program{name: "d", units: 1, run: failed(errors.New("broken"))}
	require.ErrorContains(t, e.run(t.Context(), race{"r", []program{broken}}, res), "r/d: broken")
}
