package textbuf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEarlierStringsStayAsTheyWere(t *testing.T) {
	var b Buffer
	var want strings.Builder
	var seen, wanted []string
	for i := range 2000 {
		piece := strings.Repeat(string(rune('a'+i%26)), i%7)
		want.WriteString(piece)
		seen = append(seen, b.Append(piece))
		wanted = append(wanted, strings.Clone(want.String()))
	}
	require.Equal(t, wanted, seen)
	require.Equal(t, want.Len(), b.Len())
}

func TestEmpty(t *testing.T) {
	var b Buffer
	require.Empty(t, b.String())
	require.Empty(t, b.Append(""))
}
