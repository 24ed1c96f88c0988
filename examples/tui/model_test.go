package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// desk is a screen without a terminal, and what its chat sent to it.
type desk struct {
	t *testing.T
	*model
	sent chan any
	// last is what the last key wants done.
	last tea.Cmd
}

func newDesk(t *testing.T, model agentkernel.ChatModel, tools ...agentkernel.Tool) *desk {
	d := &desk{t: t, sent: make(chan any, 10_000)}
	c, err := newChat(agentkernel.Config{Model: model, Tools: tools}, store{t.TempDir()}, func(msg any) { d.sent <- msg })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.close()) })
	d.model = newModel(c, feed{})
	d.Init()
	d.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	return d
}

// update hands the screen a message, and returns what it wants done.
func (d *desk) update(msg tea.Msg) tea.Cmd {
	_, cmd := d.Update(msg)
	return cmd
}

// settle takes what was sent until nothing comes any more.
func (d *desk) settle() {
	for synctest.Wait(); len(d.sent) > 0; synctest.Wait() {
		d.update(<-d.sent)
	}
}

// press presses keys: names such as "enter", or texts to type.
func (d *desk) press(keys ...string) {
	codes := map[string]tea.Key{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}}
	for _, key := range keys {
		if k, special := codes[key]; special {
			d.last = d.update(tea.KeyPressMsg(k))
			if key == "enter" && d.last != nil {
				d.update(d.last())
			}
			continue
		}
		for _, r := range key {
			d.update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// printed is what waits to be printed, since nobody takes it.
func (d *desk) printed() string {
	return plainText(strings.Join(d.lines, "\n"))
}

func (d *desk) screen() string { return plainText(d.View().Content) }

// hold keeps what is printed in lines.
func (d *desk) hold() *desk {
	d.printing = true
	return d
}

func inBubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestPromptAndSteer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		release := make(chan struct{})
		d := newDesk(t, agenttest.Script(agenttest.Calls("wait"), agenttest.Text("As you say.")),
			tool("wait", func(context.Context) (string, error) { <-release; return "waited", nil })).hold()
		d.press("hello", "enter")
		d.settle()
		assert.Contains(t, d.screen(), "◌ wait")
		d.press("and more", "enter")
		d.settle()
		assert.Contains(t, d.screen(), "⤷ and more")
		close(release)
		d.settle()
		assert.NotContains(t, d.screen(), "⤷")
		assert.Regexp(t, `(?s)› hello.*● wait.*› and more.*As you say`, d.printed())
		d.press("   ", "enter", "enter")
		d.settle()
		assert.Len(t, d.chat.agent.Messages(), 5, "nothing is said where there is no text")
	})
}

func TestEscape(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDesk(t, agenttest.Script(agenttest.Text("Once upon").Stall(), agenttest.Text("Fine."))).hold()
		d.press("a story", "enter")
		d.settle()
		assert.Contains(t, d.screen(), "Once upon")
		d.press("meanwhile", "enter", "typed")
		d.settle()
		d.press("esc")
		d.settle()
		assert.Regexp(t, `(?s)› a story.*Once upon.*aborted`, d.printed())
		assert.Empty(t, d.chat.steering.Items(), "what was said to the run goes with it")
		assert.Equal(t, "typed", d.input.Value())
		d.press("esc")
		assert.Empty(t, d.input.Value(), "where nothing runs it empties the line")
		d.press("next", "enter")
		d.settle()
		assert.Contains(t, d.printed(), "Fine.")
	})
}

func TestCtrlC(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDesk(t, agenttest.Script())
		d.press("typed", "ctrl+c")
		assert.Empty(t, d.input.Value())
		assert.Contains(t, d.screen(), "ctrl+c again quits")
		d.press("x", "ctrl+c")
		assert.Equal(t, stayMsg{2}, d.last(), "another key came between")
		d.update(stayMsg{1})
		assert.True(t, d.leaving, "that was of the first press")
		d.update(stayMsg{2})
		assert.False(t, d.leaving, "the second press must follow soon")
		d.press("ctrl+c", "ctrl+c")
		assert.Equal(t, tea.QuitMsg{}, d.last())
	})
}

// changes is a tool that a person is asked for.
func changes(name string, ran *int) agentkernel.Tool {
	tool := alone(name, func(context.Context) (string, error) { *ran++; return "changed", nil })
	tool.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
		return agentkernel.ProgressPayload{Text: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"}, nil
	}
	return tool
}

