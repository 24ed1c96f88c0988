package agentkernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

func report(ctx context.Context, kind agentkernel.ProgressKind, text string) {
	agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: kind, Text: text})
}

// progressOf is what the reports of a log say.
func progressOf(log []agentkernel.Event) []agentkernel.ProgressPayload {
	var out []agentkernel.ProgressPayload
	for _, ev := range ofType(log, agentkernel.EventToolExecUpdate) {
		out = append(out, *ev.Progress)
	}
	return out
}

// TestProgress: every kind reaches the stream as it was reported, between Start and End.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := []agentkernel.ProgressKind{
			agentkernel.ProgressToolStart, agentkernel.ProgressToolEnd, agentkernel.ProgressToolDelta,
			agentkernel.ProgressThinking, agentkernel.ProgressSummary, agentkernel.ProgressToolError,
			agentkernel.ProgressTurn, agentkernel.ProgressRetry, agentkernel.ProgressCustom,
		}
		var want []agentkernel.ProgressPayload
		busy := tool("busy", func(ctx context.Context) (agentkernel.ToolResult, error) {
			for i, kind := range kinds {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{
					Kind: kind, Tool: "sub", Text: "x\xff", Data: json.RawMessage(`{ "a": 1 }`), Count: i, Of: 9})
				want = append(want, agentkernel.ProgressPayload{
					Kind: kind, Tool: "sub", Text: "x\uFFFD", Data: json.RawMessage(`{"a":1}`), Count: i, Of: 9})
				synctest.Wait() // until it is on the stream
			}
			return agentkernel.TextResult("done"), nil
		})
		log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("busy"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{busy}})
		require.Equal(t, want, progressOf(log))
	})
}

// TestProgressWithoutEffect: outside of a call, and once the call has ended.
func TestProgressWithoutEffect(t *testing.T) {
	report(t.Context(), agentkernel.ProgressSummary, "nowhere")
	synctest.Test(t, func(t *testing.T) {
		var kept context.Context
		keeper := tool("keeper", func(ctx context.Context) (agentkernel.ToolResult, error) {
			kept = ctx
			go func() {
				for range 100 {
					time.Sleep(time.Millisecond)
					report(context.WithoutCancel(ctx), agentkernel.ProgressToolDelta, strings.Repeat("x", 1<<20))
				}
			}()
			time.Sleep(5*time.Millisecond + time.Microsecond)
			return agentkernel.ToolResult{}, nil
		})
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("keeper"), agenttest.Text("ok").Delay(10*time.Millisecond)),
			Tools: []agentkernel.Tool{keeper}})
		_, err := agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		n := len(agent.events())
		report(kept, agentkernel.ProgressSummary, "late")
		time.Sleep(time.Second)
		require.Len(t, agent.events(), n)
		require.Len(t, progressOf(agent.events()), 5)
	})
}

// TestProgressMerges while the consumer is slow: of state kinds the newest wins, text of
// delta kinds is joined, kinds and sub-tools stay apart.
func TestProgressMerges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := tool("busy", func(ctx context.Context) (agentkernel.ToolResult, error) {
			for i := range 1000 {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressTurn, Count: i})
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressTurn, Tool: "other", Count: -i})
				report(ctx, agentkernel.ProgressToolDelta, fmt.Sprint(i%10))
				report(ctx, agentkernel.ProgressThinking, "t")
			}
			return agentkernel.TextResult("done"), nil
		})
		cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Calls("busy"), agenttest.Text("ok")),
			Tools: []agentkernel.Tool{busy}, EventBuffer: 2}
		var log []agentkernel.Event
		for ev := range agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
			time.Sleep(time.Second)
			log = append(log, ev)
		}
		require.NoError(t, agenttest.CheckRun(nil, log))
		got := progressOf(log)
		require.Less(t, len(got), 40)
		var text, thinking strings.Builder
		newest := make(map[string]int)
		for _, p := range got {
			switch p.Kind {
			case agentkernel.ProgressToolDelta:
				text.WriteString(p.Text)
			case agentkernel.ProgressThinking:
				thinking.WriteString(p.Text)
			default:
				newest[p.Tool] = p.Count
			}
		}
		require.Equal(t, strings.Repeat("0123456789", 100), text.String())
		require.Equal(t, strings.Repeat("t", 1000), thinking.String())
		require.Equal(t, map[string]int{"": 999, "other": -999}, newest)
	})
}

