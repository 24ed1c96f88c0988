package agentkernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestSteering while calls run: what became of each, and when it was known.
func TestSteering(t *testing.T) {
	never := errors.New("its context did not end")
	cancels := func(tool agentkernel.Tool) agentkernel.Tool {
		tool.Interrupt = agentkernel.InterruptCancel
		return tool
	}
	hour := tool("hour", func(ctx context.Context) (agentkernel.ToolResult, error) {
		select {
		case <-time.After(time.Hour):
			return agentkernel.TextResult("done"), nil
		case <-ctx.Done():
			return agentkernel.ToolResult{}, context.Cause(ctx)
		}
	})
	stubborn := cancels(tool("stubborn", func(context.Context) (agentkernel.ToolResult, error) {
		time.Sleep(time.Hour)
		return agentkernel.ToolResult{}, never
	}))
	canceled := hour
	canceled.Name = "canceled"
	canceled = cancels(canceled)
	for name, tt := range map[string]struct {
		calls  []string
		policy agentkernel.SteerPolicy
		ended  []string
		after  []time.Duration // since the steering
	}{
		"those behind are skipped at once": {[]string{"hour", "echo", "echo"}, agentkernel.SteerSkip,
			[]string{"echo skipped", "echo skipped", "hour ok"}, []time.Duration{0, 0, 59 * time.Minute}},
		"the batch is finished": {[]string{"hour", "echo"}, agentkernel.SteerFinish,
			[]string{"hour ok", "echo ok"}, []time.Duration{59 * time.Minute, 59 * time.Minute}},
		"a running one is cancelled": {[]string{"canceled", "echo"}, agentkernel.SteerSkip,
			[]string{"echo skipped", "canceled interrupted"}, []time.Duration{0, 0}},
		"a lone one too": {[]string{"canceled"}, agentkernel.SteerSkip,
			[]string{"canceled interrupted"}, []time.Duration{0}},
		"but not where the batch is finished": {[]string{"canceled"}, agentkernel.SteerFinish,
			[]string{"canceled ok"}, []time.Duration{59 * time.Minute}},
		"one that does not listen is left": {[]string{"stubborn"}, agentkernel.SteerSkip,
			[]string{"stubborn interrupted"}, []time.Duration{5 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steering := new(agentkernel.Queue)
				model := agenttest.Script(agenttest.Calls(tt.calls...), agenttest.Text("ok"))
				var steered time.Time
				time.AfterFunc(time.Minute, func() {
					steered = time.Now()
					require.NoError(t, steering.Push(agentkernel.UserMessage("something else")))
				})
				log := play(t, agentkernel.Config{Model: model, Steering: steering, SteerPolicy: tt.policy,
					Tools: []agentkernel.Tool{hour, canceled, stubborn, echo("echo")}})
				require.Equal(t, tt.ended, ended(log))
				var after []time.Duration
				for _, ev := range ofType(log, agentkernel.EventToolExecEnd) {
					after = append(after, ev.Time.Sub(steered))
				}
				require.Equal(t, tt.after, after)
				// The results stand together, the message behind them.
				asked := model.Requests()[1].Messages
				require.Len(t, asked, 3+len(tt.calls))
				for _, m := range asked[2 : 2+len(tt.calls)] {
					require.Equal(t, agentkernel.RoleTool, m.Role)
				}
				require.Equal(t, "something else", asked[len(asked)-1].TextContent())
				require.Empty(t, steering.Items())
				time.Sleep(2 * time.Hour) // for the stubborn one
			})
		})
	}
}

// TestSteeringBeforeTheCalls: it arrived while the model was writing, so that none begins.
func TestSteeringBeforeTheCalls(t *testing.T) {
	for _, policy := range []agentkernel.SteerPolicy{agentkernel.SteerSkip, agentkernel.SteerFinish} {
		synctest.Test(t, func(t *testing.T) {
			steering := new(agentkernel.Queue)
			cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Calls("echo", "safe").Delay(time.Second), agenttest.Text("ok")),
				Steering: steering, SteerPolicy: policy, Tools: []agentkernel.Tool{echo("echo"), safe(echo("safe"))}}
			time.AfterFunc(time.Second, func() { _ = steering.Push(agentkernel.UserMessage("stop")) })
			log := play(t, cfg)
			want := []string{"echo skipped", "safe skipped"}
			if policy == agentkernel.SteerFinish {
				want = []string{"echo ok", "safe ok"}
			}
			require.Equal(t, want, causes(log))
		})
	}
}

