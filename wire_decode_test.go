package agentkernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// decodeAll decodes the lines and returns what came, by seq, and the errors.
func decodeAll(dec *agentkernel.Decoder, lines [][]byte) (events []agentkernel.Event, errs []*agentkernel.WireError) {
	for _, line := range lines {
		ev, err := dec.Decode(line)
		if err != nil {
			errs = append(errs, err.(*agentkernel.WireError))
		}
		if ev.Type != "" {
			events = append(events, ev)
		}
	}
	return events, errs
}

// plainRun is a run of two answers and a call in between.
func plainRun(t testing.TB) []agentkernel.Event {
	echo := agentkernel.Tool{Name: "echo", Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
		return agentkernel.TextResult(string(args)), nil
	}}
	return agenttest.Run(t, agentkernel.Config{Tools: []agentkernel.Tool{echo}, Model: agenttest.Script(
		agenttest.Thinking("think").Text("first answer").Call("a", "echo", `{"x":1}`).Chunks(3),
		agenttest.Text("second answer").Chunks(3))}, nil, agentkernel.UserMessage("hi"))
}

// TestWireGap: whichever record is missing, the next one is an error that says which seq, what
// builds on it is skipped, and from the next message end on everything is as it was.
func TestWireGap(t *testing.T) {
	events := plainRun(t)
	lines := encoded(t, events)
	for missing := range len(lines) - 1 {
		cut := append(append([][]byte{}, lines[:missing]...), lines[missing+1:]...)
		got, errs := decodeAll(new(agentkernel.Decoder), cut)
		require.NotEmpty(t, errs, missing)
		require.ErrorIs(t, errs[0], agentkernel.WireGap)
		require.Equal(t, uint64(missing+2), errs[0].Seq)
		require.Equal(t, uint64(missing), errs[0].After)
		require.Equal(t, events[0].RunID, errs[0].RunID)
		resync := missing + 1
		for resync < len(events)-1 && events[resync].Type != agentkernel.EventMessageEnd {
			resync++
		}
		lacking := map[uint64]bool{} // records that refer to what is missing
		for _, err := range errs[1:] {
			if errors.Is(err, agentkernel.WireReference) {
				lacking[err.Seq] = true
				continue
			}
			require.ErrorIs(t, err, agentkernel.WireSkipped)
			require.LessOrEqual(t, err.Seq, uint64(resync), "without %d", missing)
		}
		came := map[uint64]agentkernel.Event{}
		for _, ev := range got {
			came[ev.Seq] = ev
		}
		for _, want := range events[resync:] {
			ev, ok := came[want.Seq]
			require.Equal(t, ok, !lacking[want.Seq] || want.Type == agentkernel.EventAgentEnd, "without %d: seq %d", missing, want.Seq)
			if ok && want.Type != agentkernel.EventAgentEnd {
				require.Equal(t, onDelta(t, want), onWire(t, ev), "without %d", missing)
			}
		}
		require.NotNil(t, got[len(got)-1].Summary)
	}
}

// TestWireGapAndSnapshot: a snapshot brings everything back at once.
func TestWireGapAndSnapshot(t *testing.T) {
	events := plainRun(t)
	lines := encoded(t, events)
	enc := new(agentkernel.Encoder)
	for i, ev := range events {
		_, err := enc.Encode(ev)
		require.NoError(t, err)
		snapshot, err := enc.Snapshot()
		require.NoError(t, err)
		dec := new(agentkernel.Decoder)
		_, errs := decodeAll(dec, lines[:i/2])
		require.Empty(t, errs)
		got, errs := decodeAll(dec, append([][]byte{snapshot}, lines[i+1:]...))
		require.Empty(t, errs)
		for j, ev := range got[1:] {
			require.Equal(t, onDelta(t, events[i+1+j]), onWire(t, ev))
		}
	}
}

