package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestMaxToolErrors disables a tool after so many failures in a row, within one batch and
// over turns; what did not run counts neither way.
func TestMaxToolErrors(t *testing.T) {
	flaky := agentkernel.Tool{Name: "t", Schema: json.RawMessage(`{"type":"object","properties":{"r":{"type":"string"}}}`),
		Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			switch {
			case strings.Contains(string(args), "ok"):
				return agentkernel.TextResult("ok"), nil
			case strings.Contains(string(args), "panic"):
				panic("oh")
			}
			return agentkernel.ToolResult{}, errors.New("no")
		}}
	gate := func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		return agentkernel.GateDecision{Allow: !strings.Contains(string(req.Call.Args), "deny")}, nil
	}
	for name, tt := range map[string]struct {
		turns [][]string
		want  string
	}{
		"in one batch":                {[][]string{{"no", "no", "ok", "ok"}}, "failed failed disabled disabled"},
		"over turns":                  {[][]string{{"no"}, {"no"}, {"ok"}}, "failed failed disabled"},
		"a success in between":        {[][]string{{"no", "ok", "no"}, {"ok", "no"}}, "failed ok failed ok failed"},
		"denials do not count":        {[][]string{{"no", "deny", "deny"}, {"ok", "no", "deny", "no", "ok"}}, "failed denied denied ok failed denied failed disabled"},
		"panics and bad arguments do": {[][]string{{"panic", "!"}, {"ok"}}, "panic invalid disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			var script []agenttest.Reply
			for _, turn := range tt.turns {
				reply := agenttest.Reply{}
				for _, word := range turn {
					args := `{"r":"` + word + `"}`
					if word == "!" {
						args = `{"r":1}`
					}
					reply = reply.Call("", "t", args)
				}
				script = append(script, reply)
			}
			log := play(t, agentkernel.Config{Model: agenttest.Script(append(script, agenttest.Text("ok"))...),
				Gate: gate, MaxToolErrors: 2, Tools: []agentkernel.Tool{flaky, echo("other")}})
			require.Equal(t, tt.want, strings.ReplaceAll(strings.Join(causes(log), " "), "t ", ""))
			require.Equal(t, agentkernel.EndStop, endReason(log))
		})
	}
}

// TestBreakerIsPerTool: the failures of one disable no other.
func TestBreakerIsPerTool(t *testing.T) {
	bad := tool("bad", func(context.Context) (agentkernel.ToolResult, error) { return agentkernel.ErrorResult("no"), nil })
	log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("bad", "echo", "bad", "echo", "bad"), agenttest.Text("ok")),
		MaxToolErrors: 1, Tools: []agentkernel.Tool{bad, echo("echo")}})
	require.Equal(t, []string{"bad failed", "echo ok", "bad disabled", "echo ok", "bad disabled"}, causes(log))
}

func TestMaxToolCallsPerTurn(t *testing.T) {
	model := agenttest.Script(agenttest.Calls("echo", "echo", "echo"), agenttest.Calls("echo", "echo"), agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, MaxToolCallsPerTurn: 2, Tools: []agentkernel.Tool{echo("echo")}})
	require.Equal(t, []string{"echo ok", "echo ok", "echo limit", "echo ok", "echo ok"}, causes(log))
	require.Contains(t, told(model, 2)[2], "Only 2 calls")
}

// TestMaxRepeatedCalls: the same call in a row gets an error that says so; another call, or
// other arguments, begins anew.
func TestMaxRepeatedCalls(t *testing.T) {
	model := agenttest.Script(
		agenttest.Call("", "a", `{"n":1}`).Call("", "a", `{ "n": 1 }`).Call("", "a", `{"n":1}`),
		agenttest.Call("", "a", `{"n":1}`).Call("", "a", `{"n":2}`).Call("", "a", `{"n":1}`).Call("", "b", `{"n":1}`),
		agenttest.Text("ok"))
	log := play(t, agentkernel.Config{Model: model, MaxRepeatedCalls: 3, Tools: []agentkernel.Tool{echo("a"), echo("b")}})
	require.Equal(t, []string{"a ok", "a ok", "a limit", "a limit", "a ok", "a ok", "b ok"}, causes(log))
	require.Contains(t, told(model, 2)[2], "for the 3rd time in a row")
	require.Contains(t, told(model, 3)[3], "for the 4th time in a row")
}

