package systest

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// valueColumn is a column type of the property tests and how random values of it are written for PostgreSQL.
type valueColumn struct {
	name, sqlType, portable string
	asText                  bool
	random                  func(r *rand.Rand) string
}

// valueColumns cover every portable type and every way into it.
var valueColumns = []valueColumn{
	{"a_text", "text", "string", false, randomText},
	{"a_varchar", "varchar(2000)", "string", false, randomText},
	{"a_char", "char(12)", "string", false, func(r *rand.Rand) string { return randomWord(r, 12) }},
	{"a_uuid", "uuid", "string", false, func(r *rand.Rand) string { return hex.EncodeToString(randomBytes(r, 16)) }},
	{"an_enum", "prop_color", "string", false, randomColor},
	{"an_inet", "inet", "string", false, func(r *rand.Rand) string { return fmt.Sprintf("10.%d.%d.0/%d", r.IntN(256), r.IntN(256), 24+r.IntN(9)) }},
	{"an_interval", "interval", "string", false, func(r *rand.Rand) string {
		return fmt.Sprintf("%d mon %d day %d.%06d s", r.IntN(99)-49, r.IntN(99)-49, r.IntN(999999)-500000, r.IntN(1000000))
	}},
	{"a_timetz", "timetz", "string", false, func(r *rand.Rand) string { return randomTime(r) + fmt.Sprintf("%+03d", r.IntN(29)-14) }},
	{"a_range", "tstzrange", "string", false, func(r *rand.Rand) string {
		return fmt.Sprintf("[%s,%s)", time.Unix(r.Int64N(1e9), 0).UTC().Format(time.RFC3339), time.Unix(2e9+r.Int64N(1e9), 0).UTC().Format(time.RFC3339))
	}},
	{"a_point", "point", "string", false, func(r *rand.Rand) string { return fmt.Sprintf("(%v,%v)", r.NormFloat64(), r.NormFloat64()) }},
	{"a_smallint", "smallint", "int", false, func(r *rand.Rand) string { return strconv.Itoa(int(int16(r.Uint32()))) }},
	{"an_int", "int", "int", false, func(r *rand.Rand) string { return strconv.Itoa(int(int32(r.Uint32()))) }},
	{"a_bigint", "bigint", "int64", false, func(r *rand.Rand) string { return strconv.FormatInt(int64(r.Uint64()), 10) }},
	{"a_numeric", "numeric", "decimal", false, randomNumeric},
	{"a_price", "numeric(12,3)", "decimal", false, func(r *rand.Rand) string { return fmt.Sprintf("%d.%03d", r.IntN(2e9)-1e9, r.IntN(1000)) }},
	{"a_real", "real", "float", false, func(r *rand.Rand) string { return finite(float64(math.Float32frombits(r.Uint32())), 32) }},
	{"a_double", "double precision", "float", false, func(r *rand.Rand) string { return finite(math.Float64frombits(r.Uint64()), 64) }},
	{"a_decimal_double", "double precision", "float", false, func(r *rand.Rand) string {
		return fmt.Sprintf("%de%d", r.IntN(2001)-1000, r.IntN(60)-30)
	}},
	{"a_boolean", "boolean", "boolean", false, func(r *rand.Rand) string { return strconv.FormatBool(r.IntN(2) == 0) }},
	{"a_timestamp", "timestamp", "datetime", false, randomTimestamp},
	{"a_timestamptz", "timestamptz", "datetime", false, func(r *rand.Rand) string { return randomTimestamp(r) + "Z" }},
	{"a_date", "date", "date", false, func(r *rand.Rand) string { return randomTimestamp(r)[:10] }},
	{"a_time", "time", "time", false, randomTime},
	{"a_json", "json", "json", false, func(r *rand.Rand) string { return randomJSON(r, 3) }},
	{"a_jsonb", "jsonb", "json", false, func(r *rand.Rand) string { return randomJSON(r, 3) }},
	{"a_bytea", "bytea", "bytes", false, func(r *rand.Rand) string { return `\x` + hex.EncodeToString(randomBytes(r, r.IntN(20))) }},
	{"ints", "int[]", "json", false, randomArray(func(r *rand.Rand) string { return strconv.Itoa(int(int32(r.Uint32()))) })},
	{"bigints", "bigint[]", "json", false, randomArray(func(r *rand.Rand) string { return strconv.FormatInt(int64(r.Uint64()), 10) })},
	{"texts", "text[]", "json", false, randomArray(randomText)},
	{"enums", "prop_color[]", "json", false, randomArray(randomColor)},
	{"datetimes", "timestamptz[]", "json", false, randomArray(func(r *rand.Rand) string { return randomTimestamp(r) + "Z" })},
	{"numerics", "numeric[]", "json", false, randomArray(randomNumeric)},
	{"byteas", "bytea[]", "json", false, randomArray(func(r *rand.Rand) string { return `\x` + hex.EncodeToString(randomBytes(r, r.IntN(5))) })},
	{"text_timestamptz", "timestamptz", "string", true, func(r *rand.Rand) string {
		return []string{"infinity", "-infinity", "0044-03-15 00:00Z BC", randomTimestamp(r) + "Z"}[r.IntN(4)]
	}},
	{"text_double", "double precision", "string", true, func(r *rand.Rand) string {
		return []string{"NaN", "Infinity", "-0", finite(math.Float64frombits(r.Uint64()), 64)}[r.IntN(4)]
	}},
	{"text_bytea", "bytea", "string", true, func(r *rand.Rand) string { return `\x` + hex.EncodeToString(randomBytes(r, 3)) }},
	{"text_matrix", "date[]", "string", true, func(r *rand.Rand) string { return "[0:1][2:2]={{2024-01-02},{infinity}}" }},
}

