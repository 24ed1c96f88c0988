package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// played is what a stream yields, one word for each increment.
func played(seq iter.Seq2[agentkernel.StreamEvent, error]) string {
	var words []string
	for ev, err := range seq {
		switch {
		case err != nil:
			words = append(words, "error("+err.Error()+")")
		case ev.Type == agentkernel.StreamEventDone:
			words = append(words, fmt.Sprintf("done(%s)", ev.StopReason))
		case ev.Type == agentkernel.StreamEventUsage:
			words = append(words, fmt.Sprintf("usage(%d)", ev.Usage.Total))
		case ev.Type == agentkernel.StreamEventToolCallDelta:
			words = append(words, fmt.Sprintf("call(%s %s %s %s)", ev.Key, ev.ID, ev.Name, ev.Delta))
		default:
			words = append(words, strings.TrimSuffix(string(ev.Type), "_delta")+"("+ev.Delta+")")
		}
		if ev.Model != "" {
			words[len(words)-1] += "@" + ev.Model
		}
	}
	return strings.Join(words, " ")
}

func TestReplyPlaysItsSteps(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		reply agenttest.Reply
		want  string
	}{
		{agenttest.Reply{}, "done(stop)"},
		{agenttest.Text("hi"), "text(hi) done(stop)"},
		{agenttest.Thinking("hm").Text("hi").Model("m"), "thinking(hm)@m text(hi) done(stop)"},
		{agenttest.Reply{}.Model("m"), "done(stop)@m"},
		{agenttest.Calls("a", "b"), "call(0 call_1 a {}) call(1 call_2 b {}) done(tool_use)"},
		{agenttest.Call("", "a", `{"x":1}`).Stop("length"), `call(0  a {"x":1}) done(length)`},
		{agenttest.Text("abcdef").Chunks(4), "text(abcd) text(ef) done(stop)"},
		{agenttest.Text("aä漢b").Chunks(2), "text(aä) text(漢) text(b) done(stop)"},
		{agenttest.Text("abc").Chunks(0), "text(a) text(b) text(c) done(stop)"},
		{agenttest.Text("ab").Chunks(1).Text("cd"), "text(a) text(b) text(cd) done(stop)"},
		{agenttest.Calls("a").Chunks(1), "call(0 call_1 a {) call(0   }) done(tool_use)"},
		{agenttest.Text("").Chunks(3), "text() done(stop)"},
		{agenttest.Text("a").Usage(agentkernel.Usage{Total: 3}).Text("b"), "text(a) usage(3) text(b) done(stop)"},
		{agenttest.Fail(boom), "error(boom)"},
		{agenttest.Text("a").Fail(boom).Text("b"), "text(a) error(boom)"},
		{agenttest.Text("a").EndsWithoutDone(), "text(a)"},
		{agenttest.Events(agentkernel.StreamEvent{Type: agentkernel.StreamEventDone, StopReason: "refusal"}), "done(refusal)"},
	} {
		require.Equal(t, c.want, played(agenttest.Script(c.reply).Stream(t.Context(), agentkernel.ModelRequest{})))
	}
}

func TestReplyIsAValue(t *testing.T) {
	base := agenttest.Text("a")
	one, two := base.Text("1"), base.Text("2")
	m := agenttest.Script(one, two, base)
	for _, want := range []string{"text(a) text(1) done(stop)", "text(a) text(2) done(stop)", "text(a) done(stop)"} {
		require.Equal(t, want, played(m.Stream(t.Context(), agentkernel.ModelRequest{})))
	}
}

func TestSplitKeepsTheText(t *testing.T) {
	const text = "ä quick 漢字 fox 🎉 jumps over the lazy dog"
	for seed := range uint64(50) {
		reply := agenttest.Text(text).Split(rand.New(rand.NewPCG(seed, 0)))
		got, n := "", 0
		for ev := range agenttest.Script(reply).Stream(t.Context(), agentkernel.ModelRequest{}) {
			require.Equal(t, strings.ToValidUTF8(ev.Delta, "?"), ev.Delta)
			got, n = got+ev.Delta, n+1
		}
		require.Equal(t, text, got)
		require.Greater(t, n, 4)
	}
}

func TestScriptIsExhausted(t *testing.T) {
	m := agenttest.Script(agenttest.Text("a"))
	played(m.Stream(t.Context(), agentkernel.ModelRequest{System: "one"}))
	for _, err := range m.Stream(t.Context(), agentkernel.ModelRequest{System: "two"}) {
		require.ErrorIs(t, err, agentkernel.KindProvider)
		require.ErrorContains(t, err, "script exhausted")
	}
	require.Len(t, m.Requests(), 2)
	require.Equal(t, "two", m.Requests()[1].System)
}

func TestNilStreamPanicGoexit(t *testing.T) {
	require.Nil(t, agenttest.Script(agenttest.NilStream()).Stream(t.Context(), agentkernel.ModelRequest{}))
	require.PanicsWithValue(t, "boom", func() {
		played(agenttest.Script(agenttest.Text("a").Panic("boom")).Stream(t.Context(), agentkernel.ModelRequest{}))
	})
	left := make(chan bool)
	go func() { // ends by Goexit; the test waits for it
		returned := false
		defer func() { left <- !returned }()
		played(agenttest.Script(agenttest.Goexit()).Stream(t.Context(), agentkernel.ModelRequest{}))
		returned = true
	}()
	require.True(t, <-left)
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		m := agenttest.Script(agenttest.Text("abc").Chunks(1).Delay(time.Second), agenttest.Text("abc").Chunks(1).Delay(time.Second))
		require.Equal(t, "text(a) text(b) text(c) done(stop)", played(m.Stream(t.Context(), agentkernel.ModelRequest{})))
		require.Equal(t, 4*time.Second, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began = time.Now()
		require.Equal(t, "text(a) error(context deadline exceeded)", played(m.Stream(ctx, agentkernel.ModelRequest{})))
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
	})
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agenttest.Script(agenttest.Text("a").Stall().Text("b"), agenttest.Stall().Text("b"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.Equal(t, "text(a) error(context deadline exceeded)", played(m.Stream(ctx, agentkernel.ModelRequest{})))
		time.AfterFunc(time.Minute, m.Release)
		require.Equal(t, "text(b) done(stop)", played(m.Stream(t.Context(), agentkernel.ModelRequest{})))
		m.Release()
	})
}

func TestIgnoringContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := agenttest.Script(agenttest.Text("ab").Chunks(1).Delay(time.Second).Stall().IgnoringContext())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		time.AfterFunc(time.Hour, m.Release)
		require.Equal(t, "text(a) text(b) done(stop)", played(m.Stream(ctx, agentkernel.ModelRequest{})))
		require.Equal(t, time.Hour+time.Second, time.Since(began))
	})
}

func TestLeavingTheStreamEndsIt(t *testing.T) {
	for range agenttest.Script(agenttest.Text("abc").Chunks(1).Panic("played on")).Stream(t.Context(), agentkernel.ModelRequest{}) {
		break
	}
}
