//go:build unix

package main

import (
	"os"
	"syscall"
)

// lockFile locks a file against other processes until it is closed. It does not wait.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
