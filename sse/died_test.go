package sse_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

// behind is a client of h whose last event is that with the id, behind which it has the state.
func behind(h http.Handler, id string, state agentkernel.AgentState) *sse.Client {
	return sse.NewClient("http://example.com/", sse.ClientConfig{LastEventID: id, State: state,
		HTTP: &http.Client{Transport: direct{h}}})
}

// TestDeathIsTold: a client that has all of a run that died gets the snapshot that says so
// before the next run, whether that has begun when it comes back or begins while it waits, and
// wherever the journal has its snapshots; and a client that is new gets what it got.
func TestDeathIsTold(t *testing.T) {
	for _, every := range []int{-1, 1, 3, 0} {
		for _, late := range []bool{false, true} {
			for _, inFile := range []bool{false, true} {
				if !inFile && every > 0 {
					continue // such a ring has dropped the place by then
				}
				t.Run(fmt.Sprint(every, late, inFile), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "j.jsonl")
					for cut := 1; cut <= 10; cut++ {
						path := fmt.Sprint(path, cut)
						synctest.Test(t, func(t *testing.T) { testDeath(t, path, every, cut, late, inFile) })
					}
				})
			}
		}
	}
}

func testDeath(t *testing.T, path string, every, cut int, late, inFile bool) {
	cfg := journal.Config{SnapshotEvery: every}
	j := journal.NewRing(cfg)
	open := func() {
		if inFile {
			var err error
			j, err = journal.Open(path, cfg)
			require.NoError(t, err)
		}
	}
	open()
	died, _ := frames(t)
	next, _ := frames(t)
	died = died[:cut]
	last := died[cut-1]
	require.NotEqual(t, agentkernel.EventAgentEnd, last.Type)
	var seen agentkernel.AgentState
	for _, ev := range died {
		require.NoError(t, j.Append(ev))
		seen = agentkernel.Reduce(seen, ev)
	}
	if inFile {
		require.NoError(t, j.Close())
		open()
	}
	h := sse.NewHandler(j, sse.Config{})
	c := behind(h, fmt.Sprintf("%s:%d", last.RunID, last.Seq), seen)
	var got []agentkernel.Event
	var told agentkernel.AgentState
	done := make(chan struct{})
	read := func() { // ends with the journal; the test waits for done
		defer close(done)
		for ev, err := range c.Events(t.Context()) {
			if err != nil {
				t.Errorf("%s: %v", ev.Type, err)
			}
			if got = append(got, ev); ev.Type == agentkernel.EventSnapshot {
				told = c.State()
			}
		}
	}
	if !late {
		go read()
		synctest.Wait()
		require.Empty(t, got)
	}
	for _, ev := range next {
		require.NoError(t, j.Append(ev))
	}
	require.NoError(t, j.Close())
	if late {
		go read()
	}
	<-done
	require.NotEmpty(t, got)
	require.Equal(t, agentkernel.EventSnapshot, got[0].Type)
	require.Equal(t, last.RunID, got[0].RunID)
	require.Equal(t, last.Seq, got[0].Seq)
	require.True(t, told.IsRunning)
	require.Equal(t, last.RunID, told.RunID)
	require.Equal(t, stateText(t, seen), stateText(t, told))
	require.Equal(t, agentkernel.EventAgentStart, got[1].Type)
	checker := agenttest.Checker{AllowCoalesced: true}
	for _, ev := range got[1:] {
		checker.Listen(ev)
	}
	require.NoError(t, checker.Finish())
	state, err := journal.Restore(j)
	require.NoError(t, err)
	require.Equal(t, stateText(t, state), stateText(t, c.State()))
}

// TestDeathOfAParent: the agent's run died while a sub-agent's, whose events are forwarded, had
// just ended.
func TestDeathOfAParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal.NewRing(journal.Config{})
		add := func(of agentkernel.EventType, run, parent string, seq uint64) {
			ev := agentkernel.Event{Type: of, RunID: run, ParentRunID: parent, Seq: seq, Time: time.Now()}
			if of == agentkernel.EventAgentEnd {
				ev.Summary = &agentkernel.RunSummary{EndReason: agentkernel.EndStop}
			}
			require.NoError(t, j.Append(ev))
		}
		add(agentkernel.EventAgentStart, "a", "", 1)
		add(agentkernel.EventAgentStart, "child", "a", 1)
		add(agentkernel.EventAgentEnd, "child", "a", 2)
		add(agentkernel.EventAgentStart, "b", "", 1)
		require.NoError(t, j.Close())
		h := sse.NewHandler(j, sse.Config{})
		require.Equal(t, []string{"child:2", "b:1"}, idsOf(stream(t, h, "child:2")))
	})
}

// TestNoDeathIsTold: a client that has all gets no snapshot where the run before has ended, and
// none where a sub-agent's run begins, although the journal has one in each of these places.
func TestNoDeathIsTold(t *testing.T) {
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Forward: agentkernel.ForwardEvents,
		Agents: []agentkernel.SubAgent{{Name: "a", Description: "a", Config: agentkernel.Config{
			Model: agenttest.Script(agenttest.Text("help"), agenttest.Text("more help"))}}}})
	require.NoError(t, err)
	call := agenttest.Call("", "ask", `{"mode":"single","tasks":[{"agent":"a","prompt":"x"}]}`)
	synctest.Test(t, func(t *testing.T) {
		agent, err := agentkernel.NewAgent(agentkernel.Config{Tools: []agentkernel.Tool{ask},
			Model: agenttest.Script(call, agenttest.Text("one"), call, agenttest.Text("two"))})
		require.NoError(t, err)
		j, err := journal.Open(filepath.Join(t.TempDir(), "j.jsonl"), journal.Config{SnapshotEvery: 1})
		require.NoError(t, err)
		journal.Follow(agent, j)
		for range 2 {
			_, err := agent.Run(context.Background(), "hi")
			require.NoError(t, err)
		}
		require.NoError(t, j.Close())
		h := sse.NewHandler(j, sse.Config{})
		records, err := j.Since(0, 1000)
		require.NoError(t, err)
		snapshots := 0
		for i, rec := range records {
			if rec.Type == agentkernel.EventSnapshot && i+1 < len(records) && records[i+1].Type == agentkernel.EventAgentStart {
				snapshots++
			}
			if rec.Type == agentkernel.EventSnapshot || rec.Seq == 0 {
				continue
			}
			var types []agentkernel.EventType
			for ev, err := range behind(h, fmt.Sprintf("%s:%d", rec.RunID, rec.Seq), agentkernel.AgentState{}).Events(t.Context()) {
				_ = err // what is behind the place is not known to it
				types = append(types, ev.Type)
			}
			require.NotContains(t, types, agentkernel.EventSnapshot, "behind %d", rec.At)
		}
		require.Greater(t, snapshots, 1)
	})
}
