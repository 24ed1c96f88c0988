package agentkernel

import "fmt"

// overBudget tells whether the run has used up what it may.
func (r *run) overBudget() *Error {
	b := r.cfg.Budget
	used := r.summary.Usage.Add(r.summary.DiscardedUsage)
	switch {
	case b.Tokens > 0 && int64(used.context()) >= b.Tokens:
		return &Error{Kind: KindLimit, Op: "budget", Err: fmt.Errorf("%d of %d tokens are used up", used.context(), b.Tokens)}
	case b.Cost > 0 && used.Cost != nil && *used.Cost >= b.Cost:
		return &Error{Kind: KindLimit, Op: "budget", Err: fmt.Errorf("%g of %g of cost are used up", *used.Cost, b.Cost)}
	}
	return nil
}

// Budget bounds what one run may use up: its own messages, failed attempts, and what its
// tools' runs report. Zero or negative is no bound.
type Budget struct {
	Tokens int64
	// Cost is in the unit of Usage.Cost. A cost that is unknown is not counted.
	Cost float64
}
