package workspace

import (
	"fmt"
	"strings"
	"sync"
)

// output keeps the beginning and the end of what is written to it, and reports all of it.
type output struct {
	report func(text string)

	mu         sync.Mutex
	head, tail []byte
	cut        int // bytes between head and tail that are not kept
}

// Write never fails and never waits for long.
func (o *output) Write(p []byte) (int, error) {
	o.keep(p)
	o.report(string(p))
	return len(p), nil
}

func (o *output) keep(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(maxOutput-len(o.head), len(p))
	o.head = append(o.head, p[:n]...)
	o.tail = append(o.tail, p[n:]...)
	if over := len(o.tail) - maxOutput; over > 0 {
		o.cut += over
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
}

// String is what is kept, with a line break at its end unless it is empty.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := string(o.head)
	if o.cut > 0 {
		text += fmt.Sprintf("\n(%d bytes left out)\n", o.cut)
	}
	text = strings.ToValidUTF8(text+string(o.tail), "\uFFFD")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
