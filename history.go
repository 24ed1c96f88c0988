package agentkernel

import "slices"

// admit checks that a run may begin, and returns the prompts as they enter the history: the
// kernel's own messages normalised, and one that asks to go on behind an aborted answer.
func admit(model ChatModel, lengthPrompt string, history, prompts []AgentMessage) ([]AgentMessage, error) {
	if model == nil {
		return nil, ErrNoModel
	}
	if err := checkMessages("history", history); err != nil {
		return nil, err
	}
	if len(prompts) == 0 {
		return continuation(lengthPrompt, history)
	}
	return asPrompts("prompt", prompts)
}

// asPrompts returns messages as they enter a history from outside: the kernel's own, which
// must be a user's, normalised; those of the harness as they are.
func asPrompts(op string, messages []AgentMessage) ([]AgentMessage, error) {
	if err := checkMessages(op, messages); err != nil {
		return nil, err
	}
	out := make([]AgentMessage, len(messages))
	for i, m := range messages {
		own, ok := ownMessage(m)
		switch {
		case !ok:
			out[i] = m
		case own.Role != RoleUser && own.Role != RoleSystem:
			return nil, invalid(op, "message %d has role %q, not user", i, own.Role)
		default:
			own = normalize(own)
			if own.Timestamp.IsZero() {
				own.Timestamp = now()
			}
			out[i] = own
		}
	}
	return out, nil
}

// continuation decides how a run without prompts goes on from history: one that ends with
// an answer that was cut, by an abort or by the output limit, with the prompt to go on.
func continuation(lengthPrompt string, history []AgentMessage) ([]AgentMessage, error) {
	foreign := false // a user's message of the harness, which may be all that there is
	for _, m := range slices.Backward(history) {
		own, ok := ownMessage(m)
		if !ok {
			foreign = foreign || m.GetRole() == RoleUser
			continue
		}
		switch own.Role {
		case RoleUser, RoleTool:
			return nil, nil
		case RoleAssistant:
			switch {
			case foreign:
				return nil, nil
			case own.StopReason == StopReasonAborted || own.StopReason == StopReasonLength && !own.HasToolCalls():
				return []AgentMessage{UserMessage(lengthPrompt)}, nil
			case openCalls(history) != nil:
				return nil, nil
			}
			return nil, ErrBadContinuation
		}
	}
	if foreign {
		return nil, nil
	}
	return nil, ErrNoMessages
}

// checkMessages refuses a nil message. A message whose methods panic, such as a nil pointer
// of the harness's, does so here, on the goroutine that brings it in.
func checkMessages(op string, messages []AgentMessage) error {
	for i, m := range messages {
		if p, ok := m.(*Message); m == nil || ok && p == nil {
			return invalid(op, "message %d is nil", i)
		}
		m.GetRole()
	}
	return nil
}

// ownMessage returns m if it is of the kernel's own type.
func ownMessage(m AgentMessage) (Message, bool) {
	switch m := m.(type) {
	case Message:
		return m, true
	case *Message:
		if m != nil {
			return *m, true
		}
		return Message{}, true
	}
	return Message{}, false
}

// cloneMessage returns a copy of m that shares no slice with it, where m is the kernel's.
func cloneMessage(m AgentMessage) AgentMessage {
	if own, ok := ownMessage(m); ok {
		return own.boxedClone()
	}
	return m
}

// openTurn is an assistant message of the history and those of its calls that have no result.
type openTurn struct {
	message Message
	calls   []ToolCall
}

// openCalls finds the calls that the end of history leaves unanswered; nil where there are none.
func openCalls(history []AgentMessage) *openTurn {
	answered := make(map[string]bool)
	for _, m := range slices.Backward(history) {
		own, ok := ownMessage(m)
		if !ok {
			continue
		}
		switch {
		case own.Role == RoleTool:
			answered[own.ToolCallID] = true
		case own.Role == RoleAssistant && whole(own.StopReason):
			calls := slices.DeleteFunc(own.ToolCalls(), func(c ToolCall) bool { return answered[c.ID] })
			if len(calls) == 0 {
				return nil
			}
			return &openTurn{message: own, calls: calls}
		default:
			return nil
		}
	}
	return nil
}

// whole tells whether a message with that stop reason is as its model meant it.
func whole(stop StopReason) bool { return stop != StopReasonAborted && stop != StopReasonError }

// callIDs collects the ids of all calls in history.
func callIDs(history []AgentMessage) map[string]struct{} {
	ids := make(map[string]struct{})
	for _, m := range history {
		if own, ok := ownMessage(m); ok {
			for _, call := range own.ToolCalls() {
				ids[call.ID] = struct{}{}
			}
		}
	}
	return ids
}

// DefaultConvertToLLM returns what of history a model should see: the kernel's own messages.
// A message that was aborted or failed goes with its text only, and not at all where it has
// none, since its thinking may lack a signature and its calls their end; results of such
// calls are dropped too. So is a message without content.
func DefaultConvertToLLM(history []AgentMessage) []Message {
	return new(converter).add(history)
}

// converter converts a history that grows, each message once.
type converter struct {
	out     []Message
	read    int
	dropped map[string]bool // calls that the model does not see
}

// add converts what is new in history and returns all of it.
func (c *converter) add(history []AgentMessage) []Message {
	for _, m := range history[c.read:] {
		own, ok := ownMessage(m)
		if ok && c.sees(&own) {
			nameCalls(&own)
			c.out = append(c.out, own)
		}
	}
	c.read = len(history)
	return slices.Clip(c.out)
}

// sees tells whether a model should see m, and cuts m down to what it should see.
func (c *converter) sees(m *Message) bool {
	switch {
	case m.Role == RoleTool:
		return !c.dropped[m.ToolCallID]
	case m.Role != RoleAssistant:
		return len(m.Content) > 0
	case !whole(m.StopReason):
		c.drop(m)
	}
	return slices.ContainsFunc(m.Content, func(b ContentBlock) bool {
		return b.Text != "" || b.ToolCall != nil || b.Type == ContentImage
	})
}

// drop cuts an unfinished message down to its text.
func (c *converter) drop(m *Message) {
	var text []ContentBlock
	for _, b := range m.Content {
		switch {
		case b.Type == ContentText && b.Text != "":
			text = append(text, b)
		case b.ToolCall != nil:
			if c.dropped == nil {
				c.dropped = make(map[string]bool)
			}
			c.dropped[b.ToolCall.ID] = true
		}
	}
	m.Content = text
}

// ownHistory returns a copy of history in which the kernel's own messages are normalised.
func ownHistory(history []AgentMessage) []AgentMessage {
	out := make([]AgentMessage, len(history))
	for i, m := range history {
		out[i] = m
		if own, ok := ownMessage(m); ok {
			out[i] = normalize(own)
		}
	}
	return out
}

// unnamedTool stands for the name of a call that came without one, which providers refuse.
const unnamedTool = "unnamed_tool"

// nameCalls names the calls of m that have no name, in a copy of its blocks.
func nameCalls(m *Message) {
	for i, b := range m.Content {
		if b.ToolCall != nil && b.ToolCall.Name == "" {
			m.Content = cloneBlocks(m.Content)
			m.Content[i].ToolCall.Name = unnamedTool
		}
	}
}
