package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/internal/demotest"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const product = `{"expression":"6*7"}`

var errDown = &agentkernel.Error{Kind: agentkernel.KindServer, Op: "model", Retryable: true, Err: errors.New("down\nfor now")}

// scenarios are runs of which much goes otherwise than in the offline one.
var scenarios = []struct {
	name    string
	replies []agenttest.Reply
}{
	{"thinks, speaks and calls", []agenttest.Reply{
		agenttest.Thinking("Let me ").Thinking("see.").Text("I shall ").Text("count.").Call("a", toolName, product),
		agenttest.Text("42\n"),
	}},
	{"is tried again", []agenttest.Reply{
		agenttest.Fail(errDown),
		agenttest.Text("It is").Fail(errDown),
		agenttest.Call("a", toolName, product).EndsWithoutDone(),
		agenttest.Text("42"),
	}},
	{"fails", []agenttest.Reply{agenttest.Text("It is").Fail(errors.New("broken"))}},
	{"calls wrongly", []agenttest.Reply{
		agenttest.Call("a", "abacus", `{}`).Call("b", toolName, `{"expression":`).Call("c", toolName, `{"sum":1}`).
			Call("d", toolName, `{"expression":"rm(1)"}`).Call("e", toolName, product),
		agenttest.Text("42"),
	}},
	{"is cut", []agenttest.Reply{
		agenttest.Text("It").Stop(agentkernel.StopReasonLength),
		agenttest.Text("is.").Stop(agentkernel.StopReasonLength),
		agenttest.Text("So.").Stop(agentkernel.StopReasonLength),
		agenttest.Text("Yes").Stop(agentkernel.StopReasonLength),
	}},
	{"refuses", []agenttest.Reply{agenttest.Text("No.").Stop(agentkernel.StopReasonRefusal)}},
	{"says nothing", []agenttest.Reply{agenttest.Text(""), agenttest.Thinking("Hm.")}},
	{"panics", []agenttest.Reply{agenttest.Panic("oops")}},
	{"obeyed by a terminal", []agenttest.Reply{
		agenttest.Text("\x1b[2J").Text("a\rb").Call("a", "\x1b[1m", `{"\u001b[0m":1}`),
		agenttest.Text("\x1b]0;x\a"),
	}},
}

// TestScenarios compares what is shown with a file, and the number of steps with the record's.
func TestScenarios(t *testing.T) {
	var all strings.Builder
	for _, tt := range scenarios {
		demotest.InBubble(t, tt.name, func(t *testing.T) {
			cfg := config(agenttest.Script(tt.replies...), 3)
			cfg.Retry.Jitter = -1
			agent, err := agentkernel.NewAgent(cfg)
			require.NoError(t, err)
			var out bytes.Buffer
			showSteps(agent, &out)
			countTokens(agent, &out, false)
			record, _ := agent.Run(t.Context(), "6*7?")
			shown := regexp.MustCompile(`messages?, (\d+) steps?,`).FindStringSubmatch(out.String())
			require.NotNil(t, shown, out.String())
			assert.Equal(t, strconv.Itoa(len(record.Steps)), shown[1])
			assert.NotRegexp(t, `[\x00-\x08\x0b-\x1f]`, out.String())
			fmt.Fprintf(&all, "--- %s\n%s\n", tt.name, runID.ReplaceAllString(out.String(), "ID"))
		})
	}
	agenttest.Golden(t, filepath.Join("testdata", "scenarios.txt"), all.String())
}

// TestSecondRun: everything is counted anew.
func TestSecondRun(t *testing.T) {
	demotest.InBubble(t, "", func(t *testing.T) {
		agent, err := agentkernel.NewAgent(config(agenttest.Script(agenttest.Text("Hi."), agenttest.Text("Ho.")), 0))
		require.NoError(t, err)
		var out bytes.Buffer
		showSteps(agent, &out)
		countTokens(agent, &out, false)
		for range 2 {
			_, err := agent.Run(t.Context(), "Hi?")
			require.NoError(t, err)
		}
		assert.Equal(t, 2, strings.Count(out.String(), "\n\nStep 1 · model → answers\nH"))
		assert.Equal(t, 2, strings.Count(out.String(), "\n\nTotals  1 turn, 2 messages, 1 step, 0 ms\n"))
	})
}

// TestTokensLive: the title's number grows with the text, and is the endpoint's in the end.
func TestTokensLive(t *testing.T) {
	demotest.InBubble(t, "", func(t *testing.T) {
		model := agenttest.Script(
			agenttest.Text(strings.Repeat("word ", 20)).Chunks(5).Usage(agentkernel.Usage{Input: 1000, Output: 30, Total: 1030}).Call("a", toolName, product),
			agenttest.Text(strings.Repeat("word ", 20)).Chunks(5),
		)
		agent, err := agentkernel.NewAgent(config(model, 0))
		require.NoError(t, err)
		var out bytes.Buffer
		countTokens(agent, &out, true)
		_, err = agent.Run(t.Context(), "6*7?")
		require.NoError(t, err)

		var titles []int
		for _, title := range regexp.MustCompile(`\x1b\]2;(\d+) tokens\x1b\\`).FindAllStringSubmatch(out.String(), -1) {
			n, err := strconv.Atoi(title[1])
			require.NoError(t, err)
			titles = append(titles, n)
		}
		require.Len(t, titles, 1+20+1+1+1+20+1) // requests, increments, the call, ends
		assert.IsNonDecreasing(t, titles)
		assert.Less(t, titles[21], 100, "an estimate")
		assert.Equal(t, 1030, titles[22], "counted")
		assert.Greater(t, titles[44], 1030+25)
		assert.True(t, strings.HasPrefix(out.String(), "\x1b[22;2t\x1b]2;"), "the old title is kept")
		assert.Regexp(t, `\x1b\[23;2tTokens  1000 in, 30 out, about \d+ not counted by the endpoint\n$`, out.String())
	})
}