// TestWireDuplicate: a record that came before is an error and changes nothing.
func TestWireDuplicate(t *testing.T) {
	events := plainRun(t)
	lines := encoded(t, events)
	for twice := range lines {
		for back := 0; back <= twice && twice < len(lines)-1; back += 5 {
			again := append(append([][]byte{}, lines[:twice+1]...), append([][]byte{lines[twice-back]}, lines[twice+1:]...)...)
			got, errs := decodeAll(new(agentkernel.Decoder), again)
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], agentkernel.WireDuplicate)
			require.Equal(t, uint64(twice-back+1), errs[0].Seq)
			require.Equal(t, uint64(twice+1), errs[0].After)
			require.NoError(t, agenttest.CheckRun(nil, got))
		}
	}
}

// TestWireGarbage: what is no record is an error and changes nothing; a version that is not
// ours says so, with its seq.
func TestWireGarbage(t *testing.T) {
	lines := encoded(t, plainRun(t))
	for _, bad := range []string{"", "null", "7", "{}", "[1]", `{"v":1}`, `{"v":1,"type":7}`, "\x00", `{"v":1,"type":"agent_end","seq":5}`,
		`{"v":1,"type":"message_end","seq":9,"message":null}`, `{"v":1,"type":"message_end","seq":9,"message":{}}`,
		`{"v":1,"type":"message_update","seq":-1}`, `{"v":1,"type":"message_update","seq":10,"coalesced":99}`,
		`{"v":1,"type":"snapshot","seq":1}`, `{"v":1,"type":"snapshot","state":{"messages":null},"runs":[{"run_id":"r","ended_count":3}]}`,
		`{"v":1,"type":"snapshot","state":{"messages":null},"runs":[{"run_id":"r","message":{"role":"assistant","content":[]},"sums":[1]}]}`} {
		dec := new(agentkernel.Decoder)
		_, errs := decodeAll(dec, lines[:8])
		require.Empty(t, errs)
		bad = strings.Replace(bad, `"v":1,`, `"v":1,"run_id":"`+dec.State().RunID+`",`, 1)
		ev, err := dec.Decode([]byte(bad))
		require.ErrorIs(t, err, agentkernel.WireGarbage, bad)
		require.Empty(t, ev.Type)
		require.Equal(t, uint64(8), err.(*agentkernel.WireError).After, bad)
		_, errs = decodeAll(dec, lines[8:])
		require.Empty(t, errs, bad)
	}
	_, err := new(agentkernel.Decoder).Decode([]byte(`{"v":2,"type":"agent_start","run_id":"r","seq":41,"time":7}`))
	require.ErrorIs(t, err, agentkernel.WireVersionMismatch)
	require.Equal(t, uint64(41), err.(*agentkernel.WireError).Seq)
	require.ErrorContains(t, err, `seq 41 of run "r"`)
}

// TestWireUnknownType: an event of a type that is not known keeps its bytes, and its place.
func TestWireUnknownType(t *testing.T) {
	line := `{"v":1,"type":"telepathy","run_id":"r","seq":3,"time":"2026-01-02T03:04:05Z","turn":2,"message":17,"new":{"a":[1,2]}}`
	var ev agentkernel.Event
	require.NoError(t, json.Unmarshal([]byte(line), &ev))
	require.Equal(t, agentkernel.EventType("telepathy"), ev.Type)
	require.Equal(t, [2]uint64{3, 2}, [2]uint64{ev.Seq, uint64(ev.Turn)})
	require.Equal(t, line, onWire(t, ev))
	raw, err := new(agentkernel.Encoder).Encode(ev)
	require.NoError(t, err)
	require.Equal(t, line, string(raw))

	dec := new(agentkernel.Decoder)
	_, errs := decodeAll(dec, [][]byte{
		[]byte(`{"v":1,"type":"agent_start","run_id":"r","seq":1,"turn":0}`),
		[]byte(`{"v":1,"type":"turn_start","run_id":"r","seq":2,"turn":1}`)})
	require.Empty(t, errs)
	back, err := dec.Decode([]byte(line))
	require.NoError(t, err)
	require.Equal(t, line, string(back.Raw))
	_, err = dec.Decode([]byte(`{"v":1,"type":"turn_start","run_id":"r","seq":4,"turn":2}`))
	require.NoError(t, err)
}

