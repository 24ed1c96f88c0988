package main

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
)

const help = `Enter sends; while the model works it steers. Esc aborts. Ctrl+C twice quits.
/new        begin a new session
/sessions   list the stored ones
/resume N   go on with one of them
/quit       quit`

// key is what a key does.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	if name == "ctrl+c" {
		return m.leave()
	}
	m.leaving = false
	switch {
	case name == "enter":
		return m.enter()
	case name == "esc":
		return m.escape()
	case m.question() != nil && m.input.Value() == "" && m.answer(name):
		return m.printQuestion() // the next one
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return cmd
}

// answer answers the question that is shown, if the key is one of its answers.
func (m *model) answer(key string) bool {
	a := m.question()
	switch {
	case key == "y":
		a.give(answerYes)
	case key == "n":
		a.give(answerNo)
	case key == "a" && a.mayAlways():
		a.give(answerAlways)
	default:
		return false
	}
	m.unask(a)
	return true
}

// escape aborts the run that is active; else it empties the line.
func (m *model) escape() tea.Cmd {
	if m.feed.state.IsRunning {
		m.chat.stop()
	} else {
		m.input.Reset()
	}
	return nil
}

// enter sends the line, or does what it commands.
func (m *model) enter() tea.Cmd {
	text := strings.TrimSpace(m.input.Value())
	m.input.Reset()
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "/"):
		return m.command(strings.Fields(text))
	}
	return func() tea.Msg { // it may wait for a run that is just ending
		if err := m.chat.say(text); err != nil {
			return failedMsg{err}
		}
		return nil
	}
}

func (m *model) command(words []string) tea.Cmd {
	switch words[0] {
	case "/help":
		return m.print(block{kind: blockNote, text: help})
	case "/quit":
		return tea.Quit
	case "/sessions":
		return m.sessions()
	case "/new":
		if err := m.chat.create(); err != nil {
			return m.print(block{kind: blockError, text: err.Error()})
		}
		m.feed = feed{}
		return m.print(block{kind: blockNote, text: "session " + m.chat.session.name})
	case "/resume":
		n, err := strconv.Atoi(strings.Join(words[1:], " "))
		if err != nil {
			return m.print(block{kind: blockError, text: "/resume takes a number: see /sessions"})
		}
		return m.resume(n)
	}
	return m.print(block{kind: blockError, text: fmt.Sprintf("%s is no command: see /help", words[0])})
}
