package canonical

import (
	"bytes"

	"synchro/internal/ijson"
)

// checkString checks one string in RFC 8785 form at the start of text: only
// the escapes that must be there, in their shortest spelling.
func checkString(text []byte) (raw, rest []byte, err error) {
	if ijson.KindOf(text) != ijson.String {
		return nil, nil, errSpelling
	}
	unicode := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			raw = text[:i+1]
			if unicode {
				err = ijson.CheckText(raw)
			}
			return raw, text[i+1:], err
		case c < 0x20:
			return nil, nil, errSpelling
		case c == '\\':
			size := minimalEscape(text[i:])
			if size == 0 {
				return nil, nil, errSpelling
			}
			i += size - 1
		case c >= 0x80:
			unicode = true
		}
	}
	return nil, nil, errSpelling
}

// minimalEscape returns the length of the escape at the start of text, 0 if it
// is not the one that RFC 8785 prescribes. U+0000 has no portable form.
func minimalEscape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	if len(text) < 6 || !bytes.HasPrefix(text[1:], []byte("u00")) || text[4] != '0' && text[4] != '1' {
		return 0
	}
	low := bytes.IndexByte([]byte("0123456789abcdef"), text[5])
	if low < 0 {
		return 0
	}
	switch code := int(text[4]-'0')<<4 | low; code {
	case 0, '\b', '\t', '\n', '\f', '\r':
		return 0
	}
	return 6
}

// lessUTF16 orders valid UTF-8 texts by their UTF-16 code units. That differs
// from the order of octets in one place only: characters above U+FFFF (lead
// octet F0 and up) are surrogates there and sort before U+E000 to U+FFFF (EE, EF).
func lessUTF16(a, b []byte) bool {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			return x >= 0xF0
		}
		return x < y
	}
	return len(a) < len(b)
}
