package browsertest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long the page may take to show what it should.
const patience = 30 * time.Second

// server is the web example as its users run it.
type server struct {
	t      *testing.T
	url    string
	cmd    *exec.Cmd
	stderr bytes.Buffer
	once   sync.Once
}

// startServer builds the example and starts it, offline and on a free port.
func startServer(t *testing.T) *server {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "web")
	if out, err := exec.Command("go", "build", "-C", "..", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	s := &server{t: t, cmd: exec.Command(binary, "-addr", "127.0.0.1:0")}
	s.cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
	s.cmd.Stderr = &s.stderr
	stdout, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.interrupt)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !found {
		t.Fatalf("got %q (%v) from the server, want its address", line, err)
	}
	s.url = url
	return s
}

// interrupt ends the server as Ctrl-C does. It must end well.
func (s *server) interrupt() {
	s.once.Do(func() {
		_ = s.cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
		defer kill.Stop()
		if err := s.cmd.Wait(); err != nil || s.stderr.Len() > 0 {
			s.t.Errorf("the server ended with %v and %q", err, s.stderr.String())
		}
	})
}

// browser is one tab.
type browser struct {
	t, parent *testing.T // of the part, of the tab
	ctx       context.Context
	artifacts string

	mu       sync.Mutex
	messages []string // of the console
}

// openBrowser starts a Chromium that has no past. The test fails where there is none.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "/usr/bin/chromium"))
	if err != nil {
		t.Fatalf("this test needs Chromium: install Debian's package chromium, or name one in CHROMIUM: %v", err)
	}
	artifacts := cmp.Or(os.Getenv("AGENTKERNEL_ARTIFACTS"), t.ArtifactDir())
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path),
		chromedp.UserDataDir(home),
		chromedp.Env("HOME="+home, "TMPDIR="+home),
		chromedp.Flag("headless", true),
		chromedp.Flag("no-sandbox", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("window-size", "1000,900"),
		chromedp.CombinedOutput(&log),
	)
	t.Cleanup(func() {
		stop() // waits for the browser
		if t.Failed() {
			t.Logf("the browser says:\n%s", log.String())
		}
		for range 50 { // the last of its processes may still be writing
			if os.RemoveAll(home) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("%s stays", home)
	})
	return newTab(t, allocator, artifacts)
}

// newTab is another tab of the same browser, at url.
func (b *browser) newTab(t *testing.T, url string) *browser {
	t.Helper()
	tab := newTab(t, b.ctx, b.artifacts)
	tab.do(chromedp.Navigate(url))
	return tab
}

func newTab(t *testing.T, parent context.Context, artifacts string) *browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	b := &browser{t: t, parent: t, ctx: ctx, artifacts: artifacts}
	messages := chromedp.Console(ctx) // which starts it: no limit of time may be on ctx
	done := make(chan struct{})
	go func() { // ends with ctx; the cleanup waits for it
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.messages = append(b.messages, m.String())
			b.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			b.screenshot("failed")
		}
		cancel()
		<-done
	})
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// say types a text and presses a button, or Enter where the button's name ends so.
func (b *browser) say(button, text string) {
	b.t.Helper()
	button, enter := strings.CutSuffix(button, "\n")
	b.do(chromedp.WaitVisible(button))
	if enter {
		b.do(chromedp.SendKeys("#prompt", text+"\n"))
	} else {
		b.do(chromedp.SendKeys("#prompt", text), chromedp.Click(button))
	}
}

// wait waits until an expression is true, also where the page is being loaded.
func (b *browser) wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if ok && err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			b.t.Fatalf("it never holds: %s (%v)", expression, err)
		}
	}
}

func (b *browser) is(expression string) bool {
	b.t.Helper()
	return eval[bool](b, expression)
}

func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// want compares what an expression is with want.
func (b *browser) want(expression string, want any) {
	b.t.Helper()
	var expected any
	if err := json.Unmarshal([]byte(js(want)), &expected); err != nil {
		b.t.Fatal(err)
	}
	if got := eval[any](b, expression); !reflect.DeepEqual(got, expected) {
		b.t.Errorf("got %s\n%v\nwant\n%v", expression, got, expected)
	}
}

func js(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// screenshot keeps what the page looks like.
func (b *browser) screenshot(name string) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(b.artifacts, strings.ReplaceAll(name, " ", "_")+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Errorf("screenshot: %v", err)
	}
}

// noMessages expects that the console is empty but for the server's going away.
func (b *browser) noMessages() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		if !strings.Contains(m, "net::ERR_") {
			b.t.Errorf("on the console: %s", m)
		}
	}
}
