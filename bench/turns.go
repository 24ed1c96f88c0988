package main

import "fmt"

// turnCounts are the numbers of turns with one call each.
var turnCounts = []int{10, 100, 1_000}

// turnsRaces is runs of turns with calls of a tool that does nothing.
func turnsRaces(b *bench) []race {
	growth := race{name: "turns"}
	for _, n := range turnCounts {
		growth.programs = append(growth.programs, turnsProgram(fmt.Sprint(n), ours(), b.size(n), 1))
	}
	peers, wide := race{name: "turns100"}, race{name: "turns10x10"}
	peers.programs = append(peers.programs, floorTurns(b.size(100)))
	for _, lib := range libraries() {
		if lib.Name == "eino1" { // its turns are those of the other pipe
			continue
		}
		peers.programs = append(peers.programs, turnsProgram(lib.Name, lib, b.size(100), 1))
		wide.programs = append(wide.programs, turnsProgram(lib.Name, lib, 10, 10))
	}
	return []race{growth, peers, wide}
}

// turnsProgram counts turns where there is one call in each, and calls where there are more.
func turnsProgram(name string, lib Library, turns, calls int) program {
	return program{name: name, units: turns * calls, run: lib.Turns(turns, calls), want: turnsDone(turns, calls)}
}

func turnsFigures(_ *bench, res results) ([]figure, error) {
	return []figure{
		report("turn_at_10", res.of("turns/10", nanoseconds), nanos),
		report("turn_at_100", res.of("turns100/ours", nanoseconds), nanos),
		report("turn_at_1000", res.of("turns/1000", nanoseconds), nanos),
		report("turn_allocations_at_100", res.of("turns/100", allocations), allocs),
		report("turn_fantasy_at_100", res.of("turns100/fantasy", nanoseconds), nanos),
		report("turn_eino_at_100", res.of("turns100/eino128", nanoseconds), nanos),
		report("turn_floor_at_100", res.of("turns100/floor", nanoseconds), nanos),
		report("call_of_10x10", res.of("turns10x10/ours", nanoseconds), nanos),
		most("turn_at_1000_over_10", res.ratio("turns/1000", "turns/10"), 1.5, ratio),
		least("turn_fantasy_over_ours_100", res.ratio("turns100/fantasy", "turns100/ours"), 3, ratio),
		least("turn_eino_over_ours_100", res.ratio("turns100/eino128", "turns100/ours"), 3, ratio),
		report("turn_ours_over_floor_100", res.ratio("turns100/ours", "turns100/floor"), ratio),
		report("turn_fantasy_over_floor_100", res.ratio("turns100/fantasy", "turns100/floor"), ratio),
		report("turn_eino_over_floor_100", res.ratio("turns100/eino128", "turns100/floor"), ratio),
		report("call_fantasy_over_ours_10x10", res.ratio("turns10x10/fantasy", "turns10x10/ours"), ratio),
		report("call_eino_over_ours_10x10", res.ratio("turns10x10/eino128", "turns10x10/ours"), ratio),
	}, nil
}
