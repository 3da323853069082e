package canonical

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gowebpki/jcs"

	"synchro/internal/ijson"
)

var (
	errSpelling = errors.New("JSON is not in RFC 8785 form")
	errUnsafe   = errors.New("JSON holds an integral number beyond 2^53-1")
)

// Canonicalize returns the RFC 8785 form of one document, which must be I-JSON.
// Large numbers are kept: they are legal as float values.
func Canonicalize(data []byte) ([]byte, error) {
	if err := ijson.Validate(data, ijson.DefaultDepth); err != nil {
		return nil, err
	}
	return jcs.Transform(data)
}

// PortableJSON returns the text of a portable json value: the RFC 8785 form of
// a document without U+0000 and without integral numbers beyond ±(2^53-1).
func PortableJSON(data []byte) ([]byte, error) {
	out, err := Canonicalize(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrValue, err)
	}
	if err := CheckJSON(out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrValue, err)
	}
	return out, nil
}

// CheckJSON accepts exactly the texts that PortableJSON returns, in one pass
// without building anything.
func CheckJSON(text []byte) error {
	rest, err := checkNode(text, ijson.DefaultDepth)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return errSpelling
	}
	return nil
}

// checkNode checks one value at the start of text and returns what follows it.
func checkNode(text []byte, depth int) ([]byte, error) {
	switch ijson.KindOf(text) {
	case ijson.Null:
		return cutPrefix(text, "null")
	case ijson.Boolean:
		if text[0] == 't' {
			return cutPrefix(text, "true")
		}
		return cutPrefix(text, "false")
	case ijson.Number:
		return checkNumber(text)
	case ijson.String:
		_, rest, err := checkString(text)
		return rest, err
	case ijson.Array:
		return checkArray(text, depth)
	case ijson.Object:
		return checkObject(text, depth)
	}
	return nil, errSpelling
}

func cutPrefix(text []byte, word string) ([]byte, error) {
	if !bytes.HasPrefix(text, []byte(word)) {
		return nil, errSpelling
	}
	return text[len(word):], nil
}

func checkNumber(text []byte) ([]byte, error) {
	end := 0
	for end < len(text) && (text[end] == '-' || text[end] == '+' || text[end] == '.' || text[end]|0x20 == 'e' ||
		'0' <= text[end] && text[end] <= '9') {
		end++
	}
	if _, err := ijson.Integer(text[:end]); err == nil {
		return text[end:], nil
	}
	f, err := parseFloat(text[:end])
	if err != nil {
		return nil, errSpelling
	}
	if f > ijson.MaxSafe || f < -ijson.MaxSafe {
		return nil, errUnsafe // every binary64 of this size is integral
	}
	return text[end:], nil
}

func checkArray(text []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, ijson.ErrDepth
	}
	text = text[1:]
	if rest, ok := cutByte(text, ']'); ok {
		return rest, nil
	}
	for {
		rest, err := checkNode(text, depth-1)
		if err != nil {
			return nil, err
		}
		if after, ok := cutByte(rest, ']'); ok {
			return after, nil
		}
		after, ok := cutByte(rest, ',')
		if !ok {
			return nil, errSpelling
		}
		text = after
	}
}

func checkObject(text []byte, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, ijson.ErrDepth
	}
	text = text[1:]
	if rest, ok := cutByte(text, '}'); ok {
		return rest, nil
	}
	var previous []byte
	for first := true; ; first = false {
		raw, rest, err := checkString(text)
		if err != nil {
			return nil, err
		}
		name, err := ijson.Text(raw)
		if err != nil {
			return nil, err
		}
		if !first && !lessUTF16(previous, name) {
			return nil, errSpelling // out of order, or a duplicate
		}
		previous = name
		value, ok := cutByte(rest, ':')
		if !ok {
			return nil, errSpelling
		}
		if rest, err = checkNode(value, depth-1); err != nil {
			return nil, err
		}
		if after, ok := cutByte(rest, '}'); ok {
			return after, nil
		}
		after, ok := cutByte(rest, ',')
		if !ok {
			return nil, errSpelling
		}
		text = after
	}
}

func cutByte(text []byte, c byte) ([]byte, bool) {
	if len(text) == 0 || text[0] != c {
		return nil, false
	}
	return text[1:], true
}
