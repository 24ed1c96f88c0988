package goid

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCurrentTellsGoroutinesApart(t *testing.T) {
	mine := Current()
	require.Positive(t, mine)
	require.Equal(t, mine, Current())
	other := make(chan int64)
	go func() { other <- Current() }()
	require.NotEqual(t, mine, <-other)
}
