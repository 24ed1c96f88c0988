package openai

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// throughJSON returns m as a harness that stored its history gets it back.
func throughJSON(t testing.TB, m agentkernel.Message) agentkernel.Message {
	t.Helper()
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	var back agentkernel.Message
	require.NoError(t, json.Unmarshal(raw, &back))
	return back
}

// messagesOf returns the messages of a body, their members as they were written.
func messagesOf(t testing.TB, body []byte) []map[string]json.RawMessage {
	t.Helper()
	var doc struct{ Messages []map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(body, &doc))
	return doc.Messages
}

// Fault 67: what came with a call goes back with it, as the same JSON value.
func TestExtrasOfACallComeBack(t *testing.T) {
	m := assistant(agentkernel.ContentBlock{
		Type:     agentkernel.ContentToolCall,
		ToolCall: new(toolCall("call_e", "read", `{"p":"a"}`)),
		Extra: json.RawMessage(`{"extra_content":{"google":{"thought_signature":"c2ln<>&"},"n":12345678901234567890.10},` +
			`"id":"other","function":{},"type":"x","index":3,"a":null}`),
	})
	want := `[{"id":"call_e","type":"function","function":{"name":"read","arguments":"{\"p\":\"a\"}"},` +
		`"a":null,"extra_content":{"google":{"thought_signature":"c2ln<>&"},"n":12345678901234567890.10}}]`
	for _, m := range []agentkernel.Message{m, throughJSON(t, m)} {
		req := agentkernel.ModelRequest{Messages: []agentkernel.Message{m}}
		body := encoded(t, Config{Compat: PresetGeneric()}, req)
		require.Contains(t, string(body), `"thought_signature":"c2ln`)
		got := messagesOf(t, body)[0]["tool_calls"]
		require.JSONEq(t, want, string(got))
		require.Contains(t, string(got), "12345678901234567890.10", "a number loses nothing")

		body = encoded(t, Config{Compat: PresetOpenAI()}, req)
		require.NotContains(t, string(body), "extra_content", "an endpoint that refuses it is spared")
	}
}

func TestExtrasOfTextAndImages(t *testing.T) {
	marked := agentkernel.TextBlock("long")
	marked.Extra = json.RawMessage(`{"cache_control":{"type":"ephemeral"},"text":"no"}`)
	picture := agentkernel.ContentBlock{
		Type: agentkernel.ContentImage, Image: &agentkernel.Image{URL: "https://example.com/a.png"},
		Extra: json.RawMessage(`{"cache_control":{"type":"ephemeral"}}`),
	}
	odd := agentkernel.TextBlock("odd")
	odd.Extra = json.RawMessage(`[1]`)
	ephemeral := map[string]any{"type": "ephemeral"}
	for _, role := range []agentkernel.Role{agentkernel.RoleUser, agentkernel.RoleSystem} {
		require.Equal(t, []any{
			map[string]any{"role": string(role), "content": []any{
				map[string]any{"type": "text", "text": "long", "cache_control": ephemeral},
				map[string]any{
					"type": "image_url", "image_url": map[string]any{"url": "https://example.com/a.png"},
					"cache_control": ephemeral,
				},
				map[string]any{"type": "text", "text": "odd"},
			}},
		}, sentTo(t, PresetGeneric(), blocks(role, marked, picture, odd)))
	}
	require.Equal(t, "odd", sentTo(t, PresetGeneric(), blocks(agentkernel.RoleUser, odd))[0].(map[string]any)["content"])
}

func TestThinkingGoesBackInItsForm(t *testing.T) {
	const details = `[{"type":"reasoning.encrypted","data":"x","index":0},{"type":"reasoning.text","text":"b","signature":"s=="}]`
	text := func(field string) string { return `{"` + field + `":"ab"}` }
	none := `{}`
	parts := `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"}]},{"type":"text","text":"hi"}]}`
	for name, c := range map[string]struct {
		replay    ThinkingReplay
		extra     string
		signature string
		want      string
	}{
		"as received, no field":          {ReplayAsReceived, ``, "", none},
		"as received, odd extra":         {ReplayAsReceived, `[1]`, "", none},
		"as received, unknown field":     {ReplayAsReceived, `{"field":"role"}`, "", none},
		"as received, reasoning_content": {ReplayAsReceived, `{"field":"reasoning_content"}`, "", text("reasoning_content")},
		"as received, reasoning":         {ReplayAsReceived, `{"field":"reasoning"}`, "", text("reasoning")},
		"as received, reasoning_text":    {ReplayAsReceived, `{"field":"reasoning_text"}`, "", text("reasoning_text")},
		"as received, thinking":          {ReplayAsReceived, `{"field":"thinking"}`, "", text("thinking")},
		"as received, lost details":      {ReplayAsReceived, `{"field":"reasoning_details"}`, "", text("reasoning")},
		"as received, parts":             {ReplayAsReceived, `{"field":"content"}`, "", parts},
		"as received, details": {
			ReplayAsReceived, `{"field":"reasoning","reasoning_details":` + details + `}`, "", `{"reasoning_details":` + details + `}`,
		},
		"details": {
			ReplayDetails, `{"field":"reasoning","reasoning_details":` + details + `}`, "", `{"reasoning_details":` + details + `}`,
		},
		"details of a signature": {
			ReplayDetails, ``, "s<&>=", `{"reasoning_details":[{"type":"reasoning.text","text":"ab","signature":"s<&>="}]}`,
		},
		"no details":   {ReplayDetails, ``, "", text("reasoning")},
		"as reasoning": {ReplayReasoning, `{"field":"reasoning_content"}`, "", text("reasoning")},
		"as content":   {ReplayReasoningContent, `{"reasoning_details":` + details + `}`, "", text("reasoning_content")},
		"in parts":     {ReplayParts, ``, "", parts},
		"signed parts": {
			ReplayParts, ``, "s==",
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"}],"signature":"s=="},{"type":"text","text":"hi"}]}`,
		},
		"not at all": {ReplayNone, `{"field":"reasoning","reasoning_details":` + details + `}`, "s", none},
	} {
		t.Run(name, func(t *testing.T) {
			m := assistant(thought("ab", c.signature, c.extra), "hi")
			for _, m := range []agentkernel.Message{m, throughJSON(t, m)} {
				want := map[string]json.RawMessage{"role": json.RawMessage(`"assistant"`), "content": json.RawMessage(`"hi"`)}
				require.NoError(t, json.Unmarshal([]byte(c.want), &want))
				body := encoded(t, Config{Compat: &Compat{Replay: c.replay}}, agentkernel.ModelRequest{
					Messages: []agentkernel.Message{m},
				})
				got := messagesOf(t, body)[0]
				require.Len(t, got, len(want), "%s", body)
				for name := range want {
					require.JSONEq(t, string(want[name]), string(got[name]), name)
				}
			}
		})
	}
}

