package openai

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// ownCases are the cases that the project wrote. They are laid out as the folder that
// AGENTKERNEL_CONFORMANCE names.
const ownCases = "testdata/conformance"

// conformanceDir is the folder of the cases: our own, or the one that AGENTKERNEL_CONFORMANCE
// names, or the folder "conformance" within that. A relative name is looked for from here and
// from the root of the module, where the go command is used to be run.
func conformanceDir() (string, error) {
	named := os.Getenv("AGENTKERNEL_CONFORMANCE")
	if named == "" {
		return ownCases, nil
	}
	from := []string{named}
	if !filepath.IsAbs(named) {
		from = append(from, filepath.Join("..", named))
	}
	for _, dir := range from {
		for _, dir := range []string{dir, filepath.Join(dir, "conformance")} {
			if holdsCases(dir) {
				return dir, nil
			}
		}
	}
	return "", fmt.Errorf("AGENTKERNEL_CONFORMANCE is %q, where no case is", named)
}

func holdsCases(dir string) bool {
	for _, part := range []string{"streams.jsonl", "errors.jsonl", "faults"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err == nil {
			return true
		}
	}
	return false
}

func TestConformanceDir(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "module", "conformance")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "module", "openai"), 0o777))
	require.NoError(t, os.MkdirAll(inner, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(inner, "streams.jsonl"), nil, 0o666))
	t.Chdir(filepath.Join(root, "module", "openai"))
	for named, want := range map[string]string{
		"":                            ownCases,
		inner:                         inner,
		filepath.Dir(inner):           inner,
		"conformance":                 "../conformance",
		".":                           "../conformance",
		"..":                          "../conformance",
		"../conformance":              "../conformance",
		"../module":                   "../../module/conformance",
		filepath.Join(root, "module"): inner,
	} {
		t.Setenv("AGENTKERNEL_CONFORMANCE", named)
		dir, err := conformanceDir()
		require.NoError(t, err)
		require.Equal(t, want, filepath.ToSlash(dir), "%s", named)
	}
	for _, named := range []string{"nowhere", root, "../nowhere"} {
		t.Setenv("AGENTKERNEL_CONFORMANCE", named)
		_, err := conformanceDir()
		require.ErrorContains(t, err, named)
	}
}

// expectation is what a response must come to.
type expectation struct {
	End             string             `json:"end"`
	ErrorKind       []agentkernel.Kind `json:"error_kind"`
	Retryable       *bool              `json:"retryable"`
	Status          int                `json:"status"`
	RetryAfterMs    *int64             `json:"retry_after_ms"`
	MessageContains string             `json:"message_contains"`
	Partial         json.RawMessage    `json:"partial"`

	StopReason    agentkernel.StopReason     `json:"stop_reason"`
	RawStopReason *string                    `json:"raw_stop_reason"`
	Text          *digest                    `json:"text"`
	Thinking      *digest                    `json:"thinking"`
	ToolCalls     []expectedCall             `json:"tool_calls"`
	Usage         map[string]*float64        `json:"usage"`
	Model         string                     `json:"model"`
	Extras        map[string]json.RawMessage `json:"extras"`
	Signature     string                     `json:"signature"`
	ThinkingExtra json.RawMessage            `json:"thinking_extra"`
}

type expectedCall struct {
	Name    string          `json:"name"`
	ID      string          `json:"id"`
	Args    json.RawMessage `json:"args"`
	CutOff  bool            `json:"cut_off"`
	Invalid bool            `json:"invalid"`
}

// digest is a text, or the length and the sum of one.
type digest struct {
	text  *string
	sum   string
	bytes int
}

func (d *digest) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &d.text)
	}
	var v struct {
		SHA256 *string `json:"sha256"`
		Bytes  int     `json:"bytes"`
	}
	err := json.Unmarshal(data, &v)
	if v.SHA256 != nil {
		d.sum = *v.SHA256
	}
	d.bytes = v.Bytes
	return err
}

func (d *digest) check(t *testing.T, what, got string) {
	t.Helper()
	switch {
	case d == nil:
	case d.text != nil:
		require.Equal(t, *d.text, got, what)
	default:
		require.Len(t, got, d.bytes, "%s: %q", what, got)
		if sum := sha256.Sum256([]byte(got)); d.sum != "" {
			require.Equal(t, d.sum, hex.EncodeToString(sum[:]), "%s: %q", what, got)
		}
	}
}

// conformanceCase is one response and what it must come to.
type conformanceCase struct {
	name        string
	wire        wire
	cancelAfter int // updates, 0 for never
	expect      expectation
	recording   bool // to be cut at each of its chunks too
}

