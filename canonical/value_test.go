package canonical

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func TestWireForms(t *testing.T) {
	numeric := func(precision, scale int) FieldSpec {
		return FieldSpec{Type: Decimal, Precision: precision, Scale: scale}
	}
	of := func(typ Type) FieldSpec { return FieldSpec{Type: typ} }
	for _, c := range []struct {
		name     string
		field    FieldSpec
		accepted []string
		refused  []string
	}{
		{"string", of(String), []string{`""`, `"\ud83d\ude00"`, `"\u0001"`, `"a\/b"`},
			[]string{`"\u0000"`, `"\ufdd0"`, `"\uffff"`, "\"\xff\"", `1`, `true`, `{}`, `"a`, ``, ` "a"`, `"a" `}},
		{"int", of(Int), []string{`0`, `-1`}, []string{`2147483648`, `-2147483649`, `1.0`, `"1"`, `-0`, `+1`, `01`, ``}},
		{"int64", of(Int64), []string{`"0"`, `"-1"`, `"\u0031"`}, []string{`"-0"`, `"00"`, `""`, `"-"`, `"+1"`, `" 1"`, `"1 "`,
			`"9223372036854775808"`, `"-9223372036854775809"`, `"1.0"`, `"1_0"`, `"0x1"`, `1`}},
		{"decimal", of(Decimal), []string{`"0"`, `"-0.5"`, `"0.001"`, `"` + strings.Repeat("9", 5000) + `.1"`},
			[]string{`"00"`, `"01"`, `".5"`, `"5."`, `"1.0"`, `"0.0"`, `"-0"`, `"-0.0"`, `"--1"`, `"+1"`, `"1e2"`, `"NaN"`, `"Infinity"`, `""`, `"-"`, `1`}},
		{"numeric(6,2)", numeric(6, 2), []string{`"9999.99"`, `"-9999.99"`, `"0.01"`}, []string{`"10000"`, `"0.001"`}},
		{"numeric(3,5)", numeric(3, 5), []string{`"0.00999"`, `"0.00001"`, `"0"`}, []string{`"0.01"`, `"0.000001"`, `"1"`}},
		{"numeric(2,-3)", numeric(2, -3), []string{`"99000"`, `"-1000"`, `"0"`}, []string{`"100000"`, `"1500"`, `"999"`, `"0.5"`}},
		{"numeric(3,3)", numeric(3, 3), []string{`"0.999"`}, []string{`"1"`, `"0.9999"`}},
		{"float", of(Float), []string{`0`, `-1.5`, `9007199254740992`, `1e+21`, `1e-7`}, []string{`-0`, `1e21`, `1E+21`, `0.10`, `1e-400`, `"1"`, `1e309`}},
		{"boolean", of(Boolean), []string{`true`, `false`}, []string{`True`, `1`, `"true"`, ``}},
		{"datetime", of(Datetime), []string{`"0001-01-01T00:00:00.000000Z"`, `"9999-12-31T23:59:59.999999Z"`},
			[]string{`"0000-01-01T00:00:00.000000Z"`, `"2024-01-01T24:00:00.000000Z"`, `"2024-01-01T00:00:00.000000"`,
				`"2024-01-01t00:00:00.000000Z"`, `"2024-01-01T00:00:00.000000z"`, `"2024-01-01T00:00:00,000000Z"`, `"2024-01-01T00:00:00.00000aZ"`}},
		{"date", of(Date), []string{`"2000-02-29"`, `"2024-12-31"`}, []string{`"1900-02-29"`, `"2024-04-31"`, `"2024-13-01"`, `"2024-00-01"`,
			`"2024-01-00"`, `"24-01-01"`, `"2024-1-01"`, `"10000-01-01"`, `"2024/01/01"`, `"0000-01-01"`}},
		{"time", of(Time), []string{`"00:00:00.000000"`}, []string{`"24:00:00.000000"`, `"00:60:00.000000"`, `"00:00:60.000000"`, `"0:00:00.000000"`, `"00:00:00"`}},
		{"json", of(JSON), []string{`"null"`, `"[]"`, `"1.5"`, `"\"\\u0001\""`, `"{\"\":{}}"`, `"-9007199254740991"`},
			[]string{`""`, `" 1"`, `"1 "`, `"[1, 2]"`, `"1.0"`, `"-0"`, `"1e+21"`, `"9007199254740992"`, `"\"\\u0000\""`, `"\"\\u0041\""`,
				`"\"\\/\""`, `"\"\\u001F\""`, `"nul"`, `{}`, `1`, `"\"\\ufdd0\""`, `"[1,]"`, `"{\"b\":1,\"a\":1}"`, `"1]"`}},
		{"bytes", of(Bytes), []string{`""`, `"AA"`, `"_-8"`, `"AAAA"`}, []string{`"A"`, `"AB"`, `"AA="`, `"A A"`, `"AA\n"`, `"AA\r\n"`, `"+/8"`, `"AAE\u0000"`}},
	} {
		for _, raw := range c.accepted {
			t.Run(c.name+"/"+raw[:min(len(raw), 30)], func(t *testing.T) {
				if _, err := AppendTyped(nil, c.field, []byte(raw)); err != nil {
					t.Error(err)
				}
			})
		}
		for _, raw := range c.refused {
			t.Run(c.name+"/not "+raw, func(t *testing.T) {
				if out, err := AppendTyped(nil, c.field, []byte(raw)); !errors.Is(err, ErrValue) {
					t.Errorf("got %x, %v", out, err)
				}
			})
		}
	}
}