func TestDialog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ran := 0
		d := newDesk(t, agenttest.Script(agenttest.Calls("change"), agenttest.Calls("change"), agenttest.Calls("change", "change"), agenttest.Text("So.")),
			changes("change", &ran)).hold()
		d.press("go", "enter")
		d.settle()
		assert.Contains(t, d.screen(), "? May it change?\n  │ @@ -1 +1 @@\n  │ -old\n  │ +new\n  y: yes · n: no · a: always change")
		d.press("hm")
		assert.Contains(t, d.screen(), "empty the line below to answer")
		d.press("y", "n")
		d.settle()
		assert.NotNil(t, d.question(), "who types does not answer")
		d.input.Reset()
		d.press("n")
		d.settle()
		assert.Equal(t, 0, ran)
		assert.Regexp(t, `✗ change · denied.*\n(.*\n)*.*The user said no`, d.printed())
		d.press("y")
		d.settle()
		assert.Equal(t, 1, ran)
		d.press("a")
		d.settle()
		assert.Equal(t, 3, ran, "always")
		assert.Nil(t, d.question())
		assert.Contains(t, d.printed(), "So.")
	})
}

// TestDialogGone: a question goes with its run, and with what made it pointless.
func TestDialogGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ran := 0
		d := newDesk(t, agenttest.Script(agenttest.Calls("change"), agenttest.Text("As you say."), agenttest.Calls("change")),
			changes("change", &ran)).hold()
		d.press("go", "enter")
		d.settle()
		require.NotNil(t, d.question())
		d.press("rather not", "enter")
		d.settle()
		assert.Nil(t, d.question())
		assert.Regexp(t, `(?s)✗ change · skipped.*› rather not.*As you say`, d.printed())
		d.press("go", "enter")
		d.settle()
		require.NotNil(t, d.question())
		d.press("esc")
		d.settle()
		assert.Nil(t, d.question())
		assert.Contains(t, d.printed(), "aborted")
		assert.Equal(t, 0, ran)
	})
}

func TestCommands(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDesk(t, agenttest.Script(agenttest.Text("One."), agenttest.Text("Two."), agenttest.Text("Three.").Stall())).hold()
		d.press("/help", "enter", "/nope", "enter", "/resume", "enter", "/resume 1", "enter", "/sessions", "enter")
		for _, want := range []string{"Esc aborts", "/nope is no command", "/resume takes a number", "there is no such session", "No session is stored"} {
			assert.Contains(t, d.printed(), want)
		}
		d.press("first", "enter")
		d.settle()
		one := d.chat.session.name
		time.Sleep(time.Second)
		d.press("/new", "enter", "second", "enter")
		d.settle()
		require.NotEqual(t, one, d.chat.session.name)
		require.Len(t, d.chat.agent.Messages(), 2, "a new session begins with nothing")
		d.lines = nil
		d.press("/sessions", "enter")
		assert.Regexp(t, `(?s)second \(this one\)|first`, d.printed())
		d.press("/resume "+d.number("second"), "enter")
		assert.Contains(t, d.printed(), "that is this session")
		d.lines = nil
		d.press("/resume "+d.number("first"), "enter")
		assert.Equal(t, one, d.chat.session.name)
		assert.Regexp(t, `(?s)! session .*› first.*One\..*── stop`, d.printed())
		d.press("third", "enter", "/new", "enter") // at once
		d.settle()
		require.Len(t, d.chat.agent.Messages(), 3)
		d.press("/resume "+d.number("second"), "enter")
		assert.Equal(t, 2, strings.Count(d.printed(), "already active"), "not while a run is active")
		d.press("esc")
		d.settle()
		d.press("/quit", "enter")
		assert.Equal(t, tea.QuitMsg{}, d.last())
	})
}

// number is the number of the session with that title, as it was listed last.
func (d *desk) number(title string) string {
	list, err := d.chat.sessions.list()
	require.NoError(d.t, err)
	for i, name := range d.listed {
		for _, s := range list {
			if s.name == name && s.title == title {
				return string(rune('1' + i))
			}
		}
	}
	require.Fail(d.t, "it is not listed", title)
	return ""
}

// TestPrinting: one print is on its way at a time, since two could overtake each other, and
// none is higher than what the live area leaves.
func TestPrinting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDesk(t, agenttest.Script())
		assert.Nil(t, d.print(block{kind: blockNote, text: strings.Repeat("line\n", 30)}), "nothing was drawn yet")
		assert.NotNil(t, d.update(printedMsg{}))
		assert.Len(t, d.lines, 31-8)
		assert.Nil(t, d.print(block{kind: blockNote, text: "next"}))
		assert.Len(t, d.lines, 31-8+2)
		for range 5 {
			d.update(printedMsg{})
		}
		assert.Empty(t, d.lines)
		assert.False(t, d.printing)
	})
}

// TestHeight: the live area is never higher than the terminal, and what is newest shows.
func TestHeight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ran := 0
		d := newDesk(t, agenttest.Script(agenttest.Text(strings.Repeat("word ", 2000)+"last").Calls("change").Stall()), changes("change", &ran)).hold()
		d.press("go", "enter")
		d.settle()
		for _, height := range []int{24, 8, 4, 2, 1} {
			d.update(tea.WindowSizeMsg{Width: 80, Height: height})
			lines := strings.Split(d.screen(), "\n")
			assert.LessOrEqual(t, len(lines), max(height-max(height/3, 1), 2))
		}
		d.update(tea.WindowSizeMsg{Width: 30, Height: 12})
		assert.Contains(t, d.screen(), "word last")
		for line := range strings.SplitSeq(d.screen(), "\n") {
			assert.LessOrEqual(t, len([]rune(line)), 30, "%q", line)
		}
	})
}

