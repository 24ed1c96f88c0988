package openai

// picker follows one answer through a stream that may hold several.
//
// The index of a choice is no safe guide: some endpoints count tokens with it. A frame with
// one choice belongs to the answer, until the indexes have shown that they tell answers
// apart: by one frame with several choices, by an index that comes again, or by a second
// answer that begins with its role.
type picker struct {
	begun bool
	index int // of the answer
	last  int // the last one taken
	role  bool
	real  bool
}

// pick returns the choice of a frame that adds to the answer, or nil.
func (p *picker) pick(choices []choice) *choice {
	switch len(choices) {
	case 0:
		return nil
	case 1:
		return p.only(&choices[0])
	}
	p.real = true
	best := &choices[0]
	for i := range choices {
		c := &choices[i]
		if p.begun && c.index == p.index {
			return c
		}
		if c.index < best.index {
			best = c
		}
	}
	if p.begun {
		return nil
	}
	p.begin(best)
	return best
}

func (p *picker) begin(c *choice) {
	p.begun, p.index, p.last, p.role = true, c.index, c.index, c.role
}

// only judges the choice of a frame that has no other.
func (p *picker) only(c *choice) *choice {
	switch {
	case !p.begun:
		p.begin(c)
		return c
	case c.index == p.index:
		p.real = true
		return c
	case p.real:
		return nil
	case c.role && p.role && p.index == 0 && p.last == 0:
		p.real = true
		return nil
	}
	p.last = c.index
	return c
}
