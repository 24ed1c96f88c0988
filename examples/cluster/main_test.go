package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain is also the workers, which the command starts as processes of its own program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// TestCheck: the page goes on where a worker is killed while it speaks.
func TestCheck(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-check", "-pace", "10ms"}, strings.NewReader(""), &stdout, &stderr)
	require.Equal(t, 0, code, stderr.String())
	assert.Empty(t, stderr.String())
	pattern, err := os.ReadFile("expected.txt")
	require.NoError(t, err)
	assert.Regexp(t, regexp.MustCompile(`^`+string(pattern)+`$`), stdout.String())
}

func TestBadStart(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"flag", []string{"-nope"}, 2},
		{"argument", []string{"what?"}, 2},
		{"address", []string{"-addr", "127.0.0.1:nope"}, 1},
		{"directory", []string{"-dir", "main.go"}, 1},
		{"broker", []string{"-worker", "w", "-broker", "nats://127.0.0.1:1"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, tt.code, run(t.Context(), tt.args, strings.NewReader(""), &stdout, &stderr))
			assert.NotEmpty(t, stderr.String())
		})
	}
}

// TestInterrupt: an interrupt ends the broker, the workers and the page, without an error.
func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	w := writer(func(data []byte) {
		if stdout.Write(data); bytes.Contains(data, []byte("the page is at")) {
			interrupt()
		}
	})
	code := run(ctx, []string{"-addr", "127.0.0.1:0"}, strings.NewReader(""), w, &stderr)
	require.Equal(t, 0, code, stderr.String())
	assert.Regexp(t, `worker-1 is process \d+: kill -9 \d+`, stdout.String())
}

type writer func([]byte)

func (w writer) Write(data []byte) (int, error) { w(data); return len(data), nil }
