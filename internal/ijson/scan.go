package ijson

import (
	"bytes"
	"math"
	"strconv"
)

// scanner walks the input once. depth is what is left of the nesting bound.
// With skim, values are only delimited: for input that was checked before, or
// whose values the caller checks one by one.
type scanner struct {
	data  []byte
	pos   int
	depth int
	skim  bool
}

func (s *scanner) blanks() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// accept takes the byte c if it is next, after blanks.
func (s *scanner) accept(c byte) bool {
	s.blanks()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// value takes one value of any type and checks everything inside it.
func (s *scanner) value() error {
	if s.pos >= len(s.data) {
		return ErrSyntax
	}
	if s.skim {
		return s.skip()
	}
	switch c := s.data[s.pos]; {
	case c == '"':
		return s.str()
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array(nil)
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return ErrSyntax
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		return ErrSyntax
	}
	s.pos += len(w)
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) number() error {
	start := s.pos
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return ErrSyntax
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return ErrSyntax
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return ErrSyntax
		}
	} else if s.pos-start < 300 {
		return nil // too short, without an exponent, to leave binary64
	}
	if f, err := strconv.ParseFloat(string(s.data[start:s.pos]), 64); err != nil || math.IsInf(f, 0) {
		return ErrNumberRange
	}
	return nil
}

// array takes an array. visit, if given, gets each element as it lies in the input.
func (s *scanner) array(visit func(element []byte) error) error {
	if s.depth--; s.depth < 0 {
		return ErrDepth
	}
	s.pos++
	if !s.accept(']') {
		for {
			s.blanks()
			start := s.pos
			if err := s.value(); err != nil {
				return err
			}
			if visit != nil {
				if err := visit(s.data[start:s.pos]); err != nil {
					return err
				}
			}
			if s.accept(']') {
				break
			}
			if !s.accept(',') {
				return ErrSyntax
			}
		}
	}
	s.depth++
	return nil
}

// object takes an object. visit, if given, gets each name (decoded) and value
// and is then the one who refuses duplicates; without it they are refused here.
func (s *scanner) object(visit func(name, value []byte) error) error {
	if s.depth--; s.depth < 0 {
		return ErrDepth
	}
	s.pos++
	var seen names
	if !s.accept('}') {
		for {
			s.blanks()
			name, err := s.name()
			if err != nil {
				return err
			}
			if visit == nil && !seen.add(name) {
				return ErrDuplicate
			}
			if !s.accept(':') {
				return ErrSyntax
			}
			s.blanks()
			start := s.pos
			if err := s.value(); err != nil {
				return err
			}
			if visit != nil {
				if err := visit(name, s.data[start:s.pos]); err != nil {
					return err
				}
			}
			if s.accept('}') {
				break
			}
			if !s.accept(',') {
				return ErrSyntax
			}
		}
	}
	s.depth++
	return nil
}

// name takes a member name and returns it decoded.
func (s *scanner) name() ([]byte, error) {
	if s.pos >= len(s.data) || s.data[s.pos] != '"' {
		return nil, ErrSyntax
	}
	start := s.pos
	if err := s.str(); err != nil {
		return nil, err
	}
	inner := s.data[start+1 : s.pos-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	return unescape(nil, inner), nil
}

// names is a set that stays a short list until an object proves to be large.
type names struct {
	few  [8][]byte
	n    int
	many map[string]struct{}
}

// add reports whether the name is new.
func (s *names) add(name []byte) bool {
	if s.many != nil {
		if _, found := s.many[string(name)]; found {
			return false
		}
		s.many[string(name)] = struct{}{}
		return true
	}
	for _, other := range s.few[:s.n] {
		if bytes.Equal(other, name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	s.many = make(map[string]struct{}, 4*len(s.few))
	for _, other := range s.few {
		s.many[string(other)] = struct{}{}
	}
	s.many[string(name)] = struct{}{}
	return true
}
