package main

import (
	"fmt"

	"github.com/agentkernel-go/agentkernel"
)

// textSizes are the numbers of deltas in one message.
var textSizes = []int{1_000, 10_000, 100_000}

// textRaces is one message of text on everything: the floor, the kernel, the peers.
func textRaces(b *bench) []race {
	var races []race
	for _, n := range textSizes {
		r := race{name: fmt.Sprintf("text%d", n), programs: kernelText(b.size(n))}
		for _, lib := range libraries()[1:] {
			if lib.Name == "fantasy" && n == 100_000 && b.quick {
				continue // a single run takes seconds
			}
			r.programs = append(r.programs, textProgram(lib.Name, b.size(n), lib.Text(b.size(n), deltaText)))
		}
		races = append(races, r)
	}
	races[1].programs = append(races[1].programs,
		textProgram("eino128_reused", b.size(10_000), einoLibrary("", 128, reused).Text(b.size(10_000), deltaText)))
	return append(races, race{name: "growth", programs: []program{
		textProgram("1k", b.size(1_000), ours().Text(b.size(1_000), deltaText)),
		textProgram("100k", b.size(100_000), ours().Text(b.size(100_000), deltaText)),
	}})
}

func textProgram(name string, n int, run Run) program {
	return program{name: name, units: n, run: run, want: textDone(n, deltaText)}
}

// kernelText is the floor and the ways to read a message of n deltas from the kernel.
func kernelText(n int) []program {
	of := func() *source { return &source{text: deltaText, n: n} }
	s, s128 := of(), of()
	return []program{
		floorChannel(n),
		textProgram("loop", n, loopRun(of())),
		textProgram("agent", n, agentRun(of(), 1)),
		textProgram("agent_buffer128", n, agentOf(agentkernel.Config{Model: s128, EventBuffer: 128}, s128, readDelta, 1)),
		textProgram("whole", n, wholeRun(s)),
	}
}

// wholeRun is a run of an Agent with one listener that reads the whole text at each update.
func wholeRun(s *source) Run {
	return agentOf(agentkernel.Config{Model: s}, s, readWhole, 1)
}

func textFigures(_ *bench, res results) ([]figure, error) {
	var figures []figure
	for _, n := range textSizes {
		at := func(name string) string { return fmt.Sprintf("text%d/%s", n, name) }
		for _, name := range []string{"channel", "loop", "agent", "agent_buffer128", "whole", "fantasy", "eino128", "eino1", "eino128_reused"} {
			if _, ok := res[at(name)]; ok {
				figures = append(figures, report(fmt.Sprintf("text_%s_%dk", name, n/1000), res.of(at(name), nanoseconds), nanos))
			}
		}
	}
	return append(figures,
		most("agent_over_floor_10k", res.ratio("text10000/agent", "text10000/channel"), 1.6, ratio),
		report("agent_buffer128_over_floor_10k", res.ratio("text10000/agent_buffer128", "text10000/channel"), ratio),
		report("loop_over_floor_10k", res.ratio("text10000/loop", "text10000/channel"), ratio),
		most("allocations_per_delta", res.of("text10000/agent", allocations), 1.1, allocs),
		report("bytes_per_delta", res.of("text10000/agent", bytesOf), octets),
		most("delta_at_100k_over_1k", res.ratio("growth/100k", "growth/1k"), 1.2, ratio),
		most("reads_whole_over_reads_delta_10k", res.ratio("text10000/whole", "text10000/agent"), 1.15, ratio),
		least("fantasy_over_ours_10k", res.ratio("text10000/fantasy", "text10000/agent"), 20, ratio),
		least("fantasy_over_ours_100k", res.ratio("text100000/fantasy", "text100000/agent"), 150, ratio),
		least("eino_pipe128_over_ours_10k", res.ratio("text10000/eino128", "text10000/agent"), 1.5, ratio),
		report("eino_pipe128_reused_over_ours_10k", res.ratio("text10000/eino128_reused", "text10000/agent"), ratio),
		least("eino_pipe1_over_ours_10k", res.ratio("text10000/eino1", "text10000/agent"), 2.2, ratio),
		// What no kernel that passes events through a channel can exceed.
		report("fantasy_over_floor_10k", res.ratio("text10000/fantasy", "text10000/channel"), ratio),
		report("fantasy_over_floor_100k", res.ratio("text100000/fantasy", "text100000/channel"), ratio),
		report("eino_pipe128_over_floor_10k", res.ratio("text10000/eino128", "text10000/channel"), ratio),
		report("eino_pipe1_over_floor_10k", res.ratio("text10000/eino1", "text10000/channel"), ratio),
	), nil
}