func TestConformance(t *testing.T) {
	dir, err := conformanceDir()
	require.NoError(t, err)
	cases := append(append(readStreams(t, dir), readErrors(t, dir)...), readFaults(t, dir)...)
	require.NotEmpty(t, cases, "no case in %s", dir)
	s := newWireServer(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				c := c
				if c.wire.pieces == nil {
					c.wire.pieces = anywhere(seed*1000+uint64(i), []int{7, 300, 1 << 20}[seed])
				}
				c.run(t, s)
			}
		})
	}
	for i, c := range cases {
		if c.recording {
			t.Run("cut/"+c.name, func(t *testing.T) { cutEverywhere(t, s, c, uint64(i)) })
		}
	}
}

// result is what a run came to.
type result struct {
	events  []agentkernel.Event
	message *agentkernel.Message
	partial agentkernel.Message // of a discarded attempt
	errs    []error             // of Error events
	err     error               // of AgentEnd
}

// converse asks once and returns all that happened.
func converse(t *testing.T, m agentkernel.ChatModel, cancelAfter int) result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := agentkernel.Config{Model: m, MaxTurns: 1, Retry: agentkernel.RetryPolicy{MaxRetries: -1}}
	var r result
	updates := 0
	for ev := range agentkernel.AgentLoop(ctx, cfg, nil, agentkernel.UserMessage("go on")) {
		r.events = append(r.events, ev)
		switch ev.Type {
		case agentkernel.EventMessageUpdate:
			if updates++; updates == cancelAfter {
				cancel()
			}
		case agentkernel.EventMessageEnd:
			if m, ok := ev.Message.(agentkernel.Message); ok && m.Role == agentkernel.RoleAssistant && r.message == nil {
				r.message = &m
			}
		case agentkernel.EventMessageDiscard:
			r.partial, _ = ev.Message.(agentkernel.Message)
		case agentkernel.EventError:
			r.errs = append(r.errs, ev.Err)
		case agentkernel.EventAgentEnd:
			r.err = ev.Err
		}
	}
	require.NoError(t, agenttest.CheckEvents(r.events))
	return r
}

func (c *conformanceCase) run(t *testing.T, s *wireServer) {
	t.Helper()
	s.wire.Store(&c.wire)
	cfg := Config{APIKey: "sk-test-key-of-this-test"}
	if c.wire.end == "hang" {
		cfg.IdleTimeout, cfg.TailTimeout = 150*time.Millisecond, 50*time.Millisecond
	}
	r := converse(t, s.model(t, cfg), c.cancelAfter)
	if c.expect.End == "message_end" {
		c.expect.checkMessage(t, r)
	} else {
		c.expect.checkError(t, r)
	}
}

func (e *expectation) checkError(t *testing.T, r result) {
	t.Helper()
	failure, ok := errors.AsType[*agentkernel.Error](r.err)
	require.True(t, ok, "AgentEnd.Err is %v; message %+v", r.err, r.message)
	require.Contains(t, e.ErrorKind, failure.Kind, "%v", failure)
	if failure.Kind == agentkernel.KindCanceled {
		require.Empty(t, r.errs)
		return
	}
	require.Nil(t, r.message)
	require.Len(t, r.errs, 1)
	if e.Retryable != nil {
		require.Equal(t, *e.Retryable, failure.Retryable, "%v", failure)
	}
	if e.Status != 0 {
		require.Equal(t, e.Status, failure.Status)
		want := time.Duration(0)
		if e.RetryAfterMs != nil {
			want = time.Duration(*e.RetryAfterMs) * time.Millisecond
		}
		require.Equal(t, want, failure.RetryAfter)
	}
	require.Contains(t, failure.Error(), e.MessageContains)
	if len(e.Partial) > 0 {
		require.Equal(t, e.partialText(t), r.partial.TextContent())
	}
}

// partialText is the text of the discarded message, which stands bare or in an object.
func (e *expectation) partialText(t *testing.T) string {
	var object struct{ Text string }
	if err := json.Unmarshal(e.Partial, &object); err == nil {
		return object.Text
	}
	var text string
	require.NoError(t, json.Unmarshal(e.Partial, &text))
	return text
}

func (e *expectation) checkMessage(t *testing.T, r result) {
	t.Helper()
	require.NotNil(t, r.message, "no message: %v", r.err)
	m := r.message
	require.Equal(t, e.StopReason, m.StopReason)
	if e.RawStopReason != nil {
		require.Equal(t, *e.RawStopReason, m.RawStopReason)
	}
	e.Text.check(t, "text", m.TextContent())
	e.Thinking.check(t, "thinking", m.ThinkingContent())
	if e.Model != "" {
		require.Equal(t, e.Model, m.Model)
	}
	e.checkCalls(t, m)
	e.checkUsage(t, m.Usage)
	e.checkOpaque(t, m)
}

