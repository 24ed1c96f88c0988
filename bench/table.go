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

// missed tells whether a figure that was measured is not within margin of its target. Only
// ratios of times have a margin: everything else is counted.
func (f figure) missed(margin float64) bool {
	if f.unit != ratio {
		margin = 1
	}
	switch f.bound {
	case atMost:
		return f.value > f.target*margin
	case atLeast:
		return f.value < f.target/margin
	}
	return false
}

// verdict is the last word on a figure.
func (f figure) verdict(margin float64) string {
	switch {
	case math.IsNaN(f.value):
		return "left out"
	case f.bound == reported:
		return ""
	case f.missed(margin):
		return "MISSED"
	case f.missed(1):
		return "within the margin"
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
// figures that missed their target.
func print(w io.Writer, figures []figure, margin float64) (missed []string) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "figure\tvalue\tunit\ttarget\t")
	for _, f := range figures {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", f.name, format(f.value), f.unit, f.goal(), f.verdict(margin))
		if f.missed(margin) {
			missed = append(missed, f.name)
		}
	}
	tab.Flush()
	fmt.Fprintln(w)
	for _, f := range figures {
		if !math.IsNaN(f.value) {
			fmt.Fprintf(w, "figure %s %.4g\n", f.name, f.value)
		}
	}
	return missed
}
