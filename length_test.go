package agentkernel_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

const cutShort = agentkernel.StopReasonLength

// TestLengthRecoveries: an answer that was cut is gone on with, so often in a row.
func TestLengthRecoveries(t *testing.T) {
	cut := agenttest.Text("x").Stop(cutShort)
	tools := agenttest.Calls("t")
	for name, c := range map[string]struct {
		max    int
		script []agenttest.Reply
		asks   int // how often the model is asked to go on
		want   agentkernel.EndReason
	}{
		"once":              {0, replies(cut, agenttest.Text("ok")), 1, agentkernel.EndStop},
		"three in a row":    {0, replies(cut, cut, cut, agenttest.Text("ok")), 3, agentkernel.EndStop},
		"too often":         {0, replies(cut, cut, cut, cut), 3, agentkernel.EndLength},
		"never":             {-1, replies(cut), 0, agentkernel.EndLength},
		"bounded by one":    {1, replies(cut, cut), 1, agentkernel.EndLength},
		"reset by a turn":   {1, replies(cut, tools, cut, tools, cut, agenttest.Text("ok")), 3, agentkernel.EndStop},
		"nothing but a cut": {1, replies(agenttest.Reply{}.Stop(cutShort), agenttest.Text("ok")), 1, agentkernel.EndStop},
		"thinking only":     {1, replies(agenttest.Thinking("hm").Stop(cutShort), agenttest.Text("ok")), 1, agentkernel.EndStop},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(c.script...)
			log := play(t, agentkernel.Config{Model: model, MaxLengthRecoveries: c.max, LengthPrompt: "on", Tools: []agentkernel.Tool{echo("t")}})
			require.NoError(t, final(log).Err)
			require.Equal(t, c.want, endReason(log))
			require.Len(t, model.Requests(), len(c.script))
			asks := slices.DeleteFunc(said(final(log).NewMessages), func(s string) bool { return s != "user: on" })
			require.Len(t, asks, c.asks)
		})
	}
}

// TestLengthRecoveriesAreResetBySuccess, also from run to run.
func TestLengthRecoveriesAreResetBySuccess(t *testing.T) {
	cut := agenttest.Text("x").Stop(cutShort)
	model := agenttest.Script(cut, agenttest.Text("1"), cut, agenttest.Text("2"), cut, agenttest.Text("3"))
	q := &agentkernel.Queue{Mode: agentkernel.QueueOneAtATime}
	require.NoError(t, q.Push(agentkernel.UserMessage("a"), agentkernel.UserMessage("b")))
	log := play(t, agentkernel.Config{Model: model, MaxLengthRecoveries: 1, FollowUps: q})
	require.Equal(t, agentkernel.EndStop, endReason(log))
	require.Len(t, model.Requests(), 6)
}

// TestLengthWithCalls: complete ones run, the cut one gets its error result, and no prompt asks
// to go on.
func TestLengthWithCalls(t *testing.T) {
	model := agenttest.Script(agenttest.Text("x").Call("1", "t", `{"a":1}`).Call("2", "t", `{"a"`).Stop(cutShort), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{echo("t")}, LengthPrompt: "on"})
	require.Equal(t, []string{"t ok", "t cut_off"}, causes(log))
	require.NotContains(t, said(final(log).NewMessages), "user: on")
	require.Equal(t, agentkernel.EndStop, endReason(log))
}

// TestEmptyAnswers are tried again, visibly, so often, and then end the run for a reason of their own.
func TestEmptyAnswers(t *testing.T) {
	used := agentkernel.Usage{Output: 2, Total: 2}
	for name, empty := range map[string]agenttest.Reply{
		"nothing":           {},
		"tool_use":          agenttest.Reply{}.Stop(agentkernel.StopReasonToolUse),
		"thinking only":     agenttest.Thinking("hm"),
		"usage only":        agenttest.Reply{}.Usage(used),
		"an empty delta":    agenttest.Text(""),
		"an unknown reason": agenttest.Reply{}.Stop("eos"),
	} {
		for max, calls := range map[int]int{0: 2, -1: 1, 3: 4} {
			t.Run(name, func(t *testing.T) {
				model := agenttest.Script(slices.Repeat(replies(empty), 9)...)
				log := play(t, agentkernel.Config{Model: model, MaxEmptyRetries: max, Retry: unretried})
				require.NoError(t, final(log).Err)
				require.Equal(t, agentkernel.EndEmpty, endReason(log))
				require.Len(t, model.Requests(), calls)
				require.Len(t, ofType(log, agentkernel.EventRetry), calls-1)
				for _, req := range model.Requests() {
					require.Len(t, req.Messages, 1)
				}

				model = agenttest.Script(empty, agenttest.Text("ok"))
				log = play(t, agentkernel.Config{Model: model, Retry: unretried})
				require.Equal(t, []string{"user: hi", "assistant: ok"}, said(final(log).NewMessages))
				require.Equal(t, agentkernel.EndStop, endReason(log))
			})
		}
	}
}

// TestEmptyAnswersOfOtherReasons are none: a refusal and a cut answer are ends of their own.
func TestEmptyAnswersOfOtherReasons(t *testing.T) {
	for reason, want := range map[agentkernel.StopReason]agentkernel.EndReason{
		agentkernel.StopReasonRefusal: agentkernel.EndRefusal, cutShort: agentkernel.EndLength,
	} {
		model := agenttest.Script(agenttest.Reply{}.Stop(reason))
		log := play(t, agentkernel.Config{Model: model, MaxLengthRecoveries: -1})
		require.Equal(t, want, endReason(log))
		require.Len(t, model.Requests(), 1)
	}
}

// TestEmptyAnswerThenFollowUp: what waits is taken instead of stopping.
func TestEmptyAnswerThenFollowUp(t *testing.T) {
	model := agenttest.Script(agenttest.Reply{}, agenttest.Reply{}, agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, FollowUps: queueOf(t, "", "more")})
	require.Equal(t, []string{"user: hi", "assistant: ", "user: more", "assistant: ok"}, said(final(log).NewMessages))
	for _, m := range model.Requests()[2].Messages {
		require.Equal(t, agentkernel.RoleUser, m.Role)
	}
}
