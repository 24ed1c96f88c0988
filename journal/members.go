package journal

import "bytes"

// members calls member with the keys and values of an object that is compact JSON. It reports
// false where data is anything else, or has a key that an Encoder does not write.
func members(data []byte, member func(key, value []byte)) bool {
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return false
	}
	for i := 1; ; {
		if data[i] != '"' {
			return false
		}
		end := stringEnd(data, i)
		if end < 0 || end+1 >= len(data) || data[end+1] != ':' {
			return false
		}
		key := data[i+1 : end]
		if !plainKey(key) {
			return false
		}
		i = end + 2
		if end = valueEnd(data, i); end < 0 {
			return false
		}
		member(key, data[i:end])
		switch {
		case end == len(data)-1:
			return true
		case data[end] != ',':
			return false
		}
		i = end + 1
	}
}

// plainKey tells whether key cannot be another spelling of one that is known.
func plainKey(key []byte) bool {
	for _, c := range key {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// valueEnd is the place behind the value that begins at i, negative where there is none or
// white space stands in it.
func valueEnd(data []byte, i int) int {
	begin, depth := i, 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i = stringEnd(data, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			switch {
			case depth == 0 && i == begin:
				return -1
			case depth == 0:
				return i
			case data[i] != ',':
				depth--
			}
		case ' ', '\t', '\r', '\n':
			return -1
		}
	}
	return -1
}

// stringEnd is the place of the quote that ends the string which begins at i, or negative.
func stringEnd(data []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return -1
		}
		begin := i
		i += n
		escapes := 0
		for i-escapes > begin && data[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// unquote is what stands between the quotes of a string. It clears ok where value is none.
func unquote(value []byte, ok *bool) []byte {
	if len(value) < 2 || value[0] != '"' {
		*ok = false
		return nil
	}
	return value[1 : len(value)-1]
}
