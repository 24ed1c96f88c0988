package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
)

// line is an event on one line. What others wrote is quoted, so that no terminal obeys it.
func line(ev session.SessionEvent) string {
	text := fmt.Sprintf("%3d %s", ev.Seq, ev.Type)
	switch {
	case ev.AgentEvent != nil:
		text += " " + agentLine(*ev.AgentEvent)
		if ev.Place > 0 {
			text += fmt.Sprintf(" stored at %d", ev.Place)
		}
	case ev.Compaction != nil:
		c := ev.Compaction
		text += fmt.Sprintf(" %s applied=%t tokens=%d→%d", c.Reason, c.Applied, c.TokensBefore, c.TokensAfter) + because(c.Error)
	case ev.Retry != nil:
		r := ev.Retry
		text += fmt.Sprintf(" after attempt %d of %s success=%t", r.Attempt, r.Model, r.Success) + because(r.Error)
	case ev.Changed != nil:
		text += fmt.Sprintf(" %q → %q", ev.Changed.From, ev.Changed.To)
	case ev.Goal != nil:
		text += fmt.Sprintf(" %s %q", ev.Goal.Status, ev.Goal.Text)
	}
	return text + because(ev.Error)
}

func because(f *session.Failure) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf(" error=%q", f.Op+": "+f.Message)
}

// agentLine is an event of the kernel: its type, and what is most worth seeing of it.
func agentLine(ev agentkernel.Event) string {
	text := string(ev.Type)
	switch e := ev.Payload().(type) {
	case agentkernel.ModelRequested:
		text += fmt.Sprintf(" attempt=%d messages=%d", e.Attempt, len(e.Request.Messages))
	case agentkernel.MessageStarted:
		text += " " + string(e.Message.GetRole())
	case agentkernel.MessageUpdated:
		text += fmt.Sprintf(" %s+%q", e.DeltaKind, e.Delta)
	case agentkernel.MessageEnded:
		text += fmt.Sprintf(" %s %q", e.Message.GetRole(), e.Message.TextContent())
	case agentkernel.Retrying:
		text += fmt.Sprintf(" in %v: %q", e.RetryInfo.Delay.Round(10*time.Millisecond), e.Err.Error())
	case agentkernel.ToolStarted:
		text += fmt.Sprintf(" %s %s", e.Tool, e.Args)
	case agentkernel.ToolEnded:
		text += fmt.Sprintf(" %s %s %q", e.Tool, e.Result.Cause, e.Result.TextContent())
	case agentkernel.RunFailed:
		text += fmt.Sprintf(" %q", e.Err.Error())
	case agentkernel.RunEnded:
		text += fmt.Sprintf(" %s turns=%d", e.Summary.EndReason, e.Summary.TurnCount)
	}
	return text
}

// summarize prints what the store has of the session beside its messages.
func summarize(ctx context.Context, s *session.Session, w io.Writer) error {
	calls, err := s.Calls(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nsession %s %q\n", s.ID(), s.Name())
	for _, c := range calls {
		fmt.Fprintf(w, "  asked %s, attempt %d: ", c.Model, c.Attempt)
		if c.Error != nil {
			fmt.Fprintf(w, "%s\n", c.Error.Kind)
			continue
		}
		fmt.Fprintf(w, "%s, first token after %d ms, all after %d ms", c.StopReason, c.Latency.FirstToken.Milliseconds(), c.Latency.Total.Milliseconds())
		if c.Usage != nil {
			fmt.Fprintf(w, ", %d tokens", c.Usage.Total)
		}
		fmt.Fprintln(w)
	}
	for _, m := range s.Memory() {
		fmt.Fprintf(w, "  remembers %q\n", m.Text)
	}
	return nil
}
