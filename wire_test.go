package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// status is a message type of the harness that the wire form knows.
type status struct {
	Line string    `json:"line"`
	At   time.Time `json:"at"`
}

func (s status) GetRole() agentkernel.Role { return "status" }
func (s status) GetTimestamp() time.Time   { return s.At }
func (s status) TextContent() string       { return s.Line }
func (s status) ThinkingContent() string   { return "" }
func (s status) HasToolCalls() bool        { return false }

func init() { agentkernel.RegisterMessage[status]("test_status") }

// wireRun is a run in which every event type occurs but context, with a child run in it.
func wireRun(t *testing.T) []agentkernel.Event {
	var events []agentkernel.Event
	synctest.Test(t, func(t *testing.T) {
		events = agenttest.Run(t, wireConfig(t), nil, status{"starts", time.Now().UTC()}, agentkernel.UserMessage("go <on> & on"))
	})
	return events
}

func wireConfig(t *testing.T) agentkernel.Config {
	child := agentkernel.Config{Model: agenttest.Script(agenttest.Thinking("small").Text("child says"))}
	ask, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{Name: "ask", Forward: agentkernel.ForwardEvents,
		Agents: []agentkernel.SubAgent{{Name: "helper", Config: child}}})
	require.NoError(t, err)
	reported := make(chan struct{})
	first := sync.OnceFunc(func() { close(reported) })
	execute := ask.Execute
	ask.Execute = func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		<-reported // so that the child's events come behind the first report, always
		return execute(ctx, args)
	}
	work := agentkernel.Tool{Name: "work", Label: "Work", ConcurrencySafe: func(json.RawMessage) bool { return true },
		Execute: func(ctx context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			fail := strings.Contains(string(args), "fail")
			if fail {
				time.Sleep(time.Millisecond)
			}
			agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: agentkernel.ProgressToolDelta, Text: "half"})
			first()
			time.Sleep(2500 * time.Microsecond)
			if fail {
				return agentkernel.ToolResult{}, errors.New("no luck")
			}
			result := agentkernel.TextResult("done")
			result.JSON, result.Details = json.RawMessage(`{"n":1}`), map[string]any{"rows": 9007199254740993}
			return result, nil
		}}
	overloaded := &agentkernel.Error{Kind: agentkernel.KindOverloaded, Op: "model", Status: 503, Retryable: true,
		RetryAfter: 1500 * time.Millisecond, Err: errors.New("come back later")}
	return agentkernel.Config{
		SystemPrompt: "Be brief.", Tools: []agentkernel.Tool{work, ask},
		Model: agenttest.Script(
			agenttest.Text("I try").Fail(overloaded),
			agenttest.Thinking("Let me ").Thinking("see.").Text("I ").Text("look.").
				Call("a", "work", `{"x":"ok"}`).Call("b", "work", `{"x":"fail"}`).
				Call("c", "ask", `{"mode":"single","tasks":[{"agent":"helper","prompt":"p"}]}`).Chunks(12).
				Usage(agentkernel.Usage{Input: 10, Output: 5, Total: 15}),
			agenttest.Text("and ").Text("so ").Fail(&agentkernel.Error{Kind: agentkernel.KindAuth, Status: 401}),
		),
	}
}

