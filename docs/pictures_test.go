package docs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestPictures draws the pictures of pictures.md from runs and compares them with the files:
// AGENTTEST_UPDATE=1 go test ./docs draws them anew.
func TestPictures(t *testing.T) {
	agenttest.Golden(t, "pictures/architecture.svg", architecture())
	synctest.Test(t, func(t *testing.T) {
		agenttest.Golden(t, "pictures/timeline.svg", timeline(toolRun(t)))
	})
	synctest.Test(t, func(t *testing.T) {
		agenttest.Golden(t, "pictures/retry.svg", timeline(retriedRun(t)))
	})
}

// pause is a tool that takes a time and tells of its half.
func pause(name string, d time.Duration) agentkernel.Tool {
	tool := agentkernel.MustTool(name, "", func(ctx context.Context, _ struct{}) (string, error) {
		time.Sleep(d / 2)
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Text: "half way"})
		time.Sleep(d / 2)
		return "done", nil
	})
	tool.ReadOnly = agentkernel.Always
	return tool
}

// toolRun thinks, calls two tools at once, and answers.
func toolRun(t *testing.T) []agentkernel.Event {
	return checked(t, agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Thinking("I need both of them.").Calls("search", "read").Chunks(4).Delay(60*time.Millisecond),
			agenttest.Text("Both say the same thing.").Chunks(3).Delay(60*time.Millisecond),
		),
		Tools: []agentkernel.Tool{pause("search", 900*time.Millisecond), pause("read", 500*time.Millisecond)},
	})
}

// retriedRun fails in the middle of its first answer.
func retriedRun(t *testing.T) []agentkernel.Event {
	lost := &agentkernel.Error{Kind: agentkernel.KindNetwork, Op: "model", Retryable: true}
	return checked(t, agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Text("The answer is").Chunks(3).Delay(60*time.Millisecond).Fail(lost),
			agenttest.Text("The answer is 42.").Chunks(3).Delay(60*time.Millisecond),
		),
		Retry: agentkernel.RetryPolicy{BaseDelay: 500 * time.Millisecond, Jitter: -1},
	})
}

func checked(t *testing.T, cfg agentkernel.Config) []agentkernel.Event {
	events := agenttest.Run(t, cfg, nil, agentkernel.UserMessage("hi"))
	require.NoError(t, agenttest.CheckRun(nil, events))
	return events
}

func architecture() string {
	d := newDrawing(760, 200)
	d.box(20, 60, 110, 44, "#e8f0fe", "ChatModel")
	d.arrow(130, 82, 218, 82)
	d.text(174, 74, "middle", "stream")
	d.box(220, 60, 120, 44, "#fef3e0", "AgentLoop")
	d.arrow(340, 82, 448, 82)
	d.text(394, 74, "middle", "chan Event")
	d.box(450, 60, 140, 44, "#e6f4ea", "Agent.consumeLoop")
	for i, text := range []string{"listener 1", "listener 2", "listener 3"} {
		y := 20 + i*50
		d.arrow(590, 82, 638, y+16)
		d.box(640, y, 100, 32, "#f3e8fd", text)
	}
	d.arrow(280, 104, 280, 138)
	d.box(220, 140, 120, 32, "#fce8e6", "tools, hooks")
	d.text(75, 124, "middle", "adapter")
	d.text(520, 124, "middle", "state = fold of events")
	d.text(690, 184, "middle", "in this order")
	return d.String()
}

// The lanes of a timeline, in this order; each tool adds one.
const (
	laneRun   = "run"
	laneTurn  = "turns"
	laneModel = "model"
)

// bar is something that lasted.
type bar struct {
	lane, text, colour string
	from, to           time.Time
}

// timeline draws a recorded run: bars for what lasts, ticks for the updates within.
func timeline(events []agentkernel.Event) string {
	began, ended := events[0].Time, events[len(events)-1].Time
	bars, ticks := barsOf(events)
	lanes := []string{laneRun, laneTurn, laneModel}
	for _, b := range bars {
		if !slices.Contains(lanes, b.lane) {
			lanes = append(lanes, b.lane)
		}
	}
	const left, width, row = 90, 640, 40
	x := func(at time.Time) int {
		return left + int(float64(at.Sub(began))/float64(ended.Sub(began))*width)
	}
	d := newDrawing(left+width+20, len(lanes)*row+40)
	for i, lane := range lanes {
		d.text(left-10, i*row+30, "end", lane)
	}
	for _, b := range bars {
		y := slices.Index(lanes, b.lane)*row + 12
		d.box(x(b.from), y, max(x(b.to)-x(b.from), 2), 26, b.colour, b.text)
	}
	for _, tick := range ticks {
		y := slices.Index(lanes, tick.lane)*row + 12
		d.tick(x(tick.from), y+18, y+26, "#1a73e8")
	}
	d.text(left, len(lanes)*row+28, "start", "0")
	d.text(left+width, len(lanes)*row+28, "end", fmt.Sprint(ended.Sub(began)))
	return d.String()
}

// barsOf finds what lasts in a run, and the updates in it.
func barsOf(events []agentkernel.Event) (bars, ticks []bar) {
	open := map[string]bar{}
	begin := func(key string, b bar) { open[key] = b }
	end := func(key string, at time.Time) {
		if b, ok := open[key]; ok {
			b.to = at
			bars = append(bars, b)
			delete(open, key)
		}
	}
	for _, ev := range events {
		switch ev.Type {
		case agentkernel.EventAgentStart:
			begin(laneRun, bar{lane: laneRun, text: "AgentStart … AgentEnd", colour: "#e6f4ea", from: ev.Time})
		case agentkernel.EventTurnStart:
			end(laneTurn, ev.Time)
			begin(laneTurn, bar{lane: laneTurn, text: fmt.Sprint("turn ", ev.Turn), colour: "#fef3e0", from: ev.Time})
		case agentkernel.EventModelRequest:
			begin(laneModel, bar{lane: laneModel, text: fmt.Sprint("attempt ", ev.Attempt), colour: "#e8f0fe", from: ev.Time})
		case agentkernel.EventMessageUpdate:
			ticks = append(ticks, bar{lane: laneModel, from: ev.Time})
		case agentkernel.EventMessageDiscard:
			b := open[laneModel]
			b.text, b.colour = "discarded", "#fce8e6"
			open[laneModel] = b
			end(laneModel, ev.Time)
		case agentkernel.EventMessageEnd:
			end(laneModel, ev.Time)
		case agentkernel.EventRetry:
			bars = append(bars, bar{lane: laneModel, text: "wait", colour: "#ffffff", from: ev.Time, to: ev.Time.Add(ev.RetryInfo.Delay)})
		case agentkernel.EventToolExecStart:
			begin(ev.ToolID, bar{lane: ev.Tool, text: ev.Tool, colour: "#f3e8fd", from: ev.Time})
		case agentkernel.EventToolExecUpdate:
			ticks = append(ticks, bar{lane: ev.Tool, from: ev.Time})
		case agentkernel.EventToolExecEnd:
			end(ev.ToolID, ev.Time)
		case agentkernel.EventAgentEnd:
			end(laneTurn, ev.Time)
			end(laneRun, ev.Time)
		}
	}
	return bars, ticks
}