// TestAbortDuringCalls: none begins any more and those are told at once; running ones have
// StopTimeout, and each has its true cause.
func TestAbortDuringCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := safe(tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
			<-ctx.Done()
			time.Sleep(2 * time.Second)
			return agentkernel.TextResult("half"), context.Cause(ctx)
		}))
		good := safe(tool("good", func(ctx context.Context) (agentkernel.ToolResult, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return agentkernel.TextResult("saved"), nil
		}))
		deaf := safe(tool("deaf", func(ctx context.Context) (agentkernel.ToolResult, error) {
			time.Sleep(time.Hour)
			report(ctx, agentkernel.ProgressSummary, "late")
			return agentkernel.TextResult("late"), nil
		}))
		model := agenttest.Script(agenttest.Calls("quick", "slow", "good", "deaf", "unsafe", "unsafe"), agenttest.Text("never"))
		agent := watch(t, agentkernel.Config{Model: model, StopTimeout: 4 * time.Second,
			Tools: []agentkernel.Tool{safe(echo("quick")), slow, good, deaf, echo("unsafe")}})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		aborted := time.Now()
		run.Abort(errors.New("enough"))
		record, err := run.Wait(t.Context())
		require.ErrorContains(t, err, "enough")
		log := agent.events()
		require.Equal(t, []string{"quick ok", "unsafe not_started", "unsafe not_started", "good ok", "slow interrupted", "deaf interrupted"}, ended(log))
		var after []time.Duration
		for _, ev := range ofType(log, agentkernel.EventToolExecEnd)[1:] {
			after = append(after, ev.Time.Sub(aborted))
		}
		require.Equal(t, []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second}, after)
		require.Equal(t, 1, record.Summary.Abandoned)
		require.Equal(t, 6, record.Summary.ToolCalls)
		require.Equal(t, 4, record.Summary.ToolErrors)
		require.Len(t, model.Requests(), 1)
		require.Contains(t, results(log)["slow"].Content[0].Text, "may have had effects")
		require.Equal(t, "half", results(log)["slow"].Content[1].Text)
		n := len(log)
		time.Sleep(2 * time.Hour)
		require.Len(t, agent.events(), n)
		require.Empty(t, agent.State().PendingToolCalls)
	})
}

// TestOpenCallsOfTheHistory: run again where the harness or the tool says that this is
// harmless, otherwise told as interrupted.
func TestOpenCallsOfTheHistory(t *testing.T) {
	idempotent := echo("idempotent")
	idempotent.Idempotent = true
	calls := agentkernel.Message{Role: agentkernel.RoleAssistant, StopReason: agentkernel.StopReasonToolUse}
	for _, name := range []string{"idempotent", "once", "gone"} {
		calls.Content = append(calls.Content, agentkernel.ContentBlock{Type: agentkernel.ContentToolCall,
			ToolCall: &agentkernel.ToolCall{ID: name, Name: name, Args: []byte(`{}`)}})
	}
	history := list(agentkernel.UserMessage("hi"), calls)
	for again, want := range map[bool][]string{
		false: {"idempotent ok", "once interrupted", "gone interrupted"},
		true:  {"idempotent ok", "once ok", "gone unknown"},
	} {
		log := agenttest.Run(t, agentkernel.Config{Model: agenttest.Script(agenttest.Text("ok")), RunOpenCalls: again,
			Tools: []agentkernel.Tool{idempotent, echo("once")}}, history)
		require.Equal(t, want, causes(log))
		require.Equal(t, agentkernel.EndStop, endReason(log))
	}
}
