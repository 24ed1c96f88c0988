package jetstream_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the processes that TestProof starts.
func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}
