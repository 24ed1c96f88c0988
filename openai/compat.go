package openai

import (
	"crypto/sha256"
	"math/big"
	"slices"
)

// Compat is what an endpoint takes and what it refuses. The zero value suits most servers
// that call themselves compatible; a preset holds what is known of one, and is the caller's
// to change:
//
//	compat := openai.PresetVLLM()
//	compat.NoStreamOptions = true
//	model, err := openai.New(openai.Config{Model: "m", BaseURL: url, Compat: compat})
type Compat struct {
	// Name is the preset's, for logs. Nothing depends on it.
	Name string

	// MaxTokensField is the name of the output limit: "max_completion_tokens" where the
	// endpoint has given up the older name. Empty means "max_tokens".
	MaxTokensField string
	// SeedField is the name of the seed. Empty means "seed".
	SeedField string
	// SystemRole is the role of the system prompt, "developer" for some. Empty means "system".
	SystemRole string
	// NoStreamOptions leaves out stream_options, which asks for the usage. For servers that
	// refuse it.
	NoStreamOptions bool
	// NullContent sends null as the content of an assistant message with calls only. The
	// default is "".
	NullContent bool
	// NoStrict leaves out the mark of a strict tool.
	NoStrict bool
	// NoExtras leaves out the Extra of texts, images and calls. For endpoints that refuse
	// what they do not know, as another endpoint may have written it.
	NoExtras bool
	// Omit names further fields of the body that the endpoint refuses. They are left out
	// whatever set them, except Config.ExtraBody.
	Omit []string

	// Images says where the endpoint takes images.
	Images ImageSupport
	// Thinking is the form of Config.Thinking and its kin.
	Thinking ThinkingForm
	// Efforts are the words for how much to think that the endpoint, or the model in use,
	// knows of "none", "minimal", "low", "medium" and "high". A request's ThinkingLevel becomes
	// the nearest of them; a Config's ReasoningEffort is sent as it is. Empty means all of them
	// where Thinking has efforts, and none where it is a switch.
	Efforts []string
	// LevelBudgets makes a ThinkingLevel a budget in tokens where Thinking has a form for it.
	LevelBudgets bool
	// Replay is the form in which the model's thinking is sent back.
	Replay ThinkingReplay
	// ReplayAlways sends the field of Replay with every assistant message, empty where there
	// was no thinking. For endpoints that refuse a history that thought elsewhere.
	ReplayAlways bool

	// CacheControl marks where the endpoint should keep what it has read, with cache_control
	// on the parts of messages: behind the SystemBlocks with Cache and the CacheBreakpoints of
	// a request, the last four of them. Without it these are ignored.
	CacheControl bool

	// CallIDs is the form of a call's id that the endpoint takes. Ids of another form, which
	// another endpoint made, are replaced in the request, the same id always by the same.
	CallIDs CallIDForm
	// JoinUsers sends user messages that follow each other as one.
	JoinUsers bool
	// AssistantAfterTool puts a short assistant message between a tool result and a user
	// message, for endpoints that refuse that order.
	AssistantAfterTool bool
}

// ImageSupport says where an endpoint takes images.
type ImageSupport string

const (
	// ImagesInUser: in user messages. An image in a tool result is described there and shown
	// in a user message that follows the results.
	ImagesInUser ImageSupport = ""
	// ImagesInTools: in user messages and in tool results.
	ImagesInTools ImageSupport = "tools"
	// ImagesNone: nowhere. An image is described in its place.
	ImagesNone ImageSupport = "none"
)

// ThinkingForm is how an endpoint wants to be told how much to think.
type ThinkingForm string

