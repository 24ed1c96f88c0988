package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// effort is how much is measured.
type effort struct {
	rounds int           // samples of each program
	sample time.Duration // the least time of one
	quick  bool          // leaves out what takes seconds for a single run
}

// program is a Run that is measured.
type program struct {
	name  string
	units int // deltas, turns, calls or chunks in one run
	run   Run
	want  Done
}

// race is programs that are compared: sampled in turn, A B C A B C …
type race struct {
	name     string
	programs []program
}

// sample is what one unit of a program cost, over the runs of one sample.
type sample struct{ ns, allocs, bytes float64 }

// results are the samples of races, by race and program. The samples of one race at the same
// index were taken in the same round.
type results map[string][]sample

// run measures a race into res.
func (e effort) run(ctx context.Context, r race, res results) error {
	runs := make([]int, len(r.programs))
	for i, p := range r.programs {
		n, err := e.warm(ctx, p)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", r.name, p.name, err)
		}
		runs[i] = n
	}
	for range e.rounds {
		for i, p := range r.programs {
			s, err := p.sample(ctx, runs[i])
			if err != nil {
				return fmt.Errorf("%s/%s: %w", r.name, p.name, err)
			}
			key := r.name + "/" + p.name
			res[key] = append(res[key], s)
		}
	}
	return nil
}

// warm runs p until it is warm, makes sure that it does what it should, and returns how many
// runs a sample needs.
func (e effort) warm(ctx context.Context, p program) (runs int, err error) {
	took := time.Duration(math.MaxInt64)
	for range 3 {
		began := time.Now()
		done, err := p.run(ctx)
		took = min(took, time.Since(began))
		if err == nil {
			err = p.want.verify(done)
		}
		if err != nil {
			return 0, err
		}
		if took >= e.sample {
			return 1, nil
		}
	}
	return int(e.sample/took) + 1, nil
}

// sample measures so many runs.
func (p program) sample(ctx context.Context, runs int) (sample, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range runs {
		done, err := p.run(ctx)
		if err != nil {
			return sample{}, err
		}
		if done.Deltas != p.want.Deltas || done.Calls != p.want.Calls {
			return sample{}, p.want.verify(done)
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	units := float64(runs * p.units)
	return sample{
		ns:     float64(took.Nanoseconds()) / units,
		allocs: float64(after.Mallocs-before.Mallocs) / units,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / units,
	}, nil
}

func nanoseconds(s sample) float64 { return s.ns }
func allocations(s sample) float64 { return s.allocs }
func bytesOf(s sample) float64     { return s.bytes }

// of is the median of what the program cost; NaN where it was left out.
func (res results) of(key string, cost func(sample) float64) float64 {
	var costs []float64
	for _, s := range res[key] {
		costs = append(costs, cost(s))
	}
	return median(costs)
}

// ratio is the median, over the rounds, of the time of one program against that of another of
// the same race: neighbours in time share what else the machine does. NaN where one of them was
// left out.
func (res results) ratio(key, against string) float64 {
	a, b := res[key], res[against]
	if len(a) != len(b) {
		return math.NaN()
	}
	var ratios []float64
	for i := range a {
		ratios = append(ratios, a[i].ns/b[i].ns)
	}
	return median(ratios)
}

// median of an even number is the mean of the two in the middle.
func median(of []float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	of = slices.Sorted(slices.Values(of))
	mid := len(of) / 2
	if len(of)%2 == 1 {
		return of[mid]
	}
	return (of[mid-1] + of[mid]) / 2
}

// quantile of sorted numbers.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
