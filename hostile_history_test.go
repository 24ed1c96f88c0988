package agentkernel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// accepted tells what a provider would refuse, answers that hold nothing included.
func accepted(messages []agentkernel.Message) error {
	for i, m := range messages {
		if m.Role == agentkernel.RoleAssistant && m.TextContent() == "" && !m.HasToolCalls() {
			return fmt.Errorf("message %d: an answer that holds nothing", i)
		}
		if m.Role == agentkernel.RoleUser && len(m.Content) == 0 {
			return fmt.Errorf("message %d: a prompt that holds nothing", i)
		}
	}
	return sound(messages)
}

// listing is a history for a failure.
func listing(history []agentkernel.AgentMessage) string {
	var b strings.Builder
	for i, m := range history {
		fmt.Fprintf(&b, "%d %T %s\n", i, m, look(m))
	}
	return b.String()
}

// hostileHistory is random messages in which ids, order, arguments and texts may be wrong.
func hostileHistory(rng *rand.Rand, args ...string) []agentkernel.AgentMessage {
	ids := []string{"", "a", "b", "c", "call_1_0_2", "call_2_0_2", "call_0_0_2", "call_1_1_2"}
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	var out []agentkernel.AgentMessage
	for range rng.IntN(9) {
		switch rng.IntN(8) {
		case 0:
			out = append(out, agentkernel.UserMessage("u"))
		case 1, 2, 3:
			m := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReason(one("", "stop", "tool_use", "aborted", "error", "length"))}
			for range rng.IntN(4) {
				if rng.IntN(3) == 0 {
					m.Content = append(m.Content, agentkernel.TextBlock(one("", "t")))
					continue
				}
				m.Content = append(m.Content, withArgs(askedFor(one(ids...)), one(args...)).Content...)
			}
			out = append(out, m)
		case 4, 5:
			out = append(out, resultOf(one(ids...), "r"))
		case 6:
			out = append(out, mark("x"))
		case 7:
			out = append(out, new(resultOf(one(ids...), "")))
		}
	}
	return out
}

// TestHostileHistoryIsMended: any history is mended at once, and one that is sound stays as it is.
func TestHostileHistoryIsMended(t *testing.T) {
	for seed := range uint64(1500) {
		history := hostileHistory(rand.New(rand.NewPCG(seed, 7)), "", "{}", "[1]", `{"a"`, "null")
		before := fmt.Sprintf("%#v", history)
		got := agentkernel.RepairHistory(history)
		switch err := accepted(agentkernel.DefaultConvertToLLM(got)); {
		case fmt.Sprintf("%#v", history) != before:
			t.Fatalf("seed %d: changed in place", seed)
		case err != nil:
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, listing(history), listing(got))
		case len(agentkernel.ValidateHistory(got)) > 0:
			t.Fatalf("seed %d: needs mending again: %v\n%s\n%s", seed, agentkernel.ValidateHistory(got), listing(history), listing(got))
		case len(agentkernel.ValidateHistory(history)) == 0 && !reflect.DeepEqual(history, got):
			t.Fatalf("seed %d: sound but changed\n%s\n%s", seed, listing(history), listing(got))
		}
	}
}

// TestHostileHistoryRuns: on any history a model is asked, and leaves, what a provider accepts.
func TestHostileHistoryRuns(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 9))
		history := hostileHistory(rng, "{}", `{"a":"`, `{"a":tru}`, `[`, "")
		turn := 0
		cfg := agentkernel.Config{Tools: []agentkernel.Tool{echo("t")}, RunOpenCalls: rng.IntN(2) == 0,
			Model: modelOf(func(_ context.Context, req agentkernel.ModelRequest, yield yieldFunc) {
				turn++
				if err := accepted(req.Messages); err != nil {
					t.Errorf("seed %d turn %d: %v\n%s", seed, turn, err, listing(history))
				}
				if turn == 1 {
					yield(callDelta("", "a", "t", "{}"), nil)
				} else {
					yield(textDelta("ok"), nil)
				}
				yield(done(""), nil)
			})}
		if rng.IntN(3) == 0 {
			cfg.ConvertToLLM = func(_ context.Context, history []agentkernel.AgentMessage) ([]agentkernel.Message, error) {
				return agentkernel.DefaultConvertToLLM(history), nil
			}
		}
		var prompts []agentkernel.AgentMessage
		if rng.IntN(2) == 0 {
			prompts = list(agentkernel.UserMessage("go"))
		}
		log := collect(agentkernel.AgentLoop(t.Context(), cfg, history, prompts...))
		// Without the history, whose ids are not yet those that the run gives.
		if err := agenttest.CheckEvents(log); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, listing(history), agenttest.Format(log))
		}
		whole := append(history[:len(history):len(history)], final(log).NewMessages...)
		require.NoError(t, accepted(agentkernel.DefaultConvertToLLM(agentkernel.RepairHistory(whole))), "seed %d", seed)
		if t.Failed() {
			return
		}
	}
}
