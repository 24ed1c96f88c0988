package agentkernel_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

func textDelta(s string) agentkernel.StreamEvent {
	return agentkernel.StreamEvent{Type: agentkernel.StreamEventTextDelta, Delta: s}
}

func thinkingDelta(s string) agentkernel.StreamEvent {
	return agentkernel.StreamEvent{Type: agentkernel.StreamEventThinkingDelta, Delta: s}
}

// callDelta is an increment of a call: whatever of key, id, name and argument text came.
func callDelta(key, id, name, args string) agentkernel.StreamEvent {
	return agentkernel.StreamEvent{Type: agentkernel.StreamEventToolCallDelta, Key: key, ID: id, Name: name, Delta: args}
}

func usageOf(total int) agentkernel.StreamEvent {
	return agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Usage: &agentkernel.Usage{Total: total}}
}

func done(stop agentkernel.StopReason) agentkernel.StreamEvent {
	return agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: stop}
}

// TestAssembly is a table of increments and the message that they make: by Generate, and by
// a run, whose stream is proved on the way.
func TestAssembly(t *testing.T) {
	type block = agentkernel.ContentBlock
	text := agentkernel.TextBlock
	thinking := func(s string) block { return block{Type: agentkernel.ContentThinking, Thinking: s} }
	call := func(id, name, args string) block {
		return block{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}
	}
	const minted = "*"
	signed := func(b block, signature, extra string) block {
		b.Signature = signature
		if extra != "" {
			b.Extra = json.RawMessage(extra)
		}
		return b
	}
	sign := func(ev agentkernel.StreamEvent, signature, extra string) agentkernel.StreamEvent {
		ev.Signature, ev.Extra = signature, json.RawMessage(extra)
		return ev
	}
	for name, c := range map[string]struct {
		events []agentkernel.StreamEvent
		want   []block
	}{
		"text":                        {events(textDelta("he"), textDelta("llo")), []block{text("hello")}},
		"thinking, then text":         {events(thinkingDelta("hm"), textDelta("a"), thinkingDelta("x"), textDelta("b")), []block{thinking("hm"), text("a"), thinking("x"), text("b")}},
		"empty deltas open nothing":   {events(thinkingDelta(""), textDelta("a"), thinkingDelta(""), textDelta("b")), []block{text("ab")}},
		"a rune cut in two":           {events(textDelta("a\xc3"), textDelta("\xbcb")), []block{text("aüb")}},
		"a rune cut in four":          {events(textDelta("\xf0"), textDelta("\x9f"), textDelta("\x99"), textDelta("\x82")), []block{text("🙂")}},
		"a rune cut by thinking":      {events(textDelta("a\xc3"), thinkingDelta("b"), textDelta("\xbcc")), []block{text("a\uFFFD"), thinking("b"), text("\uFFFDc")}},
		"a rune cut by a call":        {events(textDelta("a\xc3"), callDelta("", "1", "t", "")), []block{text("a\uFFFD"), call("1", "t", "{}")}},
		"a rune cut by the end":       {events(textDelta("a\xe2\x82")), []block{text("a\uFFFD")}},
		"bytes that are no rune":      {events(textDelta("a\xffb"), textDelta("\xfe")), []block{text("a\uFFFDb\uFFFD")}},
		"a rune cut within arguments": {events(callDelta("0", "1", "t", "{\"a\":\"\xc3"), callDelta("1", "2", "t", "{}"), callDelta("0", "", "", "\xbc\"}")), []block{call("1", "t", `{"a":"ü"}`), call("2", "t", "{}")}},

		"one call":                       {events(callDelta("0", "1", "t", ""), callDelta("0", "", "", `{"a"`), callDelta("0", "", "", `:1}`)), []block{call("1", "t", `{"a":1}`)}},
		"no key":                         {events(callDelta("", "1", "t", `{"a"`), callDelta("", "", "", `:1}`)), []block{call("1", "t", `{"a":1}`)}},
		"no key, id on each":             {events(callDelta("", "1", "t", `{"a"`), callDelta("", "1", "", `:1}`)), []block{call("1", "t", `{"a":1}`)}},
		"no key, two calls":              {events(callDelta("", "1", "t", `{`), callDelta("", "", "", `}`), callDelta("", "2", "u", `{`), callDelta("", "", "", `}`)), []block{call("1", "t", "{}"), call("2", "u", "{}")}},
		"interleaved by key":             {events(callDelta("0", "1", "t", ""), callDelta("1", "2", "u", ""), callDelta("0", "", "", `{"a"`), callDelta("1", "", "", `{"b"`), callDelta("0", "", "", `:1}`), callDelta("1", "", "", `:2}`)), []block{call("1", "t", `{"a":1}`), call("2", "u", `{"b":2}`)}},
		"interleaved by id":              {events(callDelta("", "1", "t", ""), callDelta("", "2", "u", ""), callDelta("", "1", "", `{"a":1}`), callDelta("", "2", "", `{}`)), []block{call("1", "t", `{"a":1}`), call("2", "u", `{}`)}},
		"one key, new ids":               {events(callDelta("0", "1", "t", `{"a":1}`), callDelta("0", "2", "t", `{"b":2}`)), []block{call("1", "t", `{"a":1}`), call("2", "t", `{"b":2}`)}},
		"another key, the known id":      {events(callDelta("0", "1", "t", `{"a"`), callDelta("9", "1", "", `:`), callDelta("9", "", "", `1}`)), []block{call("1", "t", `{"a":1}`)}},
		"keys without ids":               {events(callDelta("0", "", "t", `{}`), callDelta("1", "", "u", `{}`)), []block{call(minted, "t", `{}`), call(minted, "u", `{}`)}},
		"an id that comes late":          {events(callDelta("0", "", "t", `{"a"`), callDelta("0", "1", "", `:1}`)), []block{call("1", "t", `{"a":1}`)}},
		"an id after arguments, no name": {events(callDelta("0", "", "", `{"a":1}`), callDelta("0", "1", "t", ``)), []block{call("1", "t", `{"a":1}`)}},
		"placeholders for an id":         {events(callDelta("0", "null", "t", "{}"), callDelta("1", " ", "t", "{}"), callDelta("2", "undefined", "t", "{}")), []block{call(minted, "t", "{}"), call(minted, "t", "{}"), call(minted, "t", "{}")}},
		"ids that are not valid":         {events(callDelta("0", "\xff", "t", "{}"), callDelta("1", "\xfe", "", "")), []block{call("\uFFFD", "t", "{}")}},

		"a name in pieces":              {events(callDelta("0", "1", "get_", ""), callDelta("0", "", "weather", ""), callDelta("0", "", "", "{}")), []block{call("1", "get_weather", "{}")}},
		"a name said again":             {events(callDelta("0", "1", "t", "{"), callDelta("0", "1", "t", "}")), []block{call("1", "t", "{}")}},
		"a name that grows as a whole":  {events(callDelta("0", "1", "get", ""), callDelta("0", "1", "get_weather", ""), callDelta("0", "", "", "{}")), []block{call("1", "get_weather", "{}")}},
		"a name without arguments":      {events(callDelta("0", "1", "t", "")), []block{call("1", "t", "{}")}},
		"two names without arguments":   {events(callDelta("0", "1", "t", ""), callDelta("1", "2", "u", "")), []block{call("1", "t", "{}"), call("2", "u", "{}")}},
		"a name behind the arguments":   {events(callDelta("0", "1", "", `{"a":1}`), callDelta("0", "", "t", "")), []block{call("1", "t", `{"a":1}`)}},
		"text after a call":             {events(textDelta("a"), callDelta("0", "1", "t", "{}"), textDelta("b"), textDelta("c")), []block{text("a"), call("1", "t", "{}"), text("bc")}},
		"arguments after text":          {events(callDelta("0", "1", "t", "{"), textDelta("b"), callDelta("0", "", "", "}")), []block{call("1", "t", "{}"), text("b")}},
		"a signature with the thinking": {events(sign(thinkingDelta("hm"), "s1", ""), sign(thinkingDelta("!"), "s2", `{ "a" : 1 }`)), []block{signed(thinking("hm!"), "s2", `{"a":1}`)}},
		"a signature behind the text":   {events(thinkingDelta("hm"), textDelta("a"), sign(thinkingDelta(""), "s", "")), []block{signed(thinking("hm"), "s", ""), text("a")}},
		"a signature alone":             {events(sign(thinkingDelta(""), "s", ""), textDelta("a")), []block{signed(thinking(""), "s", ""), text("a")}},
		"extra of a call":               {events(sign(callDelta("0", "1", "t", "{}"), "", `"x"`)), []block{signed(call("1", "t", "{}"), "", `"x"`)}},
		"extra that is no JSON":         {events(sign(textDelta("a"), "", `{x`)), []block{signed(text("a"), "", `"{x"`)}},
		"nothing":                       {events(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			reply := agenttest.Events(append(c.events, done(""))...)
			check := func(m agentkernel.Message) {
				t.Helper()
				want := make([]block, len(c.want))
				for i, b := range c.want {
					want[i] = b
					if b.ToolCall != nil && b.ToolCall.ID == minted {
						require.NotEmpty(t, m.Content[i].ToolCall.ID)
						call := *b.ToolCall
						call.ID = m.Content[i].ToolCall.ID
						want[i].ToolCall = &call
					}
				}
				require.Equal(t, want, append([]block{}, m.Content...))
			}
			m, err := agentkernel.Generate(t.Context(), agenttest.Script(reply), agentkernel.ModelRequest{})
			require.NoError(t, err)
			check(m)
			log := play(t, agentkernel.Config{Model: agenttest.Script(reply), MaxTurns: 1, MaxEmptyRetries: -1, MaxLengthRecoveries: -1})
			for _, ev := range ofType(log, agentkernel.EventMessageEnd)[1:2] {
				check(ev.Message.(agentkernel.Message))
			}
		})
	}
}

