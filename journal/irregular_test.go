//go:build unix

package journal_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel/journal"
)

// TestOpenOfNoFile: a device, a pipe or a directory is refused at once and not read.
func TestOpenOfNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	for _, path := range []string{dir, os.DevNull, "/dev/zero", pipe, link} {
		j, err := journal.Open(path, journal.Config{})
		require.ErrorContains(t, err, "no regular file", path)
		require.Nil(t, j)
	}
}
