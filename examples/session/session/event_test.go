package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
	"github.com/stretchr/testify/require"
)

// TestKernelEventsUnchanged: what a session shows of a run is the kernel's stream, whole, and
// its JSON holds the kernel's wire form.
func TestKernelEventsUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Thinking("hm").Calls("a"), agenttest.Text("ok <&>"))
		o := open(t, memoryStore(t), model, session.Config{Agent: agentkernel.Config{Tools: []agentkernel.Tool{echo("a")}}})
		require.NoError(t, o.prompt("hi"))

		var seq uint64
		var places []int
		for _, ev := range o.all() {
			require.Equal(t, session.EventAgent, ev.Type, "a run without events of the session's own")
			seq++
			require.Equal(t, seq, ev.AgentEvent.Seq)
			require.Equal(t, o.ID(), ev.SessionID)
			if ev.Place > 0 {
				require.Equal(t, agentkernel.EventMessageEnd, ev.AgentEvent.Type)
				places = append(places, ev.Place)
			}
			data, err := json.Marshal(ev)
			require.NoError(t, err)
			var parts struct {
				AgentEvent json.RawMessage `json:"agent_event"`
			}
			require.NoError(t, json.Unmarshal(data, &parts))
			wire, err := json.Marshal(ev.AgentEvent)
			require.NoError(t, err)
			require.Equal(t, string(wire), string(parts.AgentEvent))
			var back session.SessionEvent
			require.NoError(t, json.Unmarshal(data, &back))
			again, err := json.Marshal(back)
			require.NoError(t, err)
			require.Equal(t, string(data), string(again))
		}
		require.Equal(t, []int{1, 2, 3, 4}, places)
	})
}

// TestOwnEventsAsJSON: each event of the session's own survives JSON, but for the error itself.
func TestOwnEventsAsJSON(t *testing.T) {
	failure := &session.Failure{Op: "store", Kind: agentkernel.KindCommit, Message: "disk full"}
	for _, ev := range []session.SessionEvent{
		{Type: session.EventCompactionStart, Compaction: &session.Compaction{Reason: session.CompactionThreshold, TokensBefore: 9}},
		{Type: session.EventCompactionEnd, Compaction: &session.Compaction{Reason: session.CompactionOverflow, TokensBefore: 9, TokensAfter: 3, Applied: true}},
		{Type: session.EventRetryStart, Retry: &session.Retry{Attempt: 1, MaxRetries: 3, DelayMS: 1500, Model: "a", NextModel: "b", Error: failure}},
		{Type: session.EventRetryEnd, Retry: &session.Retry{Attempt: 1, Success: true}},
		{Type: session.EventModelChanged, Changed: &session.Changed{From: "a", To: "b"}},
		{Type: session.EventThinkingChanged, Changed: &session.Changed{To: "high"}},
		{Type: session.EventSwitched, Changed: &session.Changed{From: "x", To: "y"}},
		{Type: session.EventGoalUpdated, Goal: &session.Goal{Text: "win", Status: session.GoalUsageLimited, Reason: "quota"}},
		{Type: session.EventError, Error: failure},
	} {
		ev.SessionID, ev.Seq = "s", 7
		data, err := json.Marshal(ev)
		require.NoError(t, err)
		var back session.SessionEvent
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, ev, back, string(data))
	}
}

