package ijson

// MaxSafe is the largest integer that every binary64 reader keeps exact.
const MaxSafe = 1<<53 - 1

// Integer reads an integer literal, all of raw, within ±MaxSafe. A fraction,
// an exponent, a leading zero or minus zero is refused.
func Integer(raw []byte) (int64, error) {
	if KindOf(raw) != Number {
		return 0, ErrType
	}
	digits := raw
	negative := raw[0] == '-'
	if negative {
		digits = raw[1:]
	}
	if len(digits) == 0 || len(digits) > 16 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, ErrType
	}
	var n int64
	for _, c := range digits {
		if !isDigit(c) {
			return 0, ErrType
		}
		n = n*10 + int64(c-'0')
	}
	if n > MaxSafe {
		return 0, ErrNumberRange
	}
	if negative {
		n = -n
	}
	return n, nil
}

// Bool reads true or false, all of raw.
func Bool(raw []byte) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, ErrType
}
