package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Where the page shows what.
const (
	users    = `[...document.querySelectorAll(".user")].map(e => e.textContent)`
	cards    = `[...document.querySelectorAll(".tool")].map(e => e.dataset.state)`
	results  = `[...document.querySelectorAll(".tool .result")].map(e => e.textContent)`
	conv     = `[...document.querySelectorAll(".user, .text, .thinking div, .tool .name, .tool .args, .tool .result, .tool .state, p.note")].map(e => e.textContent).join("\n")`
	answer   = `([...document.querySelectorAll(".text")].at(-1)?.textContent ?? "")`
	thought  = `([...document.querySelectorAll(".thinking div")].at(-1)?.textContent ?? "")`
	running  = `!document.querySelector("#abort").hidden`
	status   = `document.querySelector("#status").value`
	counting = `document.querySelector(".tool[data-state=running] progress")?.value > 0`
)

// TestPage is a visit: each part goes on with the page that the one before left.
func TestPage(t *testing.T) {
	server := startServer(t)
	b := openBrowser(t)
	b.do(chromedp.Navigate(server.url), chromedp.WaitVisible("#send"))
	for _, part := range []struct {
		name string
		run  func(*testing.T, *browser)
	}{
		{"prompt", prompt},
		{"steer", steer},
		{"reload", reload},
		{"abort", abort},
		{"markup", markup},
		{"a second tab", secondTab},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			b.t = t
			defer func() { b.t = b.parent }()
			part.run(t, b)
			b.screenshot(part.name)
		})
		if !ok {
			return
		}
	}
	server.interrupt()
	b.wait(status + `.startsWith("no connection")`)
	b.noMessages()
}

// prompt: the thinking is folded, the tool shows its progress, and the answer grows.
func prompt(t *testing.T, b *browser) {
	b.say("#send", "How many primes are there below 2000?")
	b.wait(`document.querySelector(".thinking div")?.textContent.length > 10`)
	if b.is(`document.querySelector(".thinking").open`) {
		t.Error("the thinking is not folded")
	}
	if !b.is(running) || b.is(`document.querySelector("#steer").hidden`) || !b.is(`document.querySelector("#send").hidden`) {
		t.Error("during a run there are other buttons than Steer and Abort")
	}
	b.wait(counting)
	b.screenshot("progress")
	b.wait(`document.querySelector(".tool").dataset.state === "done"`)
	b.wait(answer + `.length > 0`)
	short := eval[string](b, answer)
	b.wait(answer + `.length > ` + js(len(short)))
	if long := eval[string](b, answer); !strings.HasPrefix(long, short) || !b.is(running) {
		t.Errorf("the text does not grow during the run: %q, then %q", short, long)
	}
	b.wait(`!(` + running + `)`)
	b.want(results, []string{"There are 303 primes below 2000."})
	if got := eval[string](b, answer); !strings.HasPrefix(got, "There are 303 primes") || !strings.HasSuffix(got, "where it was.") {
		t.Errorf("got answer %q", got)
	}
	b.wait(status + `.startsWith("stop: 2 turns, 1 tool call, ")`)
}

// steer: what is said during a run waits until the run takes it, and changes its course.
func steer(t *testing.T, b *browser) {
	b.say("#send", "And below 3000?")
	b.wait(counting)
	b.say("#steer", "No, below 300!")
	b.wait(`document.querySelector("#queued").children.length === 0`)
	b.wait(`!(` + running + `)`)
	b.want(users, []string{"How many primes are there below 2000?", "And below 3000?", "No, below 300!"})
	if got := eval[string](b, answer); !strings.HasPrefix(got, "There are 62 primes below 300.") {
		t.Errorf("got answer %q", got)
	}
}

// reload: a page that is loaded anew in mid-run shows what there was, and the rest as it comes.
// The prompt, which the thoughts repeat, is so long that the journal has a snapshot in their
// middle.
func reload(t *testing.T, b *browser) {
	b.say("#send\n", "Below 500"+strings.Repeat(" so", 150))
	b.wait(users + `.length === 4 && ` + thought + `.length > 450`)
	before := eval[string](b, conv)
	b.do(chromedp.Reload())
	b.wait(conv + `.startsWith(` + js(before) + `)`)
	if !b.is(running) {
		t.Error("the run does not go on after the reload")
	}
	middle := eval[string](b, conv)
	b.wait(counting)
	b.do(chromedp.Reload())
	b.wait(answer + `.startsWith("There are 95 primes below 500.")`)
	b.wait(`!(` + running + `)`)
	whole := eval[string](b, conv)
	if !strings.HasPrefix(whole, middle) {
		t.Errorf("got in the end\n%s\nwant it to begin with\n%s", whole, middle)
	}
	b.do(chromedp.Reload())
	b.wait(users + `.length === 4 && ` + answer + `.endsWith("where it was.") && !(` + running + `)`)
	b.want(conv, whole)
}

// abort: it ends the run, its tool, and what waited for it.
func abort(t *testing.T, b *browser) {
	n := len(eval[[]string](b, cards))
	b.say("#send", "Below 900000")
	b.wait(counting)
	b.do(chromedp.Click("#abort"))
	b.wait(`!(` + running + `)`)
	b.wait(status + `.startsWith("aborted: ")`)
	if got := eval[[]string](b, cards); len(got) != n+1 || got[n] != "failed" {
		t.Errorf("got cards %q, want one more, that failed", got)
	}
}

// markup: after an abort there is a next prompt, and what people and models say is text.
func markup(t *testing.T, b *browser) {
	evil := `<img src=x onerror="document.title = 'evil'"> below 10`
	b.say("#send", evil)
	b.wait(answer + `.startsWith("There are 4 primes below 10.")`)
	b.wait(`!(` + running + `)`)
	if got := eval[[]string](b, users); got[len(got)-1] != evil {
		t.Errorf("got prompt %q, want %q", got[len(got)-1], evil)
	}
	if b.is(`document.querySelector("#log img") !== null || document.title === "evil"`) {
		t.Error("the prompt became markup")
	}
}

// secondTab: another page shows the same conversation, and follows it.
func secondTab(t *testing.T, b *browser) {
	other := b.newTab(t, eval[string](b, `location.href`))
	other.wait(users + `.length === 6`)
	b.say("#send", "Below 20")
	other.wait(counting)
	b.wait(answer + `.startsWith("There are 8 primes below 20.") && !(` + running + `)`)
	other.wait(`!(` + running + `)`)
	other.want(conv, eval[string](b, conv))
}