// TestWirePartialsShareBuffers: rebuilding costs a constant per delta.
func TestWirePartialsShareBuffers(t *testing.T) {
	perDelta := func(n int) float64 {
		var events []agentkernel.Event
		for ev := range agentkernel.AgentLoop(context.Background(), agentkernel.Config{Model: deltas(n, agentkernel.StreamEventTextDelta)},
			nil, agentkernel.UserMessage("hi")) {
			events = append(events, ev)
		}
		lines := encoded(t, events)
		return float64(testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dec := new(agentkernel.Decoder)
				for _, line := range lines {
					_, err := dec.Decode(line)
					require.NoError(b, err)
				}
			}
		}).AllocedBytesPerOp()) / float64(n)
	}
	short, long := perDelta(500), perDelta(10_000)
	t.Logf("%.0f and %.0f bytes per delta", short, long)
	require.Less(t, long, 1.5*short)
}

// TestWireErrors: an error keeps its kind, its text and its fields.
func TestWireErrors(t *testing.T) {
	inner := &agentkernel.Error{Kind: agentkernel.KindRateLimit, Op: "model", Status: 429, Retryable: true,
		RetryAfter: 1234567 * time.Nanosecond, Err: errors.New("slow down")}
	for _, c := range []struct {
		err  error
		kind agentkernel.Kind
	}{
		{inner, agentkernel.KindRateLimit},
		{fmt.Errorf("outer: %w", inner), agentkernel.KindRateLimit},
		{errors.New("anything"), agentkernel.KindInternal},
		{&agentkernel.Error{Kind: agentkernel.KindCanceled, Err: context.Canceled}, agentkernel.KindCanceled},
		{&agentkernel.Error{Kind: agentkernel.KindTimeout}, agentkernel.KindTimeout},
		{&agentkernel.Error{Err: errors.New("of no kind")}, agentkernel.KindInternal},
	} {
		line := onWire(t, agentkernel.Event{Type: agentkernel.EventError, RunID: "r", Seq: 1, Err: c.err})
		var back agentkernel.Event
		require.NoError(t, json.Unmarshal([]byte(line), &back))
		require.ErrorIs(t, back.Err, c.kind)
		require.ErrorContains(t, back.Err, strings.TrimPrefix(c.err.Error(), "outer: "))
		require.Equal(t, line, onWire(t, back))
	}
	var back agentkernel.Event
	require.NoError(t, json.Unmarshal([]byte(onWire(t, agentkernel.Event{Type: agentkernel.EventError, RunID: "r", Seq: 1, Err: inner})), &back))
	e := back.Err.(*agentkernel.Error)
	require.Equal(t, inner.Error(), e.Error())
	require.Equal(t, []any{inner.Op, inner.Status, inner.Retryable, inner.RetryAfter}, []any{e.Op, e.Status, e.Retryable, e.RetryAfter})
	require.NotErrorIs(t, back.Err, context.Canceled)
	require.ErrorIs(t, &agentkernel.Error{Kind: agentkernel.KindCanceled}, context.Canceled)
}

// TestWireDurations: milliseconds on the wire, to the nanosecond.
func TestWireDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1: "0.000001", 1500 * time.Microsecond: "1.5", time.Hour: "3600000", -time.Nanosecond: "-0.000001",
		1<<63 - 1: "9223372036854.775807", -1 << 63: "-9223372036854.775808", 1234567: "1.234567",
	} {
		raw, err := json.Marshal(agentkernel.RunSummary{Duration: d})
		require.NoError(t, err)
		require.Contains(t, string(raw), `"duration_ms":`+want+`}`)
		var back agentkernel.RunSummary
		require.NoError(t, json.Unmarshal(raw, &back))
		require.Equal(t, d, back.Duration, want)
	}
	var s agentkernel.RunSummary
	require.NoError(t, json.Unmarshal([]byte(`{"duration_ms":1.5e3}`), &s))
	require.Equal(t, 1500*time.Millisecond, s.Duration)
	require.Error(t, json.Unmarshal([]byte(`{"duration_ms":1e300}`), &s))
	require.Error(t, json.Unmarshal([]byte(`{"duration_ms":"5"}`), &s))
}

