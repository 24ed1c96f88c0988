package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// feed is what the screen shows of an agent: a fold of its events, and nothing else, so that
// the events of a stored session show what the live ones did. It is for one goroutine.
//
// Updates may be merged, as an asynchronous subscriber gets them: what streams is always drawn
// from the message so far, never from the delta.
type feed struct {
	// state is the agent's: its history, the message that is open, its usage.
	state agentkernel.AgentState
	// waiting holds from the start of a turn, or of an attempt, to its first delta.
	waiting bool
	// cards are the calls that run, in the order in which they started.
	cards []*card
	// children are the runs of sub-agents within those calls, by their run ids.
	children map[string]*child
}

// block is something that is finished: it is printed once, above the live area, and never
// changes.
type block struct {
	kind blockKind
	text string
	card *card // of a blockCard
}

type blockKind int

const (
	blockUser     blockKind = iota // what the user said
	blockThinking                  // what the model thought
	blockAnswer                    // what the model said, in markdown
	blockCard                      // a call and what became of it
	blockNote                      // what the program has to say
	blockError                     // a failure
	blockEnd                       // what a run came to
)

// fold takes the next event and returns what it finished, in order.
func (f *feed) fold(ev agentkernel.Event) []block {
	if ev.ParentRunID != "" {
		f.foldChild(ev)
		return nil
	}
	f.state = agentkernel.Reduce(f.state, ev)
	switch e := ev.Payload().(type) {
	case agentkernel.RunStarted:
		f.cards, f.children = nil, nil
	case agentkernel.TurnStarted, agentkernel.ModelRequested:
		f.waiting = true
	case agentkernel.MessageStarted:
		f.waiting = f.waiting && e.Message.GetRole() != agentkernel.RoleAssistant
	case agentkernel.MessageEnded:
		return said(e.Message)
	case agentkernel.MessageDiscarded:
		return []block{{kind: blockNote, text: "what this attempt said is void"}}
	case agentkernel.Retrying:
		return []block{{kind: blockNote, text: fmt.Sprintf("attempt %d failed, the next one follows in %v: %v",
			e.Attempt, e.RetryInfo.Delay.Round(time.Millisecond), e.Err)}}
	case agentkernel.ToolStarted:
		f.waiting = false
		f.cards = append(f.cards, newCard(e))
	case agentkernel.ToolProgressed:
		if c := f.card(e.ToolID); c != nil {
			c.progress(e)
		}
	case agentkernel.ToolEnded:
		return f.ended(e)
	case agentkernel.ContextReplaced:
		return []block{{kind: blockNote, text: fmt.Sprintf("the history was replaced (%s): %d messages now",
			e.Context.Reason, len(e.Context.Messages))}}
	case agentkernel.RunFailed:
		return []block{{kind: blockError, text: e.Err.Error()}}
	case agentkernel.RunEnded:
		f.waiting, f.cards, f.children = false, nil, nil
		return []block{{kind: blockEnd, text: closing(e)}}
	}
	return nil
}

// said is a message that ended. The results of calls are shown by their cards.
func said(m agentkernel.AgentMessage) (out []block) {
	message, ok := m.(agentkernel.Message)
	switch {
	case m.GetRole() == agentkernel.RoleUser:
		return []block{{kind: blockUser, text: m.TextContent()}}
	case !ok || message.Role != agentkernel.RoleAssistant:
		return nil
	}
	for _, b := range message.Content {
		switch {
		case b.Type == agentkernel.ContentThinking && strings.TrimSpace(b.Thinking) != "":
			out = append(out, block{kind: blockThinking, text: b.Thinking})
		case b.Type == agentkernel.ContentText && strings.TrimSpace(b.Text) != "":
			out = append(out, block{kind: blockAnswer, text: b.Text})
		}
	}
	return out
}

func (f *feed) card(id string) *card {
	i := slices.IndexFunc(f.cards, func(c *card) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return f.cards[i]
}

// ended takes a card out of the live ones: it is printed whole, whatever runs beside it.
func (f *feed) ended(e agentkernel.ToolEnded) []block {
	c := f.card(e.ToolID)
	if c == nil {
		return nil
	}
	c.end(e)
	f.cards = slices.DeleteFunc(f.cards, func(live *card) bool { return live == c })
	return []block{{kind: blockCard, card: c}}
}

// cut closes what is open where a stored stream breaks off, because the program died. The
// kernel does the same to the state (see agentkernel.Agent.Restore).
func (f *feed) cut() (out []block) {
	if !f.state.IsRunning {
		return nil
	}
	for _, c := range f.cards {
		c.cause = agentkernel.ToolInterrupted
		out = append(out, block{kind: blockCard, card: c})
	}
	f.waiting, f.cards, f.children = false, nil, nil
	return append(out, block{kind: blockError, text: "the run broke off here"})
}

// closing is what a run came to, on one line.
func closing(e agentkernel.RunEnded) string {
	s := e.Summary
	parts := []string{string(s.EndReason), count(s.TurnCount, "turn"), count(s.ToolCalls, "tool call"),
		count(s.Usage.Total, "token"), fmt.Sprintf("%.1f s", s.Duration.Seconds())}
	if s.Abandoned > 0 {
		parts = append(parts, fmt.Sprintf("%d left behind", s.Abandoned))
	}
	return strings.Join(parts, " · ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
