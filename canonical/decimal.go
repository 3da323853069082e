package canonical

import (
	"bytes"
	"errors"
)

// Why a scalar is refused; always wrapped in ErrValue.
var (
	errNul      = errors.New("text holds U+0000")
	errInt64    = errors.New("not a canonical int64")
	errDecimal  = errors.New("not a canonical decimal")
	errTooWide  = errors.New("decimal exceeds the field's precision or scale")
	errFloat    = errors.New("not a canonical float")
	errBase64   = errors.New("not unpadded base64url")
	errDatetime = errors.New("not a canonical datetime")
	errDate     = errors.New("not a canonical date")
	errTime     = errors.New("not a canonical time")
)

// checkDecimal accepts only the minimal plain spelling of a decimal, and when
// precision is not 0 only a value that numeric(precision, scale) holds exactly.
func checkDecimal(text []byte, precision, scale int) error {
	unsigned := bytes.TrimPrefix(text, []byte("-"))
	whole, fraction, dotted := bytes.Cut(unsigned, []byte("."))
	if len(whole) == 0 || !allDigits(whole) || whole[0] == '0' && len(whole) > 1 {
		return errDecimal
	}
	if dotted && (len(fraction) == 0 || !allDigits(fraction) || fraction[len(fraction)-1] == '0') {
		return errDecimal
	}
	zero := whole[0] == '0' && !dotted
	if zero && len(unsigned) != len(text) {
		return errDecimal
	}
	if precision == 0 || zero {
		return nil
	}
	return checkWidth(whole, fraction, precision, scale)
}

// checkWidth compares digit positions: none below 10^-scale, none at or above
// 10^(precision-scale). Scale may be negative or exceed precision.
func checkWidth(whole, fraction []byte, precision, scale int) error {
	limit := precision - scale
	switch {
	case len(fraction) > max(scale, 0):
		return errTooWide
	case scale < 0 && len(whole)-len(bytes.TrimRight(whole, "0")) < -scale:
		return errTooWide
	case whole[0] != '0' && len(whole) > limit:
		return errTooWide
	case whole[0] == '0' && len(fraction)-len(bytes.TrimLeft(fraction, "0")) < -limit:
		return errTooWide
	}
	return nil
}
