package canonical

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"synchro/internal/ijson"
)

const (
	absent  = 0x00
	present = 0x01
)

var base64url = base64.RawURLEncoding.Strict()

// AppendTyped appends the typed binary form of one wire value: the raw JSON,
// checked against its field. On error dst comes back unchanged in content.
func AppendTyped(dst []byte, field FieldSpec, raw []byte) ([]byte, error) {
	if string(raw) == "null" {
		if !field.Nullable {
			return dst, ErrNull
		}
		return append(dst, byte(field.Type), absent), nil
	}
	start := len(dst)
	out, err := appendPayload(append(dst, byte(field.Type), present), field, raw)
	if err != nil {
		return dst[:start], fmt.Errorf("%w: %s", ErrValue, err)
	}
	return out, nil
}

func appendPayload(dst []byte, field FieldSpec, raw []byte) ([]byte, error) {
	switch field.Type {
	case Int:
		n, err := ijson.Integer(raw)
		if err == nil && int64(int32(n)) != n {
			err = ijson.ErrNumberRange
		}
		return binary.BigEndian.AppendUint32(dst, uint32(n)), err
	case Float:
		f, err := parseFloat(raw)
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(f)), err
	case Boolean:
		b, err := ijson.Bool(raw)
		if b {
			return append(dst, 1), err
		}
		return append(dst, 0), err
	case String, Int64, Decimal, Datetime, Date, Time, JSON, Bytes:
		return appendTextPayload(dst, field, raw)
	}
	return dst, ijson.ErrType
}

// appendTextPayload handles the types whose wire form is a JSON string. The
// text is decoded in place behind a length that is filled in afterwards.
func appendTextPayload(dst []byte, field FieldSpec, raw []byte) ([]byte, error) {
	at := len(dst)
	dst, err := ijson.AppendText(append(dst, 0, 0, 0, 0, 0, 0, 0, 0), raw)
	if err != nil {
		return dst, err
	}
	text := dst[at+8:]
	switch field.Type {
	case Int64:
		n, err := parseInt64(text)
		return binary.BigEndian.AppendUint64(dst[:at], uint64(n)), err
	case Decimal:
		err = checkDecimal(text, field.Precision, field.Scale)
	case Datetime:
		err = checkDatetime(text)
	case Date:
		err = checkDate(text)
	case Time:
		err = checkTime(text)
	case JSON:
		err = CheckJSON(text)
	case Bytes:
		text, err = decodeBytes(text)
		dst = dst[:at+8+len(text)]
	}
	binary.BigEndian.PutUint64(dst[at:], uint64(len(dst)-at-8))
	return dst, err
}

// decodeBytes decodes base64url in place: output never overtakes input. The
// alphabet is checked first because the decoder skips line breaks.
func decodeBytes(text []byte) ([]byte, error) {
	for _, c := range text {
		if c == '\n' || c == '\r' {
			return text, errBase64
		}
	}
	n, err := base64url.Decode(text, text)
	if err != nil {
		return text, errBase64
	}
	return text[:n], nil
}

// parseInt64 reads the canonical base 10 form.
func parseInt64(text []byte) (int64, error) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(text) > 1 || !allDigits(digits) {
		return 0, errInt64
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, errInt64
	}
	return n, nil
}

func allDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
