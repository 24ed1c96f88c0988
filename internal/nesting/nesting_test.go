package nesting_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentkernel-go/agentkernel/internal/nesting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func arrays(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestTooDeep(t *testing.T) {
	most := arrays(nesting.Max)
	for text, want := range map[string]bool{
		"":                   false,
		"7":                  false,
		most:                 false,
		"[" + most + "]":     true,
		`{"a":` + most + `}`: true,
		"[0" + strings.Repeat(",[],{}", nesting.Max) + "]":          false, // beside each other
		`"` + strings.Repeat("[", 2*nesting.Max) + `"`:              false, // in a text
		`["\"` + strings.Repeat("{", 2*nesting.Max) + `\\",` + "0]": false,
		`["\\",` + most + `]`:                                       true, // behind a text
	} {
		if text != "" {
			require.True(t, json.Valid([]byte(text)), "%.40s", text)
		}
		require.Equal(t, want, nesting.TooDeep(text), "%.40s", text)
	}
}

// TestMaxLeavesRoom: what is as deep as it may be can be read within as much again.
func TestMaxLeavesRoom(t *testing.T) {
	var back any
	require.NoError(t, json.Unmarshal([]byte(arrays(2*nesting.Max)), &back))
	require.Error(t, json.Unmarshal([]byte(arrays(2*nesting.Max+1)), &back))
}