func events(of ...agentkernel.StreamEvent) []agentkernel.StreamEvent { return of }

func generate(t testing.TB, of ...agentkernel.StreamEvent) agentkernel.Message {
	t.Helper()
	m, err := agentkernel.Generate(t.Context(), agenttest.Script(agenttest.Events(of...)), agentkernel.ModelRequest{})
	require.NoError(t, err)
	return m
}

// TestUsageOfAMessage: the last one that counts anything holds.
func TestUsageOfAMessage(t *testing.T) {
	zero := agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage, Usage: &agentkernel.Usage{}}
	require.Equal(t, 2, generate(t, usageOf(1), usageOf(2), zero, agentkernel.StreamEvent{Type: agentkernel.StreamEventUsage}).Usage.Total)
	last := done("")
	last.Usage = &agentkernel.Usage{Total: 3}
	m := generate(t, usageOf(1), last)
	require.Equal(t, 3, m.Usage.Total)
	require.NotSame(t, last.Usage, m.Usage)
	require.Nil(t, generate(t, textDelta("a"), zero).Usage)
}

func TestStopReasonOfAMessage(t *testing.T) {
	for _, c := range []struct {
		given       agentkernel.StopReason
		calls, none agentkernel.StopReason
	}{
		{"", "tool_use", "stop"}, {"stop", "tool_use", "stop"}, {"tool_use", "tool_use", "stop"},
		{"length", "length", "length"}, {"refusal", "refusal", "refusal"},
		{"eos", "tool_use", "stop"}, {"error", "tool_use", "stop"}, {"aborted", "tool_use", "stop"},
	} {
		require.Equal(t, c.none, generate(t, textDelta("a"), done(c.given)).StopReason)
		require.Equal(t, c.calls, generate(t, callDelta("", "1", "t", "{}"), done(c.given)).StopReason)
	}
	raw := done("stop")
	raw.RawStopReason = "eos\xff"
	require.Equal(t, "eos\uFFFD", generate(t, raw).RawStopReason)
}

