package agentkernel_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// crashing is a message of the harness that crashes where Crash says.
type crashing struct {
	status
	Crash string `json:"crash"`
}

func (c crashing) MarshalJSON() ([]byte, error) {
	c.crash("marshal")
	return json.Marshal(map[string]any{"line": c.Line, "crash": c.Crash})
}

func (c *crashing) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*struct {
		status
		Crash string `json:"crash"`
	})(c)); err != nil {
		return err
	}
	c.crash("unmarshal")
	return nil
}

func (c crashing) TextContent() string {
	c.crash("text")
	return c.Line
}

func (c crashing) crash(at string) {
	switch c.Crash {
	case at + " panic":
		panic("no luck")
	case at + " exit":
		runtime.Goexit()
	}
}

// hollow panics in every method once its zero value was read.
type hollow struct{ *agentkernel.Message }

func init() {
	agentkernel.RegisterMessage[crashing]("test_crashing")
	agentkernel.RegisterMessage[hollow]("test_hollow")
}

// TestWireCrashingMessage: an event whose message crashes when it is written is an error that
// names the event. A snapshot stands for it, behind which the run goes on.
func TestWireCrashingMessage(t *testing.T) {
	for _, crash := range []string{"marshal panic", "marshal exit", "text panic", "text exit"} {
		bad := crashing{status{"busy", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}, crash}
		enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
		send := func(ev agentkernel.Event) error {
			ev.RunID = "r"
			line, err := enc.Encode(ev)
			if err != nil {
				return err
			}
			_, err = dec.Decode(line)
			require.NoError(t, err, "%s", line)
			return nil
		}
		require.NoError(t, send(agentkernel.Event{Type: agentkernel.EventAgentStart, Seq: 1}))
		require.NoError(t, send(agentkernel.Event{Type: agentkernel.EventMessageStart, Seq: 2, Message: agentkernel.UserMessage("hi")}))
		require.NoError(t, send(agentkernel.Event{Type: agentkernel.EventMessageEnd, Seq: 3, Message: agentkernel.UserMessage("hi")}))
		end := agentkernel.Event{Type: agentkernel.EventMessageEnd, Seq: 4, Message: bad}
		require.ErrorContains(t, send(end), "message_end, seq 4", crash)
		_, err := json.Marshal(end)
		require.Error(t, err)

		snapshot, err := enc.Snapshot()
		require.NoError(t, err, crash)
		_, err = dec.Decode(snapshot)
		require.NoError(t, err)
		got := dec.State().Messages[1].(agentkernel.ForeignMessage)
		require.Equal(t, "test_crashing", got.Name)
		if strings.HasPrefix(crash, "marshal") {
			require.Equal(t, agentkernel.ForeignMessage{Name: "test_crashing", Role: "status", Timestamp: bad.At, Text: "busy"}, got)
		}
		require.Equal(t, bad, enc.State().Messages[1]) // which no snapshot changes
		require.NoError(t, send(agentkernel.Event{Type: agentkernel.EventAgentEnd, Seq: 5, Summary: new(agentkernel.RunSummary),
			NewMessages: enc.State().Messages}), crash)
	}
}

// TestWireCrashingReader: a message that cannot be read, or not be asked, is a foreign one.
func TestWireCrashingReader(t *testing.T) {
	for name, value := range map[string]string{
		"test_crashing": `{"crash":"unmarshal panic"}`, "test_crashing ": `{"crash":"unmarshal exit"}`,
		"test_crashing  ": `{"crash":"text panic"}`, "test_crashing   ": `{"crash":"text exit"}`, "test_hollow": `{}`,
	} {
		name = strings.TrimSpace(name)
		line := fmt.Appendf(nil, `{"v":1,"type":"message_end","run_id":"r","seq":1,"turn":0,"message":{"custom":%q,"role":"user","text":"x","value":%s}}`, name, value)
		dec := &agentkernel.Decoder{}
		ev, err := dec.Decode(line)
		require.NoError(t, err)
		require.Equal(t, agentkernel.ForeignMessage{Name: name, Role: "user", Text: "x", Value: json.RawMessage(value)}, ev.Message)
		require.Equal(t, string(line), onWire(t, ev))
		var again agentkernel.Event
		require.NoError(t, json.Unmarshal(line, &again))
		require.Equal(t, ev.Message, again.Message)
	}
}

// crasher crashes when it is written, or put into words.
type crasher func()

func (c crasher) MarshalJSON() ([]byte, error) { c(); return nil, nil }
func (c crasher) Error() string                { c(); return "" }

// TestWireCrashingValues: Details and Metadata that crash are left out, and of an error that
// crashes its crash is told.
func TestWireCrashingValues(t *testing.T) {
	for _, crash := range []crasher{func() { panic("no luck") }, runtime.Goexit} {
		result := agentkernel.TextResult("ok")
		result.Details = map[string]any{"x": crash}
		message := agentkernel.UserMessage("hi")
		message.Metadata = map[string]any{"x": crash}
		enc, dec := new(agentkernel.Encoder), new(agentkernel.Decoder)
		for i, ev := range []agentkernel.Event{
			{Type: agentkernel.EventMessageEnd, Message: message},
			{Type: agentkernel.EventToolExecEnd, ToolID: "a", Result: &result},
			{Type: agentkernel.EventError, Err: crash},
			{Type: agentkernel.EventAgentEnd, Err: &agentkernel.Error{Kind: agentkernel.KindTool, Err: crash}, Summary: new(agentkernel.RunSummary)},
		} {
			ev.RunID, ev.Seq = "r", uint64(i+1)
			line, err := enc.Encode(ev)
			require.NoError(t, err)
			back, err := dec.Decode(line)
			require.NoError(t, err)
			if ev.Err != nil {
				require.NotEmpty(t, back.Err.Error())
			}
		}
	}
}

// TestEncoderRefuses an event that no reader could take, and forgets it.
func TestEncoderRefuses(t *testing.T) {
	for _, bad := range []agentkernel.Event{
		{}, {Type: agentkernel.EventMessageEnd, RunID: "r", Seq: 1}, {Type: agentkernel.EventToolExecEnd, RunID: "r", Seq: 1, ToolID: "a"},
		{Type: agentkernel.EventContext, RunID: "r", Seq: 1}, {Type: agentkernel.EventAgentStart, Seq: 1}, {Type: agentkernel.EventAgentStart, RunID: "r"},
		{Type: agentkernel.EventToolExecStart, RunID: "r", Seq: 1, ToolID: "a"}, {Type: agentkernel.EventAgentEnd, RunID: "r", Seq: 1},
	} {
		enc := new(agentkernel.Encoder)
		_, err := enc.Encode(bad)
		require.ErrorContains(t, err, "lacks", "%v", bad.Type)
		require.Zero(t, enc.State())
	}
}

// TestWireDeepValues: Metadata and values of the harness nested so deep that no reader takes
// the record are left out.
func TestWireDeepValues(t *testing.T) {
	deep := json.RawMessage(strings.Repeat("[", 9_995) + strings.Repeat("]", 9_995))
	message := agentkernel.UserMessage("hi")
	message.Metadata = map[string]any{"x": deep}
	for _, m := range []agentkernel.AgentMessage{message, agentkernel.ForeignMessage{Name: "n", Value: deep}} {
		var back agentkernel.Event
		line := onWire(t, agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "r", Seq: 1, Message: m})
		require.NoError(t, json.Unmarshal([]byte(line), &back))
	}
}