// TestWireRecord: the archive of a run and a state survive JSON, messages, error and all.
func TestWireRecord(t *testing.T) {
	var record agentkernel.RunRecord
	var state agentkernel.AgentState
	for _, ev := range wireRun(t) {
		record.Add(ev)
		state = agentkernel.Reduce(state, ev)
	}
	raw, err := json.Marshal(record)
	require.NoError(t, err)
	var back agentkernel.RunRecord
	require.NoError(t, json.Unmarshal(raw, &back))
	require.ErrorIs(t, back.Err, agentkernel.KindAuth)
	require.Equal(t, record.Err.Error(), back.Err.Error())
	back.Err = record.Err
	require.Equal(t, record, back)

	raw, err = json.Marshal(state)
	require.NoError(t, err)
	var restored agentkernel.AgentState
	require.NoError(t, json.Unmarshal(raw, &restored))
	require.ErrorIs(t, restored.Err, agentkernel.KindAuth)
	restored.Err = state.Err
	require.Empty(t, differ(state, restored))
	requireSameState(t, agentkernel.Reduce(state, agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "x"}),
		agentkernel.Reduce(restored, agentkernel.Event{Type: agentkernel.EventAgentStart, RunID: "x"}))
}

// unread is a harness's message that nobody registered.
type unread struct{ status }

// registeredLate cannot read what it wrote.
type registeredLate struct {
	status
	Bad chan int `json:"-"`
}

func (registeredLate) UnmarshalJSON([]byte) error { return errors.New("cannot") }

// TestRegisterMessage: a registered type comes back as it was, another one as what can be
// told of it, which is written again as it came.
func TestRegisterMessage(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	through := func(m agentkernel.AgentMessage) (agentkernel.AgentMessage, string) {
		line := onWire(t, agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "r", Seq: 1, Message: m})
		var back agentkernel.Event
		require.NoError(t, json.Unmarshal([]byte(line), &back))
		require.Equal(t, line, onWire(t, back))
		return back.Message, line
	}
	got, line := through(status{"busy", at})
	require.Equal(t, status{"busy", at}, got)
	var foreign agentkernel.Event
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(line, "test_status", "elsewhere", 1)), &foreign))
	f := foreign.Message.(agentkernel.ForeignMessage)
	require.Equal(t, "elsewhere", f.Name)
	require.Equal(t, []any{agentkernel.Role("status"), at, "busy", "", false},
		[]any{f.GetRole(), f.GetTimestamp(), f.TextContent(), f.ThinkingContent(), f.HasToolCalls()})
	require.Equal(t, strings.Replace(line, "test_status", "elsewhere", 1), onWire(t, foreign))

	got, _ = through(unread{status{"busy", at}})
	require.Equal(t, agentkernel.ForeignMessage{Role: "status", Timestamp: at, Text: "busy"}, got)

	agentkernel.RegisterMessage[registeredLate]("test_late")
	agentkernel.RegisterMessage[registeredLate]("test_late") // again is nothing new
	got, _ = through(registeredLate{status: status{"busy", at}})
	require.Equal(t, "test_late", got.(agentkernel.ForeignMessage).Name)

	require.Panics(t, func() { agentkernel.RegisterMessage[unread]("") })
	require.Panics(t, func() { agentkernel.RegisterMessage[unread]("test_status") })
	require.Panics(t, func() { agentkernel.RegisterMessage[status]("second_name") })
	require.Panics(t, func() { agentkernel.RegisterMessage[agentkernel.Message]("message") })
}