func TestThinkingOfSeveralBlocksIsOne(t *testing.T) {
	m := assistant(
		thought("a", "", `{"field":"reasoning","reasoning_details":[{"n":1}]}`), "hi",
		thought("b", "", `{"reasoning_details":[{"n":2}]}`),
	)
	sent := sentTo(t, &Compat{}, m)
	require.Equal(t, []any{map[string]any{"n": 1.0}, map[string]any{"n": 2.0}}, sent[0].(map[string]any)["reasoning_details"])
	sent = sentTo(t, &Compat{Replay: ReplayReasoning}, m)
	require.Equal(t, "ab", sent[0].(map[string]any)["reasoning"])
}

func TestReplayAlways(t *testing.T) {
	sent := sentTo(t, PresetDeepSeek(), user("q"), assistant("a"), assistant(toolCall("c", "f", "{}")))
	require.NotContains(t, sent[0], "reasoning_content")
	require.Equal(t, "", sent[1].(map[string]any)["reasoning_content"])
	require.Equal(t, "", sent[2].(map[string]any)["reasoning_content"])
}

func TestImagesOfSeveralResultsFollowTheLast(t *testing.T) {
	dot := agentkernel.Image{Data: onePixel}
	call := assistant(toolCall("c1", "f", "{}"), toolCall("c2", "g", "{}"))
	sent := sentTo(t, PresetGeneric(), call, toolResult("c1", "f", dot, dot), toolResult("c2", "g", "x", dot))
	roles := make([]any, len(sent))
	for i, m := range sent {
		roles[i] = m.(map[string]any)["role"]
	}
	require.Equal(t, []any{"assistant", "tool", "tool", "user"}, roles)
	shown := sent[3].(map[string]any)["content"].([]any)
	require.Len(t, shown, 6)
	require.Equal(t, "Image 2 of the result of tool call c1 (f):", shown[2].(map[string]any)["text"])
	require.Equal(t, "Image 1 of the result of tool call c2 (g):", shown[4].(map[string]any)["text"])
}

// An image's address may hold a key: where the image is only described, it is not named.
func TestDescriptionOfAnImageHidesItsAddress(t *testing.T) {
	for _, url := range []string{"https://example.com/a.png?sig=SECRET", "data:image/gif;base64,SECRET"} {
		body := encoded(t, Config{Compat: &Compat{Images: ImagesNone}}, agentkernel.ModelRequest{
			Messages: []agentkernel.Message{blocks(agentkernel.RoleUser, agentkernel.Image{URL: url})},
		})
		require.NotContains(t, string(body), "SECRET")
	}
}

func TestOrderOfRoles(t *testing.T) {
	history := []agentkernel.Message{
		user("a"), user("b"), assistant(toolCall("c1", "f", "{}")), toolResult("c1", "f", "ok"), user("c"),
	}
	texts := func(compat *Compat) (out []string) {
		for _, m := range sentTo(t, compat, history...) {
			m := m.(map[string]any)
			out = append(out, m["role"].(string)+" "+m["content"].(string))
		}
		return out
	}
	require.Equal(t, []string{"user a", "user b", "assistant ", "tool ok", "user c"}, texts(&Compat{}))
	require.Equal(t, []string{"user a\nb", "assistant ", "tool ok", "user c"}, texts(&Compat{JoinUsers: true}))
	require.Equal(t, []string{"user a", "user b", "assistant ", "tool ok", "assistant (tool results received)", "user c"},
		texts(&Compat{AssistantAfterTool: true}))
	require.Equal(t, "user a", texts(&Compat{SystemRole: "developer"})[0])
}

func TestSystemRole(t *testing.T) {
	req := agentkernel.ModelRequest{System: "s", Messages: []agentkernel.Message{blocks(agentkernel.RoleSystem, "t"), user("u")}}
	for role, want := range map[string]string{"": "system", "system": "system", "developer": "developer"} {
		messages := messagesOf(t, encoded(t, Config{Compat: &Compat{SystemRole: role}}, req))
		require.Equal(t, `"`+want+`"`, string(messages[0]["role"]))
		require.Equal(t, `"`+want+`"`, string(messages[1]["role"]))
	}
}

// The ids of a call and of its result are replaced alike.
func TestIDsOfAnotherEndpoint(t *testing.T) {
	sent := sentTo(t, PresetMistral(), assistant(toolCall("call_1", "f", "{}")), toolResult("call_1", "f", "ok"))
	id := sent[0].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["id"]
	require.Regexp(t, `^[0-9A-Za-z]{9}$`, id)
	require.Equal(t, id, sent[1].(map[string]any)["tool_call_id"])
}
