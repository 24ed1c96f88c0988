package jetstream

import (
	"fmt"
	"os"
)

// processName tells processes apart.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
