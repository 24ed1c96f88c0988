package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

// desk is an agent over the journal at path whose payments a person must allow.
type desk struct {
	*agentkernel.Agent
	journal *journal.Journal
	asked   int
	stop    func()
}

// openDesk goes on where the journal ends. pay is what a payment does.
func openDesk(t testing.TB, path string, pay func(), replies ...agenttest.Reply) *desk {
	t.Helper()
	d := new(desk)
	agent, err := agentkernel.NewAgent(agentkernel.Config{
		Model: agenttest.Script(replies...),
		Tools: []agentkernel.Tool{{Name: "pay", Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
			pay()
			return agentkernel.TextResult("paid"), nil
		}}},
		Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			d.asked++
			return agentkernel.GateDecision{}, agentkernel.Suspend(agentkernel.ProgressPayload{Text: "Pay " + string(req.Call.Args) + "?"})
		},
	})
	require.NoError(t, err)
	d.Agent = agent
	d.journal, err = journal.Open(path, journal.Config{SnapshotEvery: 5, Sync: true})
	require.NoError(t, err)
	state, err := journal.Restore(d.journal)
	require.NoError(t, err)
	require.NoError(t, agent.Restore(state))
	d.stop = journal.Follow(agent, d.journal)
	return d
}

func (d *desk) close(t testing.TB) {
	t.Helper()
	d.stop()
	require.NoError(t, d.journal.Err())
	restored, err := journal.Restore(d.journal)
	require.NoError(t, err)
	sameState(t, d.State(), restored)
	require.NoError(t, d.journal.Close())
}

func (d *desk) finish(t testing.TB, run *agentkernel.Run, err error) agentkernel.RunRecord {
	t.Helper()
	require.NoError(t, err)
	record, err := run.Wait(t.Context())
	require.NoError(t, err)
	return record
}

var twoPayments = agenttest.Call("a", "pay", `{"to":"Anna"}`).Call("b", "pay", `{"to":"Ben"}`)

// kept is the stream that a journal holds.
func kept(t testing.TB, path string) []agentkernel.Event {
	t.Helper()
	j, err := journal.Open(path, journal.Config{})
	require.NoError(t, err)
	defer j.Close()
	var log []agentkernel.Event
	for ev, err := range journal.Events(j, false) {
		require.NoError(t, err)
		if ev.Type != agentkernel.EventSnapshot {
			log = append(log, ev)
		}
	}
	return log
}

// TestSuspendedAcrossAgents: what waits is in the journal, and any later agent over it can go
// on, however much later. Two answers for one call pay once.
func TestSuspendedAcrossAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, paid := filepath.Join(t.TempDir(), "j.jsonl"), 0
		pay := func() { paid++ }
		first := openDesk(t, path, pay, twoPayments)
		run, err := first.Prompt(t.Context(), "pay them")
		require.Equal(t, agentkernel.EndSuspended, first.finish(t, run, err).EndReason)
		first.close(t)

		time.Sleep(72 * time.Hour)
		second := openDesk(t, path, pay)
		require.Len(t, second.State().Suspended, 2)
		require.Equal(t, `Pay {"to":"Anna"}?`, second.State().Suspended[0].Ask.Text)
		run, err = second.Resume(t.Context(), map[string]agentkernel.GateDecision{"a": {Allow: true}})
		require.Equal(t, agentkernel.EndSuspended, second.finish(t, run, err).EndReason)
		require.Equal(t, 1, paid)
		_, err = second.Resume(t.Context(), map[string]agentkernel.GateDecision{"a": {Allow: true}})
		require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
		second.close(t)

		third := openDesk(t, path, pay, agenttest.Text("Anna has it."))
		run, err = third.Resume(t.Context(), map[string]agentkernel.GateDecision{"b": {Reason: "not Ben"}})
		record := third.finish(t, run, err)
		require.Equal(t, "Anna has it.", record.Answer)
		require.Zero(t, third.asked)
		_, err = third.Resume(t.Context(), map[string]agentkernel.GateDecision{"b": {Allow: true}})
		require.Equal(t, agentkernel.ErrNotSuspended, err)
		third.close(t)
		require.Equal(t, 1, paid)
		require.NoError(t, agenttest.CheckRun(nil, kept(t, path)))
	})
}

