package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// unit is what a figure counts.
type unit string

const (
	ratio  unit = "×"
	nanos  unit = "ns"
	allocs unit = "allocs"
	octets unit = "bytes"
	number unit = ""
)

// bound is which side of its target a figure must be on.
type bound int

const (
	reported bound = iota // there is no target
	atMost
	atLeast
)

// figure is one line of the table. Its value is NaN where it was left out.
type figure struct {
	name   string
	value  float64
	unit   unit
	bound  bound
	target float64
}

func report(name string, value float64, u unit) figure {
	return figure{name: name, value: value, unit: u}
}

func most(name string, value, target float64, u unit) figure {
	return figure{name, value, u, atMost, target}
}

func least(name string, value, target float64, u unit) figure {
	return figure{name, value, u, atLeast, target}
}

// missed tells whether a figure that was measured is on the wrong side of its target.
func (f figure) missed() bool { return f.beyond(f.target) }

// beyond tells whether a figure that has a target is on the wrong side of limit.
func (f figure) beyond(limit float64) bool {
	switch f.bound {
	case atMost:
		return f.value > limit
	case atLeast:
		return f.value < limit
	}
	return false
}

// guarded is where a figure counts as having become worse: factor and the figure's own slack
// beyond its target or, where the target has not been reached yet, beyond what has been. Only
// ratios of times get the factor: everything else is counted. NaN where nothing is guarded.
func (f figure) guarded(factor float64) float64 {
	if f.bound == reported || factor == 0 {
		return math.NaN()
	}
	limit := f.target
	mark, ok := reached[f.name]
	if at := (figure{value: mark.value, bound: f.bound}); ok && at.beyond(f.target) {
		limit = mark.value
	}
	if f.unit != ratio {
		factor = 1
	}
	factor *= max(mark.slack, 1)
	if f.bound == atLeast {
		return limit / factor
	}
	return limit * factor
}

// verdict is the last word on a figure.
func (f figure) verdict() string {
	switch {
	case math.IsNaN(f.value):
		return "left out"
	case f.bound == reported:
		return ""
	case f.missed():
		return "MISSED"
	}
	return "met"
}

func (f figure) goal() string {
	switch f.bound {
	case atMost:
		return "at most " + format(f.target)
	case atLeast:
		return "at least " + format(f.target)
	}
	return ""
}

func format(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) < 1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// print writes the table, then one line per figure for programs, and returns the names of the
// figures that missed their target, and of those that are worse than the guard of that factor
// allows; a factor of 0 guards nothing.
func print(w io.Writer, figures []figure, guard float64) (missed, worse []string) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "figure\tvalue\tunit\ttarget\tguard\t")
	for _, f := range figures {
		limit, verdict := f.guarded(guard), f.verdict()
		if f.missed() {
			missed = append(missed, f.name)
		}
		if f.beyond(limit) { // not where that is NaN
			worse = append(worse, f.name)
			verdict += ", WORSE THAN IT WAS"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\n", f.name, format(f.value), f.unit, f.goal(), format(limit), verdict)
	}
	tab.Flush()
	fmt.Fprintln(w)
	for _, f := range figures {
		if !math.IsNaN(f.value) {
			fmt.Fprintf(w, "figure %s %.4g\n", f.name, f.value)
		}
	}
	return missed, worse
}
