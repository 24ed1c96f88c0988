package openai

import (
	"math"
	"strconv"

	"github.com/agentkernel-go/agentkernel"
)

// usage is a record of tokens as endpoints write it: under several names, with its details
// beside or below.
type usage struct {
	agentkernel.Usage
	total bool // the record names its total
}

// counted tells whether the record counts anything. Some streams end with one that does not.
func (u *usage) counted() bool {
	n := u.Usage
	n.Cost = nil
	return n != agentkernel.Usage{}
}

// read reads a record into u.
func (u *usage) read(s *scanner) {
	if !s.open('{') {
		return
	}
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "prompt_tokens", "input_tokens":
			keep(&u.Input, s)
		case "completion_tokens", "output_tokens":
			keep(&u.Output, s)
		case "total_tokens":
			u.total = true
			keep(&u.Total, s)
		case "prompt_tokens_details", "input_tokens_details":
			u.readInput(s)
		case "completion_tokens_details", "output_tokens_details":
			u.readOutput(s)
		case "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens":
			keep(&u.CacheRead, s)
		case "cache_creation_input_tokens", "cache_write_tokens":
			keep(&u.CacheWrite, s)
		case "reasoning_tokens":
			keep(&u.Reasoning, s)
		case "cost":
			u.readCost(s)
		default:
			s.skip()
		}
	}
	if !u.total {
		u.Total = u.Input + u.Output
	}
}

func (u *usage) readInput(s *scanner) {
	if !s.open('{') {
		return
	}
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "cached_tokens":
			keep(&u.CacheRead, s)
		case "cache_write_tokens", "cache_creation_tokens":
			keep(&u.CacheWrite, s)
		default:
			s.skip()
		}
	}
}

func (u *usage) readOutput(s *scanner) {
	if !s.open('{') {
		return
	}
	for name, ok := s.member(); ok; name, ok = s.member() {
		if string(name) == "reasoning_tokens" {
			keep(&u.Reasoning, s)
		} else {
			s.skip()
		}
	}
}

// readCost reads a cost: a number, a number in a text, or an object with the total in it.
func (u *usage) readCost(s *scanner) {
	if s.peek() != '{' {
		if cost, err := strconv.ParseFloat(string(unquoted(s.raw())), 64); err == nil && !math.IsNaN(cost) && !math.IsInf(cost, 0) {
			u.Cost = &cost
		}
		return
	}
	s.open('{')
	for name, ok := s.member(); ok; name, ok = s.member() {
		if string(name) == "total_cost" {
			u.readCost(s)
		} else {
			s.skip()
		}
	}
}

// keep reads a number into n. Two names of one number agree, or one of them is zero.
func keep(n *int, s *scanner) {
	if v := count(s.raw()); v != 0 {
		*n = v
	}
}

// mostTokens bounds a count, so that sums of hostile ones do not overflow.
const mostTokens = 1 << 50

// count reads a whole number, which may be written as a fraction or a text. Anything else is 0.
func count(raw []byte) int {
	n := 0
	for i, c := range raw {
		if c < '0' || c > '9' || i > 14 {
			return countSlowly(raw)
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func countSlowly(raw []byte) int {
	f, err := strconv.ParseFloat(string(unquoted(raw)), 64)
	if err != nil || math.IsNaN(f) {
		return 0
	}
	return int(max(-mostTokens, min(f, mostTokens)))
}

func unquoted(raw []byte) []byte {
	if len(raw) >= 2 && raw[0] == '"' {
		return raw[1 : len(raw)-1]
	}
	return raw
}
