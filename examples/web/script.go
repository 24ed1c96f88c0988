package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// script is the model that needs no endpoint: whatever it is told, it counts primes.
func script(pace time.Duration) agentkernel.ChatModel { return demo.Script(pace, reply) }

var number = regexp.MustCompile(`\d+`)

// reply thinks about what the user said, at first or in between, and has the tool count the
// primes below the number in it; and it says what the tool found.
func reply(req agentkernel.ModelRequest) []agentkernel.StreamEvent {
	last := req.Messages[len(req.Messages)-1]
	switch {
	case last.Role == agentkernel.RoleTool && last.IsError:
		return demo.End(req, demo.Text("The tool says no: "+last.TextContent()))
	case last.Role == agentkernel.RoleTool:
		return demo.End(req, demo.Text(last.TextContent()+" I did not work that out myself: a tool went through "+
			"the numbers one by one, and I waited. You can stop me, or say something while I speak, "+
			"and load this page again whenever you like. It will go on where it was."))
	}
	below := 1000
	if digits := number.FindString(last.TextContent()); digits != "" {
		var err error
		if below, err = strconv.Atoi(digits); err != nil {
			below = maxBelow + 1
		}
	}
	return demo.End(req,
		demo.Thinking(fmt.Sprintf("They say %q. I am a script and know one thing: there is a tool that counts primes. "+
			"I shall let it count those below %d and tell what comes out.", last.TextContent(), below)),
		demo.Call(fmt.Sprintf("call_%d", len(req.Messages)), "count_primes", interval{below}))
}

type interval struct {
	Below int `json:"below" jsonschema:"count the primes below this number"`
}

const (
	maxBelow = 1_000_000
	steps    = 25 // reports of one call
)

// primesTool counts primes, with a pause and a report after each step. Steering cancels it.
func primesTool(pause time.Duration) agentkernel.Tool {
	tool := agentkernel.MustTool("count_primes", "Counts the primes below a number.",
		func(ctx context.Context, in interval) (string, error) { return countPrimes(ctx, in.Below, pause) })
	tool.ReadOnly = func(json.RawMessage) bool { return true }
	tool.Interrupt = agentkernel.InterruptCancel
	return tool
}

func countPrimes(ctx context.Context, below int, pause time.Duration) (string, error) {
	if below < 2 || below > maxBelow {
		return "", fmt.Errorf("below must be from 2 to %d", maxBelow)
	}
	composite := make([]bool, below)
	found, n := 0, 2
	for step := range steps {
		for end := below * (step + 1) / steps; n < end; n++ {
			if composite[n] {
				continue
			}
			found++
			for m := n * n; m < below; m += n {
				composite[m] = true
			}
		}
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{
			Kind: agentkernel.ProgressSummary, Text: fmt.Sprintf("%d primes so far", found), Count: step + 1, Of: steps,
		})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return fmt.Sprintf("There are %d primes below %d.", found, below), nil
}
