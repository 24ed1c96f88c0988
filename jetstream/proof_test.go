//go:build unix

package jetstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/jetstream"
	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proof is the size of TestProof.
type proof struct {
	sessions, turns, restarts int
	every                     time.Duration // a worker is killed
	limit                     time.Duration
}

// proofSize is a small one, or with AGENTKERNEL_FULL the whole one: 1, or how many times as many
// turns as that has.
func proofSize() proof {
	text := os.Getenv("AGENTKERNEL_FULL")
	if text == "" {
		return proof{sessions: 30, turns: 3, restarts: 1, every: 700 * time.Millisecond, limit: time.Minute}
	}
	n := 1
	if more, err := strconv.Atoi(text); err == nil && more > 1 {
		n = more
	}
	return proof{sessions: 200, turns: 4 * n, restarts: 2, every: time.Second, limit: time.Duration(n) * 2 * time.Minute}
}

// children are the processes of the test, of one goroutine at a time.
type children struct {
	t       *testing.T
	dir     string
	address string
	running map[string]*exec.Cmd
	kills   map[string]time.Time // of workers, by process id
	woken   int                  // workers that fell silent and woke
}

func (c *children) start(name, role string) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), envRole+"="+role, envDir+"="+filepath.Join(c.dir, "store"), envListen+"="+c.address,
		envCalls+"="+filepath.Join(c.dir, "calls"))
	cmd.Stderr = os.Stderr
	require.NoError(c.t, cmd.Start())
	c.running[name] = cmd
}

// kill ends one as a machine would that loses its power.
func (c *children) kill(name string) {
	cmd := c.running[name]
	delete(c.running, name)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (c *children) killAll() {
	for _, name := range slices.Sorted(maps.Keys(c.running)) {
		c.kill(name)
	}
}

// signal stops a process where it is, or lets it go on.
func (c *children) signal(name string, s syscall.Signal) { _ = c.running[name].Process.Signal(s) }

// storm takes a worker each time that every has passed: two of three are killed and started
// again, the third only falls silent for longer than AckWait, and wakes. Now and then it is
// the broker that is killed.
func (c *children) storm(ctx context.Context, every time.Duration, restarts int) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	wakes := make(map[string]time.Time)
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for name, at := range wakes {
			if time.Now().After(at) {
				c.signal(name, syscall.SIGCONT)
				delete(wakes, name)
				c.woken++
			}
		}
		name := fmt.Sprintf("worker%d", rand.N(3))
		for !wakes[name].IsZero() {
			name = fmt.Sprintf("worker%d", rand.N(3))
		}
		if n%3 == 2 {
			c.signal(name, syscall.SIGSTOP)
			wakes[name] = time.Now().Add(proofConfig.AckWait * 3 / 2)
		} else {
			pid := strconv.Itoa(c.running[name].Process.Pid)
			c.kill(name)
			c.kills[pid] = time.Now()
			c.start(name, "worker")
		}
		if n%4 == 3 && restarts > 0 {
			restarts--
			c.kill("broker")
			c.start("broker", "broker")
		}
	}
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestProof: workers are killed, or fall silent and wake, every second, and the broker now and then, while many clients have
// their sessions, drop out and come back. Every request is answered; each message is there once
// and in order; a call that must not run twice does not, also where it waited for a person in every
// other turn; every client sees a stream that keeps its contract.
func TestProof(t *testing.T) {
	size := proofSize()
	c := &children{t: t, dir: t.TempDir(), address: freeAddress(t), running: make(map[string]*exec.Cmd), kills: make(map[string]time.Time)}
	defer c.killAll()
	c.start("broker", "broker")
	ctx, cancel := context.WithTimeoutCause(t.Context(), size.limit, fmt.Errorf("not done after %v", size.limit))
	defer cancel()
	nc, err := dial(c.address)
	require.NoError(t, err)
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	defer func() { nc.Close(); <-closed }()
	require.NoError(t, jetstream.Setup(ctx, nc, proofConfig))
	for i := range 3 {
		c.start(fmt.Sprintf("worker%d", i), "worker")
	}
	client, err := jetstream.NewClient(nc, proofConfig)
	require.NoError(t, err)

	began := time.Now()
	stormy, calm := context.WithCancel(ctx)
	var storm sync.WaitGroup
	storm.Go(func() { c.storm(stormy, size.every, size.restarts) })
	var clients sync.WaitGroup
	seen := make([]proofView, size.sessions)
	for i := range seen {
		v := &seen[i]
		v.client, v.session, v.turns = client, fmt.Sprintf("s%d", i), size.turns
		clients.Go(func() { v.err = v.talk(ctx) })
		clients.Go(func() { v.watched = v.watch(ctx) })
	}
	clients.Wait()
	took := time.Since(began)
	calm()
	storm.Wait()

	marks, answers := 0, 0
	for i := range seen {
		seen[i].check(t)
		marks += seen[i].marks
		answers += seen[i].answered
	}
	checkCalls(t, filepath.Join(c.dir, "calls"), size)
	requests := size.sessions * size.turns
	t.Logf("%d requests, %d messages in %v: %.0f requests/s; %d workers killed, %d woken, %d restarts of the broker, %d restart marks, %d answers",
		requests, 5*requests, took.Round(time.Millisecond), float64(requests)/took.Seconds(), len(c.kills), c.woken, size.restarts, marks, answers)
	logTakeovers(t, nc, c.kills)
}

