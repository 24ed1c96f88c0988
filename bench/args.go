package main

const argsDeltas = 10_000

// argsRaces is one call whose arguments come in small pieces, and a text of as many deltas of
// the same size.
func argsRaces(b *bench) []race {
	n := b.size(argsDeltas)
	pieces := argPieces(n) // one for all: what is alive beside a run is work for the collector
	r := race{name: "args", programs: []program{
		{name: "text", units: n, run: ours().Text(n, deltaArgs), want: textDone(n, deltaArgs)},
	}}
	for _, lib := range libraries() {
		r.programs = append(r.programs, program{name: lib.Name, units: n, run: lib.Args(pieces), want: argsDone(n)})
	}
	return []race{r}
}

func argsFigures(_ *bench, res results) ([]figure, error) {
	return []figure{
		report("args_delta", res.of("args/ours", nanoseconds), nanos),
		report("args_allocations_per_delta", res.of("args/ours", allocations), allocs),
		most("args_over_text", res.ratio("args/ours", "args/text"), 1.3, ratio),
		report("args_fantasy_over_ours", res.ratio("args/fantasy", "args/ours"), ratio),
		report("args_eino_pipe128_over_ours", res.ratio("args/eino128", "args/ours"), ratio),
		report("args_eino_pipe1_over_ours", res.ratio("args/eino1", "args/ours"), ratio),
	}, nil
}
