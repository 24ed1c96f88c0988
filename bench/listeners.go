package main

import "fmt"

// listenerCounts are the numbers of synchronous listeners that read each delta.
var listenerCounts = []int{1, 10, 100}

const listenerDeltas = 10_000

func listenersRaces(b *bench) []race {
	deltas := b.size(listenerDeltas)
	r := race{name: "listeners"}
	for _, n := range listenerCounts {
		r.programs = append(r.programs, textProgram(fmt.Sprint(n), deltas, agentRun(&source{text: deltaText, n: deltas}, n)))
	}
	return []race{r}
}

func listenersFigures(_ *bench, res results) ([]figure, error) {
	return []figure{
		report("listeners_1", res.of("listeners/1", nanoseconds), nanos),
		report("listeners_10", res.of("listeners/10", nanoseconds), nanos),
		report("listeners_100", res.of("listeners/100", nanoseconds), nanos),
		report("listeners_10_over_1", res.ratio("listeners/10", "listeners/1"), ratio),
		most("listeners_100_over_1", res.ratio("listeners/100", "listeners/1"), 4, ratio),
	}, nil
}