const (
	// ThinkingEffort: "reasoning_effort" alone. Thinking false is the effort "none",
	// Thinking true is left to the endpoint.
	ThinkingEffort ThinkingForm = ""
	// ThinkingObject: "thinking": {"type": "enabled", "budget_tokens": n}.
	ThinkingObject ThinkingForm = "thinking"
	// ThinkingEnable: "enable_thinking": true and "thinking_budget": n.
	ThinkingEnable ThinkingForm = "enable_thinking"
	// ThinkingTemplate: "chat_template_kwargs": {"enable_thinking": true}.
	ThinkingTemplate ThinkingForm = "chat_template_kwargs"
	// ThinkingReasoning: "reasoning": {"enabled": true, "effort": …, "max_tokens": n}.
	ThinkingReasoning ThinkingForm = "reasoning"
)

// isSwitch tells that thinking is told to be on or off, beside what effort there may be.
func (f ThinkingForm) isSwitch() bool {
	return f == ThinkingObject || f == ThinkingEnable || f == ThinkingTemplate
}

func (f ThinkingForm) hasBudget() bool {
	return f == ThinkingObject || f == ThinkingEnable || f == ThinkingReasoning
}

// ThinkingReplay is the form in which thinking is sent back with its message.
type ThinkingReplay string

const (
	// ReplayAsReceived: in the field that it came in, which the block's Extra names.
	// Thinking without that is not sent.
	ReplayAsReceived ThinkingReplay = ""
	// ReplayNone: not at all.
	ReplayNone ThinkingReplay = "none"
	// ReplayReasoningContent: as text in "reasoning_content".
	ReplayReasoningContent ThinkingReplay = "reasoning_content"
	// ReplayReasoning: as text in "reasoning".
	ReplayReasoning ThinkingReplay = "reasoning"
	// ReplayDetails: in "reasoning_details", with its signatures; as text in "reasoning"
	// where there are none.
	ReplayDetails ThinkingReplay = "reasoning_details"
	// ReplayParts: as parts of type "thinking" in the content.
	ReplayParts ThinkingReplay = "content"
)

// CallIDForm is the form of a call's id that an endpoint takes.
type CallIDForm string

const (
	// CallIDsAny: any text.
	CallIDsAny CallIDForm = ""
	// CallIDsUpTo40: at most 40 bytes.
	CallIDsUpTo40 CallIDForm = "40"
	// CallIDsAlnum9: exactly 9 of the letters and digits of ASCII.
	CallIDsAlnum9 CallIDForm = "alnum9"
)

// fit returns id in form f. An id that does not fit becomes a digest of itself.
func (f CallIDForm) fit(id string) string {
	switch {
	case f == CallIDsUpTo40 && len(id) > 40:
		return "call_" + digest62(id, 22)
	case f == CallIDsAlnum9 && (len(id) != 9 || !allOf([]byte(id), isAlnum)):
		return digest62(id, 9)
	}
	return id
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// digest62 returns n letters and digits that stand for s.
func digest62(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	text := new(big.Int).SetBytes(sum[:]).Text(62)
	for len(text) < n {
		text = "0" + text
	}
	return text[len(text)-n:]
}

// check says which switch has a value that does not exist.
func (c *Compat) check() error {
	for _, sw := range []struct {
		field, value string
		known        []string
	}{
		{"Compat.Images", string(c.Images), []string{"", "tools", "none"}},
		{"Compat.Thinking", string(c.Thinking), []string{
			"", "thinking", "enable_thinking", "chat_template_kwargs", "reasoning",
		}},
		{"Compat.Replay", string(c.Replay), []string{
			"", "none", "reasoning_content", "reasoning", "reasoning_details", "content",
		}},
		{"Compat.CallIDs", string(c.CallIDs), []string{"", "40", "alnum9"}},
		{"Compat.SystemRole", c.SystemRole, []string{"", "system", "developer", "user"}},
	} {
		if !slices.Contains(sw.known, sw.value) {
			return badField(sw.field, "there is no %q", sw.value)
		}
	}
	for _, word := range c.Efforts {
		if !slices.Contains(efforts, word) {
			return badField("Compat.Efforts", "there is no %q", word)
		}
	}
	return nil
}
