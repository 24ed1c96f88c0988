package otel

import "testing"

// TestFills: which prompts a task of a chain can have become.
func TestFills(t *testing.T) {
	for _, tc := range []struct {
		template, prompt string
		want             bool
	}{
		{"{previous}", "anything", true},
		{"{previous}", "", true},
		{"a {previous} z", "a b z", true},
		{"a {previous} z", "a z", false},
		{"a {previous} z", "b z", false},
		{"a {previous} m {previous} z", "a 1 m 1 z", true},
		{"a {previous} m {previous}", "a 1 m 1", true},
		{"plain", "plain", false},
	} {
		if got := fills(tc.template, tc.prompt); got != tc.want {
			t.Errorf("fills(%q, %q) = %v, want %v", tc.template, tc.prompt, got, tc.want)
		}
	}
}