// proofView is one client: one goroutine talks, another one looks on.
type proofView struct {
	client  *jetstream.Client
	session string
	turns   int
	watcher
	err, watched error
	answered     int
}

func (v *proofView) talk(ctx context.Context) error {
	for turn := range v.turns {
		req := prompt(fmt.Sprintf("turn %d", turn))
		req.ID = fmt.Sprintf("t%d", turn)
		if _, err := v.client.Submit(ctx, v.session, req); err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		o, err := v.client.Wait(ctx, v.session, req.ID)
		if err != nil {
			return fmt.Errorf("wait for turn %d: %w", turn, err)
		}
		switch o.Reason {
		case agentkernel.EndStop:
		case agentkernel.EndSuspended:
			if err := v.answer(ctx, 5*(turn+1)); err != nil {
				return fmt.Errorf("answer in turn %d: %w", turn, err)
			}
		default:
			return fmt.Errorf("turn %d: %+v", turn, o)
		}
	}
	return nil
}

// answer answers what is asked, twice at once, until the session has so many messages.
func (v *proofView) answer(ctx context.Context, messages int) error {
	for {
		history, err := v.client.History(ctx, v.session)
		if err != nil || len(history) >= messages {
			return err
		}
		open, err := v.client.Questions(ctx, v.session)
		if err != nil {
			return err
		}
		for _, q := range open {
			other := make(chan error, 1)
			say := func() error {
				return v.client.Answer(ctx, v.session, q.Call, agentkernel.GateDecision{Allow: true})
			}
			go func() { other <- say() }()
			for _, err := range []error{say(), <-other} {
				switch {
				case err == nil:
					v.answered++
				case !errors.Is(err, jetstream.ErrAnswered) && !errors.Is(err, jetstream.ErrNotAsked):
					return err
				}
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d messages, %d questions: %w", len(history), len(open), context.Cause(ctx))
		}
	}
}

// watch looks on until the state has all messages, and drops out at random.
func (v *proofView) watch(ctx context.Context) error {
	place := ""
	for {
		f, err := v.client.Follow(v.session, place)
		if err != nil {
			return err
		}
		left := 1 + rand.N(60)
		for ev, err := range f.Events(ctx) {
			if err != nil {
				return err
			}
			state := f.State()
			v.take(ev, state)
			if len(state.Messages) >= 5*v.turns && !state.IsRunning {
				return v.checker.Finish()
			}
			if left--; left == 0 {
				break
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d messages seen: %w", len(f.State().Messages), context.Cause(ctx))
		}
		place = f.Place()
	}
}

func (v *proofView) check(t *testing.T) {
	assert.NoError(t, v.err, v.session)
	assert.NoError(t, v.watched, v.session)
	for _, err := range v.errs {
		assert.NoError(t, err, v.session)
	}
	history, err := v.client.History(t.Context(), v.session)
	require.NoError(t, err)
	var got, want []string
	for _, m := range history {
		text := m.TextContent()
		if m.GetRole() == agentkernel.RoleTool {
			text = m.(agentkernel.Message).ToolName
		}
		got = append(got, text)
	}
	for turn := range v.turns {
		want = append(want, fmt.Sprintf("turn %d", turn), "", "once", "again", "that is all that there is to say about it")
	}
	assert.Equal(t, want, got, v.session)
}

// checkCalls: of the calls that must not run twice none did, and of the others all ran.
func checkCalls(t *testing.T, path string, size proof) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	ran := make(map[string]int)
	for line := range strings.Lines(string(data)) {
		ran[strings.TrimSpace(line)]++
	}
	once, again, more := 0, 0, 0
	for call, n := range ran {
		if strings.HasPrefix(call, "once ") {
			once++
			assert.Equal(t, 1, n, call)
			continue
		}
		again++
		more += n - 1
	}
	assert.Equal(t, size.sessions*size.turns, again, "each idempotent call ran, under one key")
	t.Logf("of %d calls that may run once %d ran; of %d that may run again %d did so", size.sessions*size.turns, once, again, more)
}

// logTakeovers tells how long sessions were without a worker: from the kill of the one that had
// it to the claim of the next.
func logTakeovers(t *testing.T, nc *nats.Conn, kills map[string]time.Time) {
	js, err := broker.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "agentkernel-SESSIONS")
	require.NoError(t, err)
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	owners := make(map[string]string) // process ids, by subject
	var waits []time.Duration
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := s.GetMsg(t.Context(), seq)
		require.NoError(t, err)
		if msg.Header.Get("Ak-Kind") == "end" {
			delete(owners, msg.Subject)
		}
		if msg.Header.Get("Ak-Kind") != "claim" {
			continue
		}
		var claim struct{ Worker string }
		require.NoError(t, json.Unmarshal(msg.Data, &claim))
		if kill, ok := kills[owners[msg.Subject]]; ok && msg.Time.After(kill) { // else it was silent before
			waits = append(waits, msg.Time.Sub(kill))
		}
		owners[msg.Subject] = claim.Worker[strings.LastIndexByte(claim.Worker, '-')+1:]
	}
	if len(waits) == 0 {
		return
	}
	slices.Sort(waits)
	t.Logf("%d takeovers from killed workers: median %v, longest %v; AckWait is %v", len(waits),
		waits[len(waits)/2].Round(time.Millisecond), waits[len(waits)-1].Round(time.Millisecond), proofConfig.AckWait)
}
