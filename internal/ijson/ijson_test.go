package ijson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for text, want := range map[string]error{
		` {"a":[1,-0.5e+3,true,false,null,"x"]} `: nil,
		`"\u00e9\ud83d\ude00\/\b\f\n\r\t\"\\"`:    nil,
		`1e308`:                                   nil,
		``:                                        ErrSyntax,
		`{`:                                       ErrSyntax,
		`{"a"}`:                                   ErrSyntax,
		`{"a":1,}`:                                ErrSyntax,
		`{a:1}`:                                   ErrSyntax,
		`[1,]`:                                    ErrSyntax,
		`[1 2]`:                                   ErrSyntax,
		`01`:                                      ErrSyntax,
		`+1`:                                      ErrSyntax,
		`-`:                                       ErrSyntax,
		`1.`:                                      ErrSyntax,
		`.5`:                                      ErrSyntax,
		`1e`:                                      ErrSyntax,
		`tru`:                                     ErrSyntax,
		`NaN`:                                     ErrSyntax,
		`1 1`:                                     ErrSyntax,
		`'a'`:                                     ErrSyntax,
		"\"a\tb\"":                                ErrSyntax,
		`"\x"`:                                    ErrSyntax,
		`"\u12"`:                                  ErrSyntax,
		`"a`:                                      ErrSyntax,
		"\"\xff\"":                                ErrEncoding,
		"\"\xed\xa0\x80\"":                        ErrEncoding,
		`"\ud800"`:                                ErrEncoding,
		`"\ud800\u0041"`:                          ErrEncoding,
		`"\udc00\ud800"`:                          ErrEncoding,
		`"\ufdd0"`:                                ErrNoncharacter,
		`"\ud83f\udffe"`:                          ErrNoncharacter,
		`"\u0000"`:                                ErrNul,
		`{"a\u0000":1}`:                           ErrNul,
		"\"\ufffe\"":                              ErrNoncharacter,
		`{"\uffff":1}`:                            ErrNoncharacter,
		`{"a":1,"a":1}`:                           ErrDuplicate,
		`{"a":1,"\u0061":1}`:                      ErrDuplicate,
		`[{"x":{"a":1,"a":2}}]`:                   ErrDuplicate,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"a":1}`: ErrDuplicate,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"j":1}`: ErrDuplicate,
		`1e309`:                         ErrNumberRange,
		"-1" + strings.Repeat("0", 310): ErrNumberRange,
		strings.Repeat("[", 11) + strings.Repeat("]", 11):           ErrDepth,
		strings.Repeat("[", 10) + strings.Repeat("]", 10):           nil,
		strings.Repeat(`{"a":`, 11) + "1" + strings.Repeat("}", 11): ErrDepth,
		`[[],[],[],[],[],[],[],[],[],[],[],[]]`:                     nil,
	} {
		t.Run(text[:min(len(text), 40)], func(t *testing.T) {
			if err := Validate([]byte(text), 10); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-1": -1, "9007199254740991": MaxSafe, "-9007199254740991": -MaxSafe} {
		if got, err := Integer([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "-0", "00", "01", "1.0", "1e0", "9007199254740992", "-9007199254740992",
		"99999999999999999999", `"1"`, "null", "1 "} {
		if got, err := Integer([]byte(text)); err == nil {
			t.Errorf("%q: accepted as %d", text, got)
		}
	}
}

func TestShape(t *testing.T) {
	shape := NewShape([]string{"a", "b"}, "c")
	values, err := shape.Read([]byte(`{"b": {"x":[1]} ,"a":1}`))
	if err != nil || string(values[0]) != "1" || string(values[1]) != `{"x":[1]}` || values[2] != nil {
		t.Errorf("got %q, %v", values, err)
	}
	for text, want := range map[string]error{
		`{"a":1}`: ErrMissing, `{"a":1,"b":2,"d":3}`: ErrUnknown, `{"a":1,"b":2,"A":3}`: ErrUnknown,
		`{"a":1,"b":2,"c":3,"c":4}`: ErrDuplicate, `[]`: ErrType, `null`: ErrType, ``: ErrType,
		`{"a":1,"b":{"x":1,"x":2}}`: ErrDuplicate, `{"a":1,"b":2}}`: ErrSyntax,
	} {
		if _, err := shape.Read([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
	}
}

func TestReaderKeepsTheFirstError(t *testing.T) {
	r := Reader{}
	v := r.Object(NewShape([]string{"a", "b"}), []byte(`{"a":1,"b":true}`))
	v.Text(0)
	first := r.Err
	v.Integer(1)
	r.Each([]byte(`[1]`), func([]byte) { t.Error("visited after an error") })
	if !errors.Is(first, ErrType) || r.Err != first || !strings.Contains(first.Error(), "member a") {
		t.Errorf("got %v, then %v", first, r.Err)
	}
}

// FuzzValidate compares with the standard library where both must agree.
func FuzzValidate(f *testing.F) {
	for _, s := range []string{`{"a":[1,2e3,"\u00e9"]}`, `[]`, `"\ud83d\ude00"`, "\"\xff\"", `{"a":1,"a":2}`, `1e400`, `-0`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := Value(data, DefaultDepth)
		if err != nil {
			if errors.Is(err, ErrSyntax) && json.Valid(data) {
				t.Fatalf("%q is JSON", data)
			}
			return
		}
		if !json.Valid(data) || !bytes.Equal(value, bytes.Trim(data, " \t\r\n")) {
			t.Fatalf("%q was accepted as %q", data, value)
		}
		if KindOf(value) != String {
			return
		}
		text, err := Text(value)
		var want string
		if err != nil || json.Unmarshal(value, &want) != nil || string(text) != want {
			t.Fatalf("%q reads as %q, %v", value, text, err)
		}
		var back string
		if json.Unmarshal(AppendQuoted(nil, text), &back) != nil || back != want {
			t.Fatalf("%q does not survive quoting", want)
		}
	})
}
