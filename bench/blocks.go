package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

const blockDeltas = 50 // of each block

// blockCounts are the numbers of blocks in one message.
var blockCounts = []int{20, 200}

// blocksRaces is messages of many blocks, thinking and text in turn, each beside one block of
// as many deltas.
func blocksRaces(b *bench) []race {
	var races []race
	for _, blocks := range blockCounts {
		name := fmt.Sprint("blocks", blocks)
		blocks = b.size(blocks)
		n := blocks * blockDeltas
		races = append(races, race{name: name, programs: []program{
			textProgram("one", n, ours().Text(n, deltaText)),
			{name: "many", units: n, run: blocksRun(blocks), want: blocksDone(blocks)},
		}})
	}
	return races
}

func blocksDone(blocks int) Done {
	done := textDone(blocks*blockDeltas, deltaText)
	done.Text = strings.Repeat(deltaText, blocks*blockDeltas/2)
	return done
}

// blocksRun is a run of an Agent whose model writes so many blocks, every second one of text.
func blocksRun(blocks int) Run {
	s := new(source)
	model := func(context.Context, agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
		return func(yield func(agentkernel.StreamEvent, error) bool) {
			for i := range blocks {
				ev := agentkernel.StreamEvent{Type: agentkernel.StreamEventThinkingDelta, Delta: deltaText}
				if i%2 == 1 {
					ev.Type = agentkernel.StreamEventTextDelta
				}
				for range blockDeltas {
					if !yield(ev, nil) {
						return
					}
				}
			}
			yield(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone}, nil)
		}
	}
	return agentOf(agentkernel.Config{Model: agentkernel.ChatModelFunc(model)}, s, readDelta, 1)
}

func blocksFigures(_ *bench, res results) ([]figure, error) {
	return []figure{
		report("blocks_20_delta", res.of("blocks20/many", nanoseconds), nanos),
		report("blocks_200_delta", res.of("blocks200/many", nanoseconds), nanos),
		report("blocks_200_bytes_per_delta", res.of("blocks200/many", bytesOf), octets),
		most("blocks_20_over_1", res.ratio("blocks20/many", "blocks20/one"), 4, ratio),
		report("blocks_200_over_1", res.ratio("blocks200/many", "blocks200/one"), ratio),
	}, nil
}
