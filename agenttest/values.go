package agenttest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// asMessage returns the kernel's message that m is.
func asMessage(m agentkernel.AgentMessage) (message, bool) {
	switch m := m.(type) {
	case message:
		return m, true
	case *message:
		if m != nil {
			return *m, true
		}
	}
	return message{}, false
}

// sameError tells whether two errors are one, or say the same in every part, as those of a stream
// that was decoded in parts do.
func sameError(a, b error) bool {
	comparable := a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable()
	return comparable && a == b || reflect.DeepEqual(a, b)
}

// short quotes a text, cut in its middle where it is long.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%q … %q (%d bytes)", s[:most/2], s[len(s)-most/2:], len(s))
}

func usageText(u agentkernel.Usage) string {
	words := []string{fmt.Sprintf("in=%d out=%d total=%d", u.Input, u.Output, u.Total)}
	for _, part := range []struct {
		name string
		n    int
	}{{"cache_read", u.CacheRead}, {"cache_write", u.CacheWrite}, {"reasoning", u.Reasoning}} {
		if part.n != 0 {
			words = append(words, fmt.Sprintf("%s=%d", part.name, part.n))
		}
	}
	if u.Cost != nil {
		words = append(words, fmt.Sprintf("cost=%g", *u.Cost))
	}
	return strings.Join(words, " ")
}
