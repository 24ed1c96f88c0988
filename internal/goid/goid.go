// Package goid tells goroutines apart.
package goid

import (
	"bytes"
	"runtime"
	"strconv"
)

// Current returns the id of the calling goroutine, which no other goroutine of the process
// ever has. It costs about a microsecond: the runtime tells it only in the head of a stack
// trace, "goroutine 7 [running]:".
func Current() int64 {
	var buf [64]byte
	head := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(head, []byte(" "))
	id, _ := strconv.ParseInt(string(digits), 10, 64)
	return id
}
