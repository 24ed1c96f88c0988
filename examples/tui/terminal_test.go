package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds the wait for a screen. A slow machine needs some of it; others do not.
const patience = 40 * time.Second

// terminal is the program in a terminal of tmux.
type terminal struct {
	t   *testing.T
	dir string // of the sockets and of the sessions
	// height is how many lines it has; 0 means 40.
	height int
	n      int // of the socket: each start has a server of its own, since the last one may be ending
}

// open opens a terminal. Without tmux the test is skipped, under CI it fails.
func openTerminal(t *testing.T) *terminal {
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no tmux")
		}
		t.Skip("there is no tmux")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "tui") // the path of a socket must be short
	require.NoError(t, err)
	term := &terminal{t: t, dir: dir}
	t.Cleanup(func() {
		_ = term.command("kill-server").Run()
		term.races()
		_ = os.RemoveAll(dir)
	})
	return term
}

func (term *terminal) file(name string) string { return filepath.Join(term.dir, name) }

func (term *terminal) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-f", os.DevNull, "-S", term.file(fmt.Sprint("socket", term.n))}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color", "TMUX=")
	return cmd
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := term.command(args...).CombinedOutput()
	require.NoError(term.t, err, "tmux %q: %s", args, out)
	return string(out)
}

// start starts the program, in a window that stays when it has ended.
func (term *terminal) start(env string, args ...string) {
	term.t.Helper()
	exe, err := os.Executable()
	require.NoError(term.t, err)
	_ = term.command("kill-server").Run()
	term.n++
	program := fmt.Sprintf("env -u OPENAI_API_KEY -u OPENAI_BASE_URL -u OPENAI_MODEL TMPDIR='%s' GORACE='exitcode=0 log_path=%s' %s=1 %s '%s' -sessions '%s' %s",
		term.dir, term.file("race"), asProgram, env, exe, term.file("sessions"), strings.Join(args, " "))
	// A line above it, as in a shell: tmux keeps a copy of what is erased from the first line on.
	shell := fmt.Sprintf("echo '$ tui'; sh -c \"echo \\$\\$ >'%s'; exec %s\"; printf '\\r\\nexit code %%d\\r\\n' $?; exec sleep 1000", term.file("pid"), program)
	term.tmux("new-session", "-d", "-x", "110", "-y", strconv.Itoa(cmp.Or(term.height, 40)), shell)
	term.until("›", "the input line")
}

func (term *terminal) keys(keys ...string) { term.tmux(append([]string{"send-keys"}, keys...)...) }

func (term *terminal) typed(text string) { term.tmux("send-keys", "-l", text) }

// screen is all that the terminal shows and has shown, without what differs from run to run.
func (term *terminal) screen() string {
	out, err := term.command("capture-pane", "-p", "-S", "-").CombinedOutput()
	if err != nil { // it is just starting
		return ""
	}
	return normal(string(out))
}

var (
	duration = regexp.MustCompile(`\d+(\.\d+)? m?s\b`)
	named    = regexp.MustCompile(`\d{8}-\d{6}\.\d{3}`)
)

// normal takes out of a screen what differs from run to run: times, names of sessions, and the
// order in which cards were printed whose calls ran side by side.
func normal(screen string) string {
	screen = duration.ReplaceAllString(named.ReplaceAllString(screen, "SESSION"), "TIME")
	var paragraphs []string
	for p := range strings.SplitSeq(screen, "\n\n") {
		if p = strings.Trim(p, "\n"); strings.TrimSpace(p) != "" {
			paragraphs = append(paragraphs, p)
		}
	}
	isCard := func(i int) bool { return i < len(paragraphs) && strings.HasPrefix(paragraphs[i], "● ") }
	for i := 0; i < len(paragraphs); i++ {
		from := i
		for isCard(i) {
			i++
		}
		slices.Sort(paragraphs[from:i])
	}
	return strings.Join(paragraphs, "\n\n") + "\n"
}

// until waits until the screen matches, and returns it.
func (term *terminal) until(pattern, what string) string {
	term.t.Helper()
	match := regexp.MustCompile(pattern)
	var got string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = term.screen(); match.MatchString(got) {
			return got
		}
	}
	require.Fail(term.t, "the screen does not show "+what, "%s", got)
	return ""
}

// golden waits until the screen matches, and then until it is the one in the file.
func (term *terminal) golden(name, pattern string) string {
	term.t.Helper()
	path := filepath.Join("testdata", "screens", name+".txt")
	got := term.until(pattern, name)
	want, _ := os.ReadFile(path)
	end := time.Now().Add(patience)
	if os.Getenv("AGENTTEST_UPDATE") != "" {
		end = time.Now().Add(time.Second)
		want = nil
	}
	for got != string(want) && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
		got = term.screen()
	}
	agenttest.Golden(term.t, path, got)
	if term.t.Failed() {
		term.t.FailNow()
	}
	return got
}

const exited = "exit code 0"

