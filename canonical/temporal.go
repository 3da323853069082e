package canonical

// Temporal values have one fixed layout each, so positions are compared, not parsed.

func checkDatetime(text []byte) error {
	if len(text) != len("YYYY-MM-DDTHH:MM:SS.ffffffZ") || text[10] != 'T' || text[26] != 'Z' ||
		checkDate(text[:10]) != nil || checkTime(text[11:26]) != nil {
		return errDatetime
	}
	return nil
}

// checkDate accepts the years 0001 to 9999 of the proleptic Gregorian calendar.
func checkDate(text []byte) error {
	if len(text) != len("YYYY-MM-DD") || text[4] != '-' || text[7] != '-' {
		return errDate
	}
	year, okYear := number(text[:4])
	month, okMonth := number(text[5:7])
	day, okDay := number(text[8:])
	if !okYear || !okMonth || !okDay || year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return errDate
	}
	return nil
}

// checkTime accepts neither 24:00:00 nor leap seconds.
func checkTime(text []byte) error {
	if len(text) != len("HH:MM:SS.ffffff") || text[2] != ':' || text[5] != ':' || text[8] != '.' {
		return errTime
	}
	hour, okHour := number(text[:2])
	minute, okMinute := number(text[3:5])
	second, okSecond := number(text[6:8])
	if !okHour || !okMinute || !okSecond || hour > 23 || minute > 59 || second > 59 || !allDigits(text[9:]) {
		return errTime
	}
	return nil
}

func number(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