// TestWireLeavesOutWhatCannotBeWritten, so that no event is lost for it.
func TestWireLeavesOutWhatCannotBeWritten(t *testing.T) {
	result := agentkernel.TextResult("ok")
	result.Details = make(chan int)
	message := agentkernel.UserMessage("hi")
	message.Metadata = map[string]any{"f": func() {}}
	for _, ev := range []agentkernel.Event{
		{Type: agentkernel.EventToolExecEnd, RunID: "r", Seq: 1, ToolID: "a", Result: &result},
		{Type: agentkernel.EventMessageEnd, RunID: "r", Seq: 1, Message: message},
	} {
		var back agentkernel.Event
		require.NoError(t, json.Unmarshal([]byte(onWire(t, ev)), &back))
	}
}

// TestAgentRestore: an agent goes on from a state, and a run that had broken off is over.
func TestAgentRestore(t *testing.T) {
	events := plainRun(t)
	for n := range events {
		var state agentkernel.AgentState
		for _, ev := range events[:n+1] {
			state = agentkernel.Reduce(state, ev)
		}
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("again"), agenttest.Text("again"))})
		require.NoError(t, err)
		checker := agenttest.NewChecker()
		checker.StartFrom(state.Messages)
		agent.Subscribe(checker.Listen)
		replayed := state
		replayed.IsRunning, replayed.StreamMessage, replayed.PendingToolCalls = false, nil, nil
		require.NoError(t, agent.Restore(state))
		require.Empty(t, differ(replayed, agent.State()))
		agent.Subscribe(func(ev agentkernel.Event) { replayed = agentkernel.Reduce(replayed, ev) })
		_, err = agent.Run(t.Context(), "go on")
		require.NoError(t, err)
		require.NoError(t, checker.Finish())
		requireSameState(t, replayed, agent.State())
	}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("x"))})
	require.NoError(t, err)
	require.ErrorIs(t, agent.Restore(agentkernel.AgentState{Messages: []agentkernel.AgentMessage{nil}}), agentkernel.KindInvalidRequest)
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventAgentStart {
			require.Equal(t, agentkernel.ErrAlreadyRunning, agent.Restore(agentkernel.AgentState{}))
		}
	})
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
}

// FuzzEvent: what can be read as an event is a fixed point of writing and reading, and no
// bytes make the decoder, the fold or the record panic.
func FuzzEvent(f *testing.F) {
	for _, line := range goldenLines(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var ev agentkernel.Event
		if json.Unmarshal(data, &ev) != nil {
			return
		}
		first, err := ev.MarshalJSON()
		require.NoError(t, err)
		var back agentkernel.Event
		require.NoError(t, json.Unmarshal(first, &back), "%s", first)
		second, err := back.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
		var record agentkernel.RunRecord
		record.Add(ev)
		agentkernel.Reduce(agentkernel.AgentState{RunID: ev.RunID}, ev)
	})
}

// FuzzDecoder: no stream of bytes makes the decoder panic, and what it yields can be encoded
// and decoded again.
func FuzzDecoder(f *testing.F) {
	lines := goldenLines(f)
	for i := 0; i < len(lines); i += 8 {
		f.Add(bytes.Join(lines[i:min(i+12, len(lines))], []byte("\n")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dec, again := new(agentkernel.Decoder), new(agentkernel.Decoder)
		enc := new(agentkernel.Encoder)
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			ev, err := dec.Decode(line)
			if err != nil || ev.Type == agentkernel.EventSnapshot {
				continue
			}
			out, err := enc.Encode(ev)
			require.NoError(t, err)
			_, err = again.Decode(out)
			if w, ok := errors.AsType[*agentkernel.WireError](err); ok {
				require.NotEqual(t, agentkernel.WireGarbage, w.Problem, "%s\n%s", line, out)
			}
		}
		snapshot, err := enc.Snapshot()
		require.NoError(t, err)
		_, err = again.Decode(snapshot)
		require.NoError(t, err, "%s", snapshot)
		_, err = json.Marshal(dec.State())
		require.NoError(t, err)
	})
}
