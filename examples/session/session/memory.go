package session

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/agentkernel-go/agentkernel"
)

// Memory is something that a session knows of its user.
type Memory struct {
	Text string `json:"text"`
	// Place is the message that it was found in.
	Place int       `json:"place"`
	Time  time.Time `json:"time"`
}

// Ended is an ended message and its place in the session.
type Ended struct {
	Place   int
	Message agentkernel.AgentMessage
}

// Extractor finds memories in messages that ended. It is asked at the end of each run about
// those that it was not asked about before, also across the end of a process. What it finds
// again is kept once. [Rules] is one; another may ask a model. It must heed ctx.
type Extractor interface {
	Extract(ctx context.Context, messages []Ended) ([]Memory, error)
}

// Rules is an [Extractor] that understands nothing: it keeps each sentence of the user that
// begins with "remember", "my name is" or "I prefer", in any case. A sentence ends with a line
// or with ".", "!" or "?" before a space.
type Rules struct{}

var openings = []string{"remember ", "my name is ", "i prefer "}

// Extract implements [Extractor].
func (Rules) Extract(_ context.Context, messages []Ended) ([]Memory, error) {
	var found []Memory
	for _, m := range messages {
		if m.Message.GetRole() != agentkernel.RoleUser {
			continue
		}
		for _, sentence := range sentences(m.Message.TextContent()) {
			for _, opening := range openings {
				if len(sentence) > len(opening) && strings.EqualFold(sentence[:len(opening)], opening) {
					found = append(found, Memory{Text: sentence, Place: m.Place, Time: m.Message.GetTimestamp()})
				}
			}
		}
	}
	return found, nil
}

// sentences cuts text into sentences, without the space around them.
func sentences(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		start := 0
		for i, r := range line {
			if unicode.IsSpace(r) && i > 0 && strings.ContainsRune(".!?", rune(line[i-1])) {
				out = append(out, strings.TrimSpace(line[start:i]))
				start = i
			}
		}
		out = append(out, strings.TrimSpace(line[start:]))
	}
	return out
}

// remember looks through what ended since the last time, and tells the model from the next
// turn on.
func (s *Session) remember() {
	if len(s.unread) == 0 {
		return
	}
	unread := s.unread // what an extractor that is left behind may go on reading
	var found []Memory
	err := s.guarded(context.Background(), func(ctx context.Context) (err error) {
		found, err = s.cfg.Extractor.Extract(ctx, unread)
		return err
	})
	if err != nil {
		s.trouble("memory", err)
		return
	}
	found = s.newMemories(found)
	if !s.write(Change{Memory: found, MemoryAt: unread[len(unread)-1].Place}) {
		return
	}
	s.unread = nil
	if len(found) > 0 {
		s.mu.Lock()
		s.memory = append(s.memory[:len(s.memory):len(s.memory)], found...)
		s.mu.Unlock()
		s.tellMemory()
	}
}

// newMemories returns those of found that are not known.
func (s *Session) newMemories(found []Memory) []Memory {
	known := make(map[string]bool)
	for _, m := range s.Memory() {
		known[m.Text] = true
	}
	var fresh []Memory
	for _, m := range found {
		if m.Text != "" && !known[m.Text] {
			known[m.Text] = true
			m.Time = m.Time.UTC().Truncate(time.Microsecond) // as stores keep it
			fresh = append(fresh, m)
		}
	}
	return fresh
}

// Memory returns what the session knows of its user, in the order in which it was found.
func (s *Session) Memory() []Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}

// tellMemory puts the memory behind the system prompt, from the next turn on.
func (s *Session) tellMemory() {
	var b strings.Builder
	if memory := s.Memory(); len(memory) > 0 {
		b.WriteString("What the user said in this session, to be kept in mind:")
		for _, m := range memory {
			b.WriteString("\n- " + m.Text)
		}
	}
	told := b.String()
	prompt, blocks := s.cfg.Agent.SystemPrompt, s.cfg.Agent.SystemBlocks
	switch {
	case blocks != nil && told != "":
		blocks = append(blocks[:len(blocks):len(blocks)], agentkernel.SystemBlock{Text: told})
	case prompt != "" && told != "":
		prompt += "\n\n" + told
	default:
		prompt += told
	}
	if blocks != nil {
		_ = s.agent.SetSystemBlocks(blocks...) // neither fails ever
	} else {
		_ = s.agent.SetSystemPrompt(prompt)
	}
}
