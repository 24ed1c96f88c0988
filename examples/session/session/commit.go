package session

import (
	"context"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// commit is the kernel's Commit hook: it stores each message before it is shown as ended. Its
// error ends the run with kind "commit", and the message never happened.
//
// It is called on the goroutine of the run, ahead of the events that wait to be delivered, and
// so counts by itself. A run whose store failed elsewhere gets no further either.
func (s *Session) commit(ctx context.Context, m agentkernel.AgentMessage) error {
	s.mu.Lock()
	id, place, name, broken := s.id, s.committed+1, s.name, s.broken
	s.mu.Unlock()
	if broken != nil {
		return broken
	}
	ended := ending(id, place, m)
	change := Change{Message: &ended}
	if name == "" && m.GetRole() == agentkernel.RoleUser {
		change.Name = nameOf(m.TextContent())
	}
	// The kernel bounds a Commit only once the run was stopped.
	err := s.guarded(ctx, func(ctx context.Context) error { return s.store.Write(ctx, id, change) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil { // left behind: the kernel has given the message up
		return context.Cause(ctx)
	}
	s.committed = place
	if change.Name != "" {
		s.name = change.Name
	}
	return nil
}

// ending is the MessageEnd with which m is stored: the session as its run, its place as its
// Seq. It is written and read in the kernel's wire form, which knows a harness's own messages.
func ending(id string, place int, m agentkernel.AgentMessage) agentkernel.Event {
	return agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: id, Seq: uint64(place), Time: m.GetTimestamp(), Message: m}
}

// nameLength is how long a name may be, in runes.
const nameLength = 60

// nameOf is the first line of text that is not blank, shortened.
func nameOf(text string) string {
	for line := range strings.Lines(text) {
		name := strings.Join(strings.Fields(line), " ")
		if runes := []rune(name); len(runes) > nameLength {
			name = strings.TrimSpace(string(runes[:nameLength-1])) + "…"
		}
		if name != "" {
			return name
		}
	}
	return ""
}
