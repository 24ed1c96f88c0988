package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// filtered is all that a filter yields, one line each, read as a call reads it.
func filtered(src io.Reader, maxLine int) []string {
	var out []string
	var f frame
	filter := newFilter(src, maxLine)
	for {
		ev, err := filter.next()
		if err != nil {
			return append(out, fmt.Sprintf("%v strange=%q", err, filter.strange))
		}
		decodeErr := decodeFrame(ev.data, &f)
		if errors.Is(decodeErr, errIncomplete) && !ev.last && !ev.done {
			filter.hold(ev)
			continue
		}
		out = append(out, fmt.Sprintf("%q failed=%v done=%v %v", ev.data, ev.failed, ev.done, decodeErr))
	}
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"a frame", "data: {}\n\n", []string{`"{}"`}},
		{"no space, no blank line", "data:{}\ndata:{\"a\":1}\n", []string{`"{}"`, `"{\"a\":1}"`}},
		{"CRLF", "data: {}\r\n\r\ndata: [DONE]\r\n\r\n", []string{`"{}"`, `"[DONE]" done`}},
		{"CR", "data: {}\r\rdata: {}\r\r", []string{`"{}"`, `"{}"`}},
		{"byte order mark", "\xef\xbb\xbfdata: {}\n\n", []string{`"{}"`}},
		{"no last newline", "data: {}", []string{`"{}"`}},
		{"comments, ids, retry", ": hi\nid: 3\nretry: 5\nevent: message\ndata: {}\n\n:\n\n", []string{`"{}"`}},
		{"empty data", "data:\n\ndata: \n\ndata: {}\n\n", []string{`"{}"`}},
		{"data of several lines", "data: {\"a\":\ndata: 1}\n\n", []string{`"{\"a\":\n1}"`}},
		{"several lines at the end", "data: {\"a\":\ndata: 1}", []string{`"{\"a\":\n1}"`}},
		{"error event", "event: error\ndata: {}\n\ndata: {}\n\n", []string{`"{}" failed`, `"{}"`}},
		{"error event without data", "event: error\n\ndata: {}\n\n", []string{`"" failed`, `"{}"`}},
		{"error line", "error: {\"code\":500}\n\n", []string{`"{\"code\":500}" failed`}},
		{"bare JSON", "{\"a\":1}", []string{`"{\"a\":1}"`}},
		{"bare JSON over lines", "{\n\n  \"a\": 1\n}\n", []string{`"{\n\n  \"a\": 1\n}"`}},
		{"bare JSON in a stream", "data: {}\n\n{\"a\":\n1}\n\ndata: {}\n\n", []string{`"{}"`, `"{\"a\":\n1}"`, `"{}"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := filtered(strings.NewReader(c.body), 1000)
			got = got[:len(got)-1]
			for i, line := range got {
				line = strings.TrimSuffix(line, " <nil>")
				line = strings.TrimSuffix(line, " "+errNotJSON.Error())
				line = strings.TrimSuffix(line, " "+errIncomplete.Error())
				line = strings.ReplaceAll(line, " failed=false", "")
				line = strings.ReplaceAll(line, " done=false", "")
				got[i] = strings.ReplaceAll(line, "=true", "")
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestFilterBoundsALine(t *testing.T) {
	for _, body := range []string{
		"data: " + strings.Repeat("a", 200),
		"data: " + strings.Repeat("a", 200) + "\n\n",
		strings.Repeat("data: [1,\n", 40),
	} {
		got := filtered(strings.NewReader(body), 100)
		require.Contains(t, got[len(got)-1], errLineTooLong.Error())
	}
	got := filtered(strings.NewReader("data: "+strings.Repeat("a", 94)+"\n\n"), 100)
	require.Len(t, got, 2)
	got = filtered(strings.NewReader("data: \""+strings.Repeat("a", 1<<20)+"\"\n\n"), -1)
	require.Len(t, got, 2)
}

func TestFilterKeepsReadErrors(t *testing.T) {
	broken := errors.New("broken")
	got := filtered(io.MultiReader(strings.NewReader("data: {}"), iotest.ErrReader(broken)), 100)
	require.Len(t, got, 2)
	require.Contains(t, got[1], "broken")
}

// piecewise yields data in pieces of random length.
type piecewise struct {
	data []byte
	rand *rand.Rand
	most int
}

func (p *piecewise) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data[:min(len(p.data), p.rand.IntN(p.most+1))])
	p.data = p.data[n:]
	return n, nil
}

// FuzzFilter proves that what a body says does not depend on how it is cut.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n", "\xef\xbb\xbfdata: {}\r\n\r\n", "\r\r\n\n", "{\n\"a\"\n:1}", ": c\nevent: error\ndata: x\n\n",
		"\n\xef\xbb\xbfdata: {}", "data: {\"a\":\ndata: 1}\n\n", "<html>\n", "error: x\r", "data: [\ndata: 1\nevent: error\n\ndata:2",
	} {
		f.Add([]byte(seed), uint64(1), uint16(40))
	}
	f.Add([]byte("\ufeff"), uint64(0), uint16(0))
	f.Fuzz(func(t *testing.T, body []byte, seed uint64, maxLine uint16) {
		want := filtered(bytes.NewReader(body), int(maxLine))
		require.Equal(t, want, filtered(iotest.OneByteReader(bytes.NewReader(body)), int(maxLine)))
		r := rand.New(rand.NewPCG(seed, 0))
		require.Equal(t, want, filtered(&piecewise{body, r, 9}, int(maxLine)))
		require.Equal(t, want, filtered(iotest.DataErrReader(bytes.NewReader(body)), int(maxLine)))
	})
}
