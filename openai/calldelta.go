package openai

// callDelta is what a frame adds to a tool call.
type callDelta struct {
	// index is the call's index as written, nil where there is none.
	index []byte
	id    []byte
	name  []byte
	args  []byte
	// extra are the members that the endpoint added to the protocol's.
	extra []member
}

// isEmpty tells that the delta says nothing of a call.
func (d *callDelta) isEmpty() bool {
	return d.id == nil && len(d.name) == 0 && len(d.args) == 0 && len(d.extra) == 0
}

// member is a member of a JSON object.
type member struct {
	name, value []byte
}

// readCalls reads a list of deltas of calls, or one.
func (c *choice) readCalls(s *scanner) {
	if s.peek() == '{' {
		c.addCall().read(s)
		return
	}
	if !s.open('[') {
		return
	}
	for s.element() {
		if s.peek() == '{' {
			c.addCall().read(s)
		} else {
			s.skip()
		}
	}
}

// addCall returns an empty delta at the end of the list, in memory used before.
func (c *choice) addCall() *callDelta {
	n := len(c.calls)
	if n < cap(c.calls) {
		c.calls = c.calls[:n+1]
	} else {
		c.calls = append(c.calls, callDelta{})
	}
	d := &c.calls[n]
	*d = callDelta{extra: d.extra[:0]}
	return d
}

func (d *callDelta) read(s *scanner) {
	s.open('{')
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "index":
			if raw := s.raw(); string(raw) != "null" {
				d.index = raw
			}
		case "id":
			d.id = realID(s.text())
		case "type":
			s.skip()
		case "function":
			d.function(s)
		default:
			if raw := s.raw(); string(raw) != "null" {
				d.extra = append(d.extra, member{name, raw})
			}
		}
	}
}

func (d *callDelta) function(s *scanner) {
	if !s.open('{') {
		return
	}
	for name, ok := s.member(); ok; name, ok = s.member() {
		switch string(name) {
		case "name":
			d.name = s.text()
		case "arguments":
			d.arguments(s)
		default:
			s.skip()
		}
	}
}

// arguments reads the text of arguments, or the arguments themselves.
func (d *callDelta) arguments(s *scanner) {
	if s.peek() == '"' {
		d.args = s.text()
		return
	}
	if raw := s.raw(); string(raw) != "null" {
		d.args = raw
	}
}

// readFunctionCall reads the one call of the protocol before tools.
func (c *choice) readFunctionCall(s *scanner) {
	if s.peek() == '{' {
		c.addCall().function(s)
	} else {
		s.skip()
	}
}

// realID is the id, or nil for the words that stand for none.
func realID(id []byte) []byte {
	switch string(id) {
	case "", " ", "null", "undefined", "none", "None", "nil":
		return nil
	}
	return id
}