// TestSettingsChange: a model and a thinking level hold from the next turn on, are told, and
// are kept with the session.
func TestSettingsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := agenttest.Script(agenttest.Text("from a")), agenttest.Script(agenttest.Text("from b"), agenttest.Text("b again"))
		store := memoryStore(t)
		cfg := session.Config{ID: "one", Models: map[string]agentkernel.ChatModel{"a": a, "b": b}, Model: "a"}
		o := open(t, store, nil, cfg)
		require.NoError(t, o.prompt("1"))
		require.NoError(t, o.SetModel(t.Context(), "b"))
		require.NoError(t, o.SetThinking(t.Context(), agentkernel.ThinkingHigh))
		require.NoError(t, o.SetModel(t.Context(), "b"), "no change, no event")
		require.ErrorIs(t, o.SetModel(t.Context(), "c"), session.ErrUnknownModel)
		require.NoError(t, o.prompt("2"))
		require.Equal(t, agentkernel.ThinkingHigh, b.Requests()[0].ThinkingLevel)
		own := o.own()
		require.Len(t, own, 2)
		require.Equal(t, session.EventModelChanged, own[0].Type)
		require.Equal(t, &session.Changed{From: "a", To: "b"}, own[0].Changed)
		require.Equal(t, session.EventThinkingChanged, own[1].Type)
		require.Equal(t, &session.Changed{From: "", To: "high"}, own[1].Changed)
		o.close()
		require.ErrorIs(t, o.SetModel(t.Context(), "a"), session.ErrClosed)
		require.ErrorIs(t, o.SetGoal(t.Context(), "g"), session.ErrClosed)
		_, err := o.Prompt(t.Context(), "3")
		require.ErrorIs(t, err, session.ErrClosed)

		again := open(t, store, nil, cfg)
		require.Equal(t, "b", again.Model())
		require.Equal(t, agentkernel.ThinkingHigh, again.Thinking())
		require.NoError(t, again.prompt("3"))
		require.Len(t, b.Requests(), 2)
		require.Equal(t, agentkernel.ThinkingHigh, b.Requests()[1].ThinkingLevel)
	})
}

// TestSettingThatIsNotStored: what the store refuses does not hold, and the caller hears of it.
func TestSettingThatIsNotStored(t *testing.T) {
	full := errors.New("disk full")
	store := &faulty{memoryStore(t), func(context.Context, session.Change) error { return full }}
	cfg := session.Config{Models: map[string]agentkernel.ChatModel{"a": agenttest.Script(), "b": agenttest.Script()}, Model: "a"}
	o := open(t, store, nil, cfg)
	require.ErrorIs(t, o.SetModel(t.Context(), "b"), full)
	require.ErrorIs(t, o.SetThinking(t.Context(), agentkernel.ThinkingLow), full)
	require.ErrorIs(t, o.SetGoal(t.Context(), "g"), full)
	require.Equal(t, "a", o.Model())
	require.Empty(t, o.Thinking())
	require.Empty(t, o.Goal().Text)
	require.Empty(t, o.all())
}

// TestConfig: what makes no sense is refused.
func TestConfig(t *testing.T) {
	store := memoryStore(t)
	models := map[string]agentkernel.ChatModel{"m": agenttest.Script()}
	for name, cfg := range map[string]session.Config{
		"store":      {Models: models, Model: "m"},
		"model":      {Store: store, Models: models, Model: "n"},
		"id":         {Store: store, Models: models, Model: "m", ID: "../x"},
		"own model":  {Store: store, Models: models, Model: "m", Agent: agentkernel.Config{Model: agenttest.Script()}},
		"agent":      {Store: store, Models: models, Model: "m", Agent: agentkernel.Config{EventBuffer: -1}},
		"compactor":  {Store: store, Models: models, Model: "m", Compactor: new(agentkernel.Compactor)},
		"timeout":    {Store: store, Models: models, Model: "m", Timeout: -1},
		"skill":      {Store: store, Models: models, Model: "m", Skills: []session.Skill{{Name: "a"}, {Name: "a"}}},
		"skill tool": {Store: store, Models: models, Model: "m", Skills: []session.Skill{{Name: "a"}}, Agent: agentkernel.Config{Tools: []agentkernel.Tool{echo("use_skill")}}},
		"hook":       {Store: store, Models: models, Model: "m", Hooks: []session.Hook{{Name: "a"}}},
	} {
		_, err := session.Open(t.Context(), cfg)
		require.Error(t, err, name)
	}
}
