package main

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
)

// tree shows a run and those below it, ordered by name. head stands before its line, and
// indent before those of its children.
func (s *screen) tree(run *node, head, indent string) {
	summary := "has not ended"
	if run.summary != nil {
		summary = demo.Summary(run.summary)
	}
	pad := max(16-utf8.RuneCountInString(head+run.name), 0)
	s.write(run, fmt.Sprintf("%s%s%*s %s (%s)", head, run.name, pad, "", summary, run.id))
	slices.SortStableFunc(run.children, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	for i, child := range run.children {
		if i == len(run.children)-1 {
			s.tree(child, indent+"└─ ", indent+"   ")
		} else {
			s.tree(child, indent+"├─ ", indent+"│  ")
		}
	}
}
