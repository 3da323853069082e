package ijson

import "bytes"

// skip finds the end of the value at pos by its brackets and quotes alone. Of
// valid JSON it takes exactly one value; of anything else, something that no
// reader of that value accepts.
func (s *scanner) skip() error {
	switch s.data[s.pos] {
	case '"':
		return s.skipString()
	case '{', '[':
		return s.skipNested()
	}
	start := s.pos
	for s.pos < len(s.data) && !endsWord[s.data[s.pos]] {
		s.pos++
	}
	if s.pos == start {
		return ErrSyntax
	}
	return nil
}

func (s *scanner) skipString() error {
	for i := s.pos + 1; ; {
		n := bytes.IndexByte(s.data[i:], '"')
		if n < 0 {
			return ErrSyntax
		}
		i += n
		slashes := 0
		for s.data[i-1-slashes] == '\\' { // the opening quote ends this at the latest
			slashes++
		}
		i++
		if slashes%2 == 0 {
			s.pos = i
			return nil
		}
	}
}

func (s *scanner) skipNested() error {
	open := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		s.pos++
		if open == 0 {
			return nil
		}
	}
	return ErrSyntax
}

// endsWord are the octets that end a number or a literal.
var endsWord = [256]bool{' ': true, '\t': true, '\n': true, '\r': true, ',': true, ':': true, '"': true,
	'[': true, ']': true, '{': true, '}': true}

// Skim is Members for a caller that reads every value completely and so finds
// what is wrong inside it: values are delimited only. Names and the object
// itself are checked.
func Skim(raw []byte, visit func(name, value []byte) error) error {
	return members(scanner{data: raw, depth: 1, skim: true}, visit)
}
