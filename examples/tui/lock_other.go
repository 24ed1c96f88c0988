//go:build !unix

package main

import "os"

// lockFile does nothing where there is no flock: a session must not be opened twice there.
func lockFile(*os.File) error { return nil }
