package canonical

import (
	"bytes"
	"math"
	"strconv"

	"synchro/internal/ijson"
)

// AppendFloat appends the RFC 8785 form of a finite binary64: shortest digits
// that read back, laid out by the rules of ECMAScript; minus zero is 0.
func AppendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, errFloat
	}
	if f == 0 {
		return append(dst, '0'), nil
	}
	if f < 0 {
		dst, f = append(dst, '-'), -f
	}
	var scratch [32]byte
	text := strconv.AppendFloat(scratch[:0], f, 'e', -1, 64)
	mantissa, power, _ := bytes.Cut(text, []byte("e"))
	exponent := 0
	for _, c := range power[1:] {
		exponent = exponent*10 + int(c-'0')
	}
	if power[0] == '-' {
		exponent = -exponent
	}
	digits := mantissa[:1]
	if len(mantissa) > 2 {
		digits = append(digits, mantissa[2:]...) // closes the gap of the point, in place
	}
	return appendDigits(dst, digits, exponent), nil
}

// appendDigits lays out d.ddd × 10^exponent.
func appendDigits(dst, digits []byte, exponent int) []byte {
	point := exponent + 1 // position of the decimal point, counted from the first digit
	switch {
	case len(digits) <= point && point <= 21:
		dst = append(dst, digits...)
		for range point - len(digits) {
			dst = append(dst, '0')
		}
		return dst
	case 0 < point && point <= 21:
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	case -6 < point && point <= 0:
		dst = append(dst, '0', '.')
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	if exponent > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exponent), 10)
}

// parseFloat reads a JSON number, all of raw, that is already in its RFC 8785 form.
func parseFloat(raw []byte) (float64, error) {
	if ijson.KindOf(raw) != ijson.Number {
		return 0, ijson.ErrType
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, errFloat
	}
	var scratch [32]byte
	canonical, err := AppendFloat(scratch[:0], f)
	if err != nil || !bytes.Equal(canonical, raw) {
		return 0, errFloat
	}
	return f, nil
}

// FloatForm turns a number as a database or a program spells it into its wire form.
func FloatForm(source string) (string, error) {
	f, err := strconv.ParseFloat(source, 64)
	if err != nil {
		return "", errFloat
	}
	out, err := AppendFloat(nil, f)
	return string(out), err
}