// TestMaxToolResultBytes: cut at a rune, saying how much, the whole kept in Details; the
// history holds the short one only.
func TestMaxToolResultBytes(t *testing.T) {
	image := agentkernel.ContentBlock{Type: agentkernel.ContentImage, Image: &agentkernel.Image{URL: "u"}}
	block := agentkernel.TextBlock
	for name, tt := range map[string]struct {
		result agentkernel.ToolResult
		limit  int
		want   []agentkernel.ContentBlock
	}{
		"short enough": {agentkernel.TextResult("12345"), 5, []agentkernel.ContentBlock{block("12345")}},
		"cut":          {agentkernel.TextResult("123456"), 5, []agentkernel.ContentBlock{block("12345"), block("[cut: 1 of 6 bytes are left out]")}},
		"at a rune":    {agentkernel.TextResult("1€€"), 5, []agentkernel.ContentBlock{block("1€"), block("[cut: 3 of 7 bytes are left out]")}},
		"of no rune":   {agentkernel.TextResult("€€"), 2, []agentkernel.ContentBlock{block("[cut: 6 of 6 bytes are left out]")}},
		"blocks": {agentkernel.ToolResult{Content: []agentkernel.ContentBlock{block("1234"), image, block("56"), block("78")}}, 5,
			[]agentkernel.ContentBlock{block("1234"), image, block("5"), block("[cut: 3 of 8 bytes are left out]")}},
		"JSON":     {agentkernel.ToolResult{JSON: json.RawMessage(`{"a":"1234"}`)}, 5, []agentkernel.ContentBlock{block(`{"a":`), block("[cut: 7 of 12 bytes are left out]")}},
		"no bound": {agentkernel.TextResult(strings.Repeat("x", 2<<20)), -1, []agentkernel.ContentBlock{block(strings.Repeat("x", 2<<20))}},
		"errors":   {agentkernel.ErrorResult("123456"), 5, []agentkernel.ContentBlock{block("12345"), block("[cut: 1 of 6 bytes are left out]")}},
		"by default": {agentkernel.TextResult(strings.Repeat("€", 1<<20)), 0, []agentkernel.ContentBlock{
			block(strings.Repeat("€", 1<<20/3)), block("[cut: 2097153 of 3145728 bytes are left out]")}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.result.Details = "mine"
			log, got := once(t, agentkernel.Config{MaxToolResultBytes: tt.limit, Tools: []agentkernel.Tool{tool("t",
				func(context.Context) (agentkernel.ToolResult, error) { return tt.result, nil })}}, "t", "{}")
			require.True(t, len(tt.want) == len(got.Content))
			for i := range tt.want {
				require.True(t, tt.want[i].Text == got.Content[i].Text, "block %d", i)
				require.True(t, utf8.ValidString(got.Content[i].Text))
				require.Equal(t, tt.want[i].Image, got.Content[i].Image)
			}
			message := final(log).NewMessages[2].(agentkernel.Message)
			require.True(t, len(tt.want) == len(message.Content))
			if full, cut := got.Details.(*agentkernel.FullResult); cut {
				require.True(t, len(tt.result.Content) == len(full.Content) && string(tt.result.JSON) == string(full.JSON))
				require.Equal(t, "mine", full.Details)
				require.Nil(t, got.JSON)
			} else {
				require.Equal(t, "mine", got.Details)
			}
		})
	}
}

// TestHugeResult: a tool that returns much more than it may costs nothing that lasts.
func TestHugeResult(t *testing.T) {
	size := 8 << 20
	if os.Getenv("AGENTKERNEL_LONG") != "" {
		size = 1 << 30
	}
	for name, result := range map[string]agentkernel.ToolResult{
		"text":    agentkernel.TextResult(strings.Repeat("x", size)),
		"no UTF":  agentkernel.TextResult(strings.Repeat("\xffx", size/4)),
		"JSON":    {JSON: json.RawMessage(`"` + strings.Repeat("x", size/4) + `"`)},
		"no JSON": {JSON: json.RawMessage(strings.Repeat("x", size/4))},
	} {
		t.Run(name, func(t *testing.T) {
			model := agenttest.Script(agenttest.Calls("t"), agenttest.Text("ok"))
			log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{
				tool("t", func(context.Context) (agentkernel.ToolResult, error) { return result, nil })}})
			require.Equal(t, agentkernel.EndStop, endReason(log))
			require.Less(t, len(told(model, 2)[0]), 1<<20+100)
			require.Contains(t, told(model, 2)[0], "bytes are left out]")
		})
	}
}
