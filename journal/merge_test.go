package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

// TestMerged: merged records rebuild to a stream that accounts for every event and has the
// same texts, whatever part of the journal they are taken from.
func TestMerged(t *testing.T) {
	chatty := agentkernel.Tool{Name: "chatty", Execute: func(ctx context.Context, _ json.RawMessage) (agentkernel.ToolResult, error) {
		for i := range 30 {
			for _, kind := range []agentkernel.ProgressKind{agentkernel.ProgressToolDelta, agentkernel.ProgressSummary} {
				agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Kind: kind, Text: fmt.Sprintf("%d ", i)})
			}
		}
		return agentkernel.TextResult("ok"), nil
	}}
	kinds(t, func(t *testing.T, open func(journal.Config) *journal.Journal) {
		j := open(journal.Config{SnapshotEvery: 1 << 20})
		agent, err := agentkernel.NewAgent(agentkernel.Config{Tools: []agentkernel.Tool{chatty}, Model: agenttest.Script(
			agenttest.Thinking(strings.Repeat("think ", 50)).Text(strings.Repeat(`"message": `, 50)).Call("a", "chatty", `{"x":"yyyyyyyyyyyyyyyyyyyy"}`).Chunks(3),
			agenttest.Text(strings.Repeat("answer ", 50)).Chunks(2))})
		require.NoError(t, err)
		journal.Follow(agent, j)
		progress := map[agentkernel.ProgressKind]string{}
		agent.Subscribe(func(ev agentkernel.Event) { addProgress(progress, ev) })
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		var all []journal.Record
		for batch := []journal.Record{{}}; len(batch) > 0; all = append(all, batch...) {
			batch, err = j.Since(uint64(len(all)), 1<<20)
			require.NoError(t, err)
		}
		for _, size := range []int{1, 2, 7, 100, len(all)} {
			var dec agentkernel.Decoder
			checker := agenttest.Checker{AllowCoalesced: true}
			got := map[agentkernel.ProgressKind]string{}
			records := 0
			for begin := 0; begin < len(all); begin += size {
				for rec := range journal.Merged(all[begin:min(begin+size, len(all))]) {
					records++
					ev, err := dec.Decode(rec.Data)
					require.NoError(t, err)
					require.Equal(t, [2]any{rec.Seq, rec.Type}, [2]any{ev.Seq, ev.Type})
					addProgress(got, ev)
					if ev.Type != agentkernel.EventSnapshot {
						checker.Listen(ev)
					}
				}
			}
			require.NoError(t, checker.Finish(), size)
			require.Equal(t, progress[agentkernel.ProgressToolDelta], got[agentkernel.ProgressToolDelta])
			sameState(t, agent.State(), dec.State())
			if size == len(all) {
				require.Less(t, records, 60)
			}
		}
	})
}

// addProgress joins what the delta kinds say, in the order of their kind.
func addProgress(sums map[agentkernel.ProgressKind]string, ev agentkernel.Event) {
	if ev.Progress != nil {
		sums[ev.Progress.Kind] += ev.Progress.Text
	}
}

// update is the record of a delta, as a journal has it.
func update(seq uint64, data string) journal.Record {
	return journal.Record{At: seq, RunID: "r", Seq: seq, Type: agentkernel.EventMessageUpdate, Data: []byte(data)}
}

func merged(records ...journal.Record) (out []string) {
	for rec := range journal.Merged(records) {
		out = append(out, string(rec.Data))
	}
	return out
}

// TestMergedByTheLetter: what merging makes of records, and which it leaves alone.
func TestMergedByTheLetter(t *testing.T) {
	const head = `{"v":1,"type":"message_update","run_id":"r","seq":`
	one := update(1, head+`1,"delta":"a\"\\","content_index":2}`)
	require.Equal(t, []string{head + `3,"content_index":2,"x":{"delta":[1,"}"]},"delta":"a\"\\\u003cb","coalesced":2}`},
		merged(one, update(3, head+`3,"coalesced":1,"delta":"\u003cb","content_index":2,"x":{"delta":[1,"}"]}}`)))
	require.Equal(t, []string{head + `2,"content_index":2,"delta":"a\"\\","coalesced":1}`},
		merged(one, update(2, head+`2,"content_index":2}`)))
	for name, other := range map[string]string{
		"another block": head + `2,"delta":"b"}`, "another kind": head + `2,"delta":"b","content_index":2,"delta_kind":"thinking"}`,
		"another attempt": head + `2,"delta":"b","content_index":2,"attempt":2}`, "whole": head + `2,"delta":"b","content_index":2,"message":{}}`,
		"white space": head + `2, "delta":"b","content_index":2}`, "another spelling": head + `2,"Delta":"b","content_index":2}`,
		"escaped key": head + `2,"delt\u0061":"b","content_index":2}`, "no string": head + `2,"delta":null,"content_index":2}`,
		"negative": head + `2,"delta":"b","coalesced":-1,"content_index":2}`, "cut off": head + `2,"delta":"b","content_index":2`,
		"huge": head + `2,"delta":"b","coalesced":99999999999999999999,"content_index":2}`, "empty": "", "braces": "{}", "quote": `{"}`,
	} {
		require.Equal(t, []string{string(one.Data), other}, merged(one, update(2, other)), name)
		require.Equal(t, []string{other, string(one.Data)}, merged(update(2, other), one), name)
	}
	elsewhere := update(2, head+`2,"delta":"b","content_index":2}`)
	elsewhere.RunID = "another"
	require.Len(t, merged(one, elsewhere), 2)
}