// TestModelOfAMessage is the first name that any event carried.
func TestModelOfAMessage(t *testing.T) {
	first, second := textDelta("a"), textDelta("b")
	second.Model = "m"
	last := done("")
	last.Model = "other"
	require.Equal(t, "m", generate(t, first, second, last).Model)
}

func TestGenerate(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		model agentkernel.ChatModel
		kind  agentkernel.Kind
		text  string
	}{
		"no model":  {nil, agentkernel.KindInvalidRequest, ""},
		"nil":       {agenttest.Script(agenttest.NilStream()), agentkernel.KindProtocol, ""},
		"truncated": {agenttest.Script(agenttest.Text("ab").EndsWithoutDone()), agentkernel.KindStreamTruncated, "ab"},
		"fails":     {agenttest.Script(agenttest.Text("ab").Fail(failure(agentkernel.KindServer, true))), agentkernel.KindServer, "ab"},
		"unknown":   {agenttest.Script(agenttest.Text("ab").Events(agentkernel.StreamEvent{Type: "odd"})), agentkernel.KindProtocol, "ab"},
	} {
		m, err := agentkernel.Generate(ctx, c.model, agentkernel.ModelRequest{})
		require.ErrorIs(t, err, c.kind, name)
		require.Equal(t, c.text, m.TextContent(), name)
	}
}

// FuzzAssemble: whatever increments come, in whatever pieces, the stream keeps its contract
// and Generate makes the same message of them.
func FuzzAssemble(f *testing.F) {
	f.Add([]byte("a few dice"), uint64(1))
	for i := range uint64(20) {
		f.Add([]byte{}, i)
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		w := &world{dice: &dice{data: data, rng: rand.New(rand.NewPCG(seed, 2))}}
		var all []agentkernel.StreamEvent
		for i := range 1 + w.n(8) {
			part := w.part(i)
			at := w.n(len(all) + 1)
			all = append(all[:at:at], append(part, all[at:]...)...)
		}
		reply := agenttest.Events(all...)
		log := play(t, agentkernel.Config{Model: agenttest.Script(reply), MaxTurns: 1, MaxEmptyRetries: -1, MaxLengthRecoveries: -1})
		ended := ofType(log, agentkernel.EventMessageEnd)[1].Message.(agentkernel.Message)
		m, err := agentkernel.Generate(t.Context(), agenttest.Script(reply), agentkernel.ModelRequest{})
		require.NoError(t, err)
		m.Timestamp = ended.Timestamp
		for i, b := range m.Content {
			if b.ToolCall != nil && strings.HasPrefix(b.ToolCall.ID, "call_") { // minted
				b.ToolCall.ID = ended.Content[i].ToolCall.ID
			}
		}
		require.Equal(t, ended, m)
	})
}
