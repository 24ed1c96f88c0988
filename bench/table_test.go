package main

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMissed: a target is missed on its wrong side.
func TestMissed(t *testing.T) {
	for name, tt := range map[string]struct {
		figure  figure
		missed  bool
		verdict string
	}{
		"at the target": {most("x", 1.6, 1.6, ratio), false, "met"},
		"above":         {most("x", 1.61, 1.6, ratio), true, "MISSED"},
		"enough":        {least("x", 20, 20, ratio), false, "met"},
		"below":         {least("x", 19, 20, ratio), true, "MISSED"},
		"a count":       {most("x", 1.2, 1.1, allocs), true, "MISSED"},
		"no target":     {report("x", 1e9, nanos), false, ""},
		"left out":      {least("x", math.NaN(), 150, ratio), false, "left out"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.missed, tt.figure.missed())
			require.Equal(t, tt.verdict, tt.figure.verdict())
		})
	}
}

// TestGuarded: the guard is beyond the target, or beyond what was reached where that is worse; it
// leaves ratios of times room, more of it where they scatter, and counts none.
func TestGuarded(t *testing.T) {
	recorded := reached
	defer func() { reached = recorded }()
	reached = map[string]mark{
		"slower": {value: 3}, "faster": {value: 1.2}, "behind": {value: 10}, "ahead": {value: 40},
		"scattered": {value: 3, slack: 2}, "larger": {value: 5000}, "uneven": {value: 4000, slack: 2},
	}
	for name, tt := range map[string]struct {
		figure  figure
		guarded float64
	}{
		"not recorded":      {most("x", 2, 2, ratio), 3},
		"missed":            {most("slower", 3, 2, ratio), 4.5},
		"met":               {most("faster", 1.2, 2, ratio), 3},
		"missed, at least":  {least("behind", 10, 20, ratio), 10 / 1.5},
		"met, at least":     {least("ahead", 40, 30, ratio), 20},
		"one that scatters": {most("scattered", 3, 2, ratio), 9},
		"a count":           {most("x", 2, 2, allocs), 2},
		"a size":            {most("larger", 5000, 4096, octets), 5000},
		"an uneven size":    {most("uneven", 4000, 4096, octets), 8192},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.guarded, tt.figure.guarded(1.5))
			require.True(t, math.IsNaN(tt.figure.guarded(0)), "there is no guard")
		})
	}
	require.True(t, math.IsNaN(report("x", 1, ratio).guarded(1.5)), "nor one without a target")
}

// TestReached: what is recorded are the figures that have a target, all of them.
func TestReached(t *testing.T) {
	targets := make(map[string]bool)
	b := newBench(t)
	b.small, b.quick, b.sample = true, true, time.Nanosecond
	for _, g := range groups {
		figures, err := b.measure(g)
		require.NoError(t, err)
		for _, f := range figures {
			targets[f.name] = f.bound != reported
		}
	}
	for name := range reached {
		require.True(t, targets[name], name)
	}
	for name, has := range targets {
		if has {
			require.Contains(t, reached, name)
		}
	}
}

// TestPrint: the table for people, then one line per measured figure for programs. What is worse
// than the guard allows is told apart from what misses its target.
func TestPrint(t *testing.T) {
	recorded := reached
	defer func() { reached = recorded }()
	reached = map[string]mark{"a": {value: 3}, "d": {value: 3}}
	var out strings.Builder
	missed, worse := print(&out, []figure{most("a", 3, 2, ratio), report("b", 1234.5678, nanos), least("c", math.NaN(), 2, ratio),
		most("d", 5, 2, ratio)}, 1.5)
	require.Equal(t, []string{"a", "d"}, missed)
	require.Equal(t, []string{"d"}, worse)
	require.Regexp(t, `(?m)^a +3 +× +at most 2 +4\.50 +MISSED$`, out.String())
	require.Regexp(t, `(?m)^c +- +× +at least 2 +1\.33 +left out$`, out.String())
	require.Regexp(t, `(?m)^d +5 +× +at most 2 +4\.50 +MISSED, WORSE THAN IT WAS$`, out.String())
	require.True(t, strings.HasSuffix(out.String(), "\n\nfigure a 3\nfigure b 1235\nfigure d 5\n"), out.String())

	_, worse = print(io.Discard, []figure{most("d", 5, 2, ratio)}, 0)
	require.Empty(t, worse, "without a guard")
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