func (term *terminal) quit() {
	term.t.Helper()
	term.keys("C-c")
	term.until("ctrl\\+c again quits", "what the next ctrl+c does")
	term.keys("C-c")
	term.until(exited, "that it ended")
}

// races fails the test where the race detector, if there is one, found that the program's own
// code races. What the terminal library does among its own goroutines when it ends is not ours.
func (term *terminal) races() {
	logs, err := filepath.Glob(term.file("race.*"))
	require.NoError(term.t, err)
	for _, path := range logs {
		log, err := os.ReadFile(path)
		require.NoError(term.t, err)
		for report := range strings.SplitSeq(string(log), "WARNING: DATA RACE") {
			for stack := range strings.SplitSeq(report, "\n\n") {
				ours, library := strings.Index(stack, "agentkernel-go/"), strings.Index(stack, "charm")
				if strings.Contains(stack, " by ") && ours >= 0 && (library < 0 || ours < library) {
					assert.Fail(term.t, "a data race", "%s", report)
				}
			}
		}
	}
}

// signal sends the program a signal.
func (term *terminal) signal(sig os.Signal) {
	term.t.Helper()
	data, err := os.ReadFile(term.file("pid"))
	require.NoError(term.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(term.t, err)
	program, err := os.FindProcess(pid)
	require.NoError(term.t, err)
	require.NoError(term.t, program.Signal(sig))
	_ = program.Release()
}

// TestTerminalTour: a prompt, calls side by side with a sub-agent, an edit and a command that a
// person allows, an answer in markdown; then the program ends, and the next one goes on.
func TestTerminalTour(t *testing.T) {
	term := openTerminal(t)
	term.start("", "-pace 2ms")
	term.golden("start", "/help")
	term.typed("Show me what you can do.")
	term.golden("typed", "you can do")
	term.keys("Enter")
	term.golden("edit", "May it edit")
	assert.Contains(t, term.tmux("capture-pane", "-p", "-e"), "\x1b[2mThey want to see", "thinking is dimmed")
	term.typed("y")
	term.golden("command", "May it run")
	term.typed("y")
	tour := term.golden("tour", "── stop")
	term.quit()

	term.start("", "-pace 2ms", "-resume 1")
	want := strings.Replace(tour, "$ tui\n", "$ tui\n! session SESSION\n\n", 1)
	assert.Equal(t, want, term.golden("resumed", `context`), "it shows what the first one showed")
	term.typed("Be short.")
	term.keys("Enter")
	term.golden("went_on", "Short, then.*\n(?s).*── stop · 1 turn")
	term.typed("/sessions")
	term.keys("Enter")
	term.golden("sessions", "this one")
	term.quit()
}

// TestTerminalDenied: a person says no, steers at the next question, and aborts at the third.
func TestTerminalDenied(t *testing.T) {
	term := openTerminal(t)
	term.start("", "-pace 2ms")
	term.typed("Show me.")
	term.keys("Enter")
	term.until("May it edit", "the question")
	term.typed("n")
	term.golden("denied", "── stop")
	term.typed("Again.")
	term.keys("Enter")
	term.until("May it edit", "the question")
	term.typed("Make it short.")
	term.until("empty the line below", "that what is typed is no answer")
	term.keys("Enter")
	term.golden("steered", "Short, then(?s).*── stop")
	term.typed("And again.")
	term.keys("Enter")
	term.until("May it edit", "the question")
	term.keys("Escape")
	term.golden("aborted", "── aborted")
	term.quit()
}

// TestTerminalStream: the spinner turns until the first word; the text grows; what is said
// meanwhile waits; an abort keeps what was said.
func TestTerminalStream(t *testing.T) {
	term := openTerminal(t)
	words := make(chan string)
	endpoint := newEndpoint(t, func(say func(delta string), r *http.Request, _ string) {
		for {
			select {
			case word := <-words:
				say(fmt.Sprintf(`{"content":%q}`, word))
			case <-r.Context().Done():
				return
			}
		}
	})
	term.start(endpoint)
	term.typed("Tell me a story.")
	term.keys("Enter")
	term.until(`\S waiting for the model`, "the spinner")
	words <- "Once "
	first := tale(term.until("Once", "the first word"))
	assert.Equal(t, "Once", first)
	words <- "upon "
	words <- "a time "
	assert.Equal(t, "Once upon a time", tale(term.until("Once upon a time", "more words")))
	term.typed("Faster!")
	term.keys("Enter")
	term.until("⤷ Faster!", "that it waits")
	term.keys("Escape")
	term.golden("stream_aborted", "(?s)── aborted · 1 turn.*· /help")
	term.quit()
}

// tale is the paragraph that the model is writing.
func tale(screen string) string {
	_, after, _ := strings.Cut(screen, "Once")
	text, _, _ := strings.Cut("Once"+after, "\n")
	return strings.TrimSpace(text)
}

// TestTerminalKilled: a program that was killed while the model spoke is resumed, with all that
// had ended.
func TestTerminalKilled(t *testing.T) {
	term := openTerminal(t)
	term.start("", "-pace 200ms")
	term.typed("Be short.")
	term.keys("Enter")
	term.until("── stop", "the answer")
	term.typed("Tell me a story.")
	term.keys("Enter")
	term.until("Once upon a time", "the story")
	term.signal(os.Kill)
	term.until("exit code 137", "that it was killed")

	term.start("", "-pace 2ms", "-resume 1")
	term.golden("killed", "the run broke off here")
	term.typed("Be short.")
	term.keys("Enter")
	term.golden("killed_went_on", `(?s)broke off here.*── stop`)
	term.quit()
}

// newEndpoint is an endpoint whose answers handle says, in deltas of the wire. It returns the
// environment that names it.
func newEndpoint(t *testing.T, handle func(say func(delta string), r *http.Request, body string)) (env string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // before anything is written
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		handle(func(delta string) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
			_ = http.NewResponseController(w).Flush()
		}, r, string(body))
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // of a test that failed in mid-answer
		server.Close()
	})
	return "OPENAI_BASE_URL=" + server.URL + "/v1 OPENAI_MODEL=m"
}

