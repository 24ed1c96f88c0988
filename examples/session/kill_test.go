package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// built is the program as its users run it.
var built = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(scratch, "program")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
})

// process is the program while it runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// start starts the program against the endpoint at base.
func start(t *testing.T, base string, args ...string) *process {
	t.Helper()
	binary, err := built()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(binary, args...)}
	p.cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+base, "OPENAI_API_KEY=none", "OPENAI_MODEL=fake")
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(stdout)
	require.NoError(t, p.cmd.Start())
	return p
}

// event reads the next event. It reports false at the end of the output, also within a line:
// what is not a whole line was not shown.
func (p *process) event() (session.SessionEvent, bool) {
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		require.ErrorIs(p.t, err, io.EOF)
		return session.SessionEvent{}, false
	}
	var ev session.SessionEvent
	require.NoError(p.t, json.Unmarshal(line, &ev), "%s", line)
	return ev, true
}

// wait reads the rest, hands it to see, and returns the exit code.
func (p *process) wait(see func(session.SessionEvent)) int {
	for ev, ok := p.event(); ok; ev, ok = p.event() {
		see(ev)
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

const kills = 25

// TestKill kills the program at random points of a run that streams and calls tools, and goes
// on with it, until the run comes to its end. What was shown as ended is in the store and
// stays there, nothing is there or in a request twice, and every call has its result.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SESSION_KILL_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SESSION_KILL_SEED=%d", seed) // of the points; what the system makes of them differs
	rng := rand.New(rand.NewPCG(seed, 0))
	endpoint := newEndpoint(t)
	v := &victim{t: t, path: filepath.Join(t.TempDir(), "s.db"), shown: make(map[int]string)}

	prompts, killed := 0, 0
	args := func(over bool) []string {
		if !over {
			return []string{"-db", v.path, "-session", "victim", "-json", "-resume"}
		}
		prompts++
		return []string{"-db", v.path, "-session", "victim", "-json", "-prompt", fmt.Sprintf("prompt %d", prompts)}
	}
	for over := true; killed < kills; {
		p := start(t, endpoint.url, args(over)...)
		over = !v.live(p, rng.IntN(30), time.Duration(rng.IntN(3000))*time.Microsecond)
		if !over {
			killed++
		}
		v.examine()
	}
	p := start(t, endpoint.url, args(false)...)
	require.Zero(t, p.wait(v.see), p.stderr.String())
	p = start(t, endpoint.url, args(true)...)
	require.Zero(t, p.wait(v.see), p.stderr.String())

	history := v.examine()
	require.Empty(t, agentkernel.ValidateHistory(history))
	require.Equal(t, agentkernel.StopReasonStop, history[len(history)-1].(agentkernel.Message).StopReason)
	interrupted := endpoint.check(history)
	t.Logf("%d kills, %d prompts, %d messages, %d interrupted calls, %d requests", killed, prompts, len(history), interrupted, len(endpoint.requests))
}

// TestKillWithinACall: the call that a process died in is answered as interrupted, once, and
// the run goes on.
func TestKillWithinACall(t *testing.T) {
	endpoint := newEndpoint(t)
	v := &victim{t: t, path: filepath.Join(t.TempDir(), "s.db"), shown: make(map[int]string)}
	args := []string{"-db", v.path, "-session", "victim", "-json"}
	p := start(t, endpoint.url, append(args, "-prompt", "slow")...)
	for running := false; !running; {
		ev, ok := p.event()
		require.True(t, ok, "the program ended")
		v.see(ev)
		running = ev.AgentEvent != nil && ev.AgentEvent.Type == agentkernel.EventToolExecStart
	}
	require.NoError(t, p.cmd.Process.Kill())
	require.Equal(t, -1, p.wait(v.see))
	require.Len(t, v.examine(), 2)
	p = start(t, endpoint.url, append(args, "-resume")...)
	require.Zero(t, p.wait(v.see), p.stderr.String())
	history := v.examine()
	require.Empty(t, agentkernel.ValidateHistory(history))
	require.Equal(t, 2, endpoint.check(history))
	require.Len(t, history, 1+3*turnsOfAPrompt+1)
	require.Equal(t, agentkernel.StopReasonStop, history[len(history)-1].(agentkernel.Message).StopReason)
}

// victim is the session whose process is killed.
type victim struct {
	t     *testing.T
	path  string
	shown map[int]string // the ended messages that were shown, by their place
}

// see takes what was shown.
func (v *victim) see(ev session.SessionEvent) {
	if ev.Place == 0 {
		return
	}
	require.NotContains(v.t, v.shown, ev.Place, "it is shown twice")
	v.shown[ev.Place] = asJSON(v.t, ev.AgentEvent.Message)
}

// live kills the process some time after so many events. It reports false where the program
// came to its end before that.
func (v *victim) live(p *process, events int, wait time.Duration) (killed bool) {
	v.t.Helper()
	for range events {
		ev, ok := p.event()
		if !ok {
			break
		}
		v.see(ev)
	}
	timer := time.AfterFunc(wait, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	switch code := p.wait(v.see); code {
	case 0:
		return false
	default:
		require.Equal(v.t, -1, code, "it died by the signal: %s", p.stderr.String())
		return true
	}
}

// examine compares the store with what was shown, and returns the history.
func (v *victim) examine() []agentkernel.AgentMessage {
	v.t.Helper()
	store, err := session.OpenSQLite(v.t.Context(), v.path)
	require.NoError(v.t, err)
	defer store.Close()
	saved, err := store.Load(v.t.Context(), "victim")
	require.NoError(v.t, err)
	var history []agentkernel.AgentMessage
	for i, ev := range saved.Log {
		require.Equal(v.t, agentkernel.EventMessageEnd, ev.Type)
		require.EqualValues(v.t, i+1, ev.Seq)
		if shown, ok := v.shown[i+1]; ok {
			require.Equal(v.t, shown, asJSON(v.t, ev.Message), "the message at %d", i+1)
		}
		history = append(history, ev.Message)
	}
	for place := range v.shown {
		require.LessOrEqual(v.t, place, len(history), "a message that was shown as ended is lost")
	}
	return history
}

func asJSON(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// TestInUseElsewhere: a second process is refused the session, and told who has it.
func TestInUseElsewhere(t *testing.T) {
	endpoint := newEndpoint(t)
	path := filepath.Join(t.TempDir(), "s.db")
	p := start(t, endpoint.url, "-db", path, "-session", "one", "-json", "-prompt", "hold")
	ev, ok := p.event()
	require.True(t, ok, "the program ended")
	require.Equal(t, "one", ev.SessionID)
	got := runProgram(t.Context(), offline, "-db", path, "-session", "one", "-resume")
	require.Equal(t, ran{exitFailed, "", got.stderr}, got)
	require.Contains(t, got.stderr, fmt.Sprintf("open elsewhere: one, in process %d", p.cmd.Process.Pid))
	got = runProgram(t.Context(), offline, "-db", path, "-session", "two", "-pace", "0")
	require.Zero(t, got.code, got.stderr)

	require.NoError(t, p.cmd.Process.Kill())
	require.Equal(t, -1, p.wait(func(session.SessionEvent) {}))
	got = runProgram(t.Context(), offline, "-db", path, "-session", "one", "-resume", "-pace", "0")
	require.Zero(t, got.code, got.stderr)
}
