package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/sse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func offline(string) string { return "" }

func TestCheck(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-check", "-pace", "1ms"}, offline, &stdout, &stderr)
	require.Equal(t, 0, code, stderr.String())
	assert.Empty(t, stderr.String())
	pattern, err := os.ReadFile("expected.txt")
	require.NoError(t, err)
	assert.Regexp(t, regexp.MustCompile(`^`+string(pattern)+`$`), stdout.String())
}

// TestEndpoint: with an endpoint in the environment that one answers.
func TestEndpoint(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"From the endpoint.\"}}]}\n\n")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer endpoint.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	getenv := func(key string) string {
		return map[string]string{"OPENAI_BASE_URL": endpoint.URL + "/v1", "OPENAI_MODEL": "m"}[key]
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-check"}, getenv, &stdout, &stderr)
	require.Equal(t, 0, code, stderr.String())
	assert.Contains(t, stdout.String(), "\nFrom the endpoint.\n")
}

func TestBadStart(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		base string
		code int
	}{
		{"flag", []string{"-nope"}, "", 2},
		{"argument", []string{"what?"}, "", 2},
		{"address", []string{"-addr", "127.0.0.1:nope"}, "", 1},
		{"endpoint", []string{"-check"}, "::", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			getenv := func(key string) string { return map[string]string{"OPENAI_BASE_URL": tt.base}[key] }
			assert.Equal(t, tt.code, run(t.Context(), tt.args, getenv, &stdout, &stderr))
			assert.Empty(t, stdout.String())
			assert.NotEmpty(t, stderr.String())
		})
	}
}

// TestInterrupt: an interrupt in mid-run ends the run, tells it to those who listen, and ends
// the program without an error.
func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, stdout := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"-addr", "127.0.0.1:0", "-pace", "1h"}, offline, stdout, &stderr)
		stdout.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	require.True(t, found, line)
	require.NoError(t, demo.Request(t.Context(), http.MethodPost, url+"prompt", map[string]string{"text": "hi"}))

	for ev, err := range sse.NewClient(url+"events", sse.ClientConfig{}).Events(t.Context()) {
		require.NoError(t, err)
		if ev.Type == agentkernel.EventModelRequest {
			interrupt()
		}
		if ev.Type == agentkernel.EventAgentEnd {
			assert.ErrorIs(t, ev.Err, agentkernel.KindCanceled)
			assert.ErrorContains(t, ev.Err, errShutdown.Error())
			break
		}
	}
	http.DefaultClient.CloseIdleConnections()
	assert.Equal(t, 0, <-code, stderr.String())
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	assert.Empty(t, string(rest), "more than one line")
}
