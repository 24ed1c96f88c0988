//go:build !unix

package workspace

import "os/exec"

// ownGroup does nothing where there are no process groups: only the shell itself is killed.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