// TestJournal: what one program did the next one knows, however the first one ended.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.jsonl")
	talk := func(want int, prompt string) agentkernel.AgentState {
		got := demotest.Run(t.Context(), run, nil, false, "-journal", path, "-prompt", prompt)
		assert.Equal(t, want, got.Code, got.Stderr)
		j, err := journal.Open(path, journal.Config{})
		require.NoError(t, err)
		defer j.Close()
		state, err := journal.Restore(j)
		require.NoError(t, err)
		var events []agentkernel.Event
		for ev, err := range journal.Events(j, false) {
			require.NoError(t, err)
			if ev.Type != agentkernel.EventSnapshot {
				events = append(events, ev)
			}
		}
		assert.NoError(t, agenttest.CheckEvents(events))
		return state
	}
	assert.Len(t, talk(0, "6*7?").Messages, 4)

	// The run was interrupted behind its call.
	demotest.InBubble(t, "interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, interrupt)
		got := demotest.Run(ctx, run, nil, false, "-journal", path, "-prompt", "5*5?")
		got.Want(t, 130, "cli: interrupted\n")
		demotest.Contains(t, got.Stdout, `calculator({"expression":"5*5"}) = 25`)
	})

	// The writer died within a record.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"v":1,"type":"agent_st`)
	require.NoError(t, errors.Join(err, file.Close()))

	messages := talk(0, "1/0?").Messages
	var said []string
	for _, m := range messages {
		said = append(said, m.TextContent())
	}
	assert.Equal(t, []string{
		"6*7?", "", "42", "6*7 is 42.",
		"5*5?", "", "25", "5*5 is ",
		"1/0?", "", "division by zero", "1/0 cannot be worked out: division by zero.",
	}, said)
}

func TestCalculate(t *testing.T) {
	for expression, want := range map[string]string{
		"6 * 7": "42", "1 + 2 * 3": "7", "(1 + 2) * 3": "9", "2 ^ 3 ^ 2": "512", "2 ** -1": "0.5", "-2 ^ 2": "-4",
		"0.1 + 0.2": "0.3", "1e3": "1000", "10 / 4": "2.5", "7 % 4": "3", "-7 % 4": "-3", "0 * -1": "0", "+5": "5",
		"2 ^ 40": "1099511627776", "1 / 3": "0.333333333333333", "sqrt(2) ^ 2": "2", "abs(-3)": "3", "round(pi)": "3", "ln(e)": "1",
	} {
		got, err := calculate(expression)
		assert.NoError(t, err, expression)
		assert.Equal(t, want, got, expression)
	}
	for expression, want := range map[string]string{
		"": "column 1: unexpected token EOF", "2 +": "column 3: ", "(1": "column ", "1 2": "column 3: ", "6 × 7": "column 3: ",
		"1 / 0": "division by zero", "1 % 0": "division by zero", "0 ^ -1": "division by zero", "1 / (1 / 0)": "division by zero",
		"9 ^ 9 ^ 9": "too large", "sqrt(-1)": "no number", "ln(0)": "too large", "99999999999999999999": "out of range",
		"x + 1": "x is unknown", "x(1)": "x is unknown", "sqrt()": "one number", "sqrt(1, 2)": "one number", "max(1, 2)": "max is unknown",
		"1 == 1": "== is not arithmetic", "not 1": "not is not arithmetic", "true": "not arithmetic", `"a" + "b"`: "not arithmetic",
		"[1, 2]": "not arithmetic", "1..3": ".. is not arithmetic", "1 ? 2 : 3": "not arithmetic", "let x = 1; x": "not arithmetic",
		"os.Exit(1)": "is unknown", "map(1..9, # * 2)": "map is unknown", strings.Repeat("(", 2000): "may have 1000",
	} {
		got, err := calculate(expression)
		assert.ErrorContains(t, err, want, expression)
		assert.Empty(t, got, expression)
	}
}

// FuzzCalculate: an expression is worked out to a finite number, or is an error; at once.
func FuzzCalculate(f *testing.F) {
	for _, seed := range []string{"6 * 7", "-(2 + 3) ^ 0.5", "sqrt(2) / 0", "a.b[1:2]?.c", "let x = 1; {x: x | map(#)}", `"\u00"`, "((((("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		began := time.Now()
		got, err := calculate(expression)
		if err == nil {
			_, err := strconv.ParseFloat(got, 64)
			require.NoError(t, err)
			require.NotContains(t, got, "Inf")
			require.NotContains(t, got, "NaN")
		}
		require.Less(t, time.Since(began), 10*time.Second)
	})
}
