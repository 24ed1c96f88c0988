package journal_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or is the process that one of them started.
func TestMain(m *testing.M) {
	if os.Getenv(deskVariable) != "" {
		deskProcess()
		return
	}
	goleak.VerifyTestMain(m)
}