func finite(f float64, bits int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = math.Copysign(0, -1)
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// randomRune is portable: no NUL, no surrogate, no noncharacter.
func randomRune(r *rand.Rand) rune {
	for {
		c := rune(1 + r.IntN([]int{0x7F, 0x7FF, 0xFFFF, 0x10FFFF}[r.IntN(4)]))
		if c >= 0xD800 && c <= 0xDFFF || c >= 0xFDD0 && c <= 0xFDEF || c&0xFFFE == 0xFFFE {
			continue
		}
		return c
	}
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(30) {
		b.WriteRune(randomRune(r))
	}
	return b.String()
}

func randomWord(r *rand.Rand, limit int) string {
	return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(limit+1))
}

func randomColor(r *rand.Rand) string { return []string{"red", "Grün", "NULL", `a,"b\c`}[r.IntN(4)] }

func randomNumeric(r *rand.Rand) string {
	s := strconv.FormatUint(r.Uint64(), 10) + strconv.FormatUint(r.Uint64(), 10)
	s = s[:1+r.IntN(len(s))]
	if cut := r.IntN(len(s) + 1); r.IntN(3) > 0 {
		s = "0" + s[:cut] + "." + s[cut:] + strings.Repeat("0", r.IntN(4))
	}
	return []string{"", "-"}[r.IntN(2)] + s
}

func randomTime(r *rand.Rand) string {
	return fmt.Sprintf("%02d:%02d:%02d.%06d", r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000000))
}

// randomTimestamp lies in the years 1 to 9999.
func randomTimestamp(r *rand.Rand) string {
	const first, last = -62135596800, 253402300799
	return time.Unix(first+r.Int64N(last-first+1), r.Int64N(1e6)*1000).UTC().Format("2006-01-02 15:04:05.000000")
}

func randomJSON(r *rand.Rand, depth int) string {
	switch n := r.IntN(7); {
	case n < 3 || depth == 0:
		return []string{"null", "true", "false", fmt.Sprintf("%d.%d0", r.IntN(1000), r.IntN(1000)), fmt.Sprintf("-%de-%d", r.IntN(1000), r.IntN(200)),
			strconv.Itoa(r.IntN(1 << 53)), "1E3", "-0", randomJSONString(r)}[r.IntN(9)]
	case n < 5:
		items := make([]string, r.IntN(4))
		for i := range items {
			items[i] = randomJSON(r, depth-1)
		}
		return "[" + strings.Join(items, " , ") + "]"
	default:
		seen := map[string]bool{}
		var members []string
		for range r.IntN(5) {
			if name := randomText(r); !seen[name] {
				seen[name] = true
				members = append(members, quoteJSON(r, name)+": "+randomJSON(r, depth-1))
			}
		}
		return "{ " + strings.Join(members, ",\n") + " }"
	}
}

func randomJSONString(r *rand.Rand) string { return quoteJSON(r, randomText(r)) }

// quoteJSON escapes what must be and, at random, what need not be escaped.
func quoteJSON(r *rand.Rand, text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < 0x20 || c < 0x10000 && r.IntN(4) == 0:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// randomArray is a one-dimensional array literal with some NULLs.
func randomArray(element func(*rand.Rand) string) func(*rand.Rand) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	return func(r *rand.Rand) string {
		elements := make([]string, r.IntN(4))
		for i := range elements {
			elements[i] = "NULL"
			if r.IntN(4) > 0 {
				elements[i] = `"` + quote.Replace(element(r)) + `"`
			}
		}
		return "{" + strings.Join(elements, ",") + "}"
	}
}