func (e *expectation) checkCalls(t *testing.T, m *agentkernel.Message) {
	t.Helper()
	calls := m.ToolCalls()
	require.Len(t, calls, len(e.ToolCalls), "%+v", calls)
	seen := map[string]bool{}
	for i, want := range e.ToolCalls {
		got := calls[i]
		require.Equal(t, want.Name, got.Name)
		require.NotEmpty(t, got.ID)
		require.False(t, seen[got.ID], "two calls with id %q", got.ID)
		seen[got.ID] = true
		if want.ID != "" && !strings.HasPrefix(want.ID, "<generated") {
			require.Equal(t, want.ID, got.ID)
		}
		if want.CutOff || want.Invalid {
			require.NotEmpty(t, got.ArgsError)
			require.NotEmpty(t, got.RawArgs)
			continue
		}
		require.Empty(t, got.ArgsError)
		if want.Args[0] == '{' {
			require.JSONEq(t, string(want.Args), string(got.Args))
		}
		if extra := e.Extras[got.ID]; extra != nil {
			require.JSONEq(t, string(extra), string(blockOf(m, got.ID).Extra))
		}
	}
}

func blockOf(m *agentkernel.Message, id string) agentkernel.ContentBlock {
	for _, b := range m.Content {
		if b.ToolCall != nil && b.ToolCall.ID == id {
			return b
		}
	}
	return agentkernel.ContentBlock{}
}

func (e *expectation) checkUsage(t *testing.T, got *agentkernel.Usage) {
	t.Helper()
	if e.Usage == nil {
		return
	}
	require.NotNil(t, got)
	numbers := map[string]float64{
		"input": float64(got.Input), "output": float64(got.Output), "total": float64(got.Total),
		"cache_read": float64(got.CacheRead), "cache_write": float64(got.CacheWrite), "reasoning": float64(got.Reasoning),
	}
	if got.Cost != nil {
		numbers["cost"] = *got.Cost
	}
	for name, want := range e.Usage {
		if want != nil {
			require.Equal(t, *want, numbers[name], name)
		}
	}
}

// checkOpaque looks at the opaque data of the thinking.
func (e *expectation) checkOpaque(t *testing.T, m *agentkernel.Message) {
	t.Helper()
	for _, b := range m.Content {
		if b.Type != agentkernel.ContentThinking {
			continue
		}
		if e.Signature != "" {
			require.Equal(t, e.Signature, b.Signature)
		}
		if len(e.ThinkingExtra) > 0 {
			require.JSONEq(t, string(e.ThinkingExtra), string(b.Extra))
		}
		return
	}
	require.Empty(t, e.Signature)
	require.Empty(t, e.ThinkingExtra)
}

// cutEverywhere cuts a recording off at each chunk before its end, and at some places within.
func cutEverywhere(t *testing.T, s *wireServer, c conformanceCase, seed uint64) {
	m := s.model(t, Config{})
	end, bounds := terminal(c.wire.body)
	r := rand.New(rand.NewPCG(seed, 1))
	for range min(end, 12) {
		bounds = append(bounds, r.IntN(end))
	}
	for _, at := range bounds {
		cut := c.wire
		cut.body = c.wire.body[:at]
		s.wire.Store(&cut)
		got := converse(t, m, 0)
		require.Nil(t, got.message, "cut at %d of %d: a finished message", at, len(c.wire.body))
		failure, ok := errors.AsType[*agentkernel.Error](got.err)
		require.True(t, ok)
		require.Contains(t, []agentkernel.Kind{agentkernel.KindStreamTruncated, agentkernel.KindProtocol}, failure.Kind,
			"cut at %d of %d: %v", at, len(c.wire.body), failure)
	}
}

// terminal returns where the frame begins that ends the answer, and where the chunks before it end.
func terminal(body []byte) (end int, bounds []int) {
	bounds = []int{0}
	for at := 0; at < len(body); {
		line := body[at:]
		if i := bytes.IndexAny(line, "\r\n"); i >= 0 {
			line = line[:i+1]
		}
		if isTerminal(bytes.TrimSpace(line)) {
			return at, bounds
		}
		at += len(line)
		if len(bytes.TrimSpace(line)) == 0 {
			bounds = append(bounds, at)
		}
	}
	return len(body), bounds
}

func isTerminal(line []byte) bool {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return false
	}
	data = bytes.TrimSpace(data)
	var frame struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
		}
		Error any
	}
	_ = json.Unmarshal(data, &frame)
	for _, c := range frame.Choices {
		if c.FinishReason != "" {
			return true
		}
	}
	return frame.Error != nil || string(data) == "[DONE]"
}