// TestLongQuestion: of a question that is higher than the terminal all is printed, so that
// nobody allows what they cannot see.
func TestLongQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ran := 0
		d := newDesk(t, agenttest.Script(agenttest.Calls("change"), agenttest.Text("So.")), changes("change", &ran)).hold()
		d.update(tea.WindowSizeMsg{Width: 80, Height: 8})
		d.press("go", "enter")
		d.settle()
		assert.NotContains(t, d.screen(), "+new")
		assert.Contains(t, d.screen(), "all of it is printed above")
		assert.Contains(t, d.printed(), "? May it change?\n  │ @@ -1 +1 @@\n  │ -old\n  │ +new\n")
		d.press("y")
		d.settle()
		assert.Equal(t, 1, ran)
	})
}

// TestEarlyQuestion: a question that comes before the events of its call waits for them.
func TestEarlyQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ran := 0
		d := newDesk(t, agenttest.Script(agenttest.Text("I change it.").Calls("change"), agenttest.Text("So.")), changes("change", &ran)).hold()
		d.press("go", "enter")
		synctest.Wait()
		var events []any
		for len(d.sent) > 0 {
			if msg := <-d.sent; d.isAsk(msg) {
				d.update(msg)
			} else {
				events = append(events, msg)
			}
		}
		require.Len(t, d.asks, 1)
		assert.NotContains(t, d.screen(), "May it")
		d.press("y")
		assert.Len(t, d.asks, 1, "what does not show is not answered")
		d.input.Reset()
		for _, msg := range events {
			d.update(msg)
		}
		assert.Contains(t, d.screen(), "? May it change?")
		d.press("y")
		d.settle()
		assert.Equal(t, 1, ran)
	})
}

func (d *desk) isAsk(msg any) bool {
	_, is := msg.(askMsg)
	return is
}

// TestUnstored: where the session cannot be written the screen says so.
func TestUnstored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDesk(t, agenttest.Script(agenttest.Text("So."))).hold()
		require.NoError(t, d.chat.session.journal.Close())
		d.press("go", "enter")
		d.settle()
		assert.Contains(t, d.printed(), "! the session is not stored: ")
		require.NoError(t, d.chat.create(), "the next one may be")
		require.Error(t, d.chat.lost)
		d.chat.lost = nil
	})
}

// TestSlowScreen: a screen that takes nothing does not slow the run.
func TestSlowScreen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		stuck := make(chan struct{})
		c, err := newChat(agentkernel.Config{Model: agenttest.Script(agenttest.Text(strings.Repeat("word ", 1000)).Chunks(5).Delay(time.Millisecond))},
			store{t.TempDir()}, func(any) { <-stuck })
		require.NoError(t, err)
		record, err := c.agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		assert.Less(t, record.Summary.Duration, 1100*time.Millisecond)
		close(stuck)
		require.NoError(t, c.close())
	})
}

// TestFailedPrompt: a run that cannot begin says why.
func TestFailedPrompt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDesk(t, agenttest.Script()).hold()
		d.update(failedMsg{errors.New("no luck")})
		assert.Contains(t, d.printed(), "! no luck")
	})
}

// TestClean: what a model, a file or a command says cannot command the terminal.
func TestClean(t *testing.T) {
	evil := "a\x1b[2Jb\x1b]0;title\x07c\r\nd\te\u202ef\u009bg"
	assert.Equal(t, "a[2Jb]0;titlec\nd    efg", clean(evil))
	var p painter
	p.resize(60)
	c := &card{title: evil, diff: "+" + evil, output: evil, status: evil, denied: evil, result: evil,
		children: []*child{{prompt: evil, says: evil, steps: []step{{title: evil}}}}}
	for _, cause := range []agentkernel.ToolCause{"", agentkernel.ToolOK, agentkernel.ToolFailed} {
		c.cause = cause
		for _, kind := range []blockKind{blockUser, blockThinking, blockAnswer, blockCard, blockNote, blockError, blockEnd} {
			for _, line := range p.block(block{kind: kind, text: evil, card: c}) {
				assert.NotContains(t, line, "\x1b[2J")
				assert.NotContains(t, line, "\x1b]")
				assert.NotContains(t, line, "\u009b")
				assert.NotContains(t, line, "\u202e")
			}
		}
	}
}

// TestDim: thinking is dimmed, what is said is not.
func TestDim(t *testing.T) {
	var p painter
	p.resize(60)
	assert.Equal(t, []string{"  \x1b[2mHm.\x1b[m", ""}, p.block(block{kind: blockThinking, text: "Hm."}))
	assert.NotContains(t, p.block(block{kind: blockAnswer, text: "So."})[0], "\x1b[2m")
}
