// Package ijson reads JSON strictly: RFC 8259 syntax, the I-JSON limits of RFC
// 7493 (no duplicate member names, no lone surrogates, no noncharacters,
// numbers inside binary64), no U+0000, which no database text can hold, and a
// bound on nesting. Values are slices of the
// input; nothing is converted before the caller asks, so that numbers and
// spellings reach their destination unchanged.
package ijson

import "errors"

// The reasons of a refusal. No error of this package carries input text.
var (
	ErrSyntax       = errors.New("malformed JSON")
	ErrEncoding     = errors.New("text is not valid Unicode")
	ErrNoncharacter = errors.New("text holds a Unicode noncharacter")
	ErrNul          = errors.New("text holds U+0000")
	ErrDuplicate    = errors.New("a member name appears twice")
	ErrNumberRange  = errors.New("number is beyond binary64")
	ErrDepth        = errors.New("nesting is too deep")
	ErrType         = errors.New("value has the wrong JSON type")
	ErrUnknown      = errors.New("unknown member")
	ErrMissing      = errors.New("missing member")
)

// DefaultDepth bounds documents that have no tighter limit of their own, portable
// json values among them.
const DefaultDepth = 1000

// Kind is the JSON type of a value.
type Kind byte

// The JSON types.
const (
	Invalid Kind = iota
	Null
	Boolean
	Number
	String
	Array
	Object
)

// KindOf tells the JSON type of a value from its first byte, without checking the rest.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return Invalid
	}
	switch raw[0] {
	case 'n':
		return Null
	case 't', 'f':
		return Boolean
	case '"':
		return String
	case '[':
		return Array
	case '{':
		return Object
	}
	if raw[0] == '-' || isDigit(raw[0]) {
		return Number
	}
	return Invalid
}

// Validate checks one complete document. maxDepth counts open arrays and objects.
func Validate(data []byte, maxDepth int) error {
	_, err := Value(data, maxDepth)
	return err
}

// Value checks one complete document and returns it without surrounding blanks.
func Value(data []byte, maxDepth int) ([]byte, error) {
	s := scanner{data: data, depth: maxDepth}
	s.blanks()
	start := s.pos
	if err := s.value(); err != nil {
		return nil, err
	}
	end := s.pos
	s.blanks()
	if s.pos != len(data) {
		return nil, ErrSyntax
	}
	return data[start:end], nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