const deskVariable = "JOURNAL_DESK"

// deskProcess is what the test binary does in the process of a desk.
func deskProcess() {
	what, path, _ := strings.Cut(os.Getenv(deskVariable), " ")
	t := &quiet{}
	pay := func() {
		f, err := os.OpenFile(path+".paid", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintln(f, "paid")
		require.NoError(t, err)
		if what == "die" {
			os.Exit(7) // in the middle of the payment
		}
	}
	switch what {
	case "ask":
		d := openDesk(t, path, pay, twoPayments)
		run, err := d.Prompt(context.Background(), "pay them")
		require.NoError(t, err)
		<-run.Done()
	case "die", "answer":
		d := openDesk(t, path, pay, agenttest.Text("Done."))
		run, err := d.Resume(context.Background(), map[string]agentkernel.GateDecision{"a": {Allow: true}, "b": {Allow: true}})
		if errors.Is(err, agentkernel.ErrNotSuspended) {
			os.Exit(3)
		}
		require.NoError(t, err)
		<-run.Done()
	case "continue":
		d := openDesk(t, path, pay, agenttest.Text("I do not know whether Anna has it."))
		run, err := d.Continue(context.Background())
		require.NoError(t, err)
		<-run.Done()
	}
}

// quiet is a testing.TB for a process that is no test: what fails ends it.
type quiet struct{ testing.TB }

func (*quiet) Helper()                   {}
func (*quiet) Name() string              { return "desk" }
func (*quiet) FailNow()                  { os.Exit(1) }
func (*quiet) Errorf(f string, a ...any) { fmt.Fprintf(os.Stderr, f, a...) }

// inProcess does one thing in a process of its own and returns how that ended.
func inProcess(t *testing.T, what, path string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), deskVariable+"="+what+" "+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	require.Empty(t, string(out))
	return cmd.ProcessState.ExitCode()
}

func payments(path string) int {
	data, _ := os.ReadFile(path + ".paid")
	return strings.Count(string(data), "paid")
}

// TestSuspendedAcrossProcesses: one process asks, another one executes.
func TestSuspendedAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.jsonl")
	require.Zero(t, inProcess(t, "ask", path))
	require.Zero(t, payments(path))
	require.Zero(t, inProcess(t, "answer", path))
	require.Equal(t, 2, payments(path))
	require.Equal(t, 3, inProcess(t, "answer", path), "there is nothing to answer any more")
	require.Equal(t, 2, payments(path))
	require.NoError(t, agenttest.CheckRun(nil, kept(t, path)))
}

// TestDeathOfAResumption: a process that dies while it executes a resumed call does not make
// another one run it again, and the model is told that nobody knows.
func TestDeathOfAResumption(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.jsonl")
	require.Zero(t, inProcess(t, "ask", path))
	require.Equal(t, 7, inProcess(t, "die", path))
	require.Equal(t, 1, payments(path))

	d := openDesk(t, path, func() { t.Error("paid again") })
	require.Empty(t, d.State().Suspended)
	_, err := d.Resume(t.Context(), map[string]agentkernel.GateDecision{"a": {Allow: true}})
	require.Equal(t, agentkernel.ErrNotSuspended, err)
	d.stop()
	require.NoError(t, d.journal.Close())

	require.Zero(t, inProcess(t, "continue", path))
	require.Equal(t, 1, payments(path))
	log := kept(t, path)
	var told []agentkernel.ToolCause
	for _, ev := range log {
		if ev.Type == agentkernel.EventToolExecEnd && ev.RunID == log[len(log)-1].RunID {
			told = append(told, ev.Result.Cause)
		}
	}
	require.Equal(t, []agentkernel.ToolCause{agentkernel.ToolInterrupted, agentkernel.ToolInterrupted}, told)
}