// TestProgressWaits only where 64 KiB of text or 64 kinds of reports are waiting, and then
// until there is room, or the call's context ends.
func TestProgressWaits(t *testing.T) {
	for name, one := range map[string]func(ctx context.Context, i int){
		"text": func(ctx context.Context, i int) {
			report(ctx, agentkernel.ProgressToolDelta, strings.Repeat("x", 1<<10))
		},
		"kinds": func(ctx context.Context, i int) {
			report(ctx, agentkernel.ProgressKind(fmt.Sprint("kind", i)), "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				done := 0
				busy := tool("busy", func(ctx context.Context) (agentkernel.ToolResult, error) {
					for i := range 1000 {
						one(ctx, i)
						done++
					}
					return agentkernel.TextResult("done"), nil
				})
				cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Calls("busy"), agenttest.Text("ok")),
					Tools: []agentkernel.Tool{busy}, EventBuffer: 2}
				events := agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("hi"))
				var log []agentkernel.Event
				for ev := range events {
					log = append(log, ev)
					if ev.Type == agentkernel.EventToolExecStart {
						break
					}
				}
				synctest.Wait()
				before := done
				require.Greater(t, before, 60)
				require.LessOrEqual(t, before, 4*65) // in the box, at the channel, and twice in it
				for range 10 {
					log = append(log, <-events)
				}
				synctest.Wait()
				require.GreaterOrEqual(t, done, before)
				cancel()
				synctest.Wait()
				require.Equal(t, 1000, done)
				for ev := range events {
					log = append(log, ev)
				}
				require.NoError(t, agenttest.CheckRun(nil, log))
			})
		})
	}
}

// TestMillionReports do not grow memory, nor does the tool wait for them.
func TestMillionReports(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	var most uint64
	busy := tool("busy", func(ctx context.Context) (agentkernel.ToolResult, error) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		before := m.HeapAlloc
		for i := range 1_000_000 {
			if i%100_000 == 99_999 {
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc-min(before, m.HeapAlloc))
			}
			agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressTurn, Count: i})
		}
		return agentkernel.TextResult("done"), nil
	})
	cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Calls("busy"), agenttest.Text("ok")), Tools: []agentkernel.Tool{busy}}
	checker, last := agenttest.NewChecker(), -1
	for ev := range agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
		checker.Listen(ev)
		if ev.Type == agentkernel.EventToolExecUpdate {
			require.Greater(t, ev.Progress.Count, last)
			last = ev.Progress.Count
		}
	}
	require.NoError(t, checker.Finish())
	require.Equal(t, 999_999, last)
	require.Less(t, most, uint64(8<<20))
}

// TestThousandParallelCalls of one turn, each with a thousand reports, finish with bounded
// memory, under the checker.
func TestThousandParallelCalls(t *testing.T) {
	const calls, reports = 1000, 1000
	reply := agenttest.Reply{}
	for range calls {
		reply = reply.Calls("busy")
	}
	busy := safe(tool("busy", func(ctx context.Context) (agentkernel.ToolResult, error) {
		for i := range reports {
			agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressTurn, Count: i + 1, Of: reports})
			if i%100 == 0 {
				runtime.Gosched() // so that the run gets to see some of them
			}
		}
		return agentkernel.TextResult("done"), nil
	}))
	cfg := agentkernel.Config{Model: agenttest.Script(reply, agenttest.Text("ok")), Tools: []agentkernel.Tool{busy}, MaxParallelTools: -1}
	checker := agenttest.NewChecker()
	checker.StartFrom(nil)
	var updates, ends int
	var most uint64
	var m runtime.MemStats
	last := make(map[string]int)
	began := time.Now()
	for ev := range agentkernel.AgentLoop(t.Context(), cfg, nil, agentkernel.UserMessage("hi")) {
		checker.Listen(ev)
		switch ev.Type {
		case agentkernel.EventToolExecUpdate:
			require.Greater(t, ev.Progress.Count, last[ev.ToolID])
			last[ev.ToolID] = ev.Progress.Count
			if updates++; updates%100_000 == 1 {
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		case agentkernel.EventToolExecEnd:
			require.Equal(t, agentkernel.ToolOK, ev.Result.Cause)
			require.Equal(t, reports, last[ev.ToolID])
			ends++
		}
	}
	require.NoError(t, checker.Finish())
	require.Equal(t, calls, ends)
	require.Less(t, most, uint64(512<<20))
	t.Logf("%v, %d updates for %d reports, heap at most %d MiB", time.Since(began).Round(time.Millisecond), updates, calls*reports, most>>20)
}

// TestProgressFromManyGoroutines of one call.
func TestProgressFromManyGoroutines(t *testing.T) {
	busy := tool("busy", func(ctx context.Context) (agentkernel.ToolResult, error) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 500 {
					report(ctx, agentkernel.ProgressToolDelta, "ä")
				}
			})
		}
		group.Wait()
		return agentkernel.TextResult("done"), nil
	})
	log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("busy"), agenttest.Text("ok")), Tools: []agentkernel.Tool{busy}})
	var text strings.Builder
	for _, p := range progressOf(log) {
		text.WriteString(p.Text)
	}
	require.Equal(t, strings.Repeat("ä", 4000), text.String())
}

func ExampleReportProgress() {
	download := agentkernel.MustTool("download", "Downloads it.", func(ctx context.Context, _ struct{}) (string, error) {
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressSummary, Text: "connected"})
		agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressCustom, Text: "chunk", Count: 1, Of: 1})
		return "done", nil
	})
	cfg := agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("download"), agenttest.Text("Here it is.")),
		Tools: []agentkernel.Tool{download},
	}
	for ev := range agentkernel.AgentLoop(context.Background(), cfg, nil, agentkernel.UserMessage("Get it.")) {
		if ev.Type == agentkernel.EventToolExecUpdate {
			fmt.Println(ev.Tool, ev.Progress.Kind, ev.Progress.Text)
		}
	}
	// Output:
	// download summary connected
	// download custom chunk
}
