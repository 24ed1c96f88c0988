package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// timed is a tool that takes as long as its arguments say, and answers with when it began.
func timed(name string, began time.Time) agentkernel.Tool {
	return agentkernel.Tool{Name: name, Execute: func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		var in struct {
			Seconds int
			Fail    bool
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return agentkernel.ToolResult{}, err
		}
		result := agentkernel.TextResult(fmt.Sprint(time.Since(began)))
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
		case <-ctx.Done():
			return result, context.Cause(ctx)
		}
		if in.Fail {
			return result, errors.New("!")
		}
		return result, nil
	}}
}

func seconds(n int) string { return fmt.Sprintf(`{"seconds":%d}`, n) }

// begins is when each call began, in the order of the calls.
func begins(log []agentkernel.Event) []string {
	var out []string
	for _, m := range final(log).NewMessages {
		if m.GetRole() == agentkernel.RoleTool {
			out = append(out, m.TextContent())
		}
	}
	return out
}

// TestScheduleOfSafeAndUnsafeCalls: those that are safe run together, an unsafe one alone,
// in the order of the calls; the results enter the history in that order, the ends come as
// each finishes.
func TestScheduleOfSafeAndUnsafeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		model := agenttest.Script(agenttest.Call("1", "read", seconds(3)).Call("2", "read", seconds(1)).
			Call("3", "write", seconds(2)).Call("4", "write", seconds(1)).
			Call("5", "read", seconds(2)).Call("6", "read", seconds(1)).Call("7", "write", seconds(1)), agenttest.Text("ok"))
		reader := timed("read", began)
		reader.ReadOnly = func(json.RawMessage) bool { return true }
		log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{reader, timed("write", began)}})
		require.Equal(t, []string{"0s", "0s", "3s", "5s", "6s", "6s", "8s"}, begins(log))
		var order []string
		for _, ev := range ofType(log, agentkernel.EventToolExecEnd) {
			order = append(order, ev.ToolID)
		}
		require.Equal(t, []string{"2", "1", "3", "4", "6", "5", "7"}, order)
		require.Equal(t, 9*time.Second, time.Since(began))
	})
}

// TestConcurrencySafeByArguments: it is asked for each call, and beats ReadOnly.
func TestConcurrencySafeByArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		some := timed("t", began)
		some.ReadOnly = func(json.RawMessage) bool { return true }
		some.ConcurrencySafe = func(args json.RawMessage) bool { return string(args) == seconds(1) }
		model := agenttest.Script(agenttest.Call("1", "t", seconds(1)).Call("2", "t", seconds(1)).Call("3", "t", seconds(2)).Call("4", "t", seconds(1)), agenttest.Text("ok"))
		log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{some}})
		require.Equal(t, []string{"0s", "0s", "1s", "3s"}, begins(log))
	})
}

func TestMaxParallelTools(t *testing.T) {
	for limit, want := range map[int][]string{
		0:  {"0s", "0s", "0s", "0s", "0s", "0s", "0s", "0s", "1s", "1s"},
		1:  {"0s", "1s", "2s", "3s", "4s", "5s", "6s", "7s", "8s", "9s"},
		3:  {"0s", "0s", "0s", "1s", "1s", "1s", "2s", "2s", "2s", "3s"},
		-1: {"0s", "0s", "0s", "0s", "0s", "0s", "0s", "0s", "0s", "0s"},
	} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reply := agenttest.Reply{}
				for i := range 10 {
					reply = reply.Call(fmt.Sprint("id", i), "t", seconds(1))
				}
				log := play(t, agentkernel.Config{Model: agenttest.Script(reply, agenttest.Text("ok")), MaxParallelTools: limit,
					Tools: []agentkernel.Tool{safe(timed("t", time.Now()))}})
				require.Equal(t, want, begins(log))
			})
		})
	}
}

// TestFailedSiblingChangesNothing for the others.
func TestFailedSiblingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := safe(tool("panic", func(context.Context) (agentkernel.ToolResult, error) { panic("oh") }))
		model := agenttest.Script(agenttest.Call("1", "t", seconds(2)).Call("2", "t", `{"seconds":1,"fail":true}`).Call("3", "panic", "{}").
			Call("4", "nobody", "{}").Call("5", "t", `{"seconds":`).Call("6", "t", seconds(2)), agenttest.Text("ok"))
		log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{safe(timed("t", time.Now())), bad}})
		require.Equal(t, []string{"t ok", "t failed", "panic panic", "nobody unknown", "t invalid", "t ok"}, causes(log))
		require.Equal(t, agentkernel.EndStop, endReason(log))
	})
}