func TestUnknownTypeIsRefused(t *testing.T) {
	for _, typ := range []Type{0, 0x0c, 0xff} {
		if _, err := AppendTyped(nil, FieldSpec{Type: typ, Nullable: true}, []byte(`1`)); err == nil {
			t.Errorf("type %d is accepted", typ)
		}
	}
}

func TestMinimalEscapesAreKept(t *testing.T) {
	out, err := PortableJSON([]byte(` { "\u000a\u001f\u0022\u005c\u002f" : "\u00e9" } `))
	if want := `{"\n\u001f\"\\/":"é"}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestMembersAreOrderedByUTF16(t *testing.T) {
	// U+1F600 is D83D DE00 in UTF-16 and sorts before U+FB33, unlike its UTF-8.
	const canonical = "{\"\U0001F600\":1,\"\uFB33\":2}"
	out, err := PortableJSON([]byte("{\"\uFB33\":2,\"\U0001F600\":1}"))
	if err != nil || string(out) != canonical {
		t.Errorf("got %q, %v", out, err)
	}
	if CheckJSON([]byte("{\"\uFB33\":2,\"\U0001F600\":1}")) == nil {
		t.Error("the order of octets is accepted")
	}
}

func TestRowDigestBindsEverything(t *testing.T) {
	table, row, version := fullRow(t)
	digest := func(row, version string) string {
		var sum [HashSize]byte
		if err := table.RowDigest(&sum, nil, []byte(row), version); err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(sum[:])
	}
	base := digest(row, version)
	if digest(row, version+"x") == base {
		t.Error("the version is not bound")
	}
	if digest(strings.Replace(row, "12.34", "12.35", 1), version) == base {
		t.Error("a value is not bound")
	}
	reordered := `{"fld_bool":true,` + strings.TrimPrefix(strings.Replace(row, `,"fld_bool":true`, ``, 1), `{`)
	if digest(reordered, version) != base {
		t.Error("the order of members matters")
	}
	if digest(strings.ReplaceAll(row, `,"`, ` , "`), version) != base {
		t.Error("blanks matter")
	}
	if digest(strings.Replace(row, `"fld_int"`, `"fld\u005fint"`, 1), version) != base {
		t.Error("the spelling of a member name matters")
	}
}

func TestWrongRowIsRefused(t *testing.T) {
	table, row, version := fullRow(t)
	var sum [HashSize]byte
	for what, c := range map[string]struct{ key, row, version string }{
		"missing field":  {"", strings.Replace(row, `,"fld_bool":true`, "", 1), version},
		"unknown field":  {"", strings.Replace(row, `{`, `{"more":1,`, 1), version},
		"repeated field": {"", strings.Replace(row, `{`, `{"fld_bool":true,`, 1), version},
		"other key":      {`"row"`, row, version},
		"null key":       {`null`, row, version},
		"null field":     {"", strings.Replace(row, `"12.34"`, `null`, 1), version},
		"no version":     {"", row, ""},
		"not an object":  {"", `[]`, version},
		"cut":            {"", row[:len(row)-1], version},
		"trailing":       {"", row + "x", version},
	} {
		t.Run(what, func(t *testing.T) {
			var key []byte
			if c.key != "" {
				key = []byte(c.key)
			}
			err := table.RowDigest(&sum, key, []byte(c.row), c.version)
			if !isRefusal(err) || sum != [HashSize]byte{} {
				t.Errorf("got %x, %v", sum, err)
			}
		})
	}
}

func TestDigesterSurvivesARefusedRow(t *testing.T) {
	table, row, version := fullRow(t)
	d := table.NewDigester()
	want, err := d.Row([]byte(row), version)
	if err != nil {
		t.Fatal(err)
	}
	identity := bytes.Clone(d.Identity())
	if _, err := d.Row([]byte(strings.Replace(row, `"12.34"`, `"12.340"`, 1)), version); err == nil {
		t.Fatal("accepted")
	}
	if got, err := d.Row([]byte(row), version); err != nil || got != want || !bytes.Equal(d.Identity(), identity) {
		t.Errorf("got %x, %v", got, err)
	}
}

func TestRowDigestDoesNotAllocate(t *testing.T) {
	table, row, version := fullRow(t)
	d, raw := table.NewDigester(), []byte(row)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := d.Row(raw, version); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func TestNestingOfJSONIsBounded(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := PortableJSON(nested(1000)); err != nil {
		t.Errorf("1000: %v", err)
	}
	if _, err := PortableJSON(nested(1001)); !errors.Is(err, ErrValue) {
		t.Errorf("1001: %v", err)
	}
	if CheckJSON(nested(1000)) != nil || CheckJSON(nested(1001)) == nil {
		t.Error("the check has another bound")
	}
}
