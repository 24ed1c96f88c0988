package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachLine reads a file of JSON lines, which need not be there.
func eachLine(t *testing.T, path string, each func(line []byte)) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) > 0 {
			each(lines.Bytes())
		}
	}
	require.NoError(t, lines.Err())
}

func readStreams(t *testing.T, dir string) []conformanceCase {
	var cases []conformanceCase
	eachLine(t, filepath.Join(dir, "streams.jsonl"), func(line []byte) {
		var c struct {
			Name   string
			Expect expectation
		}
		require.NoError(t, json.Unmarshal(line, &c))
		body, err := os.ReadFile(filepath.Join(dir, "streams", c.Name+".sse"))
		require.NoError(t, err)
		cases = append(cases, conformanceCase{name: c.Name, wire: *sse(string(body)), expect: c.Expect, recording: true})
	})
	return cases
}

func readErrors(t *testing.T, dir string) []conformanceCase {
	var cases []conformanceCase
	eachLine(t, filepath.Join(dir, "errors.jsonl"), func(line []byte) {
		var c struct {
			Name   string
			Expect expectation
		}
		require.NoError(t, json.Unmarshal(line, &c))
		raw, err := os.ReadFile(filepath.Join(dir, "errors", c.Name+".http.json"))
		require.NoError(t, err)
		var response struct {
			Status  int
			Headers map[string]string
			Body    string
		}
		require.NoError(t, json.Unmarshal(raw, &response))
		c.Expect.End = "error"
		cases = append(cases, conformanceCase{
			name:   c.Name,
			wire:   wire{status: response.Status, header: response.Headers, body: []byte(response.Body)},
			expect: c.Expect,
		})
	})
	return cases
}

// faultFile is a file of faults/ of kind "wire".
type faultFile struct {
	Kind  string
	Files []struct {
		File      string
		Transport struct {
			HTTPStatus        int               `json:"http_status"`
			ContentType       string            `json:"content_type"`
			Headers           map[string]string `json:"headers"`
			End               string            `json:"end"`
			SplitEvery        int               `json:"split_every"`
			CancelAfterChunks int               `json:"cancel_after_chunks"`
			Fill              *struct {
				Token, Char string
				Count       int
			} `json:"fill"`
		}
		Expect json.RawMessage
	}
}

func readFaults(t *testing.T, dir string) []conformanceCase {
	paths, err := filepath.Glob(filepath.Join(dir, "faults", "*.json"))
	require.NoError(t, err)
	var cases []conformanceCase
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var fault faultFile
		require.NoError(t, json.Unmarshal(raw, &fault), path)
		if fault.Kind != "wire" {
			continue
		}
		for i := range fault.Files {
			cases = append(cases, fault.read(t, dir, i))
		}
	}
	return cases
}

func (f *faultFile) read(t *testing.T, dir string, i int) conformanceCase {
	file := &f.Files[i]
	body, err := os.ReadFile(filepath.Join(dir, "faults", file.File))
	require.NoError(t, err)
	if fill := file.Transport.Fill; fill != nil {
		body = bytes.ReplaceAll(body, []byte(fill.Token), bytes.Repeat([]byte(fill.Char), fill.Count))
	}
	c := conformanceCase{
		name: strings.TrimSuffix(file.File, ".sse"),
		wire: wire{
			status: cmp.Or(file.Transport.HTTPStatus, http.StatusOK),
			header: map[string]string{"Content-Type": file.Transport.ContentType},
			body:   body,
			end:    file.Transport.End,
		},
		cancelAfter: file.Transport.CancelAfterChunks,
	}
	maps.Copy(c.wire.header, file.Transport.Headers)
	if n := file.Transport.SplitEvery; n > 0 {
		c.wire.pieces = func(int) int { return n }
	} else if len(body) > 1<<20 {
		c.wire.pieces = anywhere(uint64(i), 1<<20)
	}
	require.NoError(t, json.Unmarshal(file.Expect, &c.expect), fmt.Sprint(file.File))
	return c
}
