package ijson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// str takes a string, opening quote included, and checks escapes and encoding.
func (s *scanner) str() error {
	data, i := s.data, s.pos+1
	for {
		for i < len(data) && plain[data[i]] {
			i++
		}
		if i >= len(data) {
			return ErrSyntax
		}
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			return nil
		case c < 0x20:
			return ErrSyntax
		case c == '\\':
			size, err := escape(data[i:])
			if err != nil {
				return err
			}
			i += size
		default:
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size <= 1 {
				return ErrEncoding
			}
			if noncharacter(r) {
				return ErrNoncharacter
			}
			i += size
		}
	}
}

// plain are the octets that need no second look inside a string.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// escape checks the escape at the start of data and returns its length: both
// halves of a surrogate pair count as one.
func escape(data []byte) (int, error) {
	if len(data) < 2 {
		return 0, ErrSyntax
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
	default:
		return 0, ErrSyntax
	}
	first, ok := hex4(data)
	if !ok {
		return 0, ErrSyntax
	}
	if first == 0 {
		return 0, ErrNul
	}
	if !utf16.IsSurrogate(first) {
		if noncharacter(first) {
			return 0, ErrNoncharacter
		}
		return 6, nil
	}
	second, ok := hex4(data[6:])
	if !ok {
		return 0, ErrEncoding
	}
	r := utf16.DecodeRune(first, second)
	if r == utf8.RuneError {
		return 0, ErrEncoding
	}
	if noncharacter(r) {
		return 0, ErrNoncharacter
	}
	return 12, nil
}

// hex4 reads \uXXXX at the start of data.
func hex4(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range data[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func noncharacter(r rune) bool {
	return r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF
}

// unescape appends the decoded inside of a string that str has accepted.
func unescape(dst, inner []byte) []byte {
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			return append(dst, inner...)
		}
		dst = append(dst, inner[:i]...)
		inner = inner[i:]
		size := 2
		switch c := inner[1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(inner)
			size = 6
			if utf16.IsSurrogate(r) {
				low, _ := hex4(inner[6:])
				r, size = utf16.DecodeRune(r, low), 12
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		inner = inner[size:]
	}
}

// AppendText appends the decoded text of one string value, all of raw.
func AppendText(dst, raw []byte) ([]byte, error) {
	inner, plain, err := text(raw)
	if err != nil {
		return dst, err
	}
	if plain {
		return append(dst, inner...), nil
	}
	return unescape(dst, inner), nil
}

// Text returns the decoded text of one string value, all of raw. It aliases
// raw when the string has no escapes.
func Text(raw []byte) ([]byte, error) {
	inner, plain, err := text(raw)
	if err != nil || plain {
		return inner, err
	}
	return unescape(nil, inner), nil
}

func text(raw []byte) (inner []byte, plain bool, err error) {
	if KindOf(raw) != String {
		return nil, false, ErrType
	}
	s := scanner{data: raw}
	if err := s.str(); err != nil {
		return nil, false, err
	}
	if s.pos != len(raw) {
		return nil, false, ErrSyntax
	}
	inner = raw[1 : len(raw)-1]
	return inner, bytes.IndexByte(inner, '\\') < 0, nil
}

// CheckText refuses text, already decoded, that is not valid Unicode or holds a noncharacter.
func CheckText(text []byte) error {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size <= 1 {
			return ErrEncoding
		}
		if noncharacter(r) {
			return ErrNoncharacter
		}
		i += size
	}
	return nil
}

// AppendQuoted appends text, already decoded, as a string in the form of RFC 8785.
func AppendQuoted(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(dst, '"')
}
