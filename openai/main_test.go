package openai

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails a test run that leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
