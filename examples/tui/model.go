package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/spinner"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/agentkernel-go/agentkernel"
)

// model is the screen. What it shows of the agent is in feed; the rest is what only a screen
// has: the line that is typed, the questions, what waits to be printed.
type model struct {
	chat  *chat
	feed  feed
	paint painter
	input textinput.Model
	spin  spinner.Model
	// height is the terminal's, 0 until it is known.
	height int
	// asks are the questions that wait for an answer. The first one is shown.
	asks []*ask
	// listed are the names of the sessions as they were listed last.
	listed []string
	// lines wait to be printed; printing holds while some are on their way, and at first: until
	// the renderer has drawn once it would print over what is there.
	lines    []string
	printing bool
	spinning bool
	// leaving holds for a moment after ctrl+c; presses tells which one.
	leaving bool
	presses int
}

// What the screen tells itself.
type (
	printedMsg struct{}
	failedMsg  struct{ error }
	stayMsg    struct{ press int }
)

// firstFrame is longer than the renderer takes to draw for the first time.
const firstFrame = 100 * time.Millisecond

// newModel is a screen of the chat that goes on with a feed.
func newModel(c *chat, f feed) *model {
	m := &model{chat: c, feed: f, printing: true,
		input: textinput.New(), spin: spinner.New(spinner.WithSpinner(spinner.MiniDot))}
	m.input.Prompt = "› "
	m.input.Placeholder = "say something"
	m.paint.resize(80)
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	ready := tea.Tick(firstFrame, func(time.Time) tea.Msg { return printedMsg{} })
	return tea.Batch(m.input.Focus(), tea.RequestBackgroundColor, ready)
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case eventMsg:
		done := m.feed.fold(agentkernel.Event(msg))
		if err := m.chat.session.journal.Err(); err != nil && msg.Type == agentkernel.EventAgentEnd {
			done = append(done, block{kind: blockError, text: "the session is not stored: " + err.Error()})
		}
		return m, tea.Batch(m.print(done...), m.printQuestion(), m.spinWhileRunning())
	case askMsg:
		m.asks = append(m.asks, msg.ask)
		return m, m.printQuestion()
	case unaskMsg:
		m.unask(msg.ask)
		return m, m.printQuestion() // the next one
	case printedMsg:
		m.printing = false
		return m, m.printNext()
	case failedMsg:
		return m, m.print(block{kind: blockError, text: msg.Error()})
	case stayMsg:
		m.leaving = m.leaving && msg.press != m.presses
	case spinner.TickMsg:
		return m, m.spun(msg)
	case tea.WindowSizeMsg:
		m.height = msg.Height
		m.paint.resize(msg.Width)
		m.input.SetWidth(max(msg.Width-4, 10))
	case tea.BackgroundColorMsg:
		m.paint.background(!msg.IsDark())
	case tea.KeyPressMsg:
		return m, m.key(msg)
	default: // a paste, the blinking of the cursor
		var cmd tea.Cmd
		m.input, cmd = m.input.Update(msg)
		return m, cmd
	}
	return m, nil
}

// print puts blocks above the live area. The commands of two updates may overtake each other,
// so there is only one at a time.
func (m *model) print(blocks ...block) tea.Cmd {
	for _, b := range blocks {
		m.lines = append(m.lines, m.paint.block(b)...)
	}
	return m.printNext()
}

// printNext prints some of the lines that wait: as many as there is room for.
func (m *model) printNext() tea.Cmd {
	if m.printing || len(m.lines) == 0 || m.height == 0 {
		return nil
	}
	n := min(len(m.lines), m.printRoom())
	text := strings.Join(m.lines[:n], "\n")
	if text == "" {
		text = " " // nothing would be printed
	}
	m.lines, m.printing = m.lines[n:], true
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

// spinWhileRunning starts the spinner where a run is active; it stops by itself.
func (m *model) spinWhileRunning() tea.Cmd {
	if m.spinning || !m.feed.state.IsRunning {
		return nil
	}
	m.spinning = true
	return m.spin.Tick
}

func (m *model) spun(msg spinner.TickMsg) tea.Cmd {
	if !m.feed.state.IsRunning {
		m.spinning = false
		return nil
	}
	var cmd tea.Cmd
	m.spin, cmd = m.spin.Update(msg)
	return cmd
}

// question is the one that is shown, or nil. The gate asks while the events are on their way:
// its question waits until its call is on the screen, so that it stands behind what came before.
func (m *model) question() *ask {
	for _, a := range m.asks {
		if m.feed.card(a.req.Call.ID) != nil {
			return a
		}
	}
	return nil
}

// printQuestion prints the question that is shown, once, where the dialog has no room for all
// that it is about: nobody should allow what they cannot see.
func (m *model) printQuestion() tea.Cmd {
	a := m.question()
	if a == nil || a.shown {
		return nil
	}
	a.shown = true
	if whole := m.paint.question(a); len(whole) > m.dialogRoom() {
		m.lines = append(append(m.lines, whole...), "")
	}
	return m.printNext()
}

func (m *model) unask(gone *ask) {
	for i, a := range m.asks {
		if a == gone {
			m.asks = append(m.asks[:i:i], m.asks[i+1:]...)
			return
		}
	}
}

// leave quits at the second press within two seconds; the first one empties the line.
func (m *model) leave() tea.Cmd {
	if m.leaving {
		return tea.Quit
	}
	m.input.Reset()
	m.presses++
	m.leaving = true
	press := m.presses
	return tea.Tick(2*time.Second, func(time.Time) tea.Msg { return stayMsg{press} })
}

// sessions shows the stored sessions, numbered from the last used one.
func (m *model) sessions() tea.Cmd {
	list, err := m.chat.sessions.list()
	if err != nil {
		return m.print(block{kind: blockError, text: err.Error()})
	}
	m.listed = nil
	text := "No session is stored yet."
	if len(list) > 0 {
		text = "Sessions; /resume N goes on with one:"
	}
	for i, s := range list {
		m.listed = append(m.listed, s.name)
		here := ""
		if s.name == m.chat.session.name {
			here = " (this one)"
		}
		text += fmt.Sprintf("\n%d  %s  %s%s", i+1, s.name, fit(s.title, 40), here)
	}
	return m.print(block{kind: blockNote, text: text})
}

// resume goes on with the n-th of the sessions that were listed last.
func (m *model) resume(n int) tea.Cmd {
	if n < 1 || n > len(m.listed) {
		return m.print(block{kind: blockError, text: "there is no such session: see /sessions"})
	}
	f, shown, err := m.chat.resume(m.listed[n-1])
	if err != nil {
		return m.print(block{kind: blockError, text: err.Error()})
	}
	m.feed = f
	return m.print(resumed(m.chat.session.name, shown)...)
}

// maxShown bounds how much of a stored session is shown again.
const maxShown = 200

// resumed is what the screen shows of a session that goes on.
func resumed(name string, shown []block) []block {
	head := "session " + name
	if n := len(shown) - maxShown; n > 0 {
		head += fmt.Sprintf(", without its first %d blocks", n)
		shown = shown[n:]
	}
	return append([]block{{kind: blockNote, text: head}}, shown...)
}