// TestMergedProgressByTheLetter: of a call's progress the text of the kinds that add up is
// joined; of the others the newest holds. What a preview or a gate says stays as it is.
func TestMergedProgressByTheLetter(t *testing.T) {
	progress := func(seq uint64, rest string) journal.Record {
		rec := update(seq, fmt.Sprintf(`{"v":1,"type":"tool_exec_update","run_id":"r","seq":%d,%s`, seq, rest))
		rec.Type = agentkernel.EventToolExecUpdate
		return rec
	}
	const call = `"tool_id":"c","update_kind":"progress","progress":`
	data := func(records ...journal.Record) (out []string) {
		for _, rec := range records {
			out = append(out, string(rec.Data))
		}
		return out
	}
	one := progress(1, call+`{"kind":"tool_delta","text":"a","count":1}}`)
	require.Equal(t, data(progress(3, call+`{"kind":"tool_delta","count":2,"text":"a\"b"},"turn":1,"coalesced":2}`)),
		merged(one, progress(3, `"coalesced":1,`+call+`{"kind":"tool_delta","text":"\"b","count":2},"turn":1}`)))
	summary := progress(1, call+`{"kind":"summary","text":"1 of 9"}}`)
	require.Equal(t, data(progress(2, call+`{"kind":"summary","text":"2 of 9"},"coalesced":1}`)),
		merged(summary, progress(2, call+`{"kind":"summary","text":"2 of 9"}}`)))
	for name, other := range map[string]journal.Record{
		"another kind": progress(2, call+`{"kind":"thinking","text":"b"}}`), "another tool": progress(2, call+`{"kind":"tool_delta","tool":"x","text":"b"}}`),
		"another call": progress(2, `"tool_id":"d","update_kind":"progress","progress":{"kind":"tool_delta","text":"b"}}`),
		"a preview":    progress(2, `"tool_id":"c","update_kind":"preview","progress":{"kind":"tool_delta","text":"b"}}`),
		"no progress":  progress(2, `"tool_id":"c","update_kind":"progress"}`), "no object": progress(2, call+`7}`),
	} {
		require.Equal(t, data(one, other), merged(one, other), name)
		require.Equal(t, data(other, one), merged(other, one), name)
	}
}

// FuzzMerged: any texts come out joined, and nothing that a record may hold breaks merging.
func FuzzMerged(f *testing.F) {
	f.Add("a", "b", []byte(`{"v":1,"delta":"x"}`))
	f.Add("\"\\", "<&>\u2028\xff\x00", []byte(`{"delta":"\\"`))
	f.Add("", "{}[],", []byte(`{"a":{"b":[{}]},"delta":1,}`))
	f.Fuzz(func(t *testing.T, a, b string, raw []byte) {
		var records []journal.Record
		var want strings.Builder
		for i, text := range []string{a, b, a} {
			ev := agentkernel.Event{Type: agentkernel.EventMessageUpdate, RunID: "r", Seq: uint64(i + 1), Delta: text}
			data, err := json.Marshal(ev)
			require.NoError(t, err)
			var read agentkernel.Event
			require.NoError(t, json.Unmarshal(data, &read))
			want.WriteString(read.Delta)
			records = append(records, update(ev.Seq, string(data)))
		}
		out := merged(records...)
		require.Len(t, out, 1)
		var got agentkernel.Event
		require.NoError(t, json.Unmarshal([]byte(out[0]), &got))
		require.Equal(t, want.String(), got.Delta)
		require.Equal(t, [2]int{3, 2}, [2]int{int(got.Seq), got.Coalesced})

		out = merged(update(1, string(raw)), update(2, string(raw)))
		if json.Valid(raw) {
			require.True(t, json.Valid([]byte(out[0])), "%q", out[0])
		}
	})
}