// namedRuns replaces the ids of the runs, which are random.
func namedRuns(events []agentkernel.Event, text string) string {
	var pairs []string
	for _, ev := range events {
		if !slices.Contains(pairs, ev.RunID) {
			pairs = append(pairs, ev.RunID, fmt.Sprintf("run_%d", 1+len(pairs)/2))
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// onWire is the event in the whole form, which is what the wire carries of it.
func onWire(t testing.TB, ev agentkernel.Event) string {
	t.Helper()
	raw, err := ev.MarshalJSON()
	require.NoError(t, err)
	return string(raw)
}

// onDelta is what the delta-only form carries of the event, in the whole form.
func onDelta(t testing.TB, ev agentkernel.Event) string {
	t.Helper()
	if ev.Request != nil {
		request := *ev.Request
		request.System, request.SystemBlocks, request.Tools = "", nil, nil
		for _, tool := range ev.Request.Tools {
			request.Tools = append(request.Tools, agentkernel.ToolSpec{Name: tool.Name})
		}
		ev.Request = &request
	}
	return onWire(t, ev)
}

func encoded(t testing.TB, events []agentkernel.Event) [][]byte {
	t.Helper()
	enc := new(agentkernel.Encoder)
	lines := make([][]byte, len(events))
	for i, ev := range events {
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		lines[i] = line
	}
	return lines
}

// TestWireWhole: every event is the same after a round trip, and stands alone.
func TestWireWhole(t *testing.T) {
	for _, ev := range wireRun(t) {
		line := onWire(t, ev)
		var back agentkernel.Event
		require.NoError(t, json.Unmarshal([]byte(line), &back))
		require.Equal(t, line, onWire(t, back))
		require.Equal(t, ev.Message, back.Message)
		require.Equal(t, ev.NewMessages, back.NewMessages)
		require.Equal(t, ev.Duration, back.Duration)
		require.Equal(t, ev.Summary, back.Summary)
		require.Equal(t, ev.Time, back.Time)
		if ev.Request != nil {
			require.Len(t, back.Request.Messages, len(ev.Request.Messages))
		}
		if ev.Err != nil {
			require.Equal(t, ev.Err.Error(), back.Err.Error())
			require.ErrorIs(t, back.Err, ev.Err.(*agentkernel.Error).Kind)
		}
	}
}

// TestWireDelta: a decoder rebuilds from the delta-only form what happened.
func TestWireDelta(t *testing.T) {
	events := wireRun(t)
	dec := new(agentkernel.Decoder)
	var rebuilt []agentkernel.Event
	for i, line := range encoded(t, events) {
		require.NotContains(t, string(line), `"duration":`)
		back, err := dec.Decode(line)
		require.NoError(t, err, string(line))
		require.Equal(t, onDelta(t, events[i]), onWire(t, back))
		rebuilt = append(rebuilt, back)
	}
	require.NoError(t, agenttest.CheckRun(nil, rebuilt))
	var live, replayed agentkernel.AgentState
	for i := range events {
		live, replayed = agentkernel.Reduce(live, events[i]), agentkernel.Reduce(replayed, rebuilt[i])
	}
	requireSameState(t, live, replayed)
	requireSameState(t, live, dec.State())
}

func requireSameState(t testing.TB, want, got agentkernel.AgentState) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

// TestWireGolden pins the format.
func TestWireGolden(t *testing.T) {
	events := wireRun(t)
	var whole, delta strings.Builder
	for _, ev := range events {
		whole.WriteString(onWire(t, ev) + "\n")
	}
	for _, line := range encoded(t, events) {
		delta.Write(append(line, '\n'))
	}
	enc := new(agentkernel.Encoder)
	for i, ev := range events {
		_, err := enc.Encode(ev)
		require.NoError(t, err)
		if ev.Type == agentkernel.EventMessageUpdate && (events[i+1].Type != ev.Type || ev.ParentRunID != "") || i == len(events)-1 {
			snapshot, err := enc.Snapshot()
			require.NoError(t, err)
			delta.Write(append(snapshot, '\n'))
		}
	}
	agenttest.Golden(t, "testdata/wire/whole.jsonl", namedRuns(events, whole.String()))
	agenttest.Golden(t, "testdata/wire/delta.jsonl", namedRuns(events, delta.String()))
}

// TestWireSnapshot: from a snapshot behind any event on, a decoder rebuilds the rest.
func TestWireSnapshot(t *testing.T) {
	events := wireRun(t)
	lines := encoded(t, events)
	enc := new(agentkernel.Encoder)
	var live agentkernel.AgentState
	for i, ev := range events {
		_, err := enc.Encode(ev)
		require.NoError(t, err)
		live = agentkernel.Reduce(live, ev)
		snapshot, err := enc.Snapshot()
		require.NoError(t, err)
		dec := new(agentkernel.Decoder)
		got, err := dec.Decode(snapshot)
		require.NoError(t, err)
		require.Equal(t, agentkernel.EventSnapshot, got.Type)
		require.Equal(t, ev.Seq, got.Seq)
		requireSameState(t, live, dec.State())
		for j := i + 1; j < len(events); j++ {
			back, err := dec.Decode(lines[j])
			require.NoError(t, err, "snapshot behind %d, record %s", i, lines[j])
			require.Equal(t, onDelta(t, events[j]), onWire(t, back))
		}
		_, err = got.MarshalJSON() // it does not have the state
		require.ErrorContains(t, err, "snapshot")
		_, err = enc.Encode(got)
		require.ErrorContains(t, err, "snapshot")
		again, err := enc.Snapshot()
		require.NoError(t, err)
		require.Equal(t, string(snapshot), string(again))
	}
}

// TestWireRandomRuns sends the runs of random agents over the wire, both ways.
func TestWireRandomRuns(t *testing.T) {
	property(t, 40, func(t *testing.T, seed uint64) int {
		w := &world{dice: &dice{rng: rand.New(rand.NewPCG(seed, 1))}}
		synctest.Test(t, w.play)
		enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
		checker := agenttest.NewChecker()
		checker.AllowRepair = true
		for _, ev := range w.log {
			line, err := enc.Encode(ev)
			require.NoError(t, err)
			back, err := dec.Decode(line)
			require.NoError(t, err, seeded+": %s", seed, line)
			require.Equal(t, onDelta(t, ev), onWire(t, back), seeded, seed)
			if ev.Type == agentkernel.EventMessageUpdate {
				require.NotContains(t, string(line), `"message":`, seeded, seed)
			}
			checker.Listen(back)
		}
		require.NoError(t, checker.Finish(), seeded, seed)
		requireSameState(t, w.replayed, dec.State())
		return 1
	})
}

// TestWireLinear: the bytes of a run of 100 turns are linear in its text.
func TestWireLinear(t *testing.T) {
	size := func(turns int) float64 {
		var replies []agenttest.Reply
		for range turns {
			replies = append(replies, agenttest.Text(strings.Repeat("text ", 100)).Call("", "echo", `{"x":"some arguments"}`).Chunks(50))
		}
		echo := agentkernel.Tool{Name: "echo", Execute: func(context.Context, json.RawMessage) (agentkernel.ToolResult, error) {
			return agentkernel.TextResult(strings.Repeat("result ", 50)), nil
		}}
		cfg := agentkernel.Config{Model: agenttest.Script(append(replies, agenttest.Text("ok"))...), Tools: []agentkernel.Tool{echo}, MaxTurns: -1,
			SystemPrompt: strings.Repeat("long ", 10_000)}
		total := 0
		events := agenttest.Run(t, cfg, nil, agentkernel.UserMessage("hi"))
		for _, line := range encoded(t, events) {
			total += len(line)
		}
		require.Len(t, events[len(events)-1].NewMessages, 2*turns+2)
		return float64(total)
	}
	one, ten, hundred := size(1), size(10), size(100)
	t.Logf("bytes of runs of 1, 10 and 100 turns: %.0f, %.0f, %.0f", one, ten, hundred)
	perTurn := (ten - one) / 9
	require.InEpsilon(t, perTurn, (hundred-ten)/90, 0.05)
}

// TestWireBytes shows what one message of 1 MiB in deltas of 8 bytes takes on the wire. The
// whole form is computed from its parts: its updates differ from the delta-only ones by the
// message, whose text grows by 8 bytes from one to the next.
func TestWireBytes(t *testing.T) {
	const deltaBytes = 8
	text := 1 << 20
	if testing.Short() || os.Getenv("AGENTKERNEL_FULL") == "" {
		text = 1 << 16
	}
	enc := new(agentkernel.Encoder)
	var delta, whole float64
	var overhead int
	model := agenttest.Script(agenttest.Text(strings.Repeat("eight by", text/deltaBytes)).Chunks(deltaBytes))
	for ev := range agentkernel.AgentLoop(t.Context(), agentkernel.Config{Model: model}, nil, agentkernel.UserMessage("hi")) {
		if ev.Type == agentkernel.EventMessageUpdate {
			line, err := enc.Encode(ev)
			require.NoError(t, err)
			if overhead == 0 { // what the whole form says beside the text, which is written once
				overhead = len(onWire(t, ev)) - len(line) - len(ev.Message.TextContent())
			}
			size := len(line) + overhead + len(ev.Message.TextContent())
			if ev.Seq%8192 == 0 {
				require.Len(t, onWire(t, ev), size)
			}
			delta += float64(len(line))
			whole += float64(size)
			continue
		}
		line, err := enc.Encode(ev)
		require.NoError(t, err)
		delta += float64(len(line))
		whole += float64(len(onWire(t, ev)))
	}
	t.Logf("%d bytes of text in deltas of %d: delta-only %.0f bytes, whole %.0f bytes, %.0f times as much", text, deltaBytes, delta, whole, whole/delta)
	require.Less(t, delta, 25*float64(text), "so many bytes are a record of its own for 8 of them")
}

func BenchmarkWire(b *testing.B) {
	var events []agentkernel.Event
	for ev := range agentkernel.AgentLoop(context.Background(), agentkernel.Config{Model: deltas(10_000, agentkernel.StreamEventTextDelta)},
		nil, agentkernel.UserMessage("hi")) {
		events = append(events, ev)
	}
	lines := encoded(b, events)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encoded(b, events)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dec := new(agentkernel.Decoder)
			for _, line := range lines {
				if _, err := dec.Decode(line); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
}