// TestTerminalEndpoint: with an endpoint in the environment that one answers, in the folder that
// the program was told of.
func TestTerminalEndpoint(t *testing.T) {
	term := openTerminal(t)
	var requests atomic.Int32
	endpoint := newEndpoint(t, func(say func(delta string), _ *http.Request, _ string) {
		if requests.Add(1) == 1 {
			say(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"here.txt\"}"}}]}`)
			return
		}
		say(`{"content":"From the **endpoint**."}`)
	})
	require.NoError(t, os.WriteFile(term.file("here.txt"), []byte("It is here.\n"), 0o644))
	term.start(endpoint, "-workspace", "'"+term.dir+"'")
	term.typed("Where?")
	term.keys("Enter")
	term.golden("endpoint", "(?s)── stop.*· /help")
	term.quit()
}

// TestTerminalParallel: while a sub-agent works, its card is live, with what it says, and the
// card of a call that ran beside it is printed already.
func TestTerminalParallel(t *testing.T) {
	term := openTerminal(t)
	release := make(chan struct{})
	endpoint := newEndpoint(t, func(say func(delta string), r *http.Request, body string) {
		switch {
		case strings.Contains(body, explorePrompt):
			say(`{"content":"I am looking"}`)
			select {
			case <-release:
			case <-r.Context().Done():
			}
			say(`{"content":", and found it."}`)
		case strings.Contains(body, `"c1"`):
			say(`{"content":"So."}`)
		default:
			say(`{"tool_calls":[` +
				`{"index":0,"id":"c1","type":"function","function":{"name":"explore","arguments":"{\"tasks\":[{\"agent\":\"explorer\",\"prompt\":\"Where is it?\"}]}"}},` +
				`{"index":1,"id":"c2","type":"function","function":{"name":"read","arguments":"{\"path\":\"here.txt\"}"}}]}`)
		}
	})
	require.NoError(t, os.WriteFile(term.file("here.txt"), []byte("It is here.\n"), 0o644))
	term.start(endpoint, "-workspace", "'"+term.dir+"'")
	term.typed("Where?")
	term.keys("Enter")
	term.golden("parallel_live", "(?s)read here.*I am looking")
	close(release)
	term.golden("parallel", "(?s)── stop.*· /help")
	term.quit()
}

// TestTerminalSmall: a terminal that has not room for it all shows the same, in its scrollback,
// and of a question for which there is no room all is printed.
func TestTerminalSmall(t *testing.T) {
	term := openTerminal(t)
	term.height = 12
	term.start("", "-pace 2ms")
	term.typed("Show me what you can do.")
	term.keys("Enter")
	term.golden("small_edit", "(?s)May it edit.*May it edit.*y: yes")
	term.typed("y")
	term.until("May it run", "the next question")
	term.typed("y")
	small := term.golden("small", "(?s)── stop.*· /help")
	tour, err := os.ReadFile("testdata/screens/tour.txt")
	require.NoError(t, err)
	asked := "? May it edit greeting.txt?\n  │ @@ -1,2 +1,2 @@\n  │ -Hello, nobody.\n  │ +Hello, Ada.\n  │  How are you?\n\n"
	assert.Equal(t, string(tour), strings.Replace(small, asked, "", 1))
	term.quit()
}

// TestTerminalTerminated: a signal ends the run and the program cleanly, and the session keeps
// what was said.
func TestTerminalTerminated(t *testing.T) {
	term := openTerminal(t)
	term.start("", "-pace 200ms")
	term.typed("Tell me a story.")
	term.keys("Enter")
	term.until("Once", "the story")
	term.signal(syscall.SIGTERM)
	term.until(exited, "that it ended")
	term.start("", "-resume 1")
	resumed := term.until("/help", "the session")
	assert.Regexp(t, `(?s)› Tell me a story\..*Once.*── aborted`, resumed)
	term.quit()
}
